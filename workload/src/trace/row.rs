//! A line of JSON as a row of some format, or the words that say what is wrong with it.

use serde::Deserialize;

use super::fault::RowFault;

/// Parses a row of any format. Serde would also take an array for a row, by position; we do not.
pub(super) fn parse_object<'a, T: Deserialize<'a>>(row: &'a [u8]) -> Result<T, RowFault> {
    if row.first() == Some(&b'[') {
        return Err(RowFault::NotAnObject);
    }
    serde_json::from_slice(row).map_err(|error| {
        let text = error.to_string();
        let suffix = format!(" at line {} column {}", error.line(), error.column());
        let expected = text.strip_suffix(&suffix).unwrap_or(&text).to_owned();
        RowFault::Json { column: u64::try_from(error.column()).unwrap_or(u64::MAX), expected }
    })
}

/// For an optional field that, when it is there, must have a value: `null` is refused.
pub(super) fn some<'a, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: serde::Deserializer<'a>,
    T: Deserialize<'a>,
{
    T::deserialize(deserializer).map(Some)
}
