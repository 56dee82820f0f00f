//! The trailer of a private object.

use pinfold_core::id::Key;
use pinfold_core::object::{Digest, TRAILER_BYTES, Trailer, seal, verify};

const KEY_AT: usize = 40;

pub(super) fn decode(input: &[u8]) -> bool {
    let Some((payload, trailer)) = input.split_last_chunk::<{ TRAILER_BYTES as usize }>() else {
        return false;
    };
    let said = Trailer::decode(trailer);
    let key = said.as_ref().ok().and_then(|said| said.key.parse::<Key>().ok());
    if let Ok(said) = &said {
        assert_eq!(said.encode(), *trailer);
    }
    if let Some(key) = key.or_else(|| key_in(trailer)) {
        mended(&key, payload);
        return verify(&key, input).is_ok();
    }
    false
}

/// The key whose text a damaged trailer still holds.
fn key_in(trailer: &[u8]) -> Option<Key> {
    let text = trailer[KEY_AT..].split(|byte| *byte == 0).next()?;
    core::str::from_utf8(text).ok()?.parse().ok()
}

/// Sealed anew, the payload is what comes back; and no other byte does.
fn mended(key: &Key, payload: &[u8]) {
    let digest = Digest::of(payload);
    let mut object = [payload, &seal(key, payload.len() as u64, digest)].concat();
    assert_eq!(verify(key, &object), Ok(payload));
    let at = usize::try_from(digest.sum % object.len() as u64).unwrap();
    object[at] ^= 1 << (digest.xor % 8);
    assert!(verify(key, &object).is_err(), "byte {at} may be any");
}
