//! Names in a text that somebody else wrote with identities, such as what a judge found.
//!
//! It replaces what it knows, and never guesses: an identity that nobody named stays as it is.

use std::collections::BTreeMap;

use pinfold_core::id::{
    CheckpointId, EndpointId, Generation, Id, Incarnation, Kind, OpId, OwnerId, PinId,
};

use super::{Names, digest};

impl Names {
    /// The text with names for the identities that it holds: `w1` for an owner, `w1:2#5` for an
    /// operation, `w1:2#5.1` for a pin, `E1@3` or `c3` for a checkpoint.
    #[must_use]
    pub fn name_in(&self, text: &str) -> String {
        let mut named = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(from) = rest.find(is_digit) {
            named.push_str(&rest[..from]);
            let found = &rest[from..];
            let end = found.find(|c| !is_digit(c)).unwrap_or(found.len());
            let (digits, behind) = found.split_at(end);
            rest = behind;
            let Some((kind, name)) = self.name_of(digits) else {
                named.push_str(digits);
                continue;
            };
            // As some texts have it: `owner:5b0c...`.
            if let Some(front) = named.strip_suffix(':').and_then(|it| it.strip_suffix(kind)) {
                named.truncate(front.len());
            }
            let (name, taken) = self.with_numbers(digits, behind).unwrap_or((name, 0));
            named.push_str(&name);
            rest = &behind[taken..];
        }
        named + rest
    }

    /// The kind and the name of what these digits identify.
    fn name_of(&self, digits: &str) -> Option<(&'static str, String)> {
        match digits.len() {
            32 => found(&self.owners, digits)
                .or_else(|| found(&self.endpoints, digits))
                .or_else(|| found(&self.conversations, digits))
                .or_else(|| found(&self.turns, digits))
                .or_else(|| found(&self.attempts, digits))
                .or_else(|| found(&self.starts, digits)),
            64 => self.digests.get(&digest(digits)).map(|name| ("manifest", name.clone())),
            _ => None,
        }
    }

    /// What an identity and the numbers behind it name together, and how much of them it took: an
    /// owner's operation or pin, a position's checkpoint.
    fn with_numbers(&self, digits: &str, behind: &str) -> Option<(String, usize)> {
        if let Some((generation, taken)) = number(behind, '@') {
            let endpoint: EndpointId = digits.parse().ok()?;
            let id = CheckpointId { endpoint, generation: Generation(generation) };
            return Some((self.show_checkpoint(id), taken));
        }
        let owner: OwnerId = digits.parse().ok()?;
        let (incarnation, first) = number(behind, '.')?;
        let (sequence, second) = number(&behind[first..], '.')?;
        let op = OpId { owner, incarnation: Incarnation(incarnation), sequence };
        let taken = first + second;
        let place = number(&behind[taken..], '.');
        match place.and_then(|(place, more)| Some((u8::try_from(place).ok()?, more))) {
            Some((place, more)) => Some((self.show_pin(PinId { op, place }), taken + more)),
            None => Some((self.show_op(op), taken)),
        }
    }
}

/// Identities are written in lower case.
fn is_digit(c: char) -> bool {
    matches!(c, '0'..='9' | 'a'..='f')
}

fn found<K: Kind>(names: &BTreeMap<Id<K>, String>, digits: &str) -> Option<(&'static str, String)> {
    let id: Id<K> = digits.parse().ok()?;
    names.get(&id).map(|name| (K::NAME, name.clone()))
}

/// The decimal number behind a sign at the beginning of a text, and how long both are.
fn number(text: &str, sign: char) -> Option<(u64, usize)> {
    let digits = text.strip_prefix(sign)?;
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    Some((digits[..end].parse().ok()?, sign.len_utf8() + end))
}

#[cfg(test)]
mod tests {
    use pinfold_core::id::ManifestDigest;

    use super::*;

    #[test]
    fn known_identities_are_named_and_others_stay() {
        let mut names = Names::default();
        let (owner, endpoint) = (names.owner("w1"), names.endpoint("E1"));
        let digest: ManifestDigest = names.digest("D1");
        let op = OpId { owner, incarnation: Incarnation(2), sequence: 9 };
        let id = CheckpointId { endpoint, generation: Generation(3) };
        for (text, named) in [
            (
                format!("{op} is served {id}, and it is lost"),
                "w1:2#9 is served E1@3, and it is lost",
            ),
            (format!("pin {}.", PinId { op, place: 0 }), "pin w1:2#9."),
            (format!("{} ends", PinId { op, place: 1 }), "w1:2#9.1 ends"),
            (format!("{owner:?} with {digest:?}"), "w1 with D1"),
            (format!("{owner}"), "w1"),
            (format!("{owner}.5"), "w1.5"),
        ] {
            assert_eq!(names.name_in(&text), named);
        }
        names.see_checkpoint(id);
        assert_eq!(names.name_in(&id.to_string()), "c3");
        let other = OwnerId::of_name("w9");
        let text = format!("a bad feed: {other:?} and {other}.1.2, ünd \u{1f600} abc");
        assert_eq!(names.name_in(&text), text);
    }
}
