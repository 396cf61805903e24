//! Outside forms to rows: request bodies to entries, entries' messages to rows of a batch.
//! Pure: no I/O, no storing.

pub mod bulk;
pub mod codec;
pub mod json;
pub mod message;
pub mod request;
mod scan;
pub mod structured;

pub use bulk::BulkError;
pub use codec::{Codec, CodecError};
pub use message::{MessageError, TIME_AHEAD_MAX, decode};
pub use request::{
    BodyError, BodyForm, Entry, EntryCode, EntryError, Limits, MessageForm, Request, Secret,
};
pub use structured::{IdlError, Registry};
