//! A line of JSON as a row of some format, or the words that say what is wrong with it.

use serde::Deserialize;

use super::fault::RowFault;

/// What some editors write in front of a text: U+FEFF as UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Parses a row of any format. Serde would also take an array for a row, by position; we do not.
pub(crate) fn parse_object<'a, T: Deserialize<'a>>(row: &'a [u8]) -> Result<T, RowFault> {
    if row.starts_with(BYTE_ORDER_MARK) {
        return Err(RowFault::ByteOrderMark);
    }
    if row.first() != Some(&b'{') {
        return Err(RowFault::NotAnObject);
    }
    let mut reader = serde_json::Deserializer::from_slice(row);
    let parsed = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let field = error.path().to_string();
        fault(error.inner(), Some(field))
    })?;
    reader.end().map_err(|error| fault(&error, None))?;
    Ok(parsed)
}

/// The parser's words, with the field that they are about where they leave it out.
fn fault(error: &serde_json::Error, field: Option<String>) -> RowFault {
    let text = error.to_string();
    let suffix = format!(" at line {} column {}", error.line(), error.column());
    let expected = match text.strip_suffix(&suffix).unwrap_or(&text) {
        "expected ident" => "expected a value",
        expected => expected,
    };
    // The path is "." at the row itself, and ends with "?" where no key was read in full.
    let field =
        field.filter(|field| !matches!(&**field, "." | "?") && !expected.contains(" field `"));
    RowFault::Json {
        column: u64::try_from(error.column()).unwrap_or(u64::MAX),
        field,
        expected: expected.to_owned(),
    }
}

/// For an optional field that, when it is there, must have a value: `null` is refused.
pub(super) fn some<'a, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: serde::Deserializer<'a>,
    T: Deserialize<'a>,
{
    T::deserialize(deserializer).map(Some)
}
