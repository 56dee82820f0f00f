//! A choice in words.

use pinfold_core::id::Generation;
use pinfold_core::outcome::Evidence;

use crate::seen::MoveId;
use crate::world::Kind;
use crate::world::choice::{
    About, Act, Choice, Coordinate, DeleteEnd, GetEnd, JobId, Lands, Mistake, PinName, Publishes,
    PutEnd, parts_of,
};
use crate::world::job::shards_of;
use crate::world::setup::Setup;

/// What a choice is called in a World of this size.
#[must_use]
pub fn say(setup: &Setup, choice: Choice) -> String {
    let name = |process| setup.process_name(process);
    match choice {
        Choice::Register(process) => format!("{} register", name(process)),
        Choice::Die(process) => format!("{} die", name(process)),
        Choice::Save { process, endpoint, geometry, attempt, shards, publishes, compares } => {
            let shards: Vec<_> = shards_of(shards).map(|shard| shard.to_string()).collect();
            let mut text =
                format!("{} save A{attempt} E{}", name(process), u16::from(endpoint) + 1);
            text += &format!(" {} shards={}", say_publishes(publishes), shards.join(","));
            if geometry > 0 {
                text += &format!(" geometry={geometry}");
            }
            if !compares {
                text += " compares=no";
            }
            text
        }
        Choice::Load { process, endpoints, limit, compares } => {
            let named = (0..8_u8).rev().filter(|endpoint| endpoints >> endpoint & 1 > 0);
            let named: Vec<_> = named.map(|endpoint| format!("E{}", endpoint + 1)).collect();
            let compares = if compares { " compares=yes" } else { "" };
            format!("{} load {} limit={limit}{compares}", name(process), named.join(" "))
        }
        Choice::Agree(attempt) => format!("agree A{attempt}"),
        Choice::Host(job, call) => {
            format!("{} {}", say_job(setup, job), Kind::of_call(call).name())
        }
        Choice::Publish(job, publishes) => {
            format!("{} publish {}", say_job(setup, job), say_publishes(publishes))
        }
        Choice::Tell(process, act) => format!("{} {}", name(process), say_act(setup, act)),
        Choice::Message(about, passage) => {
            format!("{} {}", Kind::of_passage(passage).name(), say_about(setup, about))
        }
        Choice::Coordinator(what) => say_coordinator(what),
        Choice::Put(id, end) => format!("put {} {}", say_move(setup, id), say_put(end)),
        Choice::Get(id, end) => format!("get {} {}", say_move(setup, id), say_get(end)),
        Choice::Check(id, known) => {
            format!("check {} {}", say_move(setup, id), if known { "known" } else { "unknown" })
        }
        Choice::Retire(id) => format!("retire {}", say_move(setup, id)),
        Choice::Land(id) => format!("land {}", say_move(setup, id)),
        Choice::Delete(work, end) => format!("delete d{work} {}", say_delete(end)),
        Choice::DropWork(work) => format!("drop-work d{work}"),
        Choice::Object(generation, object, change) => {
            format!("{} c{generation}/{object}", Kind::of_change(change).name())
        }
        Choice::RestartStore => "restart-store".to_string(),
        Choice::Audit => "audit".to_string(),
        Choice::Look(Generation(0)) => "look".to_string(),
        Choice::Look(generation) => format!("look c{generation}"),
    }
}

/// `w1/2` is the second life of `w1`, and its registration; `w1/2#5` its operation 5.
#[must_use]
pub fn say_about(setup: &Setup, about: About) -> String {
    let life = format!("{}/{}", setup.process_name(about.process()), about.life());
    match about {
        About::Register { .. } => life,
        About::Command { sequence, .. } => format!("{life}#{sequence}"),
        About::List { sequences: [first, second], .. } => format!("{life}#{first}+{second}"),
    }
}

/// `w1.3` is the third transfer of `w1`.
#[must_use]
pub fn say_job(setup: &Setup, job: JobId) -> String {
    format!("{}.{}", setup.process_name(job.process), job.number)
}

/// `w1.3.2` is the second move or check of that transfer.
#[must_use]
pub fn say_move(setup: &Setup, id: MoveId) -> String {
    let (job, number) = parts_of(id);
    format!("{}.{number}", say_job(setup, job))
}

fn say_coordinator(what: Coordinate) -> String {
    match what {
        Coordinate::FollowUp => "follow-up".to_string(),
        Coordinate::Sync => "sync".to_string(),
        Coordinate::Write => "write".to_string(),
        Coordinate::Commit => "commit".to_string(),
        Coordinate::FailSync(kept) => format!("fail-sync {kept}"),
        Coordinate::Crash(kept) => format!("crash {kept}"),
        Coordinate::Restart => "restart".to_string(),
        Coordinate::Compact => "compact".to_string(),
    }
}

