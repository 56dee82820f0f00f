//! The drawing: lanes from left to right, time from top to bottom, one row a step.
//!
//! All of its numbers are whole. Colours are the page's, by class. It never writes a text that is
//! not escaped.

use std::fmt::Write;

use super::arrow::{Arrow, End};
use super::html::escape;
use super::lane::{Lane, Sign, State};
use super::{Picture, Step};

/// The height of a row, and of the heads of the lanes.
const ROW: i64 = 18;
const HEAD: i64 = 30;
/// Where the lanes begin, and how far apart they are.
const LEFT: i64 = 400;
const APART: i64 = 96;
/// Room below the last row for what was found.
const FOOT: i64 = 30;
/// The most characters of a choice beside its row; the rest is in the table.
const CHOICE: usize = 50;
/// The most characters of what was found below the last row.
const FINDING: usize = 150;

/// What is drawn beside a run's own steps.
pub(super) struct Marks {
    /// The step that broke a promise, and what is said of it.
    pub(super) broken: Option<(u32, String)>,
    /// The last step before the recovery.
    pub(super) recovers_after: Option<u32>,
}

/// Where everything is.
struct Grid {
    /// The first step that is shown, and the last.
    first: u32,
    last: u32,
    processes: u8,
}

/// The heads of the lanes.
pub(super) fn heads(picture: &Picture) -> String {
    let grid = Grid::of(picture);
    let mut svg = open(&grid, HEAD, "The lanes");
    text(&mut svg, "number", (44, HEAD - 10), "step");
    text(&mut svg, "choice", (54, HEAD - 10), "what was chosen");
    for lane in Lane::all(grid.processes) {
        text(&mut svg, "lane", (grid.x(lane), HEAD - 10), &lane.name(&picture.setup));
    }
    svg + "</svg>\n"
}

/// The picture below the heads.
pub(super) fn body(picture: &Picture, marks: &Marks) -> String {
    let grid = Grid::of(picture);
    let mut svg = open(&grid, grid.bottom() + FOOT, "The run, step by step");
    for lane in Lane::all(grid.processes) {
        draw_lane(&mut svg, &grid, picture, lane);
    }
    for step in &picture.steps {
        draw_row(&mut svg, &grid, step, marks);
    }
    let ending = picture.steps.iter().flat_map(|step| &step.arrows);
    for arrow in ending.chain(&picture.open) {
        grid.arrow(&mut svg, arrow);
    }
    for step in &picture.steps {
        for (lane, sign) in &step.signs {
            let fault = if step.kind.is_fault() { " fault" } else { "" };
            draw_sign(&mut svg, *sign, fault, (grid.x(*lane), grid.y(step.number)));
        }
    }
    draw_marks(&mut svg, &grid, marks);
    svg + "</svg>\n"
}

/// An arrow and a sign by themselves, for the legend.
pub(super) fn sample(arrow: Option<(&str, End)>, sign: Option<Sign>) -> String {
    let mut svg =
        "<svg class=\"sample\" width=\"56\" height=\"16\" aria-hidden=\"true\">".to_string();
    if let Some((class, end)) = arrow {
        draw_arrow(&mut svg, (class, end), (2, 8), (if end == End::Lost { 40 } else { 52 }, 8));
    }
    if let Some(sign) = sign {
        draw_sign(&mut svg, sign, "", (28, 8));
    }
    svg + "</svg>"
}

impl Grid {
    fn of(picture: &Picture) -> Self {
        let ends = picture.steps.front().zip(picture.steps.back());
        let (first, last) = ends.map_or((1, 0), |(first, last)| (first.number, last.number));
        Self { first, last, processes: picture.setup.processes() }
    }

    fn width(&self) -> i64 {
        self.x(Lane::Disk) + APART / 2 + 10
    }

    fn bottom(&self) -> i64 {
        self.top(self.last + 1)
    }

    fn x(&self, lane: Lane) -> i64 {
        LEFT + APART / 2 + APART * i64::from(lane.column(self.processes))
    }

    /// The upper end of a step's row; what is before the first row is at its upper end.
    fn top(&self, step: u32) -> i64 {
        ROW * i64::from(step.saturating_sub(self.first))
    }

    /// The middle of a step's row.
    fn y(&self, step: u32) -> i64 {
        if step < self.first { 0 } else { self.top(step) + ROW / 2 }
    }

    fn arrow(&self, svg: &mut String, arrow: &Arrow) {
        let Arrow { what, from, to, end, .. } = arrow;
        let (start, target) = (self.x(from.0), self.x(to.0));
        let tip = match end {
            End::Arrived | End::Copied => (target, self.y(to.1)),
            End::Lost => (start + (target - start) * 2 / 3, self.y(to.1)),
            End::Open => (start + (target - start) * 2 / 3, self.bottom()),
        };
        let _ = write!(svg, "<g><title>{}</title>", escape(&arrow.title()));
        draw_arrow(svg, (what.class(), *end), (start, self.y(from.1)), tip);
        svg.push_str("</g>\n");
    }
}

fn open(grid: &Grid, height: i64, label: &str) -> String {
    let width = grid.width();
    format!(
        "<svg width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         role=\"group\" aria-label=\"{label}\">\n"
    )
}

