//! What the job holds, list by list: so many at a time, with how many there are in all.
//!
//! A list is read in pages: each says behind what the next one begins. What comes or goes between
//! two pages may be in them or not; what is there all the time is in them once.

use std::sync::Arc;
use std::time::Instant;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use pinfold_core::id::{Generation, OwnerId};
use pinfold_host::dto::read_pin;
use pinfold_host::view::{CheckpointView, ConversationView, OwnerView, PinView, PolicyView};
use serde::{Deserialize, Serialize};

use super::Shared;
use super::answers::{InspectionAnswer, PinAnswer, PinsAnswer};
use super::look::look;
use super::routes::{Answered, Kept, malformed, parsed};
use super::survey::{LISTED, Listed, checkpoints_after};
use crate::problem::Problem;

/// How many of a list are told unless somebody asks for more, and at most.
const PAGE: [usize; 2] = [1000, 10_000];
/// The same of the lists of an inspection.
const INSPECTED: [usize; 2] = [100, LISTED];

/// Which part of a list.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Part {
    /// Behind what; from the beginning without it.
    after: Option<String>,
    /// How many at most.
    limit: Option<usize>,
    /// In which order, where there are two.
    by: Option<String>,
}

type Asked = Result<Query<Part>, QueryRejection>;

/// A page of a list.
#[derive(Debug, Serialize)]
pub(super) struct Page<T> {
    /// How many there are in all.
    total: u64,
    /// Behind what the next page begins; none at the end.
    next: Option<String>,
    items: Vec<T>,
}

/// How many are asked for.
fn limit(part: &Part, [usual, most]: [usize; 2]) -> Result<usize, Problem> {
    match part.limit {
        None => Ok(usual),
        Some(limit) if (1..=most).contains(&limit) => Ok(limit),
        Some(limit) => Err(malformed(&format!("`limit` is {limit}, not between 1 and {most}"))),
    }
}

fn read(asked: Asked) -> Result<Part, Problem> {
    asked.map(|Query(part)| part).map_err(|error| malformed(&error.body_text()))
}

/// What `after` names; none from the beginning.
fn after<T: std::str::FromStr>(part: &Part, what: &str) -> Result<Option<T>, Problem>
where
    T::Err: std::fmt::Display,
{
    part.after.as_deref().map(|text| parsed(text, what)).transpose()
}

pub(super) async fn inspection(State(shared): Kept, asked: Asked) -> Answered<InspectionAnswer> {
    let most = limit(&read(asked)?, INSPECTED)?;
    let survey = shared.surveys.get(&shared).await?;
    let job = &survey.job;
    let mut owners = survey.owners.clone();
    owners.sort_by_key(|owner| std::cmp::Reverse(owner.bytes_pinned));
    owners.truncate(most);
    Ok(Json(InspectionAnswer {
        namespace: job.namespace.clone(),
        epoch: job.epoch.to_string(),
        operator: job.operator.to_string(),
        policy: PolicyView::of(&job.policy),
        totals: survey.gauges,
        limits: job.limits,
        age_seconds: survey.age().as_secs(),
        blockers: survey.blockers.clone(),
        stuck: survey.stuck.cut(most),
        quarantined: survey.quarantined.cut(most),
        conversations: survey.conversations.cut(most),
        owners: Listed { total: survey.owners.len() as u64, first: owners },
    }))
}

/// By generation.
pub(super) async fn checkpoints(
    State(shared): Kept,
    asked: Asked,
) -> Answered<Page<CheckpointView>> {
    let part = read(asked)?;
    let most = limit(&part, PAGE)?;
    let after = Generation(after(&part, "a generation")?.unwrap_or(0));
    let (items, next) = checkpoints_after(&shared, after, most).await?;
    let total = look(&shared, |engine, _| engine.catalog().gauges().checkpoints).await?;
    let next = next.map(|generation| generation.to_string());
    Ok(Json(Page { total, next, items }))
}

