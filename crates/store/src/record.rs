//! Log records back to rows.

use std::collections::HashMap;
use std::sync::Arc;

use perflab_model::{Batch, CategoryName, Nanos, Schema, SchemaState};
use perflab_wire::{Codec, CodecError, MessageError, Registry, decode};

use crate::home::Home;

/// Why a record is no row.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    #[error("failed to read the log record's payload")]
    Codec(#[from] CodecError),
    #[error("failed to decode the log record's message")]
    Message(#[from] MessageError),
}

/// Decodes records of the log as the definitions say that were known when it was made, and each
/// schema when it was first met: a structured message that came before its definition has names in
/// decoders that are made after it. Whoever decodes for long makes a new one now and then.
#[derive(Debug)]
pub struct RecordDecoder {
    registry: Arc<Registry>,
    declared: HashMap<String, Option<Arc<SchemaState>>>,
    open: Arc<SchemaState>,
}

impl RecordDecoder {
    pub fn new(home: &Home) -> Self {
        let open = Schema::Open { columns_max: usize::MAX };
        let open = Arc::new(SchemaState::new(open));
        Self { registry: home.registry(), declared: HashMap::new(), open }
    }

    /// A batch of the rows that the record holds: one, except of bulk records.
    pub fn decode(
        &mut self,
        home: &Home,
        category: &str,
        arrival: Nanos,
        payload: &[u8],
    ) -> Result<Batch, RecordError> {
        if let Some(declared) = self.declared_schema(home, category) {
            let mut batch = Batch::new(declared);
            if decode_record(payload, arrival, &self.registry, &mut batch).is_ok() {
                return Ok(batch);
            }
            // Taken in before the schema was declared: still a row.
        }
        let mut batch = Batch::new(Arc::clone(&self.open));
        decode_record(payload, arrival, &self.registry, &mut batch)?;
        Ok(batch)
    }

    fn declared_schema(&mut self, home: &Home, category: &str) -> Option<Arc<SchemaState>> {
        if let Some(known) = self.declared.get(category) {
            return known.clone();
        }
        let name = CategoryName::new(category).ok();
        let schema = name.and_then(|name| home.schema(name.dataset()).ok());
        let declared = match schema {
            Some(schema @ Schema::Declared { .. }) => Some(Arc::new(SchemaState::new(schema))),
            Some(Schema::Open { .. }) | None => None,
        };
        self.declared.insert(category.to_owned(), declared.clone());
        declared
    }
}

/// Adds what a record holds to a batch, or changes nothing.
pub(crate) fn decode_record(
    payload: &[u8],
    arrival: Nanos,
    registry: &Registry,
    batch: &mut Batch,
) -> Result<(), RecordError> {
    let (codec, message) = Codec::split(payload)?;
    Ok(decode(codec, message, arrival, registry, batch)?)
}
