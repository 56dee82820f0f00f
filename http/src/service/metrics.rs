//! The service's figures in the form that Prometheus reads.
//!
//! They are made anew for each scrape, from what the job holds and what was seen of it; nothing is
//! counted twice, and what the job holds is never counted but read.

use std::sync::atomic::AtomicU64;

use pinfold_core::policy::{Gauges, Limits};
use pinfold_host::node::NodeStats;
use pinfold_host::view::{BlockerCount, Word};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

use super::seen::State;

/// What a scrape shows.
pub(super) struct Figures<'a> {
    pub(super) gauges: Gauges,
    pub(super) limits: Limits,
    pub(super) stats: NodeStats,
    pub(super) seen: &'a State,
    /// Outstanding delete work: pieces, objects, and seconds of the oldest.
    pub(super) work: [u64; 3],
    /// What each kind of blocker keeps.
    pub(super) blockers: Vec<BlockerCount>,
    pub(super) oldest_pin_seconds: u64,
    /// Lines of the audit log that could not be written.
    pub(super) audit_lost: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Label {
    kind: Word,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct VerbLabel {
    verb: &'static str,
    result: &'static str,
}

type Size = Gauge<u64, AtomicU64>;

impl Figures<'_> {
    /// The page of a scrape.
    pub(super) fn page(&self) -> String {
        let mut registry = Registry::with_prefix("pinfold");
        self.sizes(&mut registry);
        self.limits(&mut registry);
        self.blockers(&mut registry);
        self.rates(&mut registry);
        let mut page = String::new();
        // It can only fail where the string does.
        let _ = encode(&mut page, &registry);
        page
    }

    fn sizes(&self, registry: &mut Registry) {
        let Gauges {
            owners,
            pins,
            bytes_pinned,
            bytes_unscoped,
            bytes_in_doubt,
            bytes_quarantined,
            checkpoints,
            bytes,
            bytes_retained,
            turns,
            conversations,
            expired_turns,
            collectable,
        } = self.gauges;
        let [pieces, objects, oldest_work] = self.work;
        for (name, help, value) in [
            ("owners", "Owners known", owners),
            ("pins", "Live pins", pins),
            ("checkpoints", "Checkpoints with a record", checkpoints),
            ("turns", "Live turns", turns),
            ("conversations", "Conversations known, forgotten ones included", conversations),
            (
                "expired_turns",
                "Expired turns and forgotten conversations remembered",
                expired_turns,
            ),
            ("collectable", "Checkpoints that are collectable or being collected", collectable),
            ("work", "Pieces of delete work that are handed out and not reported", pieces),
            ("work_objects", "Objects in them", objects),
        ] {
            add(registry, name, help, None, value);
        }
        for (name, help, value) in [
            ("pinned", "Bytes of checkpoints with a pin, each once", bytes_pinned),
            ("unscoped", "Bytes of checkpoints with the unscoped mark", bytes_unscoped),
            ("in_doubt", "Bytes that pins in doubt stand for", bytes_in_doubt),
            ("quarantined", "Bytes of quarantined checkpoints", bytes_quarantined),
            ("stored", "Bytes of all checkpoints with a record", bytes),
            ("retained", "Bytes that live turns refer to, each checkpoint once", bytes_retained),
        ] {
            add(registry, name, help, Some(Unit::Bytes), value);
        }
        let help = "Age of the oldest delete work that is handed out";
        add(registry, "oldest_work", help, Some(Unit::Seconds), oldest_work);
        let help = "Age of the oldest pin, as far as this process has seen it";
        add(registry, "oldest_pin", help, Some(Unit::Seconds), self.oldest_pin_seconds);
    }

    /// Each bound that the job may come to, beside the figure that it bounds.
    fn limits(&self, registry: &mut Registry) {
        let (limits, family) = (&self.limits, Family::<Label, Size>::default());
        for (kind, most) in [
            ("owners", limits.owners.into()),
            ("pins", limits.pins.into()),
            ("bytes_pinned", limits.bytes_pinned),
            ("bytes_unscoped", limits.bytes_unscoped),
            ("bytes_in_doubt", limits.bytes_in_doubt),
            ("bytes_quarantined", limits.bytes_quarantined),
            ("turns", limits.turns.into()),
            ("conversations", limits.conversations.into()),
            ("expired_turns", limits.expired_turns.into()),
        ] {
            family.get_or_create(&Label { kind: kind.into() }).set(most);
        }
        registry.register("limit", "The most that there may be of a kind", family);
    }

    fn blockers(&self, registry: &mut Registry) {
        let checkpoints = Family::<Label, Size>::default();
        let kept = Family::<Label, Size>::default();
        for count in &self.blockers {
            let label = Label { kind: count.name.clone() };
            checkpoints.get_or_create(&label).set(count.checkpoints);
            kept.get_or_create(&label).set(count.bytes);
        }
        let help = "Checkpoints that a kind of blocker keeps; one with several counts at each";
        registry.register("blocked", help, checkpoints);
        registry.register_with_unit("blocked", "Bytes of them", Unit::Bytes, kept);
    }

    fn rates(&self, registry: &mut Registry) {
        let verbs = Family::<VerbLabel, Counter>::default();
        for (verb, counts) in &self.seen.verbs {
            for (result, count) in [
                ("ok", counts.succeeded),
                ("refused", counts.refused),
                ("not_tried", counts.not_tried),
            ] {
                verbs.get_or_create(&VerbLabel { verb, result }).inc_by(count);
            }
        }
        registry.register("commands", "Commands and registrations answered", verbs);
        for (name, help, count) in [
            ("requests", "Requests answered", self.stats.requests),
            (
                "journal_syncs",
                "Frames that were written to the journal and synced",
                self.stats.syncs,
            ),
            ("journal_written_bytes", "Bytes of those frames", self.stats.journal_bytes),
            ("audit_lost", "Lines of the audit log that were not written", self.audit_lost),
        ] {
            let counter = Counter::<u64>::default();
            counter.inc_by(count);
            registry.register(name, help, counter);
        }
        let (help, seconds) = ("Time until an answer is durable", self.seen.seconds.clone());
        registry.register_with_unit("answer", help, Unit::Seconds, seconds);
    }
}

fn add(registry: &mut Registry, name: &str, help: &str, unit: Option<Unit>, value: u64) {
    let gauge = Size::default();
    gauge.set(value);
    match unit {
        Some(unit) => registry.register_with_unit(name, help, unit, gauge),
        None => registry.register(name, help, gauge),
    }
}
