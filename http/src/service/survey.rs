//! Looking at the whole job without keeping anybody waiting: many short looks in place of a long
//! one.
//!
//! A [`Survey`] walks over all that the job holds, so many rows at a time; between two looks
//! commands go on, so what changes meanwhile may be seen or not. A small job is seen in one look,
//! and then all of it is of one moment. It protects the node from who looks on again and again: of
//! a large job one survey serves everybody for twenty times as long as it took.

use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use pinfold_core::catalog::{Catalog, OwnerFacts, PinFacts, Walk};
use pinfold_core::id::{CheckpointId, Generation};
use pinfold_core::policy::{Gauges, Genesis};
use pinfold_host::view::{BlockerCount, CheckpointView, ConversationView, OwnerView};
use serde::Serialize;
use tokio::sync::Mutex;

use super::Shared;
use super::look::look;
use crate::problem::Problem;

/// Rows of each kind that one look is for: some milliseconds.
const ROWS: u32 = 2048;
/// Identities alone are faster.
const IDS: u32 = 8192;
/// A survey that took longer serves others, too.
const SHORT: Duration = Duration::from_millis(50);
const TIMES: u32 = 20;
/// How many of a kind a survey lists.
pub(super) const LISTED: usize = 1000;
/// What is stuck, by its blockers.
const STUCK: [&str; 4] = ["in doubt", "collecting", "quarantined", "lost"];

/// What the job holds.
#[derive(Debug)]
pub(super) struct Survey {
    began: Instant,
    taken: Instant,
    pub(super) job: Genesis,
    pub(super) gauges: Gauges,
    pub(super) blockers: Vec<BlockerCount>,
    pub(super) stuck: Listed<CheckpointView>,
    pub(super) quarantined: Listed<CheckpointView>,
    /// Most bytes first.
    pub(super) conversations: Listed<ConversationView>,
    /// By id.
    pub(super) owners: Vec<OwnerView>,
    /// By id.
    pub(super) pins: Vec<PinFacts>,
}

/// How many there are, and the first of them.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Listed<T> {
    pub(super) total: u64,
    pub(super) first: Vec<T>,
}

impl<T> Listed<T> {
    pub(super) const fn nothing() -> Self {
        Self { total: 0, first: Vec::new() }
    }

    /// The first so many.
    pub(super) fn cut(&self, most: usize) -> Self
    where
        T: Clone,
    {
        Self { total: self.total, first: self.first.iter().take(most).cloned().collect() }
    }

    /// Keeps the first ones by their order, and room for as many more.
    fn shrink<K: Ord>(&mut self, by: impl Fn(&T) -> K, is_end: bool) {
        if is_end || self.first.len() >= 2 * LISTED {
            self.first.sort_by_key(by);
            self.first.truncate(LISTED);
        }
    }
}

/// The last survey, for those who come meanwhile.
#[derive(Debug, Default)]
pub(super) struct Surveys(Mutex<Option<Arc<Survey>>>);

/// How far a survey is.
struct Walks {
    checkpoints: Walk,
    pins: Walk,
    conversations: u32,
    are_over: bool,
}

/// What one look showed.
struct Shown {
    walks: Walks,
    checkpoints: Vec<CheckpointView>,
    /// Each with the bytes of what it holds.
    pins: Vec<(PinFacts, u64)>,
    conversations: Vec<ConversationView>,
    owners: Vec<OwnerFacts>,
    gauges: Gauges,
    job: Genesis,
}

impl Walks {
    fn step(mut self, catalog: &Catalog) -> Shown {
        let ids = catalog.walk_checkpoints(&mut self.checkpoints, ROWS).into_iter();
        let checkpoints = ids.filter_map(|id| CheckpointView::of(catalog, id)).collect();
        let pins = catalog.walk_pins(&mut self.pins, ROWS).into_iter();
        let held = |pin: &PinFacts| catalog.checkpoint(pin.checkpoint).map_or(0, |it| it.bytes);
        let pins = pins.map(|pin| (pin, held(&pin))).collect();
        let rows = catalog.conversations_after(self.conversations).take(ROWS as usize);
        let conversations: Vec<_> = rows.map(ConversationView::of).collect();
        self.conversations += u32::try_from(conversations.len()).unwrap_or(ROWS);
        let no_more = catalog.conversations_after(self.conversations).next().is_none();
        self.are_over = self.checkpoints.is_over() && self.pins.is_over() && no_more;
        // Owners are few; who came in the middle is seen at the end.
        let owners = if self.are_over { catalog.owners_unweighed() } else { Vec::new() };
        let (gauges, job) = (catalog.gauges(), catalog.job().clone());
        Shown { walks: self, checkpoints, pins, conversations, owners, gauges, job }
    }
}

impl Surveys {
    /// A survey that began after this was asked for, or a recent one of a large job.
    pub(super) async fn get(&self, shared: &Arc<Shared>) -> Result<Arc<Survey>, Problem> {
        let asked = Instant::now();
        let mut last = self.0.lock().await;
        if let Some(survey) = &*last
            && survey.serves(asked)
        {
            return Ok(Arc::clone(survey));
        }
        let survey = Arc::new(Survey::take(shared).await?);
        let is_live = |pin| survey.pins.binary_search_by_key(&pin, |it| it.id).is_ok();
        shared.seen.state().prune(survey.began, is_live);
        *last = Some(Arc::clone(&survey));
        Ok(survey)
    }
}

impl Survey {
    fn serves(&self, asked: Instant) -> bool {
        let took = self.taken - self.began;
        self.began >= asked || took > SHORT && self.taken.elapsed() < took * TIMES
    }

