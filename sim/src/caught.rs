//! Panics of a run, as something that was found.
//!
//! A run that panics has found a bug like one that breaks a promise, and must not take the program
//! and all other seeds with it. Nothing is printed: the words and the place are handed back, and
//! panics outside of a run go where they always went.

use std::any::Any;
use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe, Location};
use std::sync::Once;

thread_local! {
    /// On a thread that catches: where the last panic was.
    static CATCHES: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Does something that may panic.
///
/// What it was at work on must not be used afterwards, but to show how far it came.
///
/// # Errors
/// What the panic said, and where.
pub fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    static HEARS: Once = Once::new();
    HEARS.call_once(hear);
    let before = CATCHES.replace(Some(String::new()));
    let done = panic::catch_unwind(AssertUnwindSafe(work));
    let place = CATCHES.replace(before).unwrap_or_default();
    done.map_err(|payload| format!("{} at {place}", said(payload.as_ref())))
}

/// Keeps the place of a panic on threads that catch.
fn hear() {
    let others = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        let catches = CATCHES.with_borrow_mut(|catches| match catches {
            Some(place) => {
                *place = panic.location().map(Location::to_string).unwrap_or_default();
                true
            }
            None => false,
        });
        if !catches {
            others(panic);
        }
    }));
}

/// The words of a panic, in one line.
fn said(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("a panic");
    text.lines().map(str::trim).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_words_and_a_place() {
        assert_eq!(caught(|| 7), Ok(7));
        let said = caught(|| panic!("no {}\n  and no", 3)).unwrap_err();
        assert!(said.starts_with("no 3; and no at "), "{said}");
        assert!(said.contains("caught.rs:"), "{said}");
        let outer = caught(|| caught(|| panic!("inner")).unwrap_err());
        assert!(outer.unwrap().starts_with("inner at "));
        assert!(CATCHES.with_borrow(Option::is_none));
    }
}
