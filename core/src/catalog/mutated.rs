//! What the catalog does wrong while a [mutant](crate::mutant) is armed, where that takes more than
//! a line at the place of the decision.
//!
//! Protects the code around it from growing. It makes no structure that the table could not walk.

use alloc::vec::Vec;

use super::receipt::Known;
use super::slab::{NONE, Slot};
use super::table::{Claimant, Stage, Table, Unscoped};
use super::{Catalog, Change, Command, Event, Sender, Verdict};
use crate::id::{CheckpointId, EndpointId, Generation, ManifestDigest, OpId, PinId, ShardIndex};
use crate::mutant::{Mutant, is_armed};
use crate::outcome::{DeleteOutcome, Evidence, Limit, Outcome, Rejection, TurnKey};

/// Who is obeyed.
impl Catalog {
    /// The sender of a command that must not be decided.
    pub(super) fn wrongly_obeyed(
        &self,
        owner: Slot,
        op: OpId,
        command: &Command,
    ) -> Option<Sender> {
        let reports = match command {
            Command::Settle { .. }
            | Command::Publish { .. }
            | Command::Release { .. }
            | Command::Lost { .. }
            | Command::Doubt { .. } => true,
            Command::Prepare(_)
            | Command::Pin { .. }
            | Command::Collect { .. }
            | Command::Deleted { .. }
            | Command::Configure { .. }
            | Command::Forget { .. }
            | Command::Drop { .. }
            | Command::Fence { .. }
            | Command::Retire { .. } => false,
        };
        if let Some(life) = self.obeyed_older_life(op).filter(|_| reports) {
            return Some(Sender { owner, life });
        }
        let life = self.table.owners[owner].current;
        self.is_wrongly_obeyed(owner, op).then_some(Sender { owner, life })
    }

    /// A current incarnation that is fenced, or whose receipt is forgotten.
    fn is_wrongly_obeyed(&self, owner: Slot, op: OpId) -> bool {
        let row = &self.table.owners[owner];
        if row.current == NONE || op.incarnation != self.table.current(owner) || op.sequence == 0 {
            return false;
        }
        let window = self.table.job.limits.unanswered;
        let known = row.receipts.look_up(op.sequence, 0, window);
        if self.table.lives[row.current].fenced {
            return is_armed(Mutant::FencedObeyed) && known == Ok(Known::New);
        }
        is_armed(Mutant::ForgottenExecuted)
            && known == Err(Rejection::ReceiptForgotten)
            && (0..8).all(|place| self.table.pin(PinId { op, place }).is_none())
    }

    /// The row of an older incarnation that is obeyed although another one follows it.
    pub(super) fn obeyed_older_life(&self, op: OpId) -> Option<Slot> {
        let owner = self.table.owner(op.owner)?;
        let older = is_armed(Mutant::OlderObeyed) && op.incarnation < self.table.current(owner);
        let life = self.table.life(owner, op.incarnation).filter(|_| older)?;
        (!self.table.lives[life].fenced).then_some(life)
    }

    pub(super) fn fits_wrongly_obeyed(&self, owner: Slot, op: OpId) -> bool {
        self.obeyed_older_life(op).is_some() || self.is_wrongly_obeyed(owner, op)
    }

    pub(super) fn leaves_no_receipt(&self, op: OpId, answer: &Result<Outcome, Rejection>) -> bool {
        let current = self.table.owner(op.owner).map(|owner| self.table.current(owner));
        let is_older = current.is_some_and(|current| op.incarnation < current);
        is_older || is_armed(Mutant::RefusalsNotKept) && answer.is_err()
    }

    pub(super) fn end_pins_of_current(&mut self, owner: Slot) {
        let life = self.table.owners[owner].current;
        while life != NONE
            && is_armed(Mutant::RegisterEndsPins)
            && self.table.lives[life].pins != NONE
        {
            self.table.end_pin(self.table.lives[life].pins);
        }
    }
}

/// Saves and loads.
impl Catalog {
    pub(super) fn reused_generation(&self) -> Option<Generation> {
        let last = self.table.generation;
        let has_record = |slot| self.table.checkpoints[slot].generation == last;
        let is_free = last > Generation(0) && !self.table.checkpoints.slots().any(has_record);
        (is_free && is_armed(Mutant::GenerationReused)).then_some(last)
    }

    pub(super) fn copy_digest(&mut self, endpoint: EndpointId, digest: ManifestDigest) {
        if is_armed(Mutant::ManifestKeptByEndpoint) {
            let slots: Vec<Slot> = self.table.generations(endpoint).collect();
            for slot in slots {
                self.table.checkpoints[slot].digest = digest;
            }
        }
    }

