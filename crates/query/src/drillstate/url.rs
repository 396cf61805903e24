//! The URLs that drillstates are in.

use form_urlencoded::Serializer;
use serde_json::{Map, Value};

use super::{DrillstateError, Unsayable, key, read, write};
use crate::document::{DOCUMENT_BYTES_MAX, Document};

const DRILLSTATE: &str = "drillstate";
/// What stands beside the drillstate in a URL, not in it.
const BESIDE: [&str; 4] = [key::DATASET, key::VIEW, "pool", "normalized"];

/// Where Scuba's links lead, on any host.
pub const PATH: &str = "/intern/scuba/query/";

/// Why a URL holds no query.
#[derive(Debug, thiserror::Error)]
pub enum UrlError {
    #[error("the URL has {bytes} bytes, the limit is {DOCUMENT_BYTES_MAX}")]
    TooLong { bytes: usize },
    #[error("the drillstate of the URL is not a JSON object")]
    Json(#[source] Option<serde_json::Error>),
    #[error("the drillstate of the URL can't be used")]
    Drillstate(#[from] DrillstateError),
}

/// Whether a URL is one of Scuba's.
pub fn is_scuba_url(url: &str) -> bool {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    path.trim_end_matches('/').ends_with(PATH.trim_end_matches('/'))
}

/// Reads the query of one of Scuba's URLs: all that follows its `?`.
pub fn read_url_query(query: &str) -> Result<Document, UrlError> {
    if query.len() > DOCUMENT_BYTES_MAX {
        return Err(UrlError::TooLong { bytes: query.len() });
    }
    let Split { before, state, after } = split(query);
    let mut state = match state {
        None => Map::new(),
        Some(state) => object(&state)?,
    };
    for part in [before, after] {
        for (key, value) in form_urlencoded::parse(part.as_bytes()) {
            state.entry(key).or_insert_with(|| Value::String(value.into_owned()));
        }
    }
    Ok(read(&state)?)
}

/// Writes a document as the path and query of one of Scuba's URLs.
pub fn write_url(document: &Document) -> Result<String, Unsayable> {
    let mut state = write(document)?;
    let mut query = Serializer::new(String::new());
    for key in BESIDE {
        match state.remove(key) {
            Some(Value::String(text)) => drop(query.append_pair(key, &text)),
            Some(value) => drop(state.insert(key.to_owned(), value)),
            None => {}
        }
    }
    query.append_pair(DRILLSTATE, &Value::Object(state).to_string());
    Ok(format!("{PATH}?{}", query.finish()))
}

struct Split<'q> {
    before: &'q str,
    /// Decoded.
    state: Option<String>,
    after: &'q str,
}

/// Finds the drillstate. PyTorch writes it as it is, `&` and all, so that only its JSON says where
/// it ends; a browser that is given such a URL encodes the quotes and leaves the braces and `+`.
fn split(query: &str) -> Split<'_> {
    let none = Split { before: query, state: None, after: "" };
    let marks = query.match_indices("drillstate=").map(|(at, mark)| (at, at + mark.len()));
    let mut starts = marks.filter(|(at, _)| query[..*at].is_empty() || query[..*at].ends_with('&'));
    let Some((at, start)) = starts.next() else { return none };
    let (before, rest) = (&query[..at], &query[start..]);
    let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Map<String, Value>>();
    if let Some(Ok(_)) = values.next() {
        let end = values.byte_offset();
        return Split { before, state: Some(rest[..end].to_owned()), after: &rest[end..] };
    }
    let (encoded, after) = rest.split_at(rest.find('&').unwrap_or(rest.len()));
    let is_raw = encoded.starts_with('{');
    let encoded = if is_raw { encoded.replace('+', "%2B") } else { encoded.to_owned() };
    let pair = format!("{DRILLSTATE}={encoded}");
    let decoded = form_urlencoded::parse(pair.as_bytes()).next();
    Split { before, state: decoded.map(|(_, state)| state.into_owned()), after }
}

fn object(json: &str) -> Result<Map<String, Value>, UrlError> {
    match serde_json::from_str(json) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(UrlError::Json(None)),
        Err(error) => Err(UrlError::Json(Some(error))),
    }
}
