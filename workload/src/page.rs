//! The page of a replay: what was run, what came of it, and four charts, in one file.
//!
//! Nothing is fetched and nothing is run: no script, no font, no picture from elsewhere. Every text
//! that comes from outside is escaped.

use std::fmt::Write;

use pinfold_sim::page::escape;

use crate::chart::{Axis, Bars, Caption, Kind, Plot, Series, Shape, Unit};
use crate::report::{DEEPEST, Depth, Point, Report};
use crate::summary::{Section, summary};
use crate::unit::{bytes, millis, percent, seconds};

/// The look of the page: light, dark, and on paper.
const STYLE: &str = include_str!("page.css");
/// The most rows of a table below a chart, and the most dots in one.
const ROWS: usize = 25;
const DOTS: usize = 200;
/// A budget so many times above everything else is said and not drawn.
const FAR: u64 = 4;

/// What a page tells.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    /// The command that was run, as one would type it.
    pub command: &'a str,
    /// The version of the program.
    pub version: &'a str,
    /// What came of it.
    pub report: &'a Report,
}

/// A chart with what stands around it.
struct Figure {
    title: String,
    /// How to read it, in a sentence or two.
    text: String,
    svg: String,
    /// The numbers: a heading row, and the rows.
    heads: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Page<'_> {
    /// The whole page.
    #[must_use]
    pub fn html(&self) -> String {
        let Self { report, .. } = self;
        let title = escape(&format!("pinfold replay: {}", report.trace));
        let mut page = format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
             <h1>{title}</h1>\n"
        );
        self.head(&mut page);
        for figure in figures(report) {
            figure.write(&mut page);
        }
        page.push_str("<h2>All figures</h2>\n<div class=\"figures\">\n");
        for section in summary(report) {
            write_section(&mut page, &section);
        }
        page + "</div>\n</main>\n</body>\n</html>\n"
    }

    /// The verdict, and what was run.
    fn head(&self, page: &mut String) {
        let Report { requests, crashes, .. } = self.report;
        let saved = percent(self.report.tally.tokens_saved, self.report.tally.input_tokens);
        let verdict = self.report.verdict();
        let held = self.report.violations == 0 && self.report.tally.store_failures == 0;
        let class = if held { "held" } else { "broken" };
        let requests = match requests {
            1 => "1 request".to_string(),
            count => format!("{count} requests"),
        };
        let times = match crashes {
            0 => "never thrown away".to_string(),
            1 => "thrown away and recovered once".to_string(),
            count => format!("thrown away and recovered {count} times"),
        };
        let _ = writeln!(
            page,
            "<p class=\"{class}\">{verdict} The job served {requests}, its process state was \
             {times}, and restores saved {saved} of the prefill tokens.</p>"
        );
        let mut lines = self.report.violation_lines();
        lines.extend(self.report.store_failure_text.clone());
        if !lines.is_empty() {
            page.push_str("<ul>\n");
            for text in lines {
                let _ = writeln!(page, "<li>{}</li>", escape(&text));
            }
            page.push_str("</ul>\n");
        }
        let (command, version) = (escape(self.command), escape(self.version));
        let _ =
            writeln!(page, "<p>Run with pinfold {version}:</p>\n<pre><code>{command}</code></pre>");
    }
}

impl Figure {
    fn write(&self, page: &mut String) {
        let (title, text) = (escape(&self.title), escape(&self.text));
        let _ =
            writeln!(page, "<figure>\n<figcaption><h2>{title}</h2>\n<p>{text}</p></figcaption>");
        let _ = writeln!(page, "<div class=\"chart\">\n{}</div>", self.svg);
        if !self.rows.is_empty() {
            page.push_str("<details><summary>The numbers</summary>\n<table>\n<tr>");
            for head in &self.heads {
                let _ = write!(page, "<th scope=\"col\">{}</th>", escape(head));
            }
            page.push_str("</tr>\n");
            for row in &self.rows {
                page.push_str("<tr>");
                for cell in row {
                    let _ = write!(page, "<td>{}</td>", escape(cell));
                }
                page.push_str("</tr>\n");
            }
            page.push_str("</table>\n</details>\n");
        }
        page.push_str("</figure>\n");
    }
}

