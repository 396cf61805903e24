//! Messages to rows.
//!
//! Three forms of one row: a JSON object of typed sections, a flat JSON object whose types are
//! inferred, and a line of text. Structured Thrift is in [`crate::structured`], batches of rows in
//! [`crate::bulk`].

mod error;
mod flat;
mod properties;
mod sections;

pub use error::{MessageError, TimeUnit};
pub use properties::TIME_AHEAD_MAX;

pub(crate) use error::quote;
pub(crate) use properties::{Properties, TIME};

use crate::json::Reader;
use crate::structured::{self, Registry};
use crate::{Codec, bulk};
use perflab_model::{Batch, Nanos};
use sections::Section;

/// The column that a line of text goes to.
const TEXT_COLUMN: &str = "message";

/// Adds what a message describes to `batch`, or leaves the batch as it was: one row, and any number
/// for [`Codec::Bulk`], which takes an empty batch.
///
/// `arrival` is the row's time when the message doesn't say one; `registry` names the fields of
/// structured messages.
pub fn decode(
    codec: Codec,
    message: &[u8],
    arrival: Nanos,
    registry: &Registry,
    batch: &mut Batch,
) -> Result<(), MessageError> {
    match codec {
        Codec::Message => decode_plain(message, arrival, batch),
        Codec::Structured => structured::decode(message, arrival, registry, batch),
        Codec::Bulk => bulk::decode(message, arrival, batch),
    }
}

fn decode_plain(message: &[u8], arrival: Nanos, batch: &mut Batch) -> Result<(), MessageError> {
    let text = std::str::from_utf8(message)
        .map_err(|error| MessageError::Utf8 { at: error.valid_up_to() })?;
    match text.trim_ascii_start().as_bytes().first() {
        None => Err(MessageError::Empty),
        Some(b'{') => decode_json(text, arrival, batch),
        Some(_) => {
            let mut row = batch.begin_row();
            row.string(TEXT_COLUMN, text)?;
            Ok(row.commit(arrival, 1.0)?)
        }
    }
}

fn decode_json(text: &str, arrival: Nanos, batch: &mut Batch) -> Result<(), MessageError> {
    let mut row = batch.begin_row();
    let mut properties = Properties::default();
    let mut reader = Reader::new(text);
    if has_sections(text)? {
        sections::decode(&mut reader, &mut row, &mut properties)?;
    } else {
        flat::decode(&mut reader, &mut row, &mut properties)?;
    }
    reader.end()?;
    let (time, weight) = properties.resolve(arrival)?;
    Ok(row.commit(time, weight)?)
}

/// Whether some top-level key is a section's name and holds an object. In messages that have
/// sections that is nearly always the first key, so looking ahead costs next to nothing.
fn has_sections(text: &str) -> Result<bool, MessageError> {
    let mut reader = Reader::new(text);
    reader.begin_object()?;
    while let Some(key) = reader.next_key()? {
        let is_object = reader.peek()? == crate::json::Next::Object;
        if is_object && Section::named(&key).is_some() {
            return Ok(true);
        }
        reader.raw_value()?;
    }
    Ok(false)
}
