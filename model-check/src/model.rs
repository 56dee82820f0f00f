//! The same states as stateright sees them: a second engine, which shares nothing with ours but
//! the World and its canonical form.
//!
//! A state's hash is the digest of its canonical form, so that symmetry needs none of stateright's
//! own. Properties are `always` and `sometimes` alone; only steps that can be taken are offered.

use core::fmt;
use core::hash::{Hash, Hasher};
use std::time::Duration;

use pinfold_core::invariant::Invariant;
use pinfold_sim::violation::Violation;
use stateright::{Checker, Model, Property};

use crate::node::{Node, Rests};
use crate::plan::{Plan, Step};
use crate::properties::is_at_stake;

/// A plan as a stateright model. See the [module](self).
#[derive(Debug)]
pub struct Modelled {
    /// The plan.
    pub plan: Plan,
    rests: Rests,
}

/// A state: a World with its judges, and what is broken in it.
#[derive(Clone)]
pub struct State {
    node: Node,
    digest: u64,
    broken: Option<Violation>,
}

impl PartialEq for State {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest && self.broken == other.broken
    }
}

impl Eq for State {}

impl Hash for State {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let broken = self.broken.as_ref().map(|violation| violation.invariant);
        (self.digest, broken).hash(state);
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let world = &self.node.world;
        let gauges = world.coordinator.disk.catalog.gauges();
        let jobs = world.processes.iter().map(|process| process.jobs.len());
        f.debug_struct("State")
            .field("checkpoints", &gauges.checkpoints)
            .field("live turns", &gauges.turns)
            .field("expired turns", &gauges.expired_turns)
            .field("pins", &gauges.pins)
            .field("collectable", &gauges.collectable)
            .field("objects in the store", &world.store.objects.len())
            .field("transfers", &jobs.collect::<Vec<_>>())
            .field("requests under way", &world.requests.sent.len())
            .field("moves", &world.store.moves.len())
            .field("broken", &self.broken)
            .finish()
    }
}

impl Modelled {
    /// A plan as a model.
    #[must_use]
    pub fn new(plan: Plan) -> Self {
        Self { plan, rests: Rests::default() }
    }

    fn state(&self, node: Node, broken: Option<Violation>) -> State {
        let mut words = self.plan.words();
        let digest = self.plan.digest(&node.world, &mut words);
        let mut recovered = || node.recover(&self.plan, &mut words, &self.rests);
        let broken = broken.or_else(|| recovered().err());
        State { node, digest, broken }
    }

    fn steps(&self, state: &State) -> Vec<Step> {
        let (mut choices, mut steps) = (Vec::new(), Vec::new());
        if state.broken.is_none() {
            self.plan.steps(&state.node.world, &mut choices, &mut steps);
        }
        steps
    }
}

impl Model for Modelled {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        Node::first(&self.plan).into_iter().map(|(node, _)| self.state(node, None)).collect()
    }

    fn actions(&self, state: &State, actions: &mut Vec<Step>) {
        actions.extend(self.steps(state));
    }

    fn next_state(&self, state: &State, step: Step) -> Option<State> {
        let mut node = state.node.clone();
        let taken = node.take(&self.plan, step, &mut Vec::new(), |_, _| {});
        Some(self.state(node, taken.err()))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let always = Invariant::ALL.into_iter().zip(HOLDS);
        let always = always.map(|(it, holds)| Property::always(it.promise(), holds));
        let sometimes = STAKES.iter().map(|(name, stake)| Property::sometimes(name, *stake));
        always.chain(sometimes).collect()
    }

    fn format_action(&self, step: &Step) -> String {
        step.words(&self.plan.configuration.setup)
    }
}

type Condition = fn(&Modelled, &State) -> bool;

/// Whether the promise at this place holds in a state: a property can hold nothing itself.
fn holds<const PLACE: usize>(_: &Modelled, state: &State) -> bool {
    state.broken.as_ref().is_none_or(|it| it.invariant as usize != PLACE)
}

/// By the place of the promise.
const HOLDS: [Condition; Invariant::ALL.len()] = [
    holds::<0>,
    holds::<1>,
    holds::<2>,
    holds::<3>,
    holds::<4>,
    holds::<5>,
    holds::<6>,
    holds::<7>,
    holds::<8>,
    holds::<9>,
    holds::<10>,
    holds::<11>,
    holds::<12>,
    holds::<13>,
    holds::<14>,
    holds::<15>,
    holds::<16>,
    holds::<17>,
    holds::<18>,
    holds::<19>,
    holds::<20>,
];

/// Situations without which a check would say little.
const STAKES: [(&str, Condition); 3] = [
    ("a delete while a turn is retained", |model, state| stakes(model, state, Invariant::I1)),
    ("a publication in a full ledger", |model, state| stakes(model, state, Invariant::I6)),
    ("a load brings bytes", |model, state| stakes(model, state, Invariant::I15)),
];

fn stakes(model: &Modelled, state: &State, invariant: Invariant) -> bool {
    let steps = model.steps(state);
    steps.iter().any(|step| is_at_stake(invariant, &state.node.world, step.choice))
}

/// What stateright found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compared {
    /// Distinct states.
    pub states: u64,
    /// Transitions between them.
    pub transitions: u64,
    /// Promises that are broken.
    pub broken: Vec<Invariant>,
    /// Every state was visited.
    pub is_complete: bool,
}

/// Lets stateright visit the states of a plan, breadth first, for at most so long.
///
/// A run that is stopped counts as done to stateright; so a limit of time is only given with two
/// threads or more, and completeness is judged by the clock here.
#[must_use]
pub fn compare(plan: Plan, most: Duration) -> Compared {
    let began = std::time::Instant::now();
    let checker = Modelled::new(plan).checker().threads(2).timeout(most).spawn_bfs().join();
    let broken = Invariant::ALL.into_iter().filter(|it| checker.discovery(it.promise()).is_some());
    Compared {
        states: checker.unique_state_count() as u64,
        // It counts the first state as well.
        transitions: (checker.state_count() as u64).saturating_sub(1),
        broken: broken.collect(),
        is_complete: began.elapsed() < most,
    }
}

/// Serves stateright's explorer of a plan on this address until the process ends.
pub fn serve(plan: Plan, address: std::net::SocketAddr) {
    Modelled::new(plan).checker().serve(address);
}
