//! The drawings of small data, letter by letter, and the rules of the axes.

use super::*;

const ENDS: (f64, f64) = (0.0, 100.0);

fn caption(id: &'static str) -> Caption {
    let (title, description) = ("Bytes over <time>".to_string(), "Two & two".to_string());
    Caption { id, title, description }
}

fn axis(label: &str, unit: Unit) -> Axis {
    Axis { label: label.to_string(), unit, reach: 0 }
}

fn series(name: &str, shape: Shape, points: &[(u64, u64)]) -> Series {
    Series { name: name.to_string(), shape, points: points.to_vec() }
}

fn plot() -> Plot {
    Plot {
        caption: caption("small"),
        x: axis("time", Unit::Micros),
        y: axis("bytes", Unit::Bytes),
        series: vec![
            series("retained", Shape::Area, &[(0, 0), (1_000_000, 1024), (4_000_000, 3072)]),
            series("with \"record\"", Shape::Line, &[(0, 512), (4_000_000, 4096)]),
        ],
        level: Some((2048, "budget 2.0 KiB".to_string())),
        marks: (vec![2_000_000], "recovery".to_string()),
    }
}

fn bars() -> Bars {
    let kind = |name: &str, per_mille: [u64; 2], of| Kind {
        name: name.to_string(),
        per_mille: per_mille.to_vec(),
        of,
    };
    Bars {
        caption: caption("shares"),
        x: "place".to_string(),
        y: "of turns".to_string(),
        shares: vec!["restored".to_string(), "saved".to_string()],
        kinds: vec![kind("1", [0, 0], 8056), kind("2", [503, 99], 952), kind("3+", [1000, 998], 7)],
    }
}

/// Compares with a file beside this one; `UPDATE_EXPECT=1` writes it.
fn is_golden(name: &str, found: &str) {
    let path = format!("{}/src/chart/{name}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, found).unwrap();
        return;
    }
    let expected = std::fs::read_to_string(&path).unwrap();
    assert!(found == expected, "{name} differs; UPDATE_EXPECT=1 rewrites it:\n{found}");
}

#[test]
fn a_small_plot_is_drawn_as_ever() {
    is_golden("plot.svg", &plot().svg());
}

#[test]
fn small_bars_are_drawn_as_ever() {
    is_golden("bars.svg", &bars().svg());
}

fn labels(unit: Unit, most: u64) -> Vec<String> {
    let scale = Scale::round(unit, most, ENDS);
    scale.ticks().map(|tick| scale.label(tick)).collect()
}

#[test]
fn ticks_are_round_in_their_unit() {
    assert_eq!(labels(Unit::Count, 12_031), ["0", "5,000", "10,000", "15,000"]);
    assert_eq!(labels(Unit::Count, 1), ["0", "1"]);
    assert_eq!(labels(Unit::Count, 0), ["0", "1"]);
    let bytes = ["0 MiB", "128 MiB", "256 MiB", "384 MiB", "512 MiB", "640 MiB"];
    assert_eq!(labels(Unit::Bytes, 612 << 20), bytes);
    let half = ["0 KiB", "0.5 KiB", "1 KiB", "1.5 KiB", "2 KiB", "2.5 KiB"];
    assert_eq!(labels(Unit::Bytes, 2_300), half);
    let seconds = ["0 s", "5 s", "10 s", "15 s", "20 s", "25 s", "30 s"];
    assert_eq!(labels(Unit::Micros, 28_100_000), seconds);
    let millis = ["0 ms", "0.5 ms", "1 ms", "1.5 ms", "2 ms", "2.5 ms"];
    assert_eq!(labels(Unit::Micros, 2_250), millis);
    assert_eq!(labels(Unit::PerMille, 1000), ["0 %", "25 %", "50 %", "75 %", "100 %"]);
}

/// Whatever is drawn, an axis has a few ticks, begins at zero, and holds its largest number.
#[test]
fn every_axis_has_a_few_ticks() {
    for unit in [Unit::Count, Unit::Bytes, Unit::Micros] {
        let powers = (0..63).flat_map(|bit| [(1_u64 << bit) - 1, 1 << bit, (1 << bit) + 1]);
        for most in powers.chain([u64::MAX]).filter(|most| *most > 0) {
            let scale = Scale::round(unit, most, ENDS);
            let ticks: Vec<u64> = scale.ticks().collect();
            assert!((2..=8).contains(&ticks.len()), "{unit:?} {most}: {ticks:?}");
            assert_eq!(scale.place(0), 0.0);
            assert!(scale.place(most) <= 100.0 && scale.place(most) > 40.0, "{unit:?} {most}");
        }
    }
}

#[test]
fn a_tight_axis_ends_with_its_numbers() {
    let scale = Scale::tight(Unit::Count, 12_031, ENDS);
    assert_eq!(scale.place(12_031), 100.0);
    assert_eq!(scale.ticks().collect::<Vec<_>>(), [0, 5_000, 10_000]);
}

#[test]
fn brief_counts_have_four_characters_at_most() {
    let numbers = [0, 999, 1000, 8_056, 9_999, 10_000, 999_999, 1_000_000, 3_450_000];
    let expected = ["0", "999", "1.0k", "8.0k", "9.9k", "10k", "999k", "1.0M", "3.4M"];
    assert_eq!(numbers.map(axis::brief), expected);
}

/// Nothing to draw is drawn: axes without points.
#[test]
fn an_empty_plot_has_its_axes() {
    let empty = Plot { series: Vec::new(), level: None, marks: Default::default(), ..plot() };
    let svg = empty.svg();
    assert!(svg.contains("bytes</text>") && !svg.contains("NaN") && !svg.contains("polyline"));
    let none = Bars { kinds: Vec::new(), ..bars() };
    assert!(!none.svg().contains("rect") && !none.svg().contains("inf"));
}

/// An axis reaches as far as it is asked to, and further for a point that lies further.
#[test]
fn an_axis_reaches_as_far_as_it_is_asked_to() {
    let reaching = |reach| {
        let mut plot = plot();
        plot.x.reach = reach;
        plot.svg()
    };
    assert_eq!(reaching(4_000_000), plot().svg());
    assert!(reaching(9_000_000).contains(">8 s</text>"));
}

/// Many marks are short, so that the lines behind them stay visible; of those at one place, one is
/// drawn.
#[test]
fn many_marks_are_short() {
    let marks = |count: u64| {
        let marks = (0..count).flat_map(|number| [50_000 * number; 2]).collect();
        Plot { marks: (marks, "recovery".into()), ..plot() }.svg()
    };
    let long = |count| {
        let (svg, end) = (marks(count), format!("y2=\"{TOP:.1}\"/>"));
        svg.lines().filter(|line| line.contains("\"mark\"") && line.ends_with(&end)).count()
    };
    assert_eq!((long(40), long(41)), (40, 0));
}

/// No text can end the element or attribute that it stands in.
#[test]
fn texts_are_escaped() {
    assert_eq!(
        escape("<a b=\"c\" d='e'>&\u{7}\n"),
        "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;\u{fffd}\n"
    );
    let mut plot = plot();
    let bad = "</text><script>&'\"";
    plot.caption.title = bad.into();
    plot.caption.description = bad.into();
    plot.x.label = bad.into();
    plot.y.label = bad.into();
    plot.marks.1 = bad.into();
    plot.level = Some((1, bad.into()));
    plot.series.iter_mut().for_each(|series| series.name = bad.into());
    let svg = plot.svg();
    assert!(!svg.contains("<script") && !svg.contains("&'"), "{svg}");
    assert_eq!(svg.matches("&lt;script&gt;").count(), 8);
}
