//! The category that keeps what was refused.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use perflab_model::{CategoryName, Nanos};
use perflab_wire::{Codec, Entry, EntryCode};
use serde::Serialize;

use super::Door;

/// The category of refused entries. Nobody writes to it, or to others below `perflab/`, from
/// outside.
pub const REJECTED: &str = "perflab/rejected";
/// How much of a refused message is kept.
pub const REJECTED_MESSAGE_BYTES_MAX: usize = 64 << 10;
/// How much of the category is kept, unless configured otherwise.
pub const REJECTED_BYTES_MAX: u64 = 64 << 20;

/// What datasets of perflab's own start with.
const RESERVED_PREFIX: &str = "perflab/";

/// Whether a category is perflab's own, under either of its names.
pub fn is_reserved(category: &CategoryName) -> bool {
    category.dataset().starts_with(RESERVED_PREFIX)
}

const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// A refused entry as a message of its own.
#[derive(Debug, Serialize)]
struct Row<'r> {
    int: Numbers,
    normal: Texts<'r>,
}

#[derive(Debug, Serialize)]
struct Numbers {
    time: i64,
    index: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<usize>,
}

#[derive(Debug, Serialize)]
struct Texts<'r> {
    #[serde(skip_serializing_if = "Option::is_none")]
    category: Option<&'r str>,
    code: &'static str,
    reason: &'r str,
    source: &'static str,
    /// The start of the message, or of the whole entry if that could not be read; structured
    /// messages in base64, as they were sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

/// What is known of a refused entry.
#[derive(Debug, Clone, Copy)]
pub(super) enum Sent<'r> {
    /// It could be read.
    Entry(Entry<'r>),
    /// It could not: the beginning of its text.
    Unreadable(&'r [u8]),
}

impl<'r> Sent<'r> {
    fn entry(self) -> Option<Entry<'r>> {
        match self {
            Self::Entry(entry) => Some(entry),
            Self::Unreadable(_) => None,
        }
    }

    fn text(self) -> Option<String> {
        match self {
            Self::Entry(entry) => Some(start_of(entry.codec, entry.message)),
            Self::Unreadable([]) => None,
            Self::Unreadable(text) => Some(start_of(Codec::Message, text)),
        }
    }
}

/// The message that keeps a refused entry.
pub(super) fn row(
    index: usize,
    sent: Sent<'_>,
    (code, reason): (EntryCode, &str),
    door: Door,
    arrival: Nanos,
) -> Vec<u8> {
    let row = Row {
        int: Numbers {
            time: arrival.as_i64().div_euclid(NANOS_PER_SECOND),
            index,
            bytes: sent.entry().map(|entry| entry.message.len()),
        },
        normal: Texts {
            category: sent.entry().map(|entry| entry.category.as_str()),
            code: code.as_str(),
            reason,
            source: door.as_str(),
            message: sent.text(),
        },
    };
    serde_json::to_vec(&row).unwrap_or_default()
}

fn start_of(codec: Codec, message: &[u8]) -> String {
    match codec {
        Codec::Message => {
            let start = &message[..message.len().min(REJECTED_MESSAGE_BYTES_MAX)];
            String::from_utf8_lossy(start).into_owned()
        }
        Codec::Structured | Codec::Bulk => {
            let start = &message[..message.len().min(REJECTED_MESSAGE_BYTES_MAX / 4 * 3)];
            STANDARD.encode(start)
        }
    }
}
