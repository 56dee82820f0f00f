//! Numbers as people read and type them: bytes, durations, shares.
//!
//! One place, so that the table, the page and the command line agree. What is typed is never
//! rounded: a number that does not fit is refused.

use std::ops::RangeInclusive;
use std::str::FromStr;

/// The binary units, each 1,024 times the one before.
const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

/// Bytes in the largest binary unit that leaves at least one, with one decimal, rounded down.
#[must_use]
pub fn bytes(bytes: u64) -> String {
    let unit = (bytes.max(1).ilog2() / 10) as usize;
    if unit == 0 {
        return format!("{bytes} B");
    }
    let tenths = (u128::from(bytes) * 10) >> (unit * 10);
    format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit])
}

/// A part of a whole in per cent, with one decimal, rounded down; 0 of nothing.
#[must_use]
pub fn percent(part: u64, whole: u64) -> String {
    let per_mille = u128::from(part) * 1000 / u128::from(whole.max(1));
    format!("{}.{} %", per_mille / 10, per_mille % 10)
}

/// Microseconds as milliseconds.
#[must_use]
pub fn millis(micros: u64) -> String {
    format!("{}.{:03} ms", micros / 1000, micros % 1000)
}

/// Milliseconds as seconds.
#[must_use]
pub fn seconds(millis: u64) -> String {
    format!("{}.{:03} s", millis / 1000, millis % 1000)
}

/// Why a text is no number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseBytesError {
    /// It is not a whole number with one of the units behind it.
    #[error("expected a whole number of bytes such as 65536, 64KiB, 10MiB or 1GiB")]
    Form,
    /// It is more than a number of 64 bits can say.
    #[error("expected less than 16EiB")]
    TooLarge,
}

/// Reads a number of bytes: digits, and perhaps B, KiB, MiB, GiB, TiB, PiB or EiB in any case.
///
/// # Errors
/// [`ParseBytesError`] says what is expected.
pub fn parse_bytes(text: &str) -> Result<u64, ParseBytesError> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let unit = if unit.is_empty() { "B" } else { unit.trim_start() };
    let place = UNITS.iter().position(|known| known.eq_ignore_ascii_case(unit));
    let shift = place.and_then(|place| u32::try_from(10 * place).ok());
    let (Some(shift), false) = (shift, digits.is_empty()) else {
        return Err(ParseBytesError::Form);
    };
    // Digits alone fail only by being too many.
    let number: u64 = digits.parse().map_err(|_| ParseBytesError::TooLarge)?;
    number.checked_mul(1 << shift).ok_or(ParseBytesError::TooLarge)
}

/// Why a text is no number of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a whole number from {least} to {most}")]
pub struct ParseWithinError {
    /// The smallest that is allowed.
    pub least: u64,
    /// The largest that is allowed.
    pub most: u64,
}

/// Reads a whole number of a range.
///
/// # Errors
/// [`ParseWithinError`] names the range, whatever is wrong with the text.
pub fn parse_within<T>(text: &str, range: &RangeInclusive<T>) -> Result<T, ParseWithinError>
where
    T: Copy + FromStr + PartialOrd + Into<u64>,
{
    let number = text.parse().ok().filter(|number| range.contains(number));
    let (least, most) = ((*range.start()).into(), (*range.end()).into());
    number.ok_or(ParseWithinError { least, most })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_the_largest_unit_that_leaves_one() {
        for (number, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (65_535, "63.9 KiB"),
            (5 << 30, "5.0 GiB"),
            (u64::MAX, "15.9 EiB"),
        ] {
            assert_eq!(bytes(number), text);
        }
    }

    #[test]
    fn shares_and_durations_are_rounded_down() {
        assert_eq!((percent(1, 3).as_str(), percent(0, 0).as_str()), ("33.3 %", "0.0 %"));
        assert_eq!(percent(u64::MAX, u64::MAX), "100.0 %");
        assert_eq!((millis(1_002).as_str(), seconds(61_005).as_str()), ("1.002 ms", "61.005 s"));
    }

    #[test]
    fn bytes_are_read_with_and_without_a_unit() {
        for (text, number) in [
            ("0", 0),
            ("65536", 65_536),
            ("7B", 7),
            ("64KiB", 65_536),
            ("64 kib", 65_536),
            ("10MiB", 10 << 20),
            ("1gib", 1 << 30),
            ("15EiB", 15 << 60),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(parse_bytes(text), Ok(number), "{text}");
        }
    }

    #[test]
    fn a_number_out_of_its_range_is_refused_by_the_range() {
        assert_eq!(
            (parse_within("1", &(1..=9_u32)), parse_within("9", &(1..=9_u32))),
            (Ok(1), Ok(9))
        );
        assert_eq!(parse_within("18446744073709551615", &(0..=u64::MAX)), Ok(u64::MAX));
        for text in ["", "0", "10", "-1", "1.5", "x", "0x1", "4294967296", " 1"] {
            let error = parse_within(text, &(1..=9_u32)).unwrap_err();
            assert_eq!(error.to_string(), "expected a whole number from 1 to 9", "{text}");
        }
    }

    #[test]
    fn what_is_no_number_of_bytes_is_refused() {
        for text in ["", "KiB", "-1", "+1", "1.5GiB", "10MB", "10M", "1 KiB 2", "0x10", "١"] {
            assert_eq!(parse_bytes(text), Err(ParseBytesError::Form), "{text}");
        }
        for text in ["16EiB", "18446744073709551616", "18014398509481984KiB"] {
            assert_eq!(parse_bytes(text), Err(ParseBytesError::TooLarge), "{text}");
        }
    }
}
