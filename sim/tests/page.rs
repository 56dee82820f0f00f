//! The picture of a run: well-formed, in need of nothing else, and true.
#![allow(clippy::unwrap_used, reason = "a test's own steps")]

use std::collections::BTreeMap;

use pinfold_core::invariant::Invariant;
use pinfold_sim::judges::Bench;
use pinfold_sim::page::{Head, MOST_STEPS, Picture};
use pinfold_sim::run::{Found, Ran, Settings, Watch, run};
use pinfold_sim::script::Script;
use pinfold_sim::script::world::{replay, setup_of};
use pinfold_sim::seen::Seen;
use pinfold_sim::swarm;
use pinfold_sim::violation::{Judge, Violation};
use pinfold_sim::world::choice::Choice;
use pinfold_sim::world::{Kind, World};

/// Elements without an end.
const VOID: [&str; 1] = ["meta"];
/// Attributes that are whole numbers.
const GEOMETRY: [&str; 10] =
    ["x=", "y=", "x1=", "y1=", "x2=", "y2=", "cx=", "cy=", "width=", "height="];

/// A request that arrives twice, one that is lost, a put, a sync that fails, a crash, a death.
const STORY: &str = "\
# a short story
world workers=1

w1 register
dup w1/1
deliver w1/1
sync
answer w1/1
op1 register
lose op1/1
w1 save A1 E1 C1/T1 shards=0
deliver w1/1#1
write
commit
answer w1/1#1
put w1.1.1 ok
w1 collect 4
deliver w1/1#2
op1 register
deliver op1/1
write
fail-sync 0
crash 0
restart
w1 die
lose-answer w1/1
----
held
";

const HEAD: Head<'_> = Head {
    title: "a story",
    command: "pinfold sim",
    version: "1.2.3",
    recovers_after: None,
    differences: &[],
};

/// A picture, and how often what it must show happened.
struct Counted {
    picture: Picture,
    counts: BTreeMap<&'static str, usize>,
}

impl Watch for Counted {
    fn before(&mut self, world: &World, kind: Kind, choice: Choice) {
        self.picture.before(world, kind, choice);
    }

    fn step(&mut self, world: &World, kind: Kind, choice: Choice, seen: &[Seen]) {
        self.picture.step(world, kind, choice, seen);
        let name = match kind {
            // Somebody uses an operation for other content: that request takes no time.
            Kind::Deliver | Kind::Conflict => "request arrives",
            Kind::Duplicate | Kind::Misaddress => "request copied",
            Kind::Lose => "request lost",
            Kind::Answer => "answer arrives",
            Kind::DuplicateAnswer => "answer copied",
            Kind::LoseAnswer => "answer lost",
            _ => "step",
        };
        *self.counts.entry(name).or_default() += 1;
        for it in seen {
            if let Seen::Landed { .. } = it {
                *self.counts.entry("put arrives").or_default() += 1;
            }
        }
    }
}

fn drawn(seed: u64, steps: u32) -> (Counted, Ran) {
    let picture = Picture::new(&swarm::draw(seed).0);
    let mut counted = Counted { picture, counts: BTreeMap::new() };
    let settings = Settings { steps, bench: Bench::NONE, ..Settings::default() };
    let ran = run(seed, &settings, &mut counted);
    (counted, ran)
}

fn page_of(seed: u64, steps: u32) -> String {
    let (counted, ran) = drawn(seed, steps);
    let after = u32::try_from(ran.choices.len()).unwrap();
    counted.picture.page(&Head { recovers_after: Some(after), ..HEAD }, None)
}

fn story() -> Picture {
    let script = Script::read(STORY).unwrap();
    let mut picture = Picture::new(&setup_of(&script.header).unwrap());
    let replayed = replay(&script, Bench::ALL, &mut picture).unwrap();
    assert!(replayed.is_as_expected(), "{replayed:?}");
    picture
}

fn found(step: u32, what: &str) -> Found {
    let (invariant, judge) = (Invariant::I3, Judge::Oracle);
    Found { violation: Violation { invariant, judge, what: what.to_string() }, step }
}