    pub(super) fn revive_collecting(&mut self, slot: Slot) {
        let row = &mut self.table.checkpoints[slot];
        if is_armed(Mutant::ServeCollecting) && row.stage == Stage::Collecting {
            row.stage = Stage::Whole;
        }
    }

    /// What is taken for the evidence, or the limit that refuses it.
    pub(super) fn misread_evidence(&self, evidence: Evidence) -> Result<Evidence, Rejection> {
        if is_armed(Mutant::LimitRefusesSettle) && evidence == Evidence::InDoubt {
            self.check_limit(Limit::BytesInDoubt, self.table.counters.bytes_in_doubt + 1)?;
        }
        let is_failure = evidence == Evidence::QuiescedFailure;
        let arrives = is_armed(Mutant::FailureIsSuccess) && is_failure;
        Ok(if arrives { Evidence::QuiescedSuccess } else { evidence })
    }

    /// What is taken for the end of a load.
    pub(super) fn end_of_load(&mut self, slot: Slot, evidence: Evidence) -> Evidence {
        let first = self.table.checkpoints[self.table.pins[slot].checkpoint].pins;
        if is_armed(Mutant::SettleEndsTwins) && evidence.is_final() {
            let mut pin = first;
            while pin != NONE {
                let next = self.table.pins[pin].of_checkpoint.next;
                if pin != slot && !self.table.pins[pin].is_save() {
                    self.table.end_pin(pin);
                }
                pin = next;
            }
        }
        if is_armed(Mutant::DoubtEndsLoadPin) { Evidence::QuiescedFailure } else { evidence }
    }

    /// Lets a shard that failed be settled once more, as a success.
    pub(super) fn forget_failure(&mut self, pin: Slot, shard: Slot, evidence: Evidence) {
        let row = self.table.pins[pin];
        let claim = &mut self.table.assemblies[row.assembly].shards[shard as usize];
        let failed =
            matches!(claim.evidence, Some(Evidence::QuiescedFailure | Evidence::NotExposed));
        if failed && evidence == Evidence::QuiescedSuccess && is_armed(Mutant::LaterSuccessCounts) {
            claim.evidence = None;
            self.table.change_pin(pin, |pin| pin.open += 1);
            let stage = &mut self.table.checkpoints[row.checkpoint].stage;
            if *stage == Stage::Failed {
                *stage = Stage::Prepared;
            }
        }
    }

    pub(super) fn settle_other_ranks(&mut self, assembly: Slot) {
        if !is_armed(Mutant::RankSpeaksForAll) {
            return;
        }
        let claims = self.table.assemblies[assembly].shards.clone();
        for (claim, shard) in claims.iter().zip(0..) {
            let settled = claim.evidence.is_some_and(Evidence::is_final);
            if let Claimant::Pin(pin) = claim.by
                && !settled
            {
                self.table.settle_shard(pin, shard, Evidence::QuiescedSuccess);
            }
        }
    }
}

/// Retention and collection.
impl Catalog {
    /// The turn that expires in the place of another one.
    pub(super) fn expired_instead(&self, oldest: TurnKey) -> TurnKey {
        let head = self.table.turns.head;
        let elsewhere = is_armed(Mutant::ExpireElsewhere) && head != NONE;
        if elsewhere { self.table.turn_key(head) } else { oldest }
    }

    /// Moves a turn to the end of its ledger and of the job's order, if it is its oldest.
    pub(super) fn make_newest(&mut self, first: Slot) {
        let conversation = self.table.references[first].conversation;
        let row = &self.table.conversations[conversation];
        if row.head == first && row.turns > 1 {
            self.table.turn_ledger(conversation);
            let Table { turns, references, .. } = &mut self.table;
            turns.unlink(references, first, |row| &mut row.in_job);
            turns.push(references, first, |row| &mut row.in_job);
        }
    }

    /// Lets a ledger begin with its newest turn, which therefore expires next.
    pub(super) fn put_newest_first(&mut self, conversation: Slot) {
        if is_armed(Mutant::ExpireNewest) {
            for _ in 1..self.table.conversations[conversation].turns {
                self.table.turn_ledger(conversation);
            }
        }
    }

    pub(super) fn misread_outcomes<T>(
        mut outcomes: Vec<(T, DeleteOutcome)>,
    ) -> Vec<(T, DeleteOutcome)> {
        for (_, outcome) in &mut outcomes {
            let unknown = *outcome == DeleteOutcome::Unknown && is_armed(Mutant::UnknownIsGone);
            let refused = *outcome == DeleteOutcome::Refused && is_armed(Mutant::RefusedIsGone);
            if unknown || refused {
                *outcome = DeleteOutcome::Gone;
            }
        }
        outcomes
    }

