//! The page around the drawing: the verdict, the legend, and a table of every step.

use std::fmt::Write;

use super::arrow::{End, What};
use super::draw::{Marks, body, heads, sample};
use super::lane::Sign;
use super::{Head, MOST_STEPS, Picture, Step};
use crate::run::Found;
use crate::script::world::{names_of, say_setup, verdict};

/// The look of the page: light, dark, and on paper.
const STYLE: &str = include_str!("page.css");

/// The whole page.
pub(super) fn page(picture: &Picture, head: &Head<'_>, found: Option<&Found>) -> String {
    let found = found.map(|found| named(picture, found));
    let found = found.as_ref();
    let title = escape(&format!("pinfold sim: {}", head.title));
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
         <h1>{title}</h1>\n"
    );
    write_head(&mut page, picture, head, found);
    write_legend(&mut page);
    let marks = Marks {
        broken: found.map(|found| (found.step, found.violation.to_string())),
        recovers_after: head.recovers_after,
    };
    let _ = write!(
        page,
        "<div class=\"picture\" tabindex=\"0\">\n<div class=\"heads\">\n{}</div>\n{}</div>\n",
        heads(picture),
        body(picture, &marks)
    );
    write_table(&mut page, picture, found);
    page + "</main>\n</body>\n</html>\n"
}

/// What was found, with names in place of identities.
fn named(picture: &Picture, found: &Found) -> Found {
    let mut found = found.clone();
    found.violation.what = names_of(&picture.setup).name_in(&found.violation.what);
    found
}

/// A text as a page may carry it, between tags and in an attribute.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c if c.is_control() && c != '\n' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// The verdict, and what was run.
fn write_head(page: &mut String, picture: &Picture, head: &Head<'_>, found: Option<&Found>) {
    match found {
        None if head.differences.is_empty() => {
            page.push_str("<p class=\"verdict held\">Every promise held.</p>\n");
        }
        None => page.push_str(
            "<p class=\"verdict differs\"><strong>another way</strong> than the script says; every \
             promise held.</p>\n",
        ),
        Some(found) => {
            let verdict = escape(&verdict(Some(found)));
            let (promise, what) = (found.violation.invariant.promise(), &found.violation.what);
            let (promise, what) = (escape(promise), escape(what));
            let judge = found.violation.judge.name();
            let step = step_link(picture, found.step);
            let _ = writeln!(
                page,
                "<p class=\"verdict violated\"><strong>{verdict}</strong> ({promise}) at {step}, \
                 says the {judge}: {what}</p>"
            );
        }
    }
    write_differences(page, head);
    let steps = match head.recovers_after {
        Some(after) => {
            format!("{after} steps, and {} of a recovery", picture.count - after.min(picture.count))
        }
        None => format!("{} steps", picture.count),
    };
    let left_out = match picture.steps.front() {
        Some(first) if first.number > 1 => {
            format!(" Shown are the last {MOST_STEPS}, from step {}.", first.number)
        }
        Some(_) | None => String::new(),
    };
    let (command, version) = (escape(head.command), escape(head.version));
    let setup = escape(&say_setup(&picture.setup));
    let _ = writeln!(
        page,
        "<p>{steps}.{left_out} Run with pinfold {version}:</p>\n<pre><code>{command}</code></pre>\n\
         <p>In this World:</p>\n<pre><code>world {setup}</code></pre>"
    );
}

/// Where a script's run went another way.
fn write_differences(page: &mut String, head: &Head<'_>) {
    if head.differences.is_empty() {
        return;
    }
    page.push_str("<ul class=\"differences\">\n");
    for difference in head.differences {
        let _ = writeln!(page, "<li>{}</li>", escape(difference));
    }
    page.push_str("</ul>\n");
}

/// A step's number, as a way to it where it is shown.
fn step_link(picture: &Picture, number: u32) -> String {
    match picture.steps.iter().any(|step| step.number == number) {
        true => format!("<a href=\"#p{number}\">step {number}</a>"),
        false => format!("step {number}"),
    }
}

fn write_legend(page: &mut String) {
    let arrow = |what: What| sample(Some((what.class(), End::Arrived)), None);
    let ends = |end| sample(Some((What::Request.class(), end)), None);
    let sign = |sign| sample(None, Some(sign));
    let rows = [
        (arrow(What::Request), "a request"),
        (arrow(What::Answer), "its answer"),
        (arrow(What::Work), "delete work"),
        (arrow(What::Put), "a put: its bytes are in the store"),
        (arrow(What::Ask), "a get or a check reaches the store"),
        (arrow(What::Get), "what the store gives back"),
        (arrow(What::Delete), "a delete"),
        (arrow(What::Sync), "records, synced"),
        (arrow(What::Read), "a disk that is read again"),
        (ends(End::Copied), "arrives, and a copy goes on"),
        (ends(End::Lost), "never arrives"),
        (ends(End::Open), "under way at the end"),
        (sign(Sign::Point), "somebody does something"),
        (sign(Sign::Adopted), "a worker adopts what was loaded"),
        (sign(Sign::Break), "a process or the coordinator ends"),
        (sign(Sign::Back), "somebody or something is back"),
        (sign(Sign::Harm), "lost or damaged in the store; or a proof that is none"),
    ];
    page.push_str("<ul class=\"legend\">\n");
    for (sample, text) in rows {
        let _ = writeln!(page, "<li>{sample} {}</li>", escape(text));
    }
    page.push_str(
        "</ul>\n<p class=\"note\">Time goes down, one row a step. A dotted lane is a process that \
         is not registered, a dashed one a coordinator whose sync failed; while the coordinator is \
         gone it has none. Point at a row to read what was seen, at the coordinator&#39;s lane for \
         what it holds, and at an arrow for where it comes from; a row leads to its place in the \
         table.</p>\n",
    );
}

fn write_table(page: &mut String, picture: &Picture, found: Option<&Found>) {
    page.push_str(
        "<h2>Every step</h2>\n<table>\n<tr><th scope=\"col\">step</th>\
         <th scope=\"col\">what was chosen</th><th scope=\"col\">what was seen</th></tr>\n",
    );
    let broken = found.map(|found| (found.step, found.violation.to_string()));
    for step in &picture.steps {
        let said = broken.as_ref().filter(|(number, _)| *number == step.number);
        write_row(page, step, said.map(|(_, said)| said.as_str()));
    }
    // A step that never came to its end was not looked at.
    if let Some((number, said)) = broken.filter(|(number, _)| *number > picture.count) {
        let _ = writeln!(
            page,
            "<tr id=\"s{number}\" class=\"broken\"><td>{number}</td><td></td><td><div \
             class=\"finding\">{}</div></td></tr>",
            escape(&said)
        );
    }
    page.push_str("</table>\n");
}

fn write_row(page: &mut String, step: &Step, broken: Option<&str>) {
    let Step { number, choice, kind, seen, .. } = step;
    let class = match (broken, kind.is_fault()) {
        (Some(_), _) => " class=\"broken\"",
        (None, true) => " class=\"fault\"",
        (None, false) => "",
    };
    let _ = write!(
        page,
        "<tr id=\"s{number}\"{class}><td><a href=\"#p{number}\">{number}</a></td><td>{}</td><td>",
        escape(choice)
    );
    for line in seen {
        let _ = write!(page, "<div>{}</div>", escape(line));
    }
    if let Some(said) = broken {
        let _ = write!(page, "<div class=\"finding\">{}</div>", escape(said));
    }
    page.push_str("</td></tr>\n");
}
