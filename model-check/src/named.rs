//! The configurations by name: what each is about, and how large it is.
//!
//! Sizes are constants. One that changes says that the protocol, the World or the canonical form
//! has changed, and the commit says why.

use pinfold_core::outcome::Evidence;
use pinfold_core::policy::{Limits, Policy, Quarantine};
use pinfold_sim::likeness::Class;
use pinfold_sim::world::Kind;
use pinfold_sim::world::choice::Publishes;
use pinfold_sim::world::setup::Setup;

use crate::configuration::{Bounds, Configuration, LoadPlan, Menu, SavePlan, Size, Tier};

/// All configurations, in the order in which they are checked.
#[must_use]
pub fn all() -> Vec<Configuration> {
    vec![
        basics(),
        retention(),
        crashes(),
        collections(),
        network(),
        shards(),
        geometries(),
        proofs(),
        doubts(),
        cancels(),
        deaths(),
        deletes(),
        quarantine(),
        strays(),
        losses(),
        lies(),
        policies(),
        unscoped(),
        refusals(),
        pretenders(),
        late(),
        limits(),
        unbounded("strays-unbounded", strays()),
        unbounded("losses-unbounded", losses()),
        unbounded("cancels-unbounded", cancels()),
        crashes_and_loads(),
        crowded_refusals(),
        two_workers(),
        two_deaths(),
    ]
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
    let loads = (0..endpoints).map(|endpoint| LoadPlan { endpoints: 1 << endpoint, limit: 1 });
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
        symmetry: vec![(Class::Owner, workers), (Class::Endpoint, endpoints), (Class::Turn, turns)],
        pinned: None,
    }
}

const fn size(states: u64, transitions: u64, depth: u32) -> Option<Size> {
    Some(Size { states, transitions, depth })
}

fn basics() -> Configuration {
    let names = Names { workers: 1, endpoints: 1, turns: 1 };
    let about = "one worker saves, publishes and loads one position";
    let mut it = configuration("basics", about, &names);
    it.pinned = size(15, 32, 10);
    it
}

