//! Why a body, or one entry of it, is refused.

use crate::BulkError;
use crate::json::JsonError;
use crate::structured::ThriftError;
use perflab_model::CategoryNameError;
use std::fmt;
use std::io;

/// The answer to one entry, as clients know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EntryCode {
    Ok,
    TryLater,
    Error,
    Denied,
    TooLarge,
}

impl EntryCode {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::TryLater => "TRY_LATER",
            Self::Error => "ERROR",
            Self::Denied => "DENIED",
            Self::TooLarge => "TOO_LARGE",
        }
    }
}

impl fmt::Display for EntryCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Why one entry is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    #[error("the entry holds {found}, not an object")]
    NotAnObject { found: &'static str },
    #[error("the entry is not JSON")]
    Json(#[source] JsonError),
    #[error("the entry is not UTF-8: byte {at} of it starts no character")]
    Utf8 { at: usize },
    #[error("the entry has no `{key}`")]
    Missing { key: &'static str },
    #[error("the entry has `{key}` twice")]
    Twice { key: &'static str },
    #[error("`{key}` of the entry holds {found}, not {expected}")]
    Type { key: &'static str, found: &'static str, expected: &'static str },
    #[error("`category` of the entry is not a category name")]
    Category(#[from] CategoryNameError),
    #[error("the message has {bytes} bytes, more than {bytes_max}")]
    TooLarge { bytes: usize, bytes_max: usize },
    #[error("the structured message is not base64")]
    Base64(#[source] base64::DecodeError),
    #[error("the structured message is not a `WriteStructuredMessage`")]
    Thrift(#[from] ThriftError),
    #[error("the structured message's target is not a category name")]
    Target(#[source] CategoryNameError),
}

impl EntryError {
    pub fn code(&self) -> EntryCode {
        match self {
            Self::TooLarge { .. } => EntryCode::TooLarge,
            Self::NotAnObject { .. }
            | Self::Json(_)
            | Self::Utf8 { .. }
            | Self::Missing { .. }
            | Self::Twice { .. }
            | Self::Type { .. }
            | Self::Category(_)
            | Self::Base64(_)
            | Self::Thrift(_)
            | Self::Target(_) => EntryCode::Error,
        }
    }
}

/// Why a whole body is refused.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    #[error("the body is not JSON")]
    Json(#[source] JsonError),
    #[error("`logs` is not a JSON array of entries")]
    Logs(#[source] JsonError),
    #[error("the body has neither `logs` nor `base64_bz2_logs`")]
    NoLogs,
    #[error("the body has `{key}` twice")]
    Twice { key: &'static str },
    #[error("the body has both `logs` and `base64_bz2_logs`; send one of them")]
    TwoLogs,
    #[error("the body is not UTF-8 in more than {places_max} places")]
    NotText { places_max: usize },
    #[error(
        "the body is not UTF-8, and holds every noncharacter from U+FDD0 to U+FDEF, one of which \
         would mark the place; send UTF-8"
    )]
    NoMark,
    #[error("`{key}` holds {found}, not {expected}")]
    Type { key: &'static str, found: &'static str, expected: &'static str },
    #[error("the access token is not UTF-8")]
    TokenUtf8,
    #[error("the body has more than {entries_max} entries; send fewer per request")]
    TooManyEntries { entries_max: usize },
    #[error(transparent)]
    Arrow(#[from] BulkError),
    #[error("the batches take more than {bytes_max} bytes; send fewer per request")]
    BatchesTooLarge { bytes_max: usize },
    #[error("`base64_bz2_logs` is not base64")]
    Base64(#[source] base64::DecodeError),
    #[error("`base64_bz2_logs` is not bzip2 data")]
    Bzip2(#[source] io::Error),
    #[error("`base64_bz2_logs` holds more than {bytes_max} bytes")]
    DecompressedTooLarge { bytes_max: usize },
}
