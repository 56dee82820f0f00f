//! Reading whole files, the shared checks on Mooncake rows, and writing.

use std::io;

use super::*;

const GOOD: &str = "\
{\"timestamp\": 0, \"input_length\": 1100, \"output_length\": 5, \"hash_ids\": [0, 1, 2]}
{\"timestamp\": 7, \"input_length\": 1024, \"output_length\": 1, \"hash_ids\": [0, 1]}
{\"timestamp\": 7, \"input_length\": 0, \"output_length\": 0, \"hash_ids\": []}
";

pub(super) fn read(text: &str) -> Result<Trace, TraceError> {
    read_trace(text.as_bytes())
}

pub(super) fn refusal(text: &str) -> String {
    read(text).unwrap_err().to_string()
}

#[test]
fn rows_become_requests_and_back() {
    let trace = read(GOOD).unwrap();
    assert_eq!(trace.block_tokens, 512);
    assert_eq!(trace.requests.len(), 3);
    let first = Request {
        arrival_ms: 0,
        input_tokens: 1100,
        output_tokens: 5,
        blocks: vec![0, 1, 2],
        continues: Continues::Unsaid,
    };
    assert_eq!(trace.requests[0], first);
    assert_eq!(first.full_blocks(512), [0, 1]);
    let mut written = Vec::new();
    write_trace(&trace, &mut written).unwrap();
    assert_eq!(String::from_utf8(written).unwrap(), GOOD);
}

#[test]
fn blank_lines_carriage_returns_and_a_missing_last_feed_are_fine() {
    let text = format!("\n  \r\n{}\n\n", GOOD.trim_end().replace('\n', "\r\n\r\n"));
    assert_eq!(read(&text).unwrap(), read(GOOD).unwrap());
    assert_eq!(read(GOOD.trim_end()).unwrap(), read(GOOD).unwrap());
}

#[test]
fn other_names_of_the_fields_are_understood() {
    let text = GOOD.replace("input_length", "input_tokens");
    let text = text.replace("output_length", "output_tokens");
    let text = text.replace("timestamp", "created_time");
    assert_eq!(read(&text).unwrap(), read(GOOD).unwrap());
}

#[test]
fn a_bad_row_is_refused_with_its_line_and_what_was_expected() {
    let row = "{\"timestamp\": 9, \"input_length\": 600, \"output_length\": 1, \
               \"hash_ids\": [0, 7]}";
    assert_eq!(read(&format!("{GOOD}{row}")).unwrap().requests.len(), 4);
    let cases = [
        ("\"timestamp\": 9, ", "", "missing field `timestamp`"),
        (", \"hash_ids\": [0, 7]", "", "missing field `hash_ids`"),
        ("600", "\"600\"", "invalid type: string \"600\", expected u32"),
        ("600", "600.5", "invalid type: floating point `600.5`, expected u32"),
        ("600", "null", "invalid type: null, expected u32"),
        ("600", "-600", "invalid value: integer `-600`, expected u32"),
        ("600", "4294967296", "invalid value: integer `4294967296`, expected u32"),
        ("[0, 7]", "[0, -7]", "invalid value: integer `-7`, expected u64"),
        ("[0, 7]", "7", "invalid type: integer `7`, expected a sequence"),
        ("output_length", "turn", "unknown field `turn`"),
        ("output_length", "input_length", "duplicate field `input_length`"),
        ("output_length", "input_tokens", "duplicate field `input_length`"),
        ("output_length", "created_time", "duplicate field `timestamp`"),
        ("output_length", "delay", "unknown field `delay`"),
        (
            "{",
            "{\"session_id\": 1, ",
            "expected a row with neither session_id nor chat_id, as the first one is, found a row \
             with session_id",
        ),
        ("{", "{\"chat_id\": 1, ", "as the first one is, found a row with chat_id"),
        ("[0, 7]", "[0]", "expected 2 hash_ids, one for every 512 tokens of input_length 600"),
        ("[0, 7]", "[0, 7, 8]", "or part of them, found 3"),
        ("[0, 7]", "[0, 2]", "expected block 2 after block 1 as on line 1, found it after"),
        ("[0, 7]", "[1, 7]", "block 1 after block 0 as on line 1, found it at the beginning"),
        ("[0, 7]", "[7, 7]", "expected block 7 at the beginning as on line 4"),
        (": 9", ": 6", "expected a timestamp of at least 7 ms, found 6 ms"),
        ("{", "", "expected one JSON object a line, found something else"),
        ("600", "\"600\"", ", input_length: invalid type: string"),
        ("[0, 7]", "[0, -7]", ", hash_ids[1]: invalid value"),
        ("600", "nan", ", input_length: expected a value"),
        ("9", "twenty", "column 16, timestamp: expected a value"),
        ("}", "} {}", "trailing characters"),
        ("}", "", ": EOF while parsing an object"),
    ];
    for (good, bad, expected) in cases {
        let found = refusal(&format!("{GOOD}{}", row.replacen(good, bad, 1)));
        assert!(found.starts_with("line 4: "), "{found}");
        assert!(found.contains(expected), "{found}\nexpected: {expected}");
        assert!(!found.contains("at line 1"), "{found}");
        assert!(!found.contains('?'), "{found}");
    }
    let found = refusal("\n[0, 512, 1, [0]]");
    assert_eq!(found, "line 2: expected one JSON object a line, found something else");
    for text in ["no JSON", "7", "null", "timestamp,input_length", "\u{feff}"] {
        assert!(
            refusal(text).starts_with("line 1: expected one JSON object a line, found"),
            "{text}"
        );
    }
    let found = refusal(&format!("\u{feff}{GOOD}"));
    assert!(found.contains("found a byte order mark") && found.contains("without one"), "{found}");
}

#[test]
fn a_file_without_rows_is_refused() {
    for text in ["", "\n\n  \n"] {
        assert!(matches!(read(text), Err(TraceError::Empty)));
    }
}

#[test]
fn a_line_over_the_limit_is_refused_unread() {
    let spaces = io::repeat(b' ');
    let first = io::Cursor::new(b"\n");
    let error = read_trace(io::BufReader::new(first.chain(spaces))).unwrap_err();
    assert!(error.to_string().contains("line 2: expected a line of at most 16777216 bytes"));
}

#[test]
fn what_could_not_be_read_back_is_not_written() {
    let mut trace = read(GOOD).unwrap();
    trace.block_tokens = 16;
    let mut written = Vec::new();
    let error = write_trace(&trace, &mut written).unwrap_err();
    assert!(matches!(error, TraceError::BlockTokens { expected: 512, found: 16 }));
    trace.block_tokens = 512;
    trace.requests[1].blocks.push(9);
    let error = write_trace(&trace, &mut written).unwrap_err();
    assert!(matches!(error, TraceError::Row { line: 2, fault: RowFault::BlockCount { .. } }));
    assert!(written.is_empty());
    trace.requests.clear();
    assert!(matches!(trace.check(), Err(TraceError::Empty)));
}

/// What a format cannot say is not left out either.
#[test]
fn names_are_not_written_away() {
    let mut trace = read(GOOD).unwrap();
    trace.requests[1].continues = Continues::Request(0);
    let mut written = Vec::new();
    let error = write_trace(&trace, &mut written).unwrap_err();
    let expected = "expected requests that do not name what they continue, but number 2 does";
    assert_eq!((error.to_string().as_str(), written.len()), (expected, 0));
}

/// Who names what it continues follows that, and not the row above.
#[test]
fn a_trace_in_memory_is_checked_like_a_file() {
    let mut trace = read(GOOD).unwrap();
    trace.requests[2].arrival_ms = 6;
    let found = trace.check().unwrap_err().to_string();
    assert_eq!(found, "line 3: expected a timestamp of at least 7 ms, found 6 ms");
    trace.requests[2].continues = Continues::Request(0);
    trace.check().unwrap();
    trace.requests[2].continues = Continues::Nothing;
    trace.check().unwrap();
    trace.requests[2].continues = Continues::Request(2);
    let found = trace.check().unwrap_err().to_string();
    let expected = "line 3: expected it to continue one of the 2 requests above, found number 3";
    assert_eq!(found, expected);
}
