//! The configurations by name: what each is about, and how large it is.
//!
//! Sizes are constants. One that changes says that the protocol, the World or the canonical form
//! has changed, and the commit says why.

mod operators;
mod transfers;
mod wide;

use pinfold_core::outcome::Evidence;
use pinfold_core::policy::{Limits, Policy};
use pinfold_sim::likeness::Class;
use pinfold_sim::world::Kind;
use pinfold_sim::world::choice::Publishes;
use pinfold_sim::world::setup::Setup;

use crate::configuration::{Configuration, Size, Tier};
use crate::menu::{Bounds, LoadPlan, Menu, SavePlan};

/// All configurations, in the order in which they are checked.
#[must_use]
pub fn all() -> Vec<Configuration> {
    [transfers::all(), operators::all(), wide::all()].concat()
}

/// The configuration of a name.
#[must_use]
pub fn named(name: &str) -> Option<Configuration> {
    all().into_iter().find(|it| it.name == name)
}

/// What goes on where nothing goes wrong and steps are merged.
const ORDINARY: [Kind; 5] =
    [Kind::Deliver, Kind::PutOk, Kind::GetAnswered, Kind::Collect, Kind::DeleteGone];

/// How much there is of everything that has names.
struct Names {
    workers: u8,
    endpoints: u8,
    turns: u8,
}

/// A World of private objects alone, with N = 1, in which everybody saves and loads everything.
fn configuration(name: &'static str, about: &'static str, names: &Names) -> Configuration {
    let Names { workers, endpoints, turns } = *names;
    let policy = Policy { turns: 1, ..Policy::default() };
    let setup = Setup {
        workers,
        endpoints,
        turns,
        remembered: 0,
        pages: false,
        policies: [policy, policy],
        limits: Limits { unanswered: 4, ..Limits::default() },
        ..Setup::default()
    };
    let saves = (0..endpoints).flat_map(|endpoint| {
        (0..turns).map(move |turn| SavePlan {
            endpoint,
            geometry: 0,
            shards: 1,
            publishes: Publishes::Turn(0, turn),
            compares: true,
        })
    });
    let loads = (0..endpoints).map(|endpoint| LoadPlan {
        endpoints: 1 << endpoint,
        limit: 1,
        compares: false,
    });
    Configuration {
        name,
        about,
        tier: Tier::Ci,
        setup,
        menu: Menu {
            kinds: ORDINARY.to_vec(),
            saves: saves.collect(),
            loads: loads.collect(),
            collects: vec![9],
            evidence: vec![Evidence::QuiescedFailure],
            tells_apart: false,
            unheard: false,
            bounds: Bounds::default(),
        },
        // Positions differ in their tokens and sizes.
        symmetry: vec![(Class::Owner, workers), (Class::Turn, turns)],
        pinned: None,
    }
}

const fn size(states: u64, transitions: u64, depth: u32) -> Option<Size> {
    Some(Size { states, transitions, depth })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What counts as interchangeable may be exchanged in everything that can be begun.
    #[test]
    fn every_symmetry_keeps_the_menu() {
        for it in all() {
            let of = |class| it.symmetry.iter().find(|row| row.0 == class).map_or(0, |row| row.1);
            let turned = |number: u8, size: u8| match number < size {
                true => (number + 1) % size,
                false => number,
            };
            let saves = it.menu.saves.iter().map(|save| SavePlan {
                publishes: match save.publishes {
                    Publishes::Turn(conversation, turn) => Publishes::Turn(
                        turned(conversation, of(Class::Conversation)),
                        turned(turn, of(Class::Turn)),
                    ),
                    other => other,
                },
                ..*save
            });
            for save in saves {
                assert!(it.menu.saves.contains(&save), "{}: turns", it.name);
            }
            for save in &it.menu.saves {
                let endpoint = turned(save.endpoint, of(Class::Endpoint));
                let other = SavePlan { endpoint, ..*save };
                assert!(it.menu.saves.contains(&other), "{}: positions", it.name);
            }
            for load in &it.menu.loads {
                let endpoint = u8::try_from(load.endpoints.trailing_zeros()).unwrap();
                assert_eq!(load.endpoints, 1 << endpoint, "{}: one position each", it.name);
                let endpoints = 1 << turned(endpoint, of(Class::Endpoint));
                let other = LoadPlan { endpoints, ..*load };
                assert!(it.menu.loads.contains(&other), "{}: loads", it.name);
            }
            assert!(it.setup.workers >= of(Class::Owner), "{}: operators differ", it.name);
        }
    }

    #[test]
    fn names_are_names() {
        for (place, it) in all().iter().enumerate() {
            assert!(!["ci", "full"].contains(&it.name));
            assert!(all()[..place].iter().all(|other| other.name != it.name), "{}", it.name);
        }
    }
}
