//! Random numbers, by which starts, jobs and replays are told from each other.

use pinfold_core::id::StartId;

use crate::Failure;

/// Random bytes; a failure says what they are for.
pub(crate) fn random<const N: usize>(what: &str) -> Result<[u8; N], Failure> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)
        .map_err(|error| Failure::Incomplete(format!("no random {what}: {error}")))?;
    Ok(bytes)
}

/// A start of this process, unlike any other.
pub(crate) fn start() -> Result<StartId, Failure> {
    Ok(StartId::from_u128(u128::from_be_bytes(random("start")?)))
}
