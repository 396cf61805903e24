//! Request bodies to rows with the server's own code, on this thread.

use crate::clock;
use crate::requests::{CATEGORY, Door, Requests};
use anyhow::{Result, anyhow, bail};
use bytes::Bytes;
use perflab_model::{Batch, CategoryName, Nanos, Schema, SchemaState};
use perflab_wire::{BodyForm, Limits, MessageForm, Registry, Request, decode};
use std::sync::Arc;
use std::time::Duration;

/// When the rows of the benchmark arrive: after all of their times.
const ARRIVAL: Nanos = Nanos(1_800_000_000_000_000_000);

/// What decoding needs beside the body; shared by every request, as in the server.
#[derive(Debug)]
pub(crate) struct Decoder {
    category: CategoryName,
    limits: Limits,
    registry: Registry,
    schema: Arc<SchemaState>,
}

impl Decoder {
    pub(crate) fn new() -> Result<Self> {
        Ok(Self {
            category: CATEGORY.parse()?,
            limits: Limits::default(),
            registry: Registry::default(),
            schema: Arc::new(SchemaState::new(Schema::default())),
        })
    }

    /// The rows of a body. A message that is refused fails the whole: the benchmark's are good.
    pub(crate) fn decode(&self, door: Door, body: Bytes) -> Result<Batch> {
        let form = match door {
            Door::Form => BodyForm::UrlEncoded,
            Door::Ndjson => BodyForm::Ndjson { category: self.category.clone() },
        };
        let request = Request::decode(&form, MessageForm::Plain, body, &self.limits)?;
        let mut batch = Batch::new(Arc::clone(&self.schema));
        for entry in request.entries() {
            let entry = entry.map_err(|error| anyhow!("an entry was refused: {error}"))?;
            let codec = entry.codec;
            decode(codec, entry.message, ARRIVAL, &self.registry, &mut batch)?;
        }
        Ok(batch)
    }
}

/// How many rows per second of CPU time one core decodes, going once over all requests.
pub(crate) fn rows_per_s(door: Door, requests: &Requests<'_>) -> Result<f64> {
    let decoder = Decoder::new()?;
    let mut used = Duration::ZERO;
    for index in 0..requests.cycle() {
        // Putting the body together is the network's work in life.
        let body = Bytes::from(requests.body(index).concat());
        let start = clock::thread_cpu();
        let batch = decoder.decode(door, body)?;
        used += clock::thread_cpu() - start;
        if batch.len() != requests.rows() {
            bail!("{} of {} rows were decoded", batch.len(), requests.rows());
        }
    }
    Ok((requests.cycle() * requests.rows()) as f64 / used.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::{self, FIELDS};
    use crate::requests::form_entries;
    use perflab_model::Kind;

    #[test]
    fn both_doors_give_the_same_rows() {
        let messages = messages::generate(20);
        let entries = form_entries(&messages);
        let decoder = Decoder::new().unwrap();
        for (door, entries) in [(Door::Ndjson, &messages), (Door::Form, &entries)] {
            let body = Requests::new(door, entries, 20).body(0).concat();
            let batch = decoder.decode(door, body.into()).unwrap();
            assert_eq!(batch.len(), 20, "{door}");
            // `time` and `weight` are properties of the row, not columns.
            assert_eq!(batch.columns().len(), FIELDS - 2, "{door}");
            assert!(batch.column("commit_id", Kind::String).is_some());
        }
    }

    #[test]
    fn a_bad_message_is_not_counted_as_decoded() {
        let decoder = Decoder::new().unwrap();
        assert!(decoder.decode(Door::Ndjson, "{\"int\": 7".into()).is_err());
    }
}