/// Takes away what is beyond the page, and tells the last of it where there was more.
fn cut<T>(items: &mut Vec<T>, most: usize, name: impl Fn(&T) -> String) -> Option<String> {
    let is_more = items.len() > most;
    items.truncate(most);
    items.last().filter(|_| is_more).map(name)
}

/// In the order in which they were seen first.
pub(super) async fn conversations(
    State(shared): Kept,
    asked: Asked,
) -> Answered<Page<ConversationView>> {
    let part = read(asked)?;
    let most = limit(&part, PAGE)?;
    let after: u32 = after(&part, "a number of conversations")?.unwrap_or(0);
    let (items, total) = look(&shared, move |engine, _| {
        let catalog = engine.catalog();
        let rows = catalog.conversations_after(after).take(most);
        let items: Vec<_> = rows.map(ConversationView::of).collect();
        (items, catalog.gauges().conversations)
    })
    .await?;
    let seen = u64::from(after) + items.len() as u64;
    let next = (seen < total && !items.is_empty()).then(|| seen.to_string());
    Ok(Json(Page { total, next, items }))
}

/// By id.
pub(super) async fn owners(State(shared): Kept, asked: Asked) -> Answered<Page<OwnerView>> {
    let part = read(asked)?;
    let most = limit(&part, PAGE)?;
    let after: Option<OwnerId> = after(&part, "an owner")?;
    let survey = shared.surveys.get(&shared).await?;
    let from = survey.owners.partition_point(|owner| Some(owner.owner) <= after);
    let mut items: Vec<_> = survey.owners.iter().skip(from).take(most + 1).cloned().collect();
    let next = cut(&mut items, most, |it| it.owner.to_string());
    Ok(Json(Page { total: survey.owners.len() as u64, next, items }))
}

/// The oldest first, with those in doubt; or all, page by page, by id.
pub(super) async fn pins(State(shared): Kept, asked: Asked) -> Answered<PinsAnswer> {
    let part = read(asked)?;
    let most = limit(&part, PAGE)?;
    let now = Instant::now();
    let survey = shared.surveys.get(&shared).await?;
    let total = survey.pins.len() as u64;
    let answers = |views: Vec<PinView>| answers(&shared, now, views);
    let mut answer = PinsAnswer { total, next: None, in_doubt: Listed::nothing(), pins: vec![] };
    match part.by.as_deref() {
        Some("id") => {
            let after = part.after.as_deref().map(read_pin).transpose();
            let after = after.map_err(|error| malformed(&error))?;
            let from = survey.pins.partition_point(|pin| Some(pin.id) <= after);
            let page = survey.pins.iter().skip(from).take(most + 1);
            answer.pins = answers(page.map(PinView::of).collect());
            answer.next = cut(&mut answer.pins, most, |it| it.pin.pin.to_string());
        }
        None | Some("age") if part.after.is_none() => {
            let mut pins = answers(survey.pins.iter().map(PinView::of).collect());
            pins.sort_by_key(|it| std::cmp::Reverse((it.at_least, it.age_seconds)));
            let doubtful = pins.iter().filter(|it| it.pin.in_doubt);
            answer.in_doubt.total = doubtful.clone().count() as u64;
            answer.in_doubt.first = doubtful.take(most).cloned().collect();
            pins.truncate(most);
            answer.pins = pins;
        }
        None | Some("age") => return Err(malformed("`after` goes with `by=id`")),
        Some(other) => {
            let other = other.escape_debug();
            return Err(malformed(&format!("`by` is \"{other}\", not age or id")));
        }
    }
    Ok(Json(answer))
}

/// Pins with their ages.
fn answers(shared: &Arc<Shared>, now: Instant, views: Vec<PinView>) -> Vec<PinAnswer> {
    let seen = shared.seen.state();
    let answer = |pin: PinView| {
        let since = seen.pins.get(&pin.pin).map(|it| it.instant);
        let age = now.saturating_duration_since(since.unwrap_or(shared.seen.began));
        PinAnswer { pin, age_seconds: age.as_secs(), at_least: since.is_none() }
    };
    views.into_iter().map(answer).collect()
}
