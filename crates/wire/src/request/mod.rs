//! Request bodies to entries.
//!
//! 1. The body is taken apart: a form's fields, or a JSON object's keys.
//! 2. Its array of entries is read one entry at a time. An entry that is wrong is an error of
//!    its own, and its neighbours are kept; only a body whose brackets don't add up is refused
//!    whole.
//! 3. Messages lie one after the other in one arena, or stay in the body: no allocation per
//!    entry.

mod array;
mod body;
mod error;
mod limits;
mod percent;
mod secret;

pub use error::{BodyError, EntryCode, EntryError};
pub use limits::Limits;
pub use secret::Secret;

use crate::Codec;
use bytes::Bytes;
use perflab_model::CategoryName;
use std::ops::Range;

/// How a body is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BodyForm {
    /// `access_token=…&logs=…`
    UrlEncoded,
    /// `{"access_token":…,"logs":…}`
    Json,
    /// One message per line, all of one category.
    Ndjson { category: CategoryName },
    /// An Arrow IPC stream, all rows of one category.
    Arrow { category: CategoryName },
}

/// What the messages of the entries are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageForm {
    /// JSON or text.
    Plain,
    /// Thrift in base64 (`structured=true`). Lines of NDJSON are always plain, and Arrow is Arrow.
    Structured,
}

/// A request's entries, in the order in which they were sent.
#[derive(Debug)]
pub struct Request {
    token: Option<Secret>,
    categories: Vec<CategoryName>,
    entries: Vec<Result<Stored, EntryError>>,
    messages: Messages,
    /// Where the beginnings of refused entries are, by their position.
    refused: Vec<(usize, Range<usize>)>,
}

/// How much of an entry that can't be read is kept for whoever wants to know what it was.
pub const REFUSED_TEXT_BYTES_MAX: usize = 64 << 10;

/// Where the messages are.
#[derive(Debug)]
enum Messages {
    Body(Bytes),
    Arena(Vec<u8>),
}

#[derive(Debug)]
struct Stored {
    category: usize,
    codec: Codec,
    message: Range<usize>,
}

/// One entry that can be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'r> {
    pub category: &'r CategoryName,
    /// The category's position in [`Request::categories`].
    pub category_index: usize,
    pub codec: Codec,
    pub message: &'r [u8],
}

impl Request {
    pub fn decode(
        form: &BodyForm,
        messages: MessageForm,
        body: Bytes,
        limits: &Limits,
    ) -> Result<Self, BodyError> {
        match form {
            BodyForm::UrlEncoded => body::decode_form(messages, &body, limits),
            BodyForm::Json => body::decode_json(messages, &body, limits),
            BodyForm::Ndjson { category } => body::decode_ndjson(category, body, limits),
            BodyForm::Arrow { category } => body::decode_arrow(category, &body, limits),
        }
    }

    /// The access token that the body holds.
    pub fn token(&self) -> Option<&Secret> {
        self.token.as_ref()
    }

    /// The number of entries, refused ones included.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The categories of the entries, each once.
    pub fn categories(&self) -> &[CategoryName] {
        &self.categories
    }

    /// Each entry, or why it is refused.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = Result<Entry<'_>, &EntryError>> {
        self.entries.iter().map(|entry| entry.as_ref().map(|stored| self.read(stored)))
    }

    /// The entry at this position, unless it is refused.
    pub fn entry(&self, index: usize) -> Option<Entry<'_>> {
        let stored = self.entries.get(index)?.as_ref().ok()?;
        Some(self.read(stored))
    }

    #[inline]
    fn read(&self, stored: &Stored) -> Entry<'_> {
        Entry {
            category: &self.categories[stored.category],
            category_index: stored.category,
            codec: stored.codec,
            message: &self.messages.bytes()[stored.message.clone()],
        }
    }

    /// How much memory the messages take.
    pub fn message_bytes(&self) -> usize {
        match &self.messages {
            Messages::Body(body) => body.len(),
            Messages::Arena(arena) => arena.capacity(),
        }
    }

    /// The beginning of a refused entry as text, with U+FFFD for bytes that are not UTF-8; empty
    /// for one that is not refused.
    pub fn refused_text(&self, index: usize) -> &[u8] {
        match self.refused.binary_search_by_key(&index, |(index, _)| *index) {
            Ok(at) => &self.messages.bytes()[self.refused[at].1.clone()],
            Err(_) => &[],
        }
    }
}

impl Messages {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Body(body) => body,
            Self::Arena(arena) => arena,
        }
    }
}