fn retention() -> Configuration {
    let names = Names { workers: 2, endpoints: 2, turns: 2 };
    let about = "two workers save, publish and load two positions; nothing goes wrong";
    let mut it = configuration("retention", about, &names);
    it.pinned = size(14_708, 46_903, 33);
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

fn crashes() -> Configuration {
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

fn collections() -> Configuration {
    let names = Names { workers: 1, endpoints: 1, turns: 1 };
    let about = "the coordinator's steps apart: crashes at each point of a collection";
    let mut it = configuration("collections", about, &names);
    it.setup.starts = 1;
    it.menu.loads.clear();
    it.menu.kinds.extend([Kind::Cancel, Kind::Resend]);
    it.menu.kinds.extend([Kind::Sync, Kind::Restart, Kind::Crash]);
    it.menu.bounds.requests = 1;
    it.pinned = size(501, 1_643, 16);
    it
}

fn network() -> Configuration {
    let names = Names { workers: 1, endpoints: 2, turns: 2 };
    let about = "requests late, lost, twice and again, answers lost; publications that come again";
    let mut it = configuration("network", about, &names);
    it.menu.kinds.extend([Kind::Duplicate, Kind::Lose, Kind::Resend]);
    it.menu.unheard = true;
    it.menu.bounds.requests = 2;
    it.pinned = size(19_973, 128_295, 35);
    it
}

fn shards() -> Configuration {
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

fn geometries() -> Configuration {
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

fn proofs() -> Configuration {
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

fn doubts() -> Configuration {
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
    ]);
    it.pinned = size(12_285, 47_460, 35);
    it
}

fn cancels() -> Configuration {
    let names = Names { workers: 1, endpoints: 1, turns: 1 };
    let about = "transfers cancelled at each point; puts and gets that fail; store restarts";
    let mut it = configuration("cancels", about, &names);
    it.setup.starts = 4;
    it.menu.kinds.extend([Kind::Cancel, Kind::PutNotStarted, Kind::GetFailed, Kind::RestartStore]);
    it.pinned = size(1_850, 5_819, 21);
    it
}

fn deaths() -> Configuration {
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

fn deletes() -> Configuration {
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
    ]);
    it.menu.collects = vec![1, 9];
    it.pinned = size(3_793, 24_461, 32);
    it
}

fn quarantine() -> Configuration {
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

fn strays() -> Configuration {
    let names = Names { workers: 1, endpoints: 1, turns: 1 };
    let about = "puts that fail, and land when nobody counts them any more; audits and sweeps";
    let mut it = configuration("strays", about, &names);
    it.setup.starts = 3;
    it.menu.kinds.extend([Kind::PutFailed, Kind::Land, Kind::Audit, Kind::Sweep]);
    it.pinned = size(4_029, 15_241, 31);
    it
}

fn losses() -> Configuration {
    let names = Names { workers: 1, endpoints: 1, turns: 2 };
    let about = "the store loses, damages and finds objects; loads that meet it, and say so";
    let mut it = configuration("losses", about, &names);
    it.setup.starts = 4;
    it.menu.kinds.extend([Kind::Vanish, Kind::Return, Kind::Damage]);
    it.pinned = size(17_769, 111_985, 36);
    it
}

fn lies() -> Configuration {
    let names = Names { workers: 1, endpoints: 1, turns: 1 };
    let about = "puts answered well of which nothing, less or something else is there";
    let mut it = configuration("lies", about, &names);
    it.menu.kinds.extend([Kind::PutLies, Kind::OperatorLost]);
    it.pinned = size(6_875, 29_265, 20);
    it
}

fn policies() -> Configuration {
    let names = Names { workers: 1, endpoints: 1, turns: 2 };
    let about = "N lowered and raised, budgets, a conversation forgotten: follow-ups of many turns";
    let mut it = configuration("policies", about, &names);
    it.setup.policies[0].turns = 2;
    it.setup.conversations = 2;
    let other = [0, 1].map(|turn| Publishes::Turn(1, turn));
    let other = other.map(|publishes| SavePlan { publishes, ..it.menu.saves[0] });
    it.menu.saves.extend(other);
    it.menu.kinds.extend([Kind::Configure, Kind::Forget, Kind::Publish]);
    it.pinned = size(95_332, 732_760, 27);
    it
}

fn unscoped() -> Configuration {
    let names = Names { workers: 1, endpoints: 1, turns: 1 };
    let about = "the unscoped mark: set once, dropped for ever, beside a turn";
    let mut it = configuration("unscoped", about, &names);
    it.menu.saves.push(SavePlan { publishes: Publishes::Unscoped, ..it.menu.saves[0] });
    it.menu.kinds.extend([Kind::Drop, Kind::Publish]);
    it.pinned = size(2_182, 11_326, 26);
    it
}

/// The same without a bound on how many transfers there are.
fn unbounded(name: &'static str, of: Configuration) -> Configuration {
    let setup = Setup { starts: u32::MAX, ..of.setup };
    Configuration { name, tier: Tier::Full, setup, pinned: None, ..of }
}

fn crashes_and_loads() -> Configuration {
    let mut it =
        Configuration { name: "crashes-and-loads", tier: Tier::Full, pinned: None, ..crashes() };
    it.about = "crashes, with a load after or beside the save";
    it.setup.starts = 2;
    it.menu.loads.push(LoadPlan { endpoints: 1, limit: 1 });
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
    let mut it = Configuration { tier: Tier::Full, name: "two-deaths", pinned: None, ..deaths() };
    it.setup.workers = names.workers;
    it.symmetry = configuration("", "", &names).symmetry;
    it.about = "two workers die and come back; old messages arrive; fences and proofs";
    it
}

fn refusals() -> Configuration {
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

fn crowded_refusals() -> Configuration {
    let names = Names { workers: 2, endpoints: 1, turns: 1 };
    let mut it = Configuration { name: "refusals-of-two", tier: Tier::Full, ..refusals() };
    it.about = "refusals with two workers: pins of somebody else, attempts in each other's way";
    it.setup.workers = names.workers;
    it.symmetry = configuration("", "", &names).symmetry;
    it.pinned = size(1_263_552, 16_325_495, 31);
    it
}

fn pretenders() -> Configuration {
    let names = Names { workers: 2, endpoints: 1, turns: 1 };
    let about = "workers that send what only an operator, or another worker, may";
    let mut it = configuration("pretenders", about, &names);
    it.setup.starts = 2;
    it.menu.kinds.extend([Kind::Pretend]);
    it.pinned = size(158, 947, 12);
    it
}

fn late() -> Configuration {
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

fn limits() -> Configuration {
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
