//! Structured messages: Thrift structs that name their logger and number their fields.
//!
//! A message is a `WriteStructuredMessage` in Thrift's binary protocol: the name of a target and
//! a struct in the compact protocol. Fields have only ids there; their names and exact types
//! come from the [`Registry`]. Fields that it doesn't know are columns `f<id>`.
//!
//! | on the wire | column |
//! |---|---|
//! | integers | int |
//! | an enum | string, the value's name: what people group by. An unknown value is its number as text, so that the column keeps one kind |
//! | double | float |
//! | bool | string, `true` or `false`, as in JSON messages |
//! | string; binary | string; as base64 |
//! | list of strings; set of strings | vector; set |
//! | any other list or set, map, struct | string, its JSON text |
//!
//! The readers are our own. Apache's `thrift` crate can be limited too, but it allocates what a
//! length on the wire says, up to a configured maximum, before it looks whether those bytes are
//! there, and copies every string. These borrow from the message, check lengths against it, and
//! say at which byte it goes wrong.

mod compact;
mod cursor;
mod envelope;
mod error;
mod idl;
mod json_text;
mod registry;
mod row;

pub use error::ThriftError;
pub use idl::{IDL_BYTES_MAX, IdlError, IdlProblem};
pub use registry::Registry;

pub(crate) use envelope::Envelope;
pub(crate) use row::decode;

/// The deepest nesting of structs and containers that is read.
pub const THRIFT_DEPTH_MAX: usize = 64;

/// The most bytes that the JSON text of one message's nested values may take together. A few bytes
/// on the wire can stand for any number: a map in a map's key is escaped once per level, and
/// each escape doubles it.
pub const JSON_TEXT_BYTES_MAX: usize = 1 << 20;
/// The most bytes of that text per byte of the message: a flag is one byte there, and its field's
/// name here.
pub const JSON_TEXT_RATIO_MAX: usize = 64;
/// That text may always have this many bytes.
const JSON_TEXT_BYTES_FREE: usize = 4 << 10;

/// How long the JSON text of a message of so many bytes may become.
fn json_text_bytes_max(message_bytes: usize) -> usize {
    let in_proportion = message_bytes.saturating_mul(JSON_TEXT_RATIO_MAX);
    in_proportion.saturating_add(JSON_TEXT_BYTES_FREE).min(JSON_TEXT_BYTES_MAX)
}
