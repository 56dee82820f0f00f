//! What operators and collectors do, and what is refused.

use pinfold_core::outcome::Evidence;
use pinfold_core::policy::{Policy, Quarantine};
use pinfold_sim::world::Kind;
use pinfold_sim::world::choice::Publishes;

use super::{Names, configuration, size};
use crate::configuration::Configuration;
use crate::menu::SavePlan;

pub(super) fn all() -> Vec<Configuration> {
    vec![
        proofs(),
        deletes(),
        queues(),
        quarantine(),
        policies(),
        trims(),
        unscoped(),
        refusals(),
        pretenders(),
        mistakes(),
        late(),
        limits(),
        bytes(),
    ]
}

pub(super) fn proofs() -> Configuration {
    let names = Names { workers: 1, endpoints: 1, turns: 1 };
    let about = "an operator settles what a dead worker left, and says what it may not say";
    let mut it = configuration("proofs", about, &names);
    it.setup.starts = 2;
    it.menu.kinds.extend([Kind::Die, Kind::Register, Kind::ProvenSettle, Kind::Release]);
    it.menu.evidence.extend([Evidence::QuiescedSuccess, Evidence::InDoubt]);
    it.menu.bounds.lives = 2;
    it.pinned = size(5_152, 18_574, 24);
    it
}

pub(super) fn deletes() -> Configuration {
    let names = Names { workers: 1, endpoints: 2, turns: 2 };
    let about = "deletes partial, refused, unknown and late; probes; work forgotten";
    let mut it = configuration("deletes", about, &names);
    it.menu.loads.clear();
    it.menu.kinds.extend([
        Kind::Report,
        Kind::DeleteRefused,
        Kind::DeleteUnknown,
        Kind::LandDelete,
        Kind::Probe,
        Kind::DropWork,
        Kind::Look,
        Kind::Compact,
    ]);
    it.menu.collects = vec![1, 9];
    it.pinned = size(3_793, 28_254, 32);
    it
}

pub(super) fn queues() -> Configuration {
    let names = Names { workers: 1, endpoints: 2, turns: 2 };
    let about = "checkpoints wait behind one of which a delete was refused; snapshots of it";
    let mut it = configuration("queues", about, &names);
    it.menu.loads.clear();
    it.menu.kinds.extend([Kind::DeleteRefused, Kind::Compact]);
    it.menu.collects = vec![1];
    it.menu.bounds.checkpoints = 3;
    it.pinned = size(1_949, 6_334, 42);
    it
}

pub(super) fn quarantine() -> Configuration {
    let names = Names { workers: 1, endpoints: 2, turns: 2 };
    let about = "a position is not saved again while its old deletes are unknown";
    let mut it = configuration("quarantine", about, &names);
    let policy = Policy { quarantine: Quarantine::Endpoint, ..it.setup.policies[0] };
    it.setup.policies = [policy, policy];
    it.menu.loads.clear();
    it.menu.kinds.extend([Kind::DeleteUnknown, Kind::LandDelete]);
    it.menu.bounds.checkpoints = 3;
    it.pinned = size(14_591, 54_917, 41);
    it
}

/// Two conversations of two live turns each, in which every position can be published.
fn add_conversation(it: &mut Configuration) {
    it.setup.policies[0].turns = 2;
    it.setup.conversations = 2;
    let other = [0, 1].map(|turn| Publishes::Turn(1, turn));
    let other = other.map(|publishes| SavePlan { publishes, ..it.menu.saves[0] });
    it.menu.saves.extend(other);
}

pub(super) fn policies() -> Configuration {
    let names = Names { workers: 1, endpoints: 1, turns: 2 };
    let about = "N lowered and raised, budgets, a conversation forgotten: follow-ups of many turns";
    let mut it = configuration("policies", about, &names);
    add_conversation(&mut it);
    it.menu.kinds.extend([Kind::Configure, Kind::Forget, Kind::Publish, Kind::Compact]);
    it.pinned = size(95_332, 828_092, 27);
    it
}