    /// How old it is.
    pub(super) fn age(&self) -> Duration {
        self.taken.elapsed()
    }

    async fn take(shared: &Arc<Shared>) -> Result<Self, Problem> {
        let began = Instant::now();
        let mut blockers = BlockerCount::nothing();
        let (mut stuck, mut quarantined) = (Listed::nothing(), Listed::nothing());
        let mut conversations = Listed::<ConversationView>::nothing();
        let mut pins = Vec::new();
        let (checkpoints, walk) = Default::default();
        let mut walks = Walks { checkpoints, pins: walk, conversations: 0, are_over: false };
        loop {
            let shown = look(shared, move |engine, _| walks.step(engine.catalog())).await?;
            walks = shown.walks;
            let is_end = walks.are_over;
            for checkpoint in shown.checkpoints {
                blockers.iter_mut().for_each(|count| count.add(&checkpoint));
                if checkpoint.unknown > 0 {
                    quarantined.total += 1;
                    quarantined.first.push(checkpoint.clone());
                }
                if checkpoint.blockers.iter().any(|it| STUCK.contains(&&**it)) {
                    stuck.total += 1;
                    stuck.first.push(checkpoint);
                }
            }
            stuck.shrink(|it| it.checkpoint, is_end);
            quarantined.shrink(|it| it.checkpoint, is_end);
            conversations.total += shown.conversations.len() as u64;
            conversations.first.extend(shown.conversations);
            conversations.shrink(|it| std::cmp::Reverse(it.bytes), is_end);
            pins.extend(shown.pins);
            if !is_end {
                continue;
            }
            let owners = weighed(shown.owners, &pins);
            let mut pins: Vec<_> = pins.into_iter().map(|(pin, _)| pin).collect();
            pins.sort_unstable_by_key(|pin| pin.id);
            blockers.retain(|count| count.checkpoints > 0);
            return Ok(Self {
                began,
                taken: Instant::now(),
                job: shown.job,
                gauges: shown.gauges,
                blockers,
                stuck,
                quarantined,
                conversations,
                owners,
                pins,
            });
        }
    }
}

/// Owners with the bytes that their pins hold, each checkpoint once.
fn weighed(owners: Vec<OwnerFacts>, pins: &[(PinFacts, u64)]) -> Vec<OwnerView> {
    let mut held: Vec<_> =
        pins.iter().map(|(pin, bytes)| (pin.id.op.owner, pin.checkpoint, *bytes)).collect();
    held.sort_unstable();
    held.dedup_by_key(|(owner, checkpoint, _)| (*owner, *checkpoint));
    let mut bytes = BTreeMap::<_, u64>::new();
    for (owner, _, more) in held {
        let sum = bytes.entry(owner).or_default();
        *sum = sum.saturating_add(more);
    }
    let weigh = |facts: OwnerFacts| OwnerFacts {
        bytes_pinned: bytes.get(&facts.id).copied().unwrap_or_default(),
        ..facts
    };
    owners.into_iter().map(|facts| OwnerView::of(weigh(facts))).collect()
}

/// The checkpoints behind a generation, by generation, at most so many; and where there are more,
/// behind which generation. Those that go before they are looked at take their places with them.
pub(super) async fn checkpoints_after(
    shared: &Arc<Shared>,
    after: Generation,
    most: usize,
) -> Result<(Vec<CheckpointView>, Option<Generation>), Problem> {
    // The highest of the lowest first, so that it is the one to go.
    let mut lowest = BinaryHeap::with_capacity(most + 2);
    let mut walk = Walk::default();
    while !walk.is_over() {
        let ids = walked(shared, &mut walk).await?;
        for id in ids.into_iter().filter(|id| id.generation > after) {
            lowest.push((id.generation, id.endpoint));
            // One more says that there are more.
            if lowest.len() > most + 1 {
                lowest.pop();
            }
        }
    }
    let ids = lowest.into_sorted_vec().into_iter();
    let mut ids: Vec<_> =
        ids.map(|(generation, endpoint)| CheckpointId { endpoint, generation }).collect();
    let is_more = ids.len() > most;
    ids.truncate(most);
    let next = ids.last().filter(|_| is_more).map(|id| id.generation);
    let mut views = Vec::with_capacity(ids.len());
    for some in ids.chunks(ROWS as usize) {
        let some = some.to_vec();
        let seen = look(shared, move |engine, _| {
            let view = |id| CheckpointView::of(engine.catalog(), id);
            some.into_iter().filter_map(view).collect::<Vec<_>>()
        });
        views.extend(seen.await?);
    }
    Ok((views, next))
}

/// The checkpoint of a generation, if it has a record.
pub(super) async fn checkpoint_of(
    shared: &Arc<Shared>,
    generation: Generation,
) -> Result<Option<CheckpointId>, Problem> {
    let mut walk = Walk::default();
    while !walk.is_over() {
        let ids = walked(shared, &mut walk).await?;
        if let Some(found) = ids.into_iter().find(|id| id.generation == generation) {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// The checkpoints that one more look of a walk shows, by their identities alone.
async fn walked(shared: &Arc<Shared>, walk: &mut Walk) -> Result<Vec<CheckpointId>, Problem> {
    let mut next = *walk;
    let step = look(shared, move |engine, _| {
        let ids = engine.catalog().walk_checkpoints(&mut next, IDS);
        (next, ids)
    });
    let (next, ids) = step.await?;
    *walk = next;
    Ok(ids)
}
