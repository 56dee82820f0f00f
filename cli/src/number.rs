//! Numbers as people type and read them on the command line.
//!
//! Protects whoever reads: how many there are of something is grouped, like 268,435,456; what is
//! typed again, such as a checkpoint's or a record's number, never is. What is typed is never
//! rounded or wrapped: a number that does not fit is refused with the range that does.

/// How many there are of something, in groups of three digits.
pub(crate) fn grouped(number: impl Into<u64>) -> String {
    let digits = number.into().to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// How many rows a table shows.
pub(crate) fn rows(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("expected a whole number from 0 to {}", u32::MAX))
}

/// A record's number.
pub(crate) fn record(text: &str) -> Result<u64, String> {
    let expected = || format!("expected a record's number, a whole number from 0 to {}", u64::MAX);
    text.parse().map_err(|_| expected())
}

/// A checkpoint's generation; 0 is none's, which the job itself says.
pub(crate) fn generation(text: &str) -> Result<u64, String> {
    let expected = || {
        format!(
            "a checkpoint is named by its generation, a decimal number from 1 to {}: \
             inspect --json lists them",
            u64::MAX
        )
    };
    text.parse().map_err(|_| expected())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_many_is_grouped_by_three_digits() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (268_435_456, "268,435,456"),
            (u64::MAX, "18,446,744,073,709,551,615"),
        ] {
            assert_eq!(grouped(number), text);
        }
    }
}