/// Every tag is closed in order, every attribute quoted, every `&` the start of an entity, every
/// id there once, and every link leads to one.
fn well_formed(page: &str) {
    let page = page.strip_prefix("<!DOCTYPE html>\n").unwrap();
    let (mut open, mut ids, mut links) = (Vec::new(), Vec::new(), Vec::new());
    for piece in page.split('<').skip(1) {
        let (tag, _) = piece.split_once('>').unwrap_or_else(|| panic!("open tag: {piece}"));
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "{piece}");
            continue;
        }
        assert!(open.last() != Some(&"style"), "a tag in the style: {tag}");
        let (tag, closed) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
        let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        assert!(name.chars().all(|c| c.is_ascii_alphanumeric()), "{piece}");
        let quotes = attributes.split('"').collect::<Vec<_>>();
        assert!(quotes.len() % 2 == 1 && quotes.last() == Some(&""), "{tag}");
        for pair in quotes.chunks_exact(2) {
            let name = pair[0].trim();
            assert!(name.ends_with('=') && !name.starts_with("on"), "{tag}");
            if GEOMETRY.contains(&name) {
                assert!(pair[1].parse::<i64>().is_ok(), "not whole: {tag}");
            }
            match name {
                "id=" => ids.push(pair[1]),
                "href=" => links.push(pair[1].strip_prefix('#').unwrap()),
                _ => {}
            }
        }
        if !closed && !VOID.contains(&name) {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?}");
    for piece in page.split("</style>").nth(1).unwrap().split('&').skip(1) {
        let known = ["amp;", "lt;", "gt;", "quot;", "#39;"];
        assert!(known.iter().any(|entity| piece.starts_with(entity)), "&{piece:.20}");
    }
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!((ids.len(), count > 0), (count, true), "an id stands twice");
    assert!(links.len() + 1 >= count, "{} links to {count} places", links.len());
    for link in links {
        assert!(ids.binary_search(&link).is_ok(), "a link to nowhere: {link}");
    }
}

/// How many arrows of a kind end like this, the legend's left out.
fn arrows(page: &str, class: &str, end: &str) -> usize {
    page.matches(&format!("</title><line class=\"arrow {class}{end}\"")).count()
}

#[test]
fn a_page_is_well_formed_and_needs_nothing_else() {
    for seed in 0..6 {
        let page = page_of(seed, 300);
        well_formed(&page);
        for word in ["http", "//", "<script", "<link", "<img", "src=", "@import", "url("] {
            assert!(!page.contains(word), "{word}");
        }
        assert!(page.contains("prefers-color-scheme: dark") && page.contains("@media print"));
        assert!(page.contains("the recovery begins"));
    }
}

#[test]
fn the_same_run_gives_the_same_page() {
    assert_eq!(page_of(3, 200), page_of(3, 200));
    assert_ne!(page_of(3, 200), page_of(4, 200));
}

/// What happened has its arrow, its cross, its fork and its break.
#[test]
fn a_story_is_told_in_marks() {
    let page = story().page(&HEAD, None);
    well_formed(&page);
    for title in [
        // The copy and the original begin at the same place.
        "request w1/1: from step 1, arrives at step 2, and will again",
        "request w1/1: from step 1, arrives at step 3",
        "request op1/1: from step 6, lost at step 7",
        "sync of records: step 4",
        "sync of records: from step 10, arrives at step 11",
        "answer w1/1#1: from step 11, arrives at step 12",
        "put w1.1.1: from step 12, arrives at step 13",
        "sync of records: from step 18, lost at step 19",
        "read of what the disk holds: step 21",
        "answer w1/1: from step 4, lost at step 23",
        "put w1.1.2: from step 12, under way at the end",
        "after step 20: 3 records on disk, it is gone; gauges: ",
        "1: w1 register: a process registers",
        "13: put w1.1.1 ok: a put succeeds\nthe store has its bytes as ",
        "Every promise held.",
        "<code>world workers=1</code>",
        "Run with pinfold 1.2.3:",
        "<title>pinfold sim: a story</title>",
    ] {
        assert!(page.contains(title), "no {title}");
    }
    // Its columns: the store, w1, op1, the coordinator, the disk; its rows are 18 high.
    let coordinator = [
        "<line class=\"lane live\" x1=\"736\" y1=\"0\" x2=\"736\" y2=\"327\"/>",
        "<line class=\"lane over\" x1=\"736\" y1=\"339\" x2=\"736\" y2=\"345\"/>",
        "<line class=\"lane live\" x1=\"736\" y1=\"369\" x2=\"736\" y2=\"414\"/>",
    ];
    for piece in coordinator {
        assert!(page.contains(piece), "no {piece}");
    }
    assert_eq!(page.matches("x2=\"736\" y2=\"345\"").count(), 1);
    // A failed sync, a crash, a death; and the legend's.
    assert_eq!(page.matches("class=\"sign break").count(), 4);
    assert_eq!(page.matches("class=\"sign back\"").count(), 2);
}