fn say_pin(setup: &Setup, name: PinName) -> String {
    let PinName { process, incarnation, sequence, place } = name;
    let place = if place == 0 { String::new() } else { format!(".{place}") };
    format!("{}:{incarnation}#{sequence}{place}", setup.process_name(process))
}

fn say_publishes(publishes: Publishes) -> String {
    match publishes {
        Publishes::Nothing => "nothing".to_string(),
        Publishes::Unscoped => "unscoped".to_string(),
        Publishes::Turn(conversation, turn) => {
            format!("C{}/T{}", u16::from(conversation) + 1, u16::from(turn) + 1)
        }
    }
}

fn say_act(setup: &Setup, act: Act) -> String {
    let pin = |name| say_pin(setup, name);
    match act {
        Act::Doubt(name, yes) => format!("doubt {} {}", pin(name), if yes { "yes" } else { "no" }),
        Act::Collect(limit) => format!("collect {limit}"),
        Act::Report(work) => format!("report d{work}"),
        Act::Settle(name, evidence) => format!("settle {} {}", pin(name), say_evidence(evidence)),
        Act::Release(name) => format!("release {}", pin(name)),
        Act::Configure(which) => format!("configure {which}"),
        Act::Forget(conversation) => format!("forget C{}", u16::from(conversation) + 1),
        Act::Drop(generation) => format!("drop c{generation}"),
        Act::Lost(generation) => format!("say-lost c{generation}"),
        Act::Fence(process, number) => format!("fence {}:{number}", setup.process_name(process)),
        Act::Retire(process) => format!("retire-owner {}", setup.process_name(process)),
        Act::Malformed => "malformed".to_string(),
        Act::Conflict => "conflict".to_string(),
        Act::Mistake(mistake) => format!("mistake {}", say_mistake(setup, mistake)),
    }
}

fn say_mistake(setup: &Setup, mistake: Mistake) -> String {
    let pin = |name| say_pin(setup, name);
    match mistake {
        Mistake::Publish => "publish".to_string(),
        Mistake::Settle => "settle".to_string(),
        Mistake::Release => "release".to_string(),
        Mistake::Doubt => "doubt".to_string(),
        Mistake::Foreign(name) => format!("foreign {}", pin(name)),
        Mistake::Shard(name) => format!("shard {}", pin(name)),
        Mistake::Active(name) => format!("active {}", pin(name)),
        Mistake::Lost(generation) => format!("lost c{generation}"),
        Mistake::NotHeld(generation) => format!("not-held c{generation}"),
        Mistake::Deleted(generation) => format!("deleted c{generation}"),
        Mistake::DeletedOther(generation) => format!("deleted-other c{generation}"),
        Mistake::DeletedNothing => "deleted-nothing".to_string(),
        Mistake::Fence(process) => format!("fence {}", setup.process_name(process)),
        Mistake::Incarnation => "incarnation".to_string(),
    }
}

/// The words of evidence.
pub(super) const EVIDENCE: [(Evidence, &str); 6] = [
    (Evidence::NotExposed, "not-exposed"),
    (Evidence::Active, "active"),
    (Evidence::Quiescing, "quiescing"),
    (Evidence::QuiescedSuccess, "success"),
    (Evidence::QuiescedFailure, "failure"),
    (Evidence::InDoubt, "in-doubt"),
];

fn say_evidence(evidence: Evidence) -> &'static str {
    EVIDENCE.iter().find(|row| row.0 == evidence).map_or("?", |row| row.1)
}

fn say_lands(lands: Lands) -> &'static str {
    match lands {
        Lands::Now => "now",
        Lands::Later => "later",
        Lands::Never => "never",
    }
}

fn say_put(end: PutEnd) -> String {
    match end {
        PutEnd::Ok => "ok".to_string(),
        PutEnd::OkUnretired => "ok unretired".to_string(),
        PutEnd::NotStarted => "not-started".to_string(),
        PutEnd::OkAbsent => "ok absent".to_string(),
        PutEnd::OkGarbage => "ok garbage".to_string(),
        PutEnd::OkShort => "ok short".to_string(),
        PutEnd::Failed { lands, retired: true } => format!("failed {}", say_lands(lands)),
        PutEnd::Failed { lands, retired: false } => {
            format!("failed {} unretired", say_lands(lands))
        }
    }
}

fn say_get(end: GetEnd) -> &'static str {
    match end {
        GetEnd::Answered => "answered",
        GetEnd::AnsweredUnretired => "answered unretired",
        GetEnd::Unverified => "unverified",
        GetEnd::Failed { retired: true } => "failed",
        GetEnd::Failed { retired: false } => "failed unretired",
    }
}

fn say_delete(end: DeleteEnd) -> String {
    match end {
        DeleteEnd::Gone => "gone".to_string(),
        DeleteEnd::Refused => "refused".to_string(),
        DeleteEnd::Probed => "probed".to_string(),
        DeleteEnd::Unknown(lands) => format!("unknown {}", say_lands(lands)),
    }
}
