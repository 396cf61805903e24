//! Why Thrift bytes are refused.

use super::{JSON_TEXT_BYTES_MAX, JSON_TEXT_RATIO_MAX, THRIFT_DEPTH_MAX};

/// What is wrong with the bytes of a structured message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ThriftError {
    #[error("the bytes end at {at}, where {wanted} more were expected")]
    Truncated { at: usize, wanted: usize },
    #[error("byte {at}: {found} is no type")]
    UnknownType { at: usize, found: u8 },
    #[error("byte {at}: a varint of more than 10 bytes")]
    Varint { at: usize },
    #[error("byte {at}: a length of {length}")]
    Length { at: usize, length: i64 },
    #[error("byte {at}: field id {id} is outside 16 bits")]
    FieldId { at: usize, id: i64 },
    #[error("nested deeper than {THRIFT_DEPTH_MAX} levels")]
    TooDeep,
    #[error(
        "its nested values are too long as JSON text, which may have {JSON_TEXT_RATIO_MAX} bytes \
         per byte of the message and {JSON_TEXT_BYTES_MAX} in all; send fewer of them at once"
    )]
    TooLong,
    #[error("{bytes} bytes follow the end of the struct")]
    Trailing { bytes: usize },
    #[error("`targetName` (field 1, a string) is missing")]
    NoTarget,
    #[error("`message.data` (field 1 of field 2, binary) is missing")]
    NoData,
    #[error("{place} is not UTF-8: byte {at} starts no character")]
    Utf8 { place: String, at: usize },
    #[error("field {id} `{name}` is {found}, the registered IDL says {declared}")]
    Mismatch { id: i16, name: String, found: &'static str, declared: &'static str },
    #[error("field {id} `{name}` is not a finite number")]
    NotFinite { id: i16, name: String },
}
