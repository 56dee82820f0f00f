//! A real engine, its disk and its judge, told of everything through `Seen`.

use std::collections::BTreeMap;

use pinfold_core::catalog::{Command, Event, PROTOCOL_VERSION, Register, Role};
use pinfold_core::engine::{Batch, Config, Engine, Input, Output, Query, Reply, Request, Ticket};
use pinfold_core::id::{Epoch, Incarnation, OpId, OwnerId, StartId};
use pinfold_core::journal::record::Frame;
use pinfold_core::policy::{Genesis, Limits, Policy};
use pinfold_core::replay::decode_event;
use pinfold_sim::seen::Seen;
use pinfold_sim::spec::Lockstep;

pub(crate) fn job(policy: Policy, limits: Limits) -> Genesis {
    Genesis {
        namespace: "lockstep".parse().expect("a namespace"),
        epoch: Epoch::from_u128(9),
        operator: OwnerId::from_u128(1),
        policy,
        limits,
    }
}

/// See the [module](self).
pub(crate) struct Rig {
    pub(crate) job: Genesis,
    pub(crate) engine: Engine,
    pub(crate) judge: Lockstep,
    /// Every record that the disk holds.
    records: Vec<Vec<u8>>,
    /// Everything that was seen so far.
    pub(crate) seen: Vec<Seen>,
    pub(crate) replies: Vec<(Ticket, Reply)>,
    pub(crate) tickets: u64,
    /// Each owner's incarnation and next sequence.
    pub(crate) clients: BTreeMap<OwnerId, (Incarnation, u64)>,
}

impl Rig {
    pub(crate) fn new(job: Genesis) -> Self {
        let engine = Engine::create(Config::default(), job.clone()).expect("a good genesis");
        let mut rig = Self {
            judge: Lockstep::new(&job),
            job,
            engine,
            records: Vec::new(),
            seen: Vec::new(),
            replies: Vec::new(),
            tickets: 0,
            clients: BTreeMap::new(),
        };
        rig.sync();
        rig
    }

    pub(crate) fn tell(&mut self, seen: Seen) {
        let judged = self.judge.see(&seen);
        self.seen.push(seen);
        if let Err(violation) = judged {
            let from = self.seen.len().saturating_sub(40);
            let story: Vec<_> = self.seen[from..].iter().map(|it| format!("{it:?}")).collect();
            panic!("{violation}\nafter:\n{}", story.join("\n"));
        }
    }

    pub(crate) fn submit(&mut self, epoch: Epoch, request: Request) -> Ticket {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        let input = Input { ticket, epoch, request };
        self.tell(Seen::Submitted { ticket, input: input.clone() });
        self.engine.submit(input);
        ticket
    }

    pub(crate) fn idle(&mut self) -> bool {
        self.tell(Seen::Idled);
        self.engine.follow_up()
    }

    /// The disk has a batch, whatever the engine will hear of it.
    pub(crate) fn write(&mut self, batch: &Batch) {
        let frame = Frame::decode(&self.job.epoch, batch.bytes()).expect("a good frame");
        let mut events: Vec<Event> = Vec::new();
        for (position, record) in frame.records() {
            events.push(decode_event(record, position).expect("a good record"));
            self.records.push(record.to_vec());
        }
        self.tell(Seen::Synced { events });
    }

    pub(crate) fn sync(&mut self) {
        while let Some(batch) = self.engine.take_batch() {
            self.write(&batch);
            self.engine.commit(batch);
        }
        self.poll();
    }

    pub(crate) fn poll(&mut self) {
        while let Some(output) = self.engine.poll_output() {
            match output {
                Output::Reply(ticket, reply) => {
                    self.tell(Seen::Replied { ticket, reply: reply.clone() });
                    self.replies.push((ticket, reply));
                }
                Output::Effect(effect) => self.tell(Seen::HandedOut { effect }),
            }
        }
    }

    /// The coordinator dies and comes back with what the disk holds.
    pub(crate) fn crash(&mut self) {
        self.tell(Seen::Crashed);
        let records = self.records.iter().map(Vec::as_slice);
        self.engine = Engine::recover(Config::default(), records).expect("a good journal");
        self.tell(Seen::Recovered);
        self.sync();
    }

    /// Runs every follow-up, and asks the judge whether anything is left.
    pub(crate) fn rest(&mut self) {
        self.sync();
        while self.idle() {}
        self.sync();
        if let Err(violation) = self.judge.at_rest() {
            panic!("{violation}");
        }
    }

    pub(crate) fn register(&mut self, owner: u128, role: Role) -> Request {
        let owner = OwnerId::from_u128(owner);
        let after = self.clients.get(&owner).map_or(Incarnation(0), |client| client.0);
        Request::Register(Register {
            owner,
            role,
            after,
            start: StartId::from_u128(u128::from(self.tickets) + 1),
            version: PROTOCOL_VERSION,
            expected_policy: None,
        })
    }

    pub(crate) fn next_op(&mut self, owner: u128) -> OpId {
        let owner = OwnerId::from_u128(owner);
        let (incarnation, next) = self.clients.entry(owner).or_insert((Incarnation(0), 1));
        let op = OpId { owner, incarnation: *incarnation, sequence: *next };
        *next += 1;
        op
    }

    /// Asks, syncs, and gives the reply.
    pub(crate) fn ask(&mut self, request: Request) -> Reply {
        let ticket = self.submit(self.job.epoch, request);
        self.sync();
        let (of, reply) = self.replies.last().cloned().expect("a reply");
        assert_eq!(of, ticket);
        reply
    }

    /// Registers an owner for the first time, or again.
    pub(crate) fn join(&mut self, owner: u128, role: Role) {
        let request = self.register(owner, role);
        match self.ask(request) {
            Reply::Command(Ok(pinfold_core::outcome::Outcome::Registered { incarnation })) => {
                self.clients.insert(OwnerId::from_u128(owner), (incarnation, 1));
            }
            other => panic!("registered: {other:?}"),
        }
    }

    /// Sends a command under the owner's next number.
    pub(crate) fn send(&mut self, owner: u128, command: Command) -> Reply {
        let op = self.next_op(owner);
        self.ask(Request::Command(op, command))
    }

    pub(crate) fn query(&mut self, query: Query) -> Reply {
        self.ask(Request::Query(query))
    }
}

/// The ticket that was answered last.
pub(crate) fn last_ticket(seen: &[Seen]) -> Ticket {
    let replied = |seen: &Seen| match seen {
        Seen::Replied { ticket, .. } => Some(*ticket),
        _ => None,
    };
    seen.iter().rev().find_map(replied).expect("a reply")
}
