//! Following a journal: its records, one after another, and the state that they give.
//!
//! Protects the live state from what a journal cannot hold: a record that cannot be read, or cannot
//! stand where it does, is refused with its number. It decides nothing and issues no effect.

use crate::catalog::{Catalog, Event};
use crate::outcome::Malformed;

/// Why a journal's records give no state.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecoverError {
    /// The genesis cannot be used.
    #[error("the job's genesis cannot be used: {0}")]
    Genesis(Malformed),
    /// The journal has no records: its genesis was never durable, so it counts as none.
    #[error("the journal has no genesis: it counts as none, so begin a new epoch")]
    Empty,
    /// A record cannot be read.
    #[error("record {position} cannot be read: the journal is damaged, or of a newer version")]
    Record {
        /// Its number, from 0.
        position: u64,
    },
    /// A record stands where it cannot be.
    #[error("record {position} stands where it cannot be: the journal is damaged")]
    Misplaced {
        /// Its number, from 0.
        position: u64,
    },
}

/// The state after the records that were followed so far.
#[derive(Clone, Debug)]
pub struct Replay {
    /// None before genesis.
    catalog: Option<Catalog>,
    position: u64,
}

impl Replay {
    /// Before the first record, which is the genesis.
    #[must_use]
    pub const fn from_genesis() -> Self {
        Self { catalog: None, position: 0 }
    }

    /// After the first `position` records, which gave this catalog: a snapshot's.
    #[must_use]
    pub const fn from_snapshot(catalog: Catalog, position: u64) -> Self {
        Self { catalog: Some(catalog), position }
    }

    /// Follows the next record.
    ///
    /// # Errors
    /// [`RecoverError`] when it cannot be read or cannot stand there; the state is as before.
    pub fn follow(&mut self, record: &[u8]) -> Result<(), RecoverError> {
        let position = self.position;
        let next = position.checked_add(1).ok_or(RecoverError::Misplaced { position })?;
        match &mut self.catalog {
            Some(catalog) => follow(catalog, record, position)?,
            None => {
                let Event::Genesis(genesis) = decode_event(record, position)? else {
                    return Err(RecoverError::Misplaced { position });
                };
                self.catalog = Some(Catalog::new(genesis).map_err(RecoverError::Genesis)?);
            }
        }
        self.position = next;
        Ok(())
    }

    /// How many records the state stands for.
    #[must_use]
    pub const fn position(&self) -> u64 {
        self.position
    }

    /// The state; none before genesis.
    #[must_use]
    pub const fn catalog(&self) -> Option<&Catalog> {
        self.catalog.as_ref()
    }

    /// The state, and how many records it stands for.
    ///
    /// # Errors
    /// [`RecoverError::Empty`] before genesis.
    pub fn into_parts(self) -> Result<(Catalog, u64), RecoverError> {
        let catalog = self.catalog.ok_or(RecoverError::Empty)?;
        Ok((catalog, self.position))
    }
}

/// Follows one record behind genesis.
///
/// # Errors
/// [`RecoverError`] when it cannot be read, or cannot stand there; the catalog is as before.
pub fn follow(catalog: &mut Catalog, record: &[u8], position: u64) -> Result<(), RecoverError> {
    let event = decode_event(record, position)?;
    if !catalog.fits(&event) {
        return Err(RecoverError::Misplaced { position });
    }
    #[cfg(pinfold_mutants)]
    if catalog.passes_over(&event) {
        return Ok(());
    }
    catalog.apply(&event);
    #[cfg(pinfold_mutants)]
    catalog.undo_doubt(&event);
    Ok(())
}

/// One record as an event.
///
/// # Errors
/// [`RecoverError::Record`] when it is none, or has bytes left over.
pub fn decode_event(record: &[u8], position: u64) -> Result<Event, RecoverError> {
    match postcard::take_from_bytes::<Event>(record) {
        Ok((event, [])) => Ok(event),
        _ => Err(RecoverError::Record { position }),
    }
}
