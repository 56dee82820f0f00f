//! What a load loads: choosing among what is pinned, and explaining what cannot be chosen.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};

use super::{Load, Reading, Row};
use crate::id::{CheckpointId, EndpointId, ManifestDigest, ObjectId, ShardIndex};
use crate::manifest::Manifest;
#[cfg(pinfold_mutants)]
use crate::mutant::{Mutant, is_armed};
use crate::outcome::Pinned;
use crate::representation::Difference;
use crate::transfer::objects::Objects;
use crate::transfer::save::Turnstile;
use crate::transfer::{Miss, Plan, Step, check_shards};

/// A position that could be restored, and what its checkpoint must look like.
#[derive(Clone, Debug)]
pub struct Candidate {
    pub(super) endpoint: EndpointId,
    /// None when it is planned only once it is chosen.
    digest: Option<ManifestDigest>,
    pub(super) manifest: Option<Arc<Manifest>>,
}

impl Candidate {
    /// A position with the manifest that was planned for it.
    #[must_use]
    pub fn planned(manifest: Arc<Manifest>) -> Self {
        let (endpoint, digest) = (manifest.endpoint().id(), manifest.digest());
        Self { endpoint, digest: Some(digest), manifest: Some(manifest) }
    }

    /// A position that is planned only when it is chosen; see [`Step::Describe`]. So a look-up may
    /// name every position of a long conversation, at the cost of one plan.
    #[must_use]
    pub const fn described_later(endpoint: EndpointId) -> Self {
        Self { endpoint, digest: None, manifest: None }
    }
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Self) -> bool {
        let key = |one: &Self| (one.endpoint, one.digest, one.manifest.is_some());
        key(self) == key(other)
    }
}

impl Eq for Candidate {}

impl Hash for Candidate {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.endpoint, self.digest, self.manifest.is_some()).hash(state);
    }
}

/// What a worker wants to load.
#[derive(Clone, Debug)]
pub struct LoadRequest {
    /// The positions that could be restored, longest first.
    pub candidates: Vec<Candidate>,
    /// How many of them to pin at most, 1 to 8.
    pub limit: u32,
    /// The shards whose memory this worker fills, ascending.
    pub shards: Vec<ShardIndex>,
    /// Other ranks load other shards, so all choose together, and adopt together or not at all.
    pub has_peers: bool,
    /// Read the stored manifest when it is not the planned one, to explain the difference.
    pub explains: bool,
}

impl Load {
    pub(super) fn read_manifest(&mut self) -> Option<Step> {
        let reading = self.reading.as_mut().filter(|read| read.turnstile == Turnstile::Due)?;
        let checkpoint = self.rows.get(reading.row as usize)?.pinned?.checkpoint;
        let object = ObjectId { shard: *self.shards.first()?, index: 0 };
        reading.turnstile = Turnstile::Told;
        reading.began = true;
        Some(Step::ReadManifest { checkpoint, object })
    }

    pub(in crate::transfer) fn pinned(&self) -> Vec<Pinned> {
        self.rows.iter().filter_map(|row| row.pinned).collect()
    }

    pub(in crate::transfer) fn agrees(&self, checkpoint: CheckpointId) -> bool {
        let found = self.row_of(checkpoint);
        found.is_some_and(|row| self.agreeing(row).is_some())
    }

    fn row_of(&self, checkpoint: CheckpointId) -> Option<u32> {
        let is_it = |row: &Row| row.pinned.is_some_and(|it| it.checkpoint == checkpoint);
        let row = self.rows.iter().position(is_it)?;
        u32::try_from(row).ok()
    }

    /// The candidate that a pinned checkpoint is, unless the digests are known to differ.
    fn agreeing(&self, row: u32) -> Option<&Candidate> {
        let Pinned { checkpoint, digest } = self.rows.get(row as usize)?.pinned?;
        let candidate = self.candidate(checkpoint.endpoint)?;
        #[cfg(pinfold_mutants)]
        if is_armed(Mutant::OtherDigestChosen) {
            return Some(candidate);
        }
        candidate.digest.is_none_or(|planned| planned == digest).then_some(candidate)
    }

    fn candidate(&self, endpoint: EndpointId) -> Option<&Candidate> {
        self.candidates.iter().find(|candidate| candidate.endpoint == endpoint)
    }

