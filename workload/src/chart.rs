//! Charts as inline SVG text: a plot over a number, and bars by kind.
//!
//! It draws what it is given, with axes from zero and ticks that a person reads at a glance.
//! Colours are the page's, by class, so that one drawing serves light, dark and paper. It never
//! writes a text that is not escaped, and refers to nothing outside itself.

mod axis;
#[cfg(test)]
mod tests;

use std::fmt::Write;

use axis::Scale;
pub(crate) use axis::Unit;
use pinfold_sim::page::escape;

/// Width of every drawing, in its own units; the page scales it.
const WIDTH: f64 = 760.0;
/// Height of every drawing.
const HEIGHT: f64 = 290.0;
/// Height of the legend, which stands above everything else.
const LEGEND: f64 = 20.0;
/// Where the plot's area begins and ends.
const LEFT: f64 = 78.0;
const RIGHT: f64 = 728.0;
const TOP: f64 = 50.0;
const BOTTOM: f64 = 244.0;
/// The width of a character of the texts, which are 12 units high; a little more than most are.
const CHARACTER: f64 = 6.8;
/// More marks than this are short, so that they do not hide what they mark.
const LONG_MARKS: usize = 40;

/// What stands on every chart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Caption {
    /// Unique on its page; letters, digits and dashes.
    pub(crate) id: &'static str,
    /// What one sees, in one sentence.
    pub(crate) title: String,
    /// The same in words and numbers, for those who do not see the drawing.
    pub(crate) description: String,
}

/// An axis from zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Axis {
    /// What is counted along it.
    pub(crate) label: String,
    /// How its numbers are written.
    pub(crate) unit: Unit,
    /// How far it reaches at least; further where a point lies further.
    pub(crate) reach: u64,
}

/// How the points of a series are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// A line with a filled area below it.
    Area,
    /// A line.
    Line,
    /// A dot for each point, on a stem.
    Dots,
}

/// Points in order of x.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Series {
    /// What the legend calls it.
    pub(crate) name: String,
    /// How it is drawn.
    pub(crate) shape: Shape,
    /// The points.
    pub(crate) points: Vec<(u64, u64)>,
}

/// Series over a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plot {
    /// Title and description.
    pub(crate) caption: Caption,
    /// What x means.
    pub(crate) x: Axis,
    /// What y means.
    pub(crate) y: Axis,
    /// What is drawn, the first one below the others; at most four.
    pub(crate) series: Vec<Series>,
    /// A line across at this height, with its name.
    pub(crate) level: Option<(u64, String)>,
    /// Lines upwards at these places, in order, and what the legend calls them.
    pub(crate) marks: (Vec<u64>, String),
}

/// The bars of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    /// What stands below them.
    pub(crate) name: String,
    /// Their heights in thousandths of the whole, one for each share.
    pub(crate) per_mille: Vec<u64>,
    /// What stands above them: of how many these are shares.
    pub(crate) of: u64,
}

/// Shares by kind, side by side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bars {
    /// Title and description.
    pub(crate) caption: Caption,
    /// What the kinds are.
    pub(crate) x: String,
    /// What the numbers above the bars are.
    pub(crate) y: String,
    /// What the legend calls the shares, one or two.
    pub(crate) shares: Vec<String>,
    /// At most 24, so that the numbers above them do not touch.
    pub(crate) kinds: Vec<Kind>,
}

impl Plot {
    /// The drawing.
    #[must_use]
    pub(crate) fn svg(&self) -> String {
        let all = || self.series.iter().flat_map(|series| &series.points);
        let level = self.level.as_ref().map(|(height, _)| *height);
        let most_x = all().map(|point| point.0).chain(self.marks.0.iter().copied()).max();
        let most_y = all().map(|point| point.1).chain(level).max();
        let most_x = most_x.unwrap_or(0).max(self.x.reach);
        let most_y = most_y.unwrap_or(0).max(self.y.reach);
        let x = Scale::tight(self.x.unit, most_x, (LEFT, RIGHT));
        let y = Scale::round(self.y.unit, most_y, (BOTTOM, TOP));
        let mut svg = open(&self.caption, !self.entries().is_empty());
        grid(&mut svg, &y, &self.y.label);
        for tick in x.ticks() {
            let at = x.place(tick);
            line(&mut svg, "axis", (at, BOTTOM), (at, BOTTOM + 4.0));
            text(&mut svg, "middle", (at, BOTTOM + 18.0), &x.label(tick));
        }
        text(&mut svg, "middle", ((LEFT + RIGHT) / 2.0, BOTTOM + 37.0), &self.x.label);
        for (number, series) in self.series.iter().enumerate() {
            draw(&mut svg, number, series, (&x, &y));
        }
        // Marks that fall on one another are drawn once.
        let mut marks: Vec<f64> = self.marks.0.iter().map(|mark| x.place(*mark)).collect();
        marks.dedup_by(|next, last| *next - *last < 1.0);
        let up = if marks.len() > LONG_MARKS { BOTTOM - 10.0 } else { TOP };
        for at in marks {
            line(&mut svg, "mark", (at, BOTTOM), (at, up));
        }
        if let Some((height, _)) = &self.level {
            line(&mut svg, "level", (LEFT, y.place(*height)), (RIGHT, y.place(*height)));
        }
        legend(&mut svg, &self.entries());
        svg + "</svg>\n"
    }

