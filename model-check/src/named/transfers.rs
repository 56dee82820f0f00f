//! What workers do, and what the store, the network and the disk do to them.

use pinfold_sim::world::Kind;
use pinfold_sim::world::choice::Publishes;

use super::{Names, configuration, size};
use crate::configuration::Configuration;
use crate::menu::{LoadPlan, SavePlan};

pub(super) fn all() -> Vec<Configuration> {
    vec![
        basics(),
        retention(),
        crashes(),
        collections(),
        network(),
        windows(),
        shards(),
        geometries(),
        replans(),
        doubts(),
        cancels(),
        deaths(),
        strays(),
        losses(),
        lies(),
    ]
}

pub(super) fn basics() -> Configuration {
    let names = Names { workers: 1, endpoints: 1, turns: 1 };
    let about = "one worker saves, publishes and loads one position";
    let mut it = configuration("basics", about, &names);
    it.pinned = size(15, 32, 10);
    it
}

pub(super) fn retention() -> Configuration {
    let names = Names { workers: 2, endpoints: 2, turns: 2 };
    let about = "two workers save, publish and load two positions; nothing goes wrong";
    let mut it = configuration("retention", about, &names);
    it.pinned = size(14_710, 46_914, 33);
    it
}

/// The coordinator's steps, each apart.
const COORDINATOR: [Kind; 8] = [
    Kind::Sync,
    Kind::Write,
    Kind::Commit,
    Kind::Restart,
    Kind::Answer,
    Kind::Crash,
    Kind::FailSync,
    Kind::Compact,
];

pub(super) fn crashes() -> Configuration {
    let names = Names { workers: 1, endpoints: 1, turns: 1 };
    let about =
        "the coordinator's steps apart: crashes and failed syncs at each point of a transfer";
    let mut it = configuration("crashes", about, &names);
    it.setup.starts = 1;
    it.menu.loads.clear();
    it.menu.kinds = vec![Kind::Deliver, Kind::PutOk, Kind::GetAnswered, Kind::Resend];
    it.menu.kinds.extend(COORDINATOR);
    it.menu.bounds.requests = 1;
    it.pinned = size(96_204, 701_525, 58);
    it
}

pub(super) fn collections() -> Configuration {
    let names = Names { workers: 1, endpoints: 1, turns: 1 };
    let about = "the coordinator's steps apart: crashes at each point of a collection";
    let mut it = configuration("collections", about, &names);
    it.setup.starts = 1;
    it.menu.loads.clear();
    it.menu.kinds.extend([Kind::Cancel, Kind::Resend]);
    it.menu.kinds.extend([Kind::Sync, Kind::Write, Kind::Commit, Kind::Restart, Kind::Crash]);
    it.menu.kinds.extend([Kind::Look, Kind::Malformed]);
    it.menu.bounds.requests = 1;
    it.pinned = size(97_688, 477_024, 31);
    it
}

pub(super) fn network() -> Configuration {
    let names = Names { workers: 1, endpoints: 2, turns: 2 };
    let about = "requests late, lost, twice and again, answers lost; publications that come again";
    let mut it = configuration("network", about, &names);
    it.menu.kinds.extend([Kind::Duplicate, Kind::Lose, Kind::Resend]);
    it.menu.unheard = true;
    it.menu.bounds.requests = 2;
    it.pinned = size(20_155, 129_483, 35);
    it
}

pub(super) fn windows() -> Configuration {
    let names = Names { workers: 1, endpoints: 1, turns: 1 };
    let about = "a worker that sends more at once than its window: forgotten before it was decided";
    let mut it = configuration("windows", about, &names);
    it.setup.transfers = 2;
    it.setup.limits.unanswered = 1;
    it.setup.overrun = 2;
    it.menu.kinds.extend([Kind::Lose, Kind::Resend]);
    it.menu.bounds.requests = 2;
    it.pinned = size(2_664, 9_339, 19);
    it
}

pub(super) fn shards() -> Configuration {
    let names = Names { workers: 2, endpoints: 1, turns: 1 };
    let about = "two shards on two ranks: joining, agreeing, giving up";
    let mut it = configuration("shards", about, &names);
    it.setup.shards = 2;
    let saves = [(1, Publishes::Turn(0, 0)), (2, Publishes::Nothing)];
    let first = it.menu.saves[0];
    it.menu.saves =
        saves.map(|(shards, publishes)| SavePlan { shards, publishes, ..first }).to_vec();
    it.menu.loads.clear();
    it.menu.kinds.extend([Kind::Agree, Kind::Proceed, Kind::GiveUp]);
    it.pinned = size(7_310, 19_895, 85);
    it
}