pub(super) fn trims() -> Configuration {
    let names = Names { workers: 1, endpoints: 1, turns: 2 };
    let about = "N lowered, its follow-ups apart; snapshots before they are done";
    let mut it = configuration("trims", about, &names);
    add_conversation(&mut it);
    it.setup.starts = 1;
    it.menu.loads.clear();
    it.menu.kinds.extend([Kind::Configure, Kind::FollowUp, Kind::Compact, Kind::Publish]);
    it.pinned = size(31_910, 206_826, 20);
    it
}

pub(super) fn unscoped() -> Configuration {
    let names = Names { workers: 1, endpoints: 1, turns: 1 };
    let about = "the unscoped mark: set once, dropped for ever, beside a turn";
    let mut it = configuration("unscoped", about, &names);
    it.menu.saves.push(SavePlan { publishes: Publishes::Unscoped, ..it.menu.saves[0] });
    it.menu.kinds.extend([Kind::Drop, Kind::Publish]);
    it.pinned = size(2_182, 11_326, 26);
    it
}

pub(super) fn refusals() -> Configuration {
    let names = Names { workers: 1, endpoints: 1, turns: 1 };
    let about = "what is malformed, astray, in conflict, not allowed, or of another geometry";
    let mut it = configuration("refusals", about, &names);
    it.menu.saves.push(SavePlan { geometry: 1, ..it.menu.saves[0] });
    it.menu.kinds.extend([
        Kind::Malformed,
        Kind::Misaddress,
        Kind::Conflict,
        Kind::Pretend,
        Kind::SendList,
        Kind::RetireOwner,
        Kind::Lose,
        Kind::Resend,
        Kind::Publish,
    ]);
    it.menu.evidence.push(Evidence::QuiescedSuccess);
    it.pinned = size(5_124, 44_343, 22);
    it
}

pub(super) fn pretenders() -> Configuration {
    let names = Names { workers: 2, endpoints: 1, turns: 1 };
    let about = "workers that send what only an operator, or another worker, may";
    let mut it = configuration("pretenders", about, &names);
    it.setup.starts = 2;
    it.menu.kinds.extend([Kind::Pretend]);
    it.pinned = size(259, 2_501, 15);
    it
}

pub(super) fn mistakes() -> Configuration {
    let names = Names { workers: 1, endpoints: 1, turns: 1 };
    let about = "processes name what never was: pins, shards, objects, incarnations, deletes";
    let mut it = configuration("mistakes", about, &names);
    it.menu.kinds.push(Kind::Mistake);
    it.pinned = size(43, 877, 14);
    it
}

pub(super) fn late() -> Configuration {
    let names = Names { workers: 1, endpoints: 1, turns: 1 };
    let about = "what operators and collectors say arrives late, twice or never";
    let mut it = configuration("late", about, &names);
    it.setup.starts = 2;
    it.menu.loads.clear();
    it.menu.saves.push(SavePlan { publishes: Publishes::Unscoped, ..it.menu.saves[0] });
    it.menu.kinds.extend([Kind::Duplicate, Kind::Report, Kind::Drop, Kind::OperatorLost]);
    it.menu.tells_apart = true;
    it.menu.bounds.requests = 2;
    it.pinned = size(256_940, 1_024_835, 38);
    it
}

pub(super) fn limits() -> Configuration {
    let names = Names { workers: 2, endpoints: 1, turns: 2 };
    let about = "every small bound reached, and lifted";
    let mut it = configuration("limits", about, &names);
    it.setup.limits.pins = 1;
    it.setup.limits.generations_per_endpoint = 1;
    it.setup.limits.expired_turns = 1;
    it.menu.kinds.extend([Kind::Forget, Kind::PutInDoubt, Kind::Retire]);
    it.pinned = size(2_808, 13_134, 25);
    it
}

pub(super) fn bytes() -> Configuration {
    let names = Names { workers: 1, endpoints: 1, turns: 2 };
    let about = "bounds of bytes in doubt and in quarantine reached, and lifted";
    let mut it = configuration("bytes", about, &names);
    it.setup.limits.bytes_in_doubt = 0;
    it.setup.limits.bytes_quarantined = 1;
    it.menu.kinds.extend([Kind::PutInDoubt, Kind::Retire, Kind::DeleteUnknown, Kind::LandDelete]);
    it.menu.kinds.extend([Kind::ProvenSettle, Kind::Release]);
    it.pinned = size(71_018, 342_405, 41);
    it
}
