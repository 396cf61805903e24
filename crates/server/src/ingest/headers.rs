//! What a request's headers say of its body, and what makes its repetition harmless.

use axum::http::{HeaderMap, StatusCode, header};
use perflab_model::Nanos;
use perflab_store::{Keys, Sequences};
use serde_json::json;

use crate::endpoint::Operation;
use crate::error::ApiError;

const PRODUCER: &str = "x-perflab-producer";
const SEQUENCE: &str = "x-perflab-sequence";
const SEQUENCES: &str = "x-perflab-sequences";
const ARRIVAL: &str = "x-perflab-arrival";

pub(super) fn described(operation: Operation<'_>) -> Operation<'_> {
    let number = || json!({"type": "integer", "minimum": 0});
    let numbers = json!({"type": "array", "items": number()});
    let encodings = json!({"type": "string", "enum": ["identity", "gzip", "zstd"]});
    operation
        .parameter("header", PRODUCER, "Who numbers the entries.", json!({"type": "string"}))
        .parameter("header", SEQUENCE, "The first entry's number; the others follow.", number())
        .parameter("header", SEQUENCES, "The numbers of all entries.", numbers)
        .parameter("header", ARRIVAL, "When they were spooled: nanoseconds since 1970.", number())
        .parameter("header", "content-encoding", "How the body is compressed.", encodings)
}

/// The media type of the body, without its parameters.
pub(super) fn media_type(headers: &HeaderMap) -> &str {
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    content_type.and_then(|value| value.split(';').next()).unwrap_or_default().trim()
}

/// The producer's numbers for the entries, if the request has any.
pub(super) fn keys_of(headers: &HeaderMap) -> Result<Option<Keys>, ApiError> {
    let first = text(headers, SEQUENCE)?;
    let listed = text(headers, SEQUENCES)?;
    let sequences = match (first, listed) {
        (None, None) => None,
        (Some(first), None) => Some(Sequences::From(number(SEQUENCE, first)?)),
        (None, Some(listed)) => {
            let numbers = listed.split(',').map(|one| number(SEQUENCES, one));
            Some(Sequences::Listed(numbers.collect::<Result<_, _>>()?))
        }
        (Some(_), Some(_)) => {
            return Err(bad(format!("give either `{SEQUENCE}` or `{SEQUENCES}`, not both")));
        }
    };
    match (text(headers, PRODUCER)?, sequences) {
        (None, None) => Ok(None),
        (Some(producer), Some(sequences)) => {
            Ok(Some(Keys { producer: producer.to_owned(), sequences }))
        }
        (Some(_), None) => {
            Err(bad(format!("`{PRODUCER}` needs `{SEQUENCE}` or `{SEQUENCES}` beside it")))
        }
        (None, Some(_)) => Err(bad(format!("sequences need `{PRODUCER}` beside them"))),
    }
}

/// When the entries arrived: now, or when they were spooled on their way. Nothing arrives in the
/// future; a machine whose clock was behind is believed, since what it spooled could never be
/// sent otherwise. No clock shows a time before 1970.
pub(super) fn arrival_of(headers: &HeaderMap, now: Nanos) -> Result<Nanos, ApiError> {
    let Some(value) = text(headers, ARRIVAL)? else {
        return Ok(now);
    };
    match value.trim().parse::<i64>() {
        Ok(arrival @ 0..) => Ok(Nanos(arrival).min(now)),
        Ok(_) | Err(_) => Err(bad(format!("`{ARRIVAL}` is not a unix time in nanoseconds"))),
    }
}

fn text<'h>(headers: &'h HeaderMap, name: &str) -> Result<Option<&'h str>, ApiError> {
    let value = headers.get(name).map(|value| std::str::from_utf8(value.as_bytes()));
    value.transpose().map_err(|_not_utf8| bad(format!("`{name}` is not UTF-8")))
}

fn number(name: &str, text: &str) -> Result<u64, ApiError> {
    let text = text.trim();
    let parsed = text.parse();
    parsed.map_err(|_not_a_number| bad(format!("`{name}` holds `{}`", text.escape_debug())))
}

fn bad(message: String) -> ApiError {
    ApiError::new(StatusCode::BAD_REQUEST, message)
}