/// Each message and put that arrived or was lost has one arrow, and every arrow is one of these.
#[test]
fn arrows_are_as_many_as_what_happened() {
    let mut all = BTreeMap::new();
    for seed in 0..10 {
        let (counted, _) = drawn(seed, 400);
        let page = counted.picture.page(&HEAD, None);
        for (class, name, end) in [
            ("request", "request arrives", ""),
            ("request", "request copied", " copied"),
            ("request", "request lost", " lost"),
            ("answer", "answer arrives", ""),
            ("answer", "answer copied", " copied"),
            ("answer", "answer lost", " lost"),
            ("put", "put arrives", ""),
        ] {
            let happened = counted.counts.get(name).copied().unwrap_or(0);
            assert_eq!(arrows(&page, class, end), happened, "seed {seed}: {name}");
            *all.entry(name).or_insert(0) += happened;
        }
        for class in ["work", "ask", "get", "delete", "sync", "read"] {
            *all.entry(class).or_insert(0) += arrows(&page, class, "");
        }
        for sign in ["point", "adopted", "back", "harm", "break"] {
            *all.entry(sign).or_insert(0) +=
                page.matches(&format!("class=\"sign {sign}")).count() - 1;
        }
    }
    for (name, count) in all {
        assert!(count > 0, "never: {name}");
    }
}

#[test]
fn the_violated_step_is_marked() {
    let page = story().page(&HEAD, Some(&found(9, "a key of <another>")));
    well_formed(&page);
    let said = "I3 (oracle): a key of &lt;another&gt;";
    for piece in [
        "<p class=\"verdict violated\"><strong>violated I3</strong> (a delete names only keys",
        "at <a href=\"#p9\">step 9</a>, says the oracle: a key of &lt;another&gt;</p>",
        "<a id=\"p9\" class=\"row broken\"",
        "<tr id=\"s9\" class=\"broken\">",
        &format!("<div class=\"finding\">{said}</div>"),
        &format!("<text class=\"finding\" x=\"10\" y=\"433\">{said}</text>"),
    ] {
        assert!(page.contains(piece), "no {piece}");
    }
    assert_eq!(page.matches("class=\"row broken\"").count(), 1);
    assert_eq!(page.matches("class=\"broken\"").count(), 1);
}

/// A step that never came to its end has a row in the table alone; a World that could not begin, a
/// verdict alone.
#[test]
fn what_broke_off_is_said() {
    let page = story().page(&HEAD, Some(&found(24, "unreadable")));
    well_formed(&page);
    assert!(page.contains("<tr id=\"s24\" class=\"broken\">") && page.contains("at step 24, says"));
    let nothing = Picture::new(&swarm::draw(0).0);
    let page = nothing.page(&HEAD, Some(&found(0, "unreadable")));
    assert!(page.contains("at step 0, says the oracle: unreadable"));
    assert!(page.contains("<p>0 steps.") && !page.contains("<a id="));
}

/// What was found has names where the judges have identities.
#[test]
fn what_was_found_is_named() {
    let owner = swarm::draw(0).0.owner(0);
    let page = story().page(&HEAD, Some(&found(2, &format!("pin {owner}.1.9.0 ends"))));
    assert!(page.contains("says the oracle: pin w1:1#9 ends"), "{page}");
    assert!(!page.contains(&owner.to_string()), "{page}");
}

/// Texts from outside stay texts.
#[test]
fn nothing_from_outside_is_markup() {
    let bad = "</title></code><script>alert('\"')</script><img src=x onerror=alert(1)>&\u{1b}";
    let differences = [bad.to_string()];
    let (recovers_after, differences) = (None, differences.as_slice());
    let head = Head { title: bad, command: bad, version: bad, recovers_after, differences };
    let page = story().page(&head, Some(&found(2, bad)));
    well_formed(&page);
    assert!(!page.contains("<script") && !page.contains("<img") && !page.contains('\u{1b}'));
    // The title twice, the command, the version, the verdict, a difference, the picture's foot and
    // the table.
    assert_eq!(page.matches("&lt;script&gt;").count(), 8);
}

/// Of a long run the last steps are shown.
#[test]
fn a_long_run_keeps_its_end() {
    let (counted, ran) = drawn(1, u32::try_from(MOST_STEPS).unwrap() + 1000);
    let steps = ran.choices.len() + ran.recovery_steps as usize;
    let page = counted.picture.page(&HEAD, None);
    well_formed(&page);
    assert!(steps > MOST_STEPS, "{steps}");
    assert_eq!(page.matches("<a id=\"p").count(), MOST_STEPS);
    let first = steps - MOST_STEPS + 1;
    assert!(page.contains(&format!("Shown are the last {MOST_STEPS}, from step {first}.")));
    assert!(page.contains(&format!("<a id=\"p{first}\" class=\"row")));
    assert!(page.contains(&format!("<a id=\"p{steps}\" class=\"row")));
}