    pub(in crate::transfer) fn choose(&mut self, checkpoint: Option<CheckpointId>) -> bool {
        if !self.may_choose() {
            return false;
        }
        let Some(checkpoint) = checkpoint else {
            self.choice = Turnstile::Open;
            self.halt(Miss::NothingChosen);
            return true;
        };
        let Some(row) = self.row_of(checkpoint) else { return false };
        self.choice = Turnstile::Open;
        self.take_choice(row);
        true
    }

    pub(in crate::transfer) fn choose_longest(&mut self) -> bool {
        let may = self.may_choose();
        if may {
            self.choice = Turnstile::Open;
            self.take_longest();
        }
        may
    }

    fn may_choose(&self) -> bool {
        self.stop.is_none() && !self.rows.is_empty() && self.choice != Turnstile::Open
    }

    pub(super) fn take_longest(&mut self) {
        let mut rows = 0..u32::try_from(self.rows.len()).unwrap_or(u32::MAX);
        let agreeing = rows.find(|row| self.agreeing(*row).is_some());
        self.take_choice(agreeing.unwrap_or(0));
    }

    fn take_choice(&mut self, row: u32) {
        if let Some(candidate) = self.agreeing(row) {
            let manifest = candidate.manifest.clone();
            self.chosen = Some(row);
            match manifest {
                Some(manifest) => self.begin(&manifest),
                None => self.describe = Turnstile::Due,
            }
            return;
        }
        let own = self.rows.get(row as usize).and_then(|row| row.pinned);
        let own = own.and_then(|pinned| self.candidate(pinned.checkpoint.endpoint));
        let own = own.and_then(|candidate| candidate.manifest.clone());
        self.mismatch(row, own);
    }

    /// What is pinned is not what this worker planned: a miss, explained if that is wanted.
    fn mismatch(&mut self, row: u32, own: Option<Arc<Manifest>>) {
        let pinned = self.rows.get(row as usize).and_then(|row| row.pinned);
        let Some(Pinned { checkpoint, .. }) = pinned else { return };
        self.halt(Miss::ManifestMismatch { checkpoint });
        if self.explains {
            let (turnstile, own) = (Turnstile::Due, own.map(Plan::new));
            self.reading = Some(Reading { row, turnstile, began: false, own, stored: None });
        }
    }

    pub(in crate::transfer) fn described(&mut self, manifest: &Manifest) -> bool {
        if self.stop.is_some() || self.describe == Turnstile::Open {
            return false;
        }
        let Some(row) = self.chosen else { return false };
        let pinned = self.rows.get(row as usize).and_then(|row| row.pinned);
        let Some(Pinned { checkpoint, digest }) = pinned else { return false };
        let fits = checkpoint.endpoint == manifest.endpoint().id();
        if !fits || check_shards(&self.shards, Some(manifest)).is_err() {
            return false;
        }
        self.describe = Turnstile::Open;
        let same = manifest.digest() == digest;
        #[cfg(pinfold_mutants)]
        let same = same || is_armed(Mutant::OtherDigestChosen);
        if same {
            self.begin(manifest);
        } else {
            self.chosen = None;
            self.mismatch(row, Some(Arc::new(manifest.clone())));
        }
        true
    }

    fn begin(&mut self, manifest: &Manifest) {
        self.objects = Some(Objects::to_memory(manifest, &self.shards));
    }

    pub(in crate::transfer) fn manifest_read(&mut self, payload: Option<&[u8]>) {
        let Some(reading) = &mut self.reading else { return };
        if reading.turnstile == Turnstile::Told {
            reading.turnstile = Turnstile::Open;
            let stored = payload.and_then(|payload| Manifest::decode(payload).ok());
            reading.stored = stored.map(|stored| Plan::new(Arc::new(stored)));
        }
        self.finish();
    }

    pub(in crate::transfer) fn differences(&self) -> Vec<Difference> {
        let explained = self.reading.as_ref().and_then(|reading| {
            let (own, stored) = (reading.own.as_ref()?, reading.stored.as_ref()?);
            Some(own.manifest.explain(&stored.manifest))
        });
        explained.unwrap_or_default()
    }

    pub(super) fn skip_reading(&mut self) {
        if let Some(reading) = &mut self.reading
            && reading.turnstile == Turnstile::Due
        {
            reading.turnstile = Turnstile::Open;
        }
    }
}