fn write_section(page: &mut String, section: &Section) {
    let _ = writeln!(page, "<section>\n<h3>{}</h3>\n<table>", escape(&section.title));
    for row in &section.rows {
        let (name, value) = (escape(&row.name), escape(&row.value));
        let _ = writeln!(page, "<tr><th scope=\"row\">{name}</th><td>{value}</td></tr>");
        if !row.note.is_empty() {
            let note = escape(&row.note);
            let _ = writeln!(page, "<tr><td class=\"note\" colspan=\"2\">{note}</td></tr>");
        }
    }
    page.push_str("</table>\n</section>\n");
}

fn figures(report: &Report) -> Vec<Figure> {
    let mut figures = vec![retained(report), depths(report), collected(report)];
    figures.extend(recoveries(report));
    figures
}

fn time_axis() -> Axis {
    Axis { label: "time since the beginning".to_string(), unit: Unit::Micros, reach: 0 }
}

/// One value of each point over time.
fn over_time(report: &Report, shape: Shape, name: &str, value: fn(&Point) -> u64) -> Series {
    let times = report.time.timeline_ms.iter().map(|ms| ms.saturating_mul(1000));
    let points = times.zip(report.timeline.iter().map(value)).collect();
    Series { name: name.to_string(), shape, points }
}

fn marks(report: &Report) -> (Vec<u64>, String) {
    let times = report.time.recovered_ms.iter().map(|ms| ms.saturating_mul(1000));
    (times.collect(), "recovery".to_string())
}

/// Rows of the timeline, evenly thinned, the last one always.
fn rows(report: &Report, cells: fn(&Point) -> [String; 2]) -> Vec<Vec<String>> {
    let every = report.timeline.len().div_ceil(ROWS).max(1);
    let last = report.timeline.len().saturating_sub(1);
    let points = report.timeline.iter().zip(&report.time.timeline_ms).enumerate();
    let picked = points.filter(|(place, _)| place % every == 0 || *place == last);
    picked
        .map(|(_, (point, ms))| {
            let mut row = vec![seconds(*ms), point.requests.to_string()];
            row.extend(cells(point));
            row
        })
        .collect()
}

/// Bytes over time, with the job's budget.
fn retained(report: &Report) -> Figure {
    let most = report.timeline.iter().map(|point| point.bytes_retained).max().unwrap_or(0);
    let title = format!("Live turns hold at most {} at once", bytes(most));
    let highest = report.timeline.iter().map(|point| point.bytes).max().unwrap_or(0);
    let near = |budget: &u64| *budget <= highest.saturating_mul(FAR);
    let budget = report.job_bytes.map(|budget| match near(&budget) {
        true => format!("The dashed line is the job's budget, {}.", bytes(budget)),
        false => format!("The job's budget, {}, is far above.", bytes(budget)),
    });
    let text = format!(
        "Retained are the private bytes of checkpoints that live turns refer to. With a record are \
         these and the ones that are being written, read or deleted. {}",
        budget.as_deref().unwrap_or("The job has no budget of bytes.")
    );
    let level = report.job_bytes.filter(near);
    let plot = Plot {
        caption: caption("retained", &title, &text),
        x: time_axis(),
        y: Axis { label: "private bytes".to_string(), unit: Unit::Bytes, reach: 0 },
        series: vec![
            over_time(report, Shape::Area, "retained", |point| point.bytes_retained),
            over_time(report, Shape::Line, "with a record", |point| point.bytes),
        ],
        level: level.map(|budget| (budget, "budget of the job".to_string())),
        marks: marks(report),
    };
    Figure {
        svg: plot.svg(),
        heads: vec!["time", "requests done", "retained", "with a record"],
        rows: rows(report, |point| [bytes(point.bytes_retained), bytes(point.bytes)]),
        title,
        text,
    }
}