    /// What cannot be told apart without a name; a single series says what it is by its axis.
    fn entries(&self) -> Vec<(String, &str)> {
        let mut entries = Vec::new();
        if self.series.len() > 1 {
            let numbered = self.series.iter().enumerate();
            entries.extend(numbered.map(|(n, series)| (format!("line s{n}"), &*series.name)));
        }
        entries.extend(self.level.iter().map(|(_, name)| ("level".to_string(), &**name)));
        if !self.marks.0.is_empty() {
            entries.push(("mark".to_string(), &self.marks.1));
        }
        entries
    }
}

impl Bars {
    /// The drawing.
    #[must_use]
    pub(crate) fn svg(&self) -> String {
        let y = Scale::round(Unit::PerMille, 1000, (BOTTOM, TOP + 16.0));
        let entries: Vec<(String, &str)> = match &self.shares[..] {
            [] | [_] => Vec::new(),
            shares => (0..).zip(shares).map(|(n, name)| (format!("bar s{n}"), &**name)).collect(),
        };
        let mut svg = open(&self.caption, !entries.is_empty());
        grid(&mut svg, &y, &self.y);
        let room = (RIGHT - LEFT) / self.kinds.len().max(1) as f64;
        let wide = (room * 0.8).min(70.0);
        for (number, kind) in self.kinds.iter().enumerate() {
            let middle = LEFT + room * (number as f64 + 0.5);
            let each = wide / kind.per_mille.len().max(1) as f64;
            for (share, per_mille) in kind.per_mille.iter().enumerate() {
                let (left, top) = (middle - wide / 2.0 + each * share as f64, y.place(*per_mille));
                let _ = writeln!(
                    svg,
                    "<rect class=\"bar s{share}\" x=\"{left:.1}\" y=\"{top:.1}\" \
                     width=\"{each:.1}\" height=\"{:.1}\"/>",
                    BOTTOM - top
                );
            }
            let top = y.place(kind.per_mille.iter().copied().max().unwrap_or(0));
            let of = axis::brief(kind.of);
            let _ = writeln!(
                svg,
                "<text class=\"small\" x=\"{middle:.1}\" y=\"{:.1}\" \
                 text-anchor=\"middle\">{of}</text>",
                top - 4.0
            );
            text(&mut svg, "middle", (middle, BOTTOM + 18.0), &kind.name);
        }
        text(&mut svg, "middle", ((LEFT + RIGHT) / 2.0, BOTTOM + 37.0), &self.x);
        legend(&mut svg, &entries);
        svg + "</svg>\n"
    }
}

/// Samples with their names, side by side.
fn legend(svg: &mut String, entries: &[(String, &str)]) {
    let mut left = LEFT;
    for (class, name) in entries {
        line(svg, class, (left, 12.0), (left + 18.0, 12.0));
        text(svg, "start", (left + 24.0, 16.0), name);
        left += 24.0 + width(name) + 22.0;
    }
}

/// The head of a drawing; without a legend there is no room for one.
fn open(caption: &Caption, has_legend: bool) -> String {
    let Caption { id, title, description } = caption;
    let top = if has_legend { 0.0 } else { LEGEND };
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 {top} {WIDTH} {}\" role=\"img\" \
         aria-labelledby=\"{id}-title {id}-text\">\n\
         <title id=\"{id}-title\">{}</title>\n<desc id=\"{id}-text\">{}</desc>\n",
        HEIGHT - top,
        escape(title),
        escape(description)
    )
}

/// Lines across at the ticks of y, their numbers, and what they count.
fn grid(svg: &mut String, y: &Scale, label: &str) {
    for tick in y.ticks() {
        let at = y.place(tick);
        let class = if tick == 0 { "axis" } else { "grid" };
        line(svg, class, (LEFT, at), (RIGHT, at));
        text(svg, "end", (LEFT - 8.0, at + 4.0), &y.label(tick));
    }
    text(svg, "start", (LEFT, TOP - 14.0), label);
}

fn draw(svg: &mut String, number: usize, series: &Series, (x, y): (&Scale, &Scale)) {
    let place = |point: &(u64, u64)| (x.place(point.0), y.place(point.1));
    let Some((first, last)) = series.points.first().zip(series.points.last()) else { return };
    let mut path = String::new();
    for (x, y) in series.points.iter().map(place) {
        let _ = write!(path, " {x:.1},{y:.1}");
    }
    let path = path.trim_start();
    match series.shape {
        Shape::Area | Shape::Line => {
            if series.shape == Shape::Area {
                let (from, to) = (x.place(first.0), x.place(last.0));
                let ends = format!("{from:.1},{BOTTOM:.1} {path} {to:.1},{BOTTOM:.1}");
                let _ = writeln!(svg, "<polygon class=\"area s{number}\" points=\"{ends}\"/>");
            }
            let _ = writeln!(svg, "<polyline class=\"line s{number}\" points=\"{path}\"/>");
        }
        Shape::Dots => {
            for (x, y) in series.points.iter().map(place) {
                line(svg, &format!("stem s{number}"), (x, BOTTOM), (x, y));
                let _ = writeln!(
                    svg,
                    "<circle class=\"dot s{number}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\"/>"
                );
            }
        }
    }
}

fn line(svg: &mut String, class: &str, from: (f64, f64), to: (f64, f64)) {
    let _ = writeln!(
        svg,
        "<line class=\"{class}\" x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\"/>",
        from.0, from.1, to.0, to.1
    );
}

fn text(svg: &mut String, anchor: &str, (x, y): (f64, f64), content: &str) {
    let content = escape(content);
    let _ =
        writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{content}</text>");
}

/// About how wide a text is.
fn width(text: &str) -> f64 {
    text.chars().count() as f64 * CHARACTER
}
