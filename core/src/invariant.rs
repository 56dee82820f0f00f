//! The promises of the protocol, as names: what a check, an oracle or a report points at.

use core::fmt;

/// A promise. Its text is in [`promise`](Self::promise); how it is judged, in the documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "`promise` says it")]
pub enum Invariant {
    I1,
    I2,
    I3,
    I4,
    I5,
    I6,
    I7,
    I8,
    I9,
    I10,
    I11,
    I12,
    I13,
    I14,
    I15,
    I16,
    I17,
    I18,
    L1,
    L2,
    L3,
}

impl Invariant {
    /// All of them, in the order of the documentation.
    pub const ALL: [Self; 21] = [
        Self::I1,
        Self::I2,
        Self::I3,
        Self::I4,
        Self::I5,
        Self::I6,
        Self::I7,
        Self::I8,
        Self::I9,
        Self::I10,
        Self::I11,
        Self::I12,
        Self::I13,
        Self::I14,
        Self::I15,
        Self::I16,
        Self::I17,
        Self::I18,
        Self::L1,
        Self::L2,
        Self::L3,
    ];

    /// What is promised, in a few words; the protocol has the whole sentence.
    #[must_use]
    pub const fn promise(self) -> &'static str {
        match self {
            Self::I1 => "no delete hits an object of a retained turn",
            Self::I2 => "nothing pinned, in doubt or still moving is deleted",
            Self::I3 => "a delete names only keys of a generation without reference or pin",
            Self::I4 => "published implies prepared, and every shard confirmed and retired",
            Self::I5 => "a manifest never changes once prepared",
            Self::I6 => "live turns are the newest end of first-publication order, at most N",
            Self::I7 => "an expired turn or forgotten conversation never returns",
            Self::I8 => "a transfer in doubt keeps its pin until proof; a pin ends once",
            Self::I9 => "a lost, failed, collecting or quarantined checkpoint is never served",
            Self::I10 => "what anyone has observed is durable",
            Self::I11 => "replaying the journal gives the live state",
            Self::I12 => "another epoch, an older or a fenced incarnation changes nothing",
            Self::I13 => "every counter and index equals its recount",
            Self::I14 => "a command is decided at most once",
            Self::I15 => "a restore adopts all of one checkpoint's bytes, or nothing",
            Self::I16 => "memory is reused only after final evidence",
            Self::I17 => "a private key is put at most once, and every object is accounted for",
            Self::I18 => "limits never refuse a verb that lifts",
            Self::L1 => "every checkpoint without a reference or a pin is collected in the end",
            Self::L2 => "every request is answered in the end",
            Self::L3 => "operator actions can empty the store from every state",
        }
    }
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}
