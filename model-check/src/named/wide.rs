//! Larger Worlds: with the `ci` set they take some minutes, and the long ones longer.

use pinfold_sim::likeness::Class;
use pinfold_sim::world::Kind;
use pinfold_sim::world::setup::Setup;

use super::{Names, configuration, operators, size, transfers};
use crate::configuration::{Configuration, Tier};

pub(super) fn all() -> Vec<Configuration> {
    vec![
        two_workers(),
        cancels_of_two(),
        geometries_unbounded(),
        late_and_more(),
        two_deaths(),
        refusals_of_two(),
    ]
}

/// A configuration of the `ci` set under another name, to be changed.
fn wider(name: &'static str, about: &'static str, of: Configuration) -> Configuration {
    Configuration { name, about, tier: Tier::Full, pinned: None, ..of }
}

/// The same with two workers, which are interchangeable.
fn of_two(mut it: Configuration) -> Configuration {
    it.setup.workers = 2;
    for (class, size) in &mut it.symmetry {
        if *class == Class::Owner {
            *size = it.setup.workers;
        }
    }
    it
}

fn two_workers() -> Configuration {
    let names = Names { workers: 2, endpoints: 2, turns: 2 };
    let about = "retention, and requests and answers are lost and sent again";
    let mut it = wider("two-workers", about, configuration("", "", &names));
    it.menu.kinds.extend([Kind::Lose, Kind::Resend]);
    it.menu.unheard = true;
    it.menu.bounds.requests = 2;
    it.pinned = size(212_873, 1_044_757, 41);
    it
}

fn cancels_of_two() -> Configuration {
    let about = "two workers whose transfers are cancelled and fail; store restarts";
    let it = of_two(wider("cancels-of-two", about, transfers::cancels()));
    Configuration { pinned: size(113_808, 562_152, 26), ..it }
}

fn geometries_unbounded() -> Configuration {
    let about = "ranks of different geometries, cancelled and saved anew as often as they like";
    let mut it = wider("geometries-unbounded", about, transfers::geometries());
    it.setup = Setup { starts: u32::MAX, ..it.setup };
    it.pinned = size(3_777_269, 20_080_556, 91);
    it
}

fn late_and_more() -> Configuration {
    let about = "what operators and collectors say is late, beside one request more";
    let mut it = wider("late-and-more", about, operators::late());
    it.menu.bounds.requests = 3;
    it.pinned = size(3_618_738, 18_916_117, 40);
    it
}

fn two_deaths() -> Configuration {
    let about = "two workers die and come back; old messages arrive; fences and proofs";
    let mut it = of_two(wider("two-deaths", about, transfers::deaths()));
    it.setup.starts = 2;
    it.pinned = size(4_320_946, 23_487_523, 30);
    it
}

fn refusals_of_two() -> Configuration {
    let about = "refusals with two workers: pins of somebody else, attempts in each other's way";
    let it = of_two(wider("refusals-of-two", about, operators::refusals()));
    Configuration { tier: Tier::Long, ..it }
}
