//! The public face of `perflab-wire`.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod bodies;
mod bulk;
mod garbage;
mod idl;
mod json;
mod messages;
mod structured;

use perflab_model::{Batch, Nanos, Schema, SchemaState};
use perflab_wire::{Codec, Registry, decode};
use std::error::Error;
use std::sync::Arc;

/// 2023-11-15, a little after the times that the messages of these tests have.
const ARRIVAL: Nanos = Nanos(1_700_050_000_000_000_000);

fn open_batch() -> Batch {
    Batch::new(Arc::new(SchemaState::new(Schema::default())))
}

fn decode_plain(message: impl AsRef<[u8]>, batch: &mut Batch) -> Result<(), String> {
    let registry = Registry::default();
    let decoded = decode(Codec::Message, message.as_ref(), ARRIVAL, &registry, batch);
    decoded.map_err(|error| chain(&error))
}

/// The row of one message, as text.
fn row(message: impl AsRef<[u8]>) -> String {
    let mut batch = open_batch();
    match decode_plain(message, &mut batch) {
        Ok(()) => show(&batch, 0),
        Err(reason) => {
            assert!(batch.is_empty() && batch.columns().is_empty(), "a refused row left a trace");
            format!("refused: {reason}")
        }
    }
}

/// `name=value` for each field, without time and weight.
fn show(batch: &Batch, row: usize) -> String {
    let row = batch.row(row).unwrap();
    let fields = row.fields().map(|(name, value)| format!("{name}={value:?}"));
    fields.collect::<Vec<_>>().join(" ")
}

/// An error and its causes, as a user reads them.
fn chain(error: &dyn Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", chain(source)),
        None => error.to_string(),
    }
}
