//! The answer to entries: a code for each.

use std::borrow::Cow;
use std::io::Write;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use perflab_store::{Answer, Door, Guarantee, Outcome};
use perflab_wire::EntryCode;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::json;

use crate::endpoint::Operation;
use crate::error::busy_status;

/// What `"123":"OK",` takes, roughly.
const ENTRY_BYTES: usize = 14;

pub(super) fn respond(door: Door, answer: &Answer) -> Response {
    let (status, retry_after) = status(door, answer);
    let mut response = Response::new(Body::from(document(answer)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(seconds) = retry_after {
        headers.insert(header::RETRY_AFTER, seconds);
    }
    response
}

/// Codes are per entry; the status is for clients that look at nothing else.
fn status(door: Door, answer: &Answer) -> (StatusCode, Option<HeaderValue>) {
    let count = |code| answer.count(code);
    if answer.outcomes.is_empty() || count(EntryCode::Ok) > 0 {
        return (StatusCode::OK, None);
    }
    match answer.busy {
        Some(busy) if count(EntryCode::TryLater) == answer.outcomes.len() => {
            let (status, seconds) = busy_status(busy);
            (status, Some(seconds))
        }
        // The uploaders that send forms look only at the status.
        _ if door == Door::ScribeForm => (StatusCode::BAD_REQUEST, None),
        _ => (StatusCode::OK, None),
    }
}

/// Written straight into one buffer: a map of strings would be two allocations per entry, of
/// which there are hundreds of thousands per second.
fn document(answer: &Answer) -> Vec<u8> {
    let outcomes = &answer.outcomes;
    let mut json = Vec::with_capacity(64 + outcomes.len() * ENTRY_BYTES);
    put(&mut json, format_args!("{{\"count\":{},\"response_codes\":{{", outcomes.len()));
    for (index, outcome) in outcomes.iter().enumerate() {
        put_comma(&mut json, index > 0);
        put_index(&mut json, index);
        json.push(b'"');
        json.extend_from_slice(outcome.code.as_str().as_bytes());
        json.push(b'"');
    }
    json.push(b'}');
    put_errors(&mut json, outcomes);
    put_duplicates(&mut json, outcomes);
    put_guarantees(&mut json, answer);
    json.push(b'}');
    json
}

/// Describes what [`document`] writes.
struct Codes;

impl JsonSchema for Codes {
    fn schema_name() -> Cow<'static, str> {
        "EntryCodes".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let codes = [
            EntryCode::Ok,
            EntryCode::TryLater,
            EntryCode::Error,
            EntryCode::Denied,
            EntryCode::TooLarge,
        ];
        let by_place = |what: &str, schema: serde_json::Value| {
            let by_place = json!({"^[0-9]+$": schema});
            json!({
                "type": "object", "description": what, "patternProperties": by_place,
                "additionalProperties": false,
            })
        };
        let code = json!({"type": "string", "enum": codes.map(EntryCode::as_str)});
        let fast = json!({"type": "string", "const": Guarantee::Fast.as_str()});
        json_schema!({
            "description": "What became of each entry, by its place in the request.",
            "type": "object",
            "properties": {
                "count": {"type": "integer", "minimum": 0},
                "response_codes": by_place("A code for each.", code),
                "errors": by_place("Why entries were refused.", json!({"type": "string"})),
                "duplicates": {
                    "description": "Entries that were stored before.",
                    "type": "array", "items": {"type": "integer", "minimum": 0},
                },
                "guarantee": {
                    "description": "Categories that acknowledge what is not on disk yet.",
                    "type": "object", "additionalProperties": fast,
                },
            },
            "required": ["count", "response_codes"],
            "additionalProperties": false,
        })
    }
}

/// The answers of all doors.
pub(super) fn described(operation: Operation<'_>) -> Operation<'_> {
    let later =
        "Nothing was taken: send all of it again, after as many seconds as `Retry-After` says.";
    operation
        .ok::<Codes>("What became of each entry.")
        .answer::<Codes>(StatusCode::TOO_MANY_REQUESTS, later)
        .answer::<Codes>(StatusCode::SERVICE_UNAVAILABLE, later)
        .refusals(&[StatusCode::SERVICE_UNAVAILABLE])
}

/// The answer where no entry of a form is taken.
pub(super) fn described_of_form(operation: Operation<'_>) -> Operation<'_> {
    let refused = "The body can't be read, or no entry of a form was taken.";
    operation.answer::<Codes>(StatusCode::BAD_REQUEST, refused)
}

fn put_errors(json: &mut Vec<u8>, outcomes: &[Outcome]) {
    let reasons = outcomes.iter().enumerate();
    let reasons = reasons.filter_map(|(index, outcome)| Some((index, outcome.reason.as_deref()?)));
    let mut is_first = true;
    for (index, reason) in reasons {
        json.extend_from_slice(if is_first { b",\"errors\":{" } else { b"," });
        is_first = false;
        put_index(json, index);
        put_string(json, reason);
    }
    if !is_first {
        json.push(b'}');
    }
}

fn put_duplicates(json: &mut Vec<u8>, outcomes: &[Outcome]) {
    let mut is_first = true;
    for (index, _) in outcomes.iter().enumerate().filter(|(_, outcome)| outcome.is_duplicate) {
        json.extend_from_slice(if is_first { b",\"duplicates\":[" } else { b"," });
        is_first = false;
        put(json, format_args!("{index}"));
    }
    if !is_first {
        json.push(b']');
    }
}

fn put_guarantees(json: &mut Vec<u8>, answer: &Answer) {
    if answer.fast.is_empty() {
        return;
    }
    json.extend_from_slice(b",\"guarantee\":{");
    for (place, category) in answer.fast.iter().enumerate() {
        put_comma(json, place > 0);
        put_string(json, category.as_str());
        json.push(b':');
        put_string(json, Guarantee::Fast.as_str());
    }
    json.push(b'}');
}

fn put_comma(json: &mut Vec<u8>, is_needed: bool) {
    if is_needed {
        json.push(b',');
    }
}

/// `"7":`
fn put_index(json: &mut Vec<u8>, index: usize) {
    put(json, format_args!("\"{index}\":"));
}

fn put_string(json: &mut Vec<u8>, text: &str) {
    // Writing a string to memory doesn't fail.
    let written = serde_json::to_writer(json, text);
    debug_assert!(written.is_ok());
}

fn put(json: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    let written = json.write_fmt(text);
    debug_assert!(written.is_ok());
}

#[cfg(test)]
mod tests {
    use super::*;
    use perflab_model::CategoryName;
    use perflab_store::Busy;
    use serde_json::Value;

    fn outcome(code: EntryCode, reason: Option<&str>) -> Outcome {
        Outcome { code, reason: reason.map(Into::into), is_duplicate: false, offset: None }
    }

    fn answer(outcomes: Vec<Outcome>, busy: Option<Busy>) -> Answer {
        Answer { outcomes, fast: Vec::new(), busy }
    }

    #[test]
    fn the_document_is_what_clients_expect() {
        let mut answer = answer(
            vec![
                outcome(EntryCode::Ok, None),
                outcome(EntryCode::Error, Some("say \"why\"")),
                outcome(EntryCode::Ok, None),
            ],
            None,
        );
        answer.outcomes[2].is_duplicate = true;
        answer.fast.push(CategoryName::new("a/b").unwrap());
        let document: Value = serde_json::from_slice(&document(&answer)).unwrap();
        assert_eq!(
            document,
            json!({
                "count": 3,
                "response_codes": {"0": "OK", "1": "ERROR", "2": "OK"},
                "errors": {"1": "say \"why\""},
                "duplicates": [2],
                "guarantee": {"a/b": "fast"},
            })
        );
    }

    #[test]
    fn the_shortest_answer_has_nothing_else() {
        let document = document(&answer(vec![outcome(EntryCode::Ok, None)], None));
        assert_eq!(document, br#"{"count":1,"response_codes":{"0":"OK"}}"#);
    }

    #[test]
    fn the_status_follows_the_codes() {
        let (ok, later, error) = (EntryCode::Ok, EntryCode::TryLater, EntryCode::Error);
        let cases = [
            (Door::ScribeForm, vec![], None, 200),
            (Door::ScribeForm, vec![ok, error], None, 200),
            (Door::ScribeForm, vec![error, error], None, 400),
            (Door::ScribeJson, vec![error, error], None, 200),
            (Door::Ndjson, vec![error], None, 200),
            (Door::ScribeForm, vec![later, later], Some(Busy::QueueFull), 429),
            (Door::Ndjson, vec![later], Some(Busy::DiskFull), 503),
            (Door::ScribeJson, vec![ok, later], Some(Busy::QueueFull), 200),
            (Door::ScribeForm, vec![error, later], Some(Busy::QueueFull), 400),
        ];
        for (door, codes, busy, expected) in cases {
            let outcomes = codes.iter().map(|code| outcome(*code, None)).collect();
            let (status, retry_after) = status(door, &answer(outcomes, busy));
            assert_eq!(status.as_u16(), expected, "{door:?} {codes:?}");
            assert_eq!(retry_after.is_some(), matches!(expected, 429 | 503));
        }
    }
}