/// Restored share by the place of a turn.
fn depths(report: &Report) -> Figure {
    let Report { tally, turns, .. } = report;
    let title = format!(
        "{} of the turns resumed from a kept checkpoint, which saved {} of the prefill",
        percent(tally.restores.into(), (*turns).into()),
        percent(tally.tokens_saved, tally.input_tokens)
    );
    let text = "Turns by their place in the conversation: 1 is its first. A first turn can only \
                resume from what it shares with another conversation. The number above the bars \
                says how many turns there are at that place.";
    let name = |depth: &Depth| {
        let more = if depth.depth == DEEPEST { "+" } else { "" };
        format!("{}{more}", depth.depth)
    };
    let kind = |depth: &Depth| Kind {
        name: name(depth),
        per_mille: vec![
            per_mille(depth.restores.into(), depth.turns.into()),
            per_mille(depth.tokens_saved, depth.input_tokens),
        ],
        of: depth.turns.into(),
    };
    let bars = Bars {
        caption: caption("depths", &title, text),
        x: "place of the turn in its conversation".to_string(),
        y: "share; above the bars: all turns at that place".to_string(),
        shares: vec!["turns that resumed".to_string(), "prefill tokens saved".to_string()],
        kinds: report.depths.iter().map(kind).collect(),
    };
    let cells = |depth: &Depth| {
        let share = percent(depth.restores.into(), depth.turns.into());
        let saved = percent(depth.tokens_saved, depth.input_tokens);
        vec![name(depth), depth.turns.to_string(), depth.restores.to_string(), share, saved]
    };
    Figure {
        svg: bars.svg(),
        heads: vec!["place", "turns", "resumed", "share", "prefill tokens saved"],
        rows: report.depths.iter().map(cells).collect(),
        title,
        text: text.to_string(),
    }
}

/// A part of a whole in thousandths; 0 of nothing.
fn per_mille(part: u64, whole: u64) -> u64 {
    part.saturating_mul(1000) / whole.max(1)
}

/// Collections over time.
fn collected(report: &Report) -> Figure {
    let tally = &report.tally;
    let title = format!(
        "{} checkpoints were collected, {}",
        tally.checkpoints_collected,
        bytes(tally.bytes_collected)
    );
    let text = "Collected are checkpoints whose every object was deleted, since the beginning. \
                With a record are those that are there at the moment.";
    let plot = Plot {
        caption: caption("collected", &title, text),
        x: time_axis(),
        y: Axis { label: "checkpoints".to_string(), unit: Unit::Count, reach: 0 },
        series: vec![
            over_time(report, Shape::Area, "collected", |point| point.checkpoints_collected),
            over_time(report, Shape::Line, "with a record", |point| point.checkpoints),
        ],
        level: None,
        marks: marks(report),
    };
    let cells = |point: &Point| {
        let collected =
            format!("{} ({})", point.checkpoints_collected, bytes(point.bytes_collected));
        [collected, point.checkpoints.to_string()]
    };
    Figure {
        svg: plot.svg(),
        heads: vec!["time", "requests done", "collected", "with a record"],
        rows: rows(report, cells),
        title,
        text: text.to_string(),
    }
}

/// How long recoveries took, if there were any.
fn recoveries(report: &Report) -> Option<Figure> {
    let took = &report.time.recovery_us;
    let (least, most) = took.iter().min().zip(took.iter().max())?;
    let title = match took.len() {
        1 => format!("The recovery took {}", millis(*most)),
        count => format!("{count} recoveries took {} to {}", millis(*least), millis(*most)),
    };
    let group = took.len().div_ceil(DOTS);
    let thinned = match group {
        1 => String::new(),
        group => format!(" Of each {group} in a row the slowest is shown."),
    };
    let text = format!(
        "From opening the journal to an engine that answers, over how many requests were done by \
         then.{thinned}"
    );
    let pairs: Vec<(u32, u64)> =
        report.recovered_at.iter().copied().zip(took.iter().copied()).collect();
    let slowest = |group: &[(u32, u64)]| group.iter().max_by_key(|(_, took)| *took).copied();
    let shown: Vec<(u32, u64)> = pairs.chunks(group).filter_map(slowest).collect();
    let points = shown.iter().map(|(requests, took)| ((*requests).into(), *took)).collect();
    let plot = Plot {
        caption: caption("recoveries", &title, &text),
        x: Axis {
            label: "requests done".to_string(),
            unit: Unit::Count,
            reach: report.requests.into(),
        },
        y: Axis { label: "time of a recovery".to_string(), unit: Unit::Micros, reach: 0 },
        series: vec![Series { name: "recovery".to_string(), shape: Shape::Dots, points }],
        level: None,
        marks: (Vec::new(), String::new()),
    };
    let cells = |(requests, took): &(u32, u64)| vec![requests.to_string(), millis(*took)];
    Some(Figure {
        svg: plot.svg(),
        heads: vec!["requests done", "took"],
        rows: shown.iter().map(cells).collect(),
        title,
        text,
    })
}

fn caption(id: &'static str, title: &str, text: &str) -> Caption {
    Caption { id, title: title.to_string(), description: text.to_string() }
}