pub(super) fn geometries() -> Configuration {
    let names = Names { workers: 2, endpoints: 1, turns: 1 };
    let about = "ranks of different geometries that compare nothing; cancelled, and saved anew";
    let mut it = configuration("geometries", about, &names);
    it.setup.shards = 2;
    it.setup.starts = 2;
    let first = SavePlan { compares: false, ..it.menu.saves[0] };
    let save = |(geometry, shards)| SavePlan { geometry, shards, ..first };
    it.menu.saves = [(0, 1), (0, 2), (2, 2)].map(save).to_vec();
    it.menu.kinds.push(Kind::Cancel);
    it.pinned = size(10_911, 32_763, 19);
    it
}

pub(super) fn replans() -> Configuration {
    let names = Names { workers: 1, endpoints: 1, turns: 1 };
    let about =
        "a lost checkpoint is saved anew in another geometry; loads that plan only one of them";
    let mut it = configuration("replans", about, &names);
    it.menu.saves.push(SavePlan { geometry: 2, ..it.menu.saves[0] });
    it.menu.loads.push(LoadPlan { compares: true, ..it.menu.loads[0] });
    it.menu.kinds.extend([Kind::OperatorLost, Kind::Concur]);
    it.pinned = size(545, 2_219, 22);
    it
}

pub(super) fn doubts() -> Configuration {
    let names = Names { workers: 1, endpoints: 2, turns: 2 };
    let about = "transfers in doubt: memory in use after the answer, marks, and late ends";
    let mut it = configuration("doubts", about, &names);
    it.menu.kinds.extend([
        Kind::PutInDoubt,
        Kind::PutUnretired,
        Kind::GetInDoubt,
        Kind::GetUnretired,
        Kind::Retire,
        Kind::Doubt,
        Kind::Undoubt,
        Kind::Compact,
    ]);
    it.pinned = size(12_293, 59_784, 35);
    it
}

pub(super) fn cancels() -> Configuration {
    let names = Names { workers: 1, endpoints: 1, turns: 1 };
    let about = "transfers cancelled at each point; puts and gets that fail; store restarts";
    let mut it = configuration("cancels", about, &names);
    it.setup.starts = 4;
    it.menu.kinds.extend([Kind::Cancel, Kind::PutNotStarted, Kind::GetFailed, Kind::RestartStore]);
    it.pinned = size(1_850, 5_819, 21);
    it
}

pub(super) fn deaths() -> Configuration {
    let names = Names { workers: 1, endpoints: 1, turns: 1 };
    let about = "a worker dies and comes back; old messages arrive; fences and proofs";
    let mut it = configuration("deaths", about, &names);
    it.menu.kinds.extend([
        Kind::Die,
        Kind::Register,
        Kind::ProvenFence,
        Kind::ProvenSettle,
        Kind::Release,
        Kind::PutInDoubt,
        Kind::Retire,
    ]);
    it.menu.bounds.lives = 2;
    it.pinned = size(321_080, 1_286_084, 49);
    it
}

pub(super) fn strays() -> Configuration {
    let names = Names { workers: 1, endpoints: 1, turns: 1 };
    let about = "puts that fail, and land when nobody counts them any more; audits and sweeps";
    let mut it = configuration("strays", about, &names);
    it.setup.starts = 3;
    it.menu.kinds.extend([Kind::PutFailed, Kind::Land, Kind::Audit, Kind::Sweep]);
    it.pinned = size(4_029, 15_241, 31);
    it
}

pub(super) fn losses() -> Configuration {
    let names = Names { workers: 1, endpoints: 1, turns: 2 };
    let about = "the store loses, damages and finds objects; loads that meet it, and say so";
    let mut it = configuration("losses", about, &names);
    it.setup.starts = 4;
    it.menu.kinds.extend([Kind::Vanish, Kind::Return, Kind::Damage]);
    it.pinned = size(17_769, 111_985, 36);
    it
}

pub(super) fn lies() -> Configuration {
    let names = Names { workers: 1, endpoints: 1, turns: 1 };
    let about = "puts answered well of which nothing, less or something else is there";
    let mut it = configuration("lies", about, &names);
    it.menu.kinds.extend([Kind::PutLies, Kind::OperatorLost]);
    it.pinned = size(6_875, 29_265, 20);
    it
}
