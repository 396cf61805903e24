//! What must hold for every request body. Shared by the fuzz target and a test of
//! `perflab-wire`.

use bytes::Bytes;
use perflab_model::batch::Data;
use perflab_model::{Batch, CategoryName, Nanos, Schema, SchemaState};
use perflab_wire::{BodyForm, Entry, Limits, MessageForm, Registry, Request, decode};
use std::fmt::Write as _;
use std::sync::{Arc, OnceLock};

const ARRIVAL: Nanos = Nanos(1_700_050_000_000_000_000);

/// Small, so that limits are met often.
const LIMITS: Limits =
    Limits { message_bytes_max: 4096, entries_max: 64, decompressed_bytes_max: 1 << 16 };

const COLUMNS_MAX: usize = 24;

const IDL: &str = include_str!("../../crates/wire/tests/fixtures/structured/every_type.thrift");

/// Decodes a request and all of its entries; panics when an invariant is broken. The first byte
/// selects the form. Returns the number of rows.
pub(crate) fn check(input: &[u8]) -> usize {
    let Some((&selector, body)) = input.split_first() else { return 0 };
    let messages = if selector & 0x80 == 0 { MessageForm::Plain } else { MessageForm::Structured };
    let form = match selector & 0x7f {
        b'j' => BodyForm::Json,
        b'n' => BodyForm::Ndjson { category: CategoryName::new("lines").expect("a valid name") },
        _ => BodyForm::UrlEncoded,
    };
    let Ok(request) = Request::decode(&form, messages, Bytes::copy_from_slice(body), &LIMITS)
    else {
        return 0;
    };
    assert!(request.len() <= LIMITS.entries_max);

    let schema = Arc::new(SchemaState::new(Schema::Open { columns_max: COLUMNS_MAX }));
    let mut batch = Batch::new(Arc::clone(&schema));
    let mut rows = 0;
    for entry in request.entries().flatten() {
        rows += usize::from(add(entry, registry(), &mut batch));
    }
    assert_eq!(batch.len(), rows, "a row for each accepted entry");
    assert!(batch.columns().len() <= COLUMNS_MAX && schema.columns().len() <= COLUMNS_MAX);
    rows
}

fn registry() -> &'static Registry {
    static REGISTRY: OnceLock<Registry> = OnceLock::new();
    REGISTRY.get_or_init(|| {
        let mut registry = Registry::default();
        registry.register(IDL).expect("a valid document");
        registry
    })
}

/// Whether the entry became a row. One that didn't leaves no trace.
fn add(entry: Entry<'_>, registry: &Registry, batch: &mut Batch) -> bool {
    assert!(entry.message.len() <= LIMITS.message_bytes_max);
    let before = snapshot(batch);
    let is_added = decode(entry.codec, entry.message, ARRIVAL, registry, batch).is_ok();
    if !is_added {
        assert_eq!(snapshot(batch), before, "a refused message changed the batch");
    }
    is_added
}

/// Everything that can be read from a batch, as text.
fn snapshot(batch: &Batch) -> String {
    let mut text = String::new();
    for row in batch.rows() {
        let fields: Vec<_> = row.fields().collect();
        writeln!(text, "{} {} {fields:?}", row.time(), row.weight()).expect("a String takes all");
    }
    for column in batch.columns() {
        let strings: Vec<&str> = match column.data() {
            Data::Int(_) | Data::Float(_) => Vec::new(),
            Data::String(_, dictionary) => dictionary.iter().collect(),
            Data::Set(lists) | Data::Vector(lists) => lists.dictionary().iter().collect(),
        };
        writeln!(text, "{} {} {strings:?}", column.name(), column.kind())
            .expect("a String takes all");
    }
    text
}
