//! Why a message is refused.

use super::sections::Section;
use crate::json::JsonError;
use crate::structured::ThriftError;
use perflab_model::{Nanos, RowError};
use std::fmt;

/// The most characters of a client's text that an error repeats.
const QUOTE_CHARS_MAX: usize = 64;

/// Why a message is refused. Names the column and what was found, in the sender's terms.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum MessageError {
    #[error("the message is empty")]
    Empty,
    #[error("the message is not UTF-8: byte {at} starts no character")]
    Utf8 { at: usize },
    #[error("the message is not JSON")]
    Json(#[from] JsonError),
    #[error("the message is not a structured Thrift message")]
    Thrift(#[from] ThriftError),
    #[error("the message is no Arrow batch: {0}")]
    Arrow(String),
    #[error("unknown section `{section}`; known are {}", Section::LIST)]
    UnknownSection { section: String },
    #[error("section `{section}` appears twice")]
    SectionTwice { section: &'static str },
    #[error("section `{section}` holds {found}, not an object")]
    SectionType { section: &'static str, found: &'static str },
    #[error("column `{column}`{place} holds {found}", place = Place(*.section))]
    Type { column: String, section: Option<&'static str>, found: &'static str },
    #[error("column `{column}`{place} holds a list with {found} in it", place = Place(*.section))]
    ListType { column: String, section: Option<&'static str>, found: &'static str },
    #[error("column `{column}`{place} holds {value}, not a whole number", place = Place(*.section))]
    NotWhole { column: String, section: Option<&'static str>, value: String },
    #[error(
        "column `{column}`{place} holds {value}, more than a 64-bit {kind} can",
        place = Place(*.section)
    )]
    OutOfRange { column: String, section: Option<&'static str>, value: String, kind: &'static str },
    #[error("`time` is {value}, which is outside the years 1677 to 2262")]
    TimeRange { value: String },
    #[error("`time` is {value}, more than 24 h after its arrival at {arrival}{}", Hint(*.looks_like))]
    TimeAhead { value: String, arrival: Nanos, looks_like: Option<TimeUnit> },
    #[error("`{column}` is {value}; a row's weight must be finite and more than 0")]
    Weight { column: &'static str, value: f64 },
    #[error(transparent)]
    Row(#[from] RowError),
}

/// What a `time` that is too large was probably counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeUnit {
    Milliseconds,
    Microseconds,
    Nanoseconds,
}

impl fmt::Display for TimeUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Milliseconds => "milliseconds",
            Self::Microseconds => "microseconds",
            Self::Nanoseconds => "nanoseconds",
        })
    }
}

struct Place(Option<&'static str>);

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |section| write!(f, " in section `{section}`"))
    }
}

struct Hint(Option<TimeUnit>);

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hint = |unit| write!(f, "; `time` is in seconds, this looks like {unit}");
        self.0.map_or(Ok(()), hint)
    }
}

/// A client's text, short enough for an error.
pub(crate) fn quote(text: &str) -> String {
    let mut characters = text.chars();
    let mut quoted: String = characters.by_ref().take(QUOTE_CHARS_MAX).collect();
    if characters.next().is_some() {
        quoted.push('…');
    }
    quoted
}
