//! Larger Worlds, which take minutes.

use pinfold_sim::world::Kind;
use pinfold_sim::world::setup::Setup;

use super::{Names, configuration, operators, size, transfers};
use crate::configuration::{Configuration, Tier};
use crate::menu::LoadPlan;

pub(super) fn all() -> Vec<Configuration> {
    vec![
        unbounded("geometries-unbounded", transfers::geometries()),
        unbounded("strays-unbounded", transfers::strays()),
        unbounded("losses-unbounded", transfers::losses()),
        unbounded("cancels-unbounded", transfers::cancels()),
        crashes_and_loads(),
        crowded_refusals(),
        two_workers(),
        two_deaths(),
    ]
}

fn unbounded(name: &'static str, of: Configuration) -> Configuration {
    let setup = Setup { starts: u32::MAX, ..of.setup };
    Configuration { name, tier: Tier::Full, setup, pinned: None, ..of }
}

fn crashes_and_loads() -> Configuration {
    let mut it = Configuration {
        name: "crashes-and-loads",
        tier: Tier::Full,
        pinned: None,
        ..transfers::crashes()
    };
    it.about = "crashes, with a load after or beside the save";
    it.setup.starts = 2;
    it.menu.loads.push(LoadPlan { endpoints: 1, limit: 1, compares: false });
    it
}

fn crowded_refusals() -> Configuration {
    let names = Names { workers: 2, endpoints: 1, turns: 1 };
    let mut it =
        Configuration { name: "refusals-of-two", tier: Tier::Full, ..operators::refusals() };
    it.about = "refusals with two workers: pins of somebody else, attempts in each other's way";
    it.setup.workers = names.workers;
    it.symmetry = configuration("", "", &names).symmetry;
    it.pinned = size(1_263_552, 16_325_495, 31);
    it
}

fn two_workers() -> Configuration {
    let names = Names { workers: 2, endpoints: 2, turns: 2 };
    let about = "retention, and requests and answers are lost and sent again";
    let mut it = configuration("two-workers", about, &names);
    it.menu.kinds.extend([Kind::Lose, Kind::Resend]);
    it.menu.unheard = true;
    it.menu.bounds.requests = 2;
    it.tier = Tier::Full;
    it
}

fn two_deaths() -> Configuration {
    let names = Names { workers: 2, endpoints: 1, turns: 1 };
    let mut it =
        Configuration { tier: Tier::Full, name: "two-deaths", pinned: None, ..transfers::deaths() };
    it.setup.workers = names.workers;
    it.symmetry = configuration("", "", &names).symmetry;
    it.about = "two workers die and come back; old messages arrive; fences and proofs";
    it
}