    /// What an audit wrongly says of the keys of a minted generation.
    pub(super) fn misjudged(&self, checkpoint: CheckpointId) -> Option<Verdict> {
        let Some(slot) = self.table.checkpoint(checkpoint) else {
            return is_armed(Mutant::StrayCounted).then_some(Verdict::Counted);
        };
        let row = &self.table.checkpoints[slot];
        let only_pins =
            row.pins != NONE && row.references() == NONE && row.unscoped != Unscoped::Marked;
        (only_pins && is_armed(Mutant::AuditMissesPins)).then_some(Verdict::Stray)
    }
}

/// Restarts.
impl Catalog {
    /// Loses what only a receipt knows: one whose operation has a live pin stays, so that the pin
    /// is not taken twice.
    pub(super) fn lose_receipts(&mut self) {
        if !is_armed(Mutant::ReceiptsLostAtRestart) {
            return;
        }
        let owners: Vec<Slot> = self.table.owners.slots().collect();
        for owner in owners {
            let mut held = Vec::new();
            let life = self.table.owners[owner].current;
            let mut pin = if life == NONE { NONE } else { self.table.lives[life].pins };
            while pin != NONE {
                held.push(self.table.pins[pin].sequence);
                pin = self.table.pins[pin].of_life.next;
            }
            self.table.owners[owner].receipts.lose_all_but(&held);
        }
    }

    /// The state with which an engine goes on after a restart.
    pub(crate) fn after_a_bad_restart(mut self) -> Self {
        self.lose_receipts();
        self
    }

    /// Whether replay leaves an event out.
    pub(crate) fn passes_over(&self, event: &Event) -> bool {
        let is_refusal = matches!(event, Event::Decided { change: Change::Refused(_), .. });
        is_armed(Mutant::ReplaySkipsRefusals) && is_refusal
    }

    /// Takes the mark away that a replayed event set.
    pub(crate) fn undo_doubt(&mut self, event: &Event) {
        if let Event::Decided { change: Change::Doubted { pin, doubtful: true }, .. } = event
            && is_armed(Mutant::ReplaySkipsDoubt)
        {
            self.apply_doubted(*pin, false);
        }
    }

    /// The state without what is not read back from a snapshot.
    pub(super) fn badly_read_back(mut self) -> Self {
        let table = &mut self.table;
        if is_armed(Mutant::SnapshotDropsTrim) {
            table.trim = None;
        }
        if is_armed(Mutant::SnapshotDropsExpired) {
            for slot in 0..table.conversations.end() {
                let row = &table.conversations[slot];
                if !row.forgotten {
                    table.purge_expired(slot, row.expired_count);
                }
            }
        }
        if is_armed(Mutant::SnapshotDropsDoubt) {
            let pins: Vec<Slot> = table.pins.slots().collect();
            for slot in pins {
                table.change_pin(slot, |pin| (pin.doubted, pin.load_in_doubt) = (false, false));
            }
        }
        if is_armed(Mutant::SnapshotTurnsQueue) && !table.queue.is_empty() {
            let first = table.queue.head;
            table.requeue(first, table.disposals[first].cursor);
        }
        self
    }
}

impl Table {
    /// Whether a shard whose claim has ended is taken for one that nobody has claimed.
    pub(super) fn is_wrongly_free(&self, assembly: Slot, shard: ShardIndex) -> bool {
        let claim = self.assemblies[assembly].shards.get(usize::from(shard.0));
        let ended = claim.is_some_and(|claim| claim.by == Claimant::Ended);
        ended && is_armed(Mutant::EndedClaimIsFree)
    }

    /// Takes back what an ended claim of a shard counted.
    pub(super) fn forget_success(&mut self, assembly: Slot, shard: u16) {
        let row = &mut self.assemblies[assembly];
        let evidence = row.shards[usize::from(shard)].evidence;
        row.missing += u32::from(evidence == Some(Evidence::QuiescedSuccess));
    }

    /// Moves a ledger's oldest turn behind its newest; the job's order stays.
    fn turn_ledger(&mut self, conversation: Slot) {
        let row = self.conversations[conversation];
        let Some(last) = self.turn_references(row.head).last() else { return };
        let next = self.references[last].next_in_ledger;
        if next == NONE {
            return;
        }
        self.references[row.tail].next_in_ledger = row.head;
        self.references[last].next_in_ledger = NONE;
        let turned = &mut self.conversations[conversation];
        (turned.head, turned.tail) = (next, last);
    }

    pub(super) fn end_unscoped(&mut self, checkpoint: Slot) {
        let row = &self.checkpoints[checkpoint];
        let only_mark = row.unscoped == Unscoped::Marked && row.references() == NONE;
        if only_mark && is_armed(Mutant::UnscopedEndsWithPin) {
            self.set_unscoped(checkpoint, Unscoped::Never);
        }
    }
}