/// A lane in as few pieces as its states allow; where somebody dies it is broken.
fn draw_lane(svg: &mut String, grid: &Grid, picture: &Picture, lane: Lane) {
    let column = usize::from(lane.column(grid.processes));
    let x = grid.x(lane);
    let mut piece = (State::before(lane), 0);
    let mut end = |(state, from): (State, i64), to: i64| {
        if let Some(class) = state.class().filter(|_| to > from) {
            let _ = writeln!(
                svg,
                "<line class=\"lane {class}\" x1=\"{x}\" y1=\"{from}\" x2=\"{x}\" y2=\"{to}\"/>"
            );
        }
    };
    for (step, place) in picture.steps.iter().zip(0..) {
        let state = step.states.get(column).copied().unwrap_or(State::Live);
        let y = grid.y(step.number);
        let breaks = step.signs.contains(&(lane, Sign::Break));
        if place == 0 && grid.first > 1 {
            piece.0 = state;
        }
        if breaks || state != piece.0 {
            let gap = if breaks { 6 } else { 0 };
            end(piece, y - gap);
            piece = (state, y + gap);
        }
    }
    end(piece, grid.bottom());
}

/// A step's number and choice, and the areas that say more under a pointer.
fn draw_row(svg: &mut String, grid: &Grid, step: &Step, marks: &Marks) {
    let Step { number, kind, .. } = step;
    let (top, y) = (grid.top(*number), grid.y(*number) + 4);
    let broken = marks.broken.as_ref().is_some_and(|(broken, _)| broken == number);
    let class = match (broken, kind.is_fault()) {
        (true, _) => "row broken",
        (false, true) => "row fault",
        (false, false) => "row",
    };
    let mut title = format!("{number}: {}: {}", step.choice, kind.about());
    for line in &step.seen {
        title.push('\n');
        title.push_str(line);
    }
    let _ = writeln!(
        svg,
        "<a id=\"p{number}\" class=\"{class}\" href=\"#s{number}\"><title>{}</title>\
         <rect x=\"0\" y=\"{top}\" width=\"{}\" height=\"{ROW}\"/>",
        escape(&title),
        grid.width()
    );
    text(svg, "number", (44, y), &number.to_string());
    text(svg, "choice", (54, y), &shortened(&step.choice, CHOICE));
    let x = grid.x(Lane::Coordinator) - APART / 2;
    let _ = writeln!(
        svg,
        "<g><title>{}</title><rect x=\"{x}\" y=\"{top}\" width=\"{APART}\" height=\"{ROW}\"/></g>\
         </a>",
        escape(&format!("after step {number}: {}", step.gauges))
    );
}

fn draw_arrow(svg: &mut String, (class, end): (&str, End), from: (i64, i64), to: (i64, i64)) {
    let style = match end {
        End::Arrived => "",
        End::Copied => " copied",
        End::Lost => " lost",
        End::Open => " open",
    };
    let _ = write!(
        svg,
        "<line class=\"arrow {class}{style}\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>",
        from.0, from.1, to.0, to.1
    );
    match end {
        End::Arrived | End::Copied => {
            let (wide, high) = (to.0 - from.0, to.1 - from.1);
            let length = (wide * wide + high * high).isqrt().max(1);
            let (x, y) = (to.0 - wide * 9 / length, to.1 - high * 9 / length);
            let (aside, along) = (high * 4 / length, wide * 4 / length);
            let _ = write!(
                svg,
                "<polygon class=\"tip {class}\" points=\"{},{} {},{} {},{}\"/>",
                to.0,
                to.1,
                x - aside,
                y + along,
                x + aside,
                y - along
            );
        }
        End::Lost => cross(svg, "cross", to, 4),
        End::Open => {}
    }
}

fn draw_sign(svg: &mut String, sign: Sign, fault: &str, (x, y): (i64, i64)) {
    let class = format!("sign {}{fault}", sign.class());
    match sign {
        Sign::Point => {
            let _ = writeln!(svg, "<circle class=\"{class}\" cx=\"{x}\" cy=\"{y}\" r=\"3\"/>");
        }
        Sign::Back => {
            let _ = writeln!(svg, "<circle class=\"{class}\" cx=\"{x}\" cy=\"{y}\" r=\"5\"/>");
        }
        Sign::Adopted => {
            let _ = writeln!(svg, "<path class=\"{class}\" d=\"M{x} {}l6 6l-6 6l-6 -6z\"/>", y - 6);
        }
        Sign::Harm => {
            let _ = writeln!(svg, "<path class=\"{class}\" d=\"M{x} {}l7 12l-14 0z\"/>", y - 7);
        }
        Sign::Break => cross(svg, &class, (x, y), 6),
    }
}

fn cross(svg: &mut String, class: &str, (x, y): (i64, i64), half: i64) {
    let (x, y, whole) = (x - half, y - half, 2 * half);
    let _ = writeln!(
        svg,
        "<path class=\"{class}\" d=\"M{x} {y}l{whole} {whole}m0 -{whole}l-{whole} {whole}\"/>"
    );
}

/// Where the recovery begins, and what broke.
fn draw_marks(svg: &mut String, grid: &Grid, marks: &Marks) {
    let shown = grid.first..grid.last;
    if let Some(after) = marks.recovers_after.filter(|after| shown.contains(after)) {
        let (y, width) = (grid.top(after + 1), grid.width());
        let _ = writeln!(
            svg,
            "<line class=\"recovery\" x1=\"0\" y1=\"{y}\" x2=\"{width}\" y2=\"{y}\">\
             <title>the recovery begins</title></line>"
        );
    }
    if let Some((_, what)) = &marks.broken {
        text(svg, "finding", (10, grid.bottom() + 19), &shortened(what, FINDING));
    }
}

fn text(svg: &mut String, class: &str, (x, y): (i64, i64), content: &str) {
    let _ = writeln!(svg, "<text class=\"{class}\" x=\"{x}\" y=\"{y}\">{}</text>", escape(content));
}

/// The beginning of a text, with a sign where something is left out.
fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_string();
    }
    let begin: String = text.chars().take(most.saturating_sub(1)).collect();
    begin + "…"
}
