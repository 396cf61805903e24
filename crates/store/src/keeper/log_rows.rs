//! Records of the log back to rows, by dataset.

use std::collections::HashMap;
use std::sync::Arc;

use perflab_log::{GroupView, RecordView};
use perflab_model::{Batch, CategoryName, Nanos, Schema, SchemaState};
use perflab_wire::Registry;

use crate::catalog::Catalog;
use crate::datasets::Datasets;
use crate::ingest::BATCH_ROWS_MAX;
use crate::record::decode_record;
use crate::tables::{Delivery, GroupRows};

/// Rows that were read are handed on when they take this much memory,
const READ_BYTES_MAX: usize = 16 << 20;
/// or when they are of so many records.
const READ_RECORDS_MAX: usize = 16 << 10;

/// The first sequence that is wanted of a dataset; `None` when none is.
type Wanted<'k> = Box<dyn Fn(&str) -> Option<u64> + 'k>;

/// Reads records as today's definitions and schemas say, as far as they do.
pub(super) struct LogRows<'k> {
    catalog: &'k Catalog,
    datasets: &'k Datasets,
    registry: Arc<Registry>,
    wanted: Wanted<'k>,
    /// The dataset of each category that was met, and what is wanted of it.
    sources: HashMap<String, Option<(Arc<str>, u64)>>,
    rows: HashMap<Arc<str>, DatasetRows>,
    bytes: usize,
    records: usize,
    unreadable: u64,
}

/// Rows of a dataset, and the sequences that they are from.
struct DatasetRows {
    span: (u64, u64),
    /// When the first of them arrived.
    came: Nanos,
    rows: GroupRows,
    schema: Arc<SchemaState>,
    batch: Batch,
    ended_bytes: usize,
}

impl<'k> LogRows<'k> {
    pub(super) fn new(
        catalog: &'k Catalog,
        datasets: &'k Datasets,
        registry: Arc<Registry>,
        wanted: Wanted<'k>,
    ) -> Self {
        let (sources, rows) = (HashMap::new(), HashMap::new());
        let (bytes, records, unreadable) = (0, 0, 0);
        Self { catalog, datasets, registry, wanted, sources, rows, bytes, records, unreadable }
    }

    /// Adds what a record holds, if it is wanted.
    pub(super) fn add(&mut self, group: &GroupView<'_>, record: &RecordView<'_>) {
        let Some((dataset, from)) = self.source(group.category) else { return };
        if record.seq < from {
            return;
        }
        let (catalog, datasets) = (self.catalog, self.datasets);
        let arrival = Nanos(group.arrival_ns);
        let rows = self.rows.entry(dataset).or_insert_with_key(|dataset| {
            DatasetRows::new(schema_of(catalog, datasets, dataset), record.seq, arrival)
        });
        let before = rows.bytes();
        if !rows.decode(record.payload, arrival, &self.registry) {
            self.unreadable += 1;
        }
        rows.span.1 = record.seq + 1;
        self.bytes = self.bytes + rows.bytes() - before;
        self.records += 1;
    }

    /// Whether it is time to take what was read.
    pub(super) fn is_full(&self) -> bool {
        self.bytes >= READ_BYTES_MAX || self.records >= READ_RECORDS_MAX
    }

    /// What was read since the last time.
    pub(super) fn take(&mut self) -> impl Iterator<Item = (Arc<str>, Delivery)> {
        (self.bytes, self.records) = (0, 0);
        self.rows.drain().map(|(dataset, mut rows)| {
            rows.end_batch();
            let DatasetRows { span, came, rows, .. } = rows;
            (dataset, Delivery::new(span, came, rows, Vec::new()))
        })
    }

    fn source(&mut self, category: &str) -> Option<(Arc<str>, u64)> {
        if let Some(known) = self.sources.get(category) {
            return known.clone();
        }
        // No other name was ever appended.
        let name = CategoryName::new(category).ok();
        let source = name.and_then(|name| {
            let from = (self.wanted)(name.dataset())?;
            Some((name.dataset().into(), from))
        });
        self.sources.insert(category.to_owned(), source.clone());
        source
    }
}

impl Drop for LogRows<'_> {
    fn drop(&mut self) {
        let records = self.unreadable;
        if records > 0 {
            tracing::warn!(records, "records of the log are no rows that this version can read");
        }
    }
}

/// What the dataset accepts; anything when that can't be found out.
fn schema_of(catalog: &Catalog, datasets: &Datasets, dataset: &str) -> Arc<SchemaState> {
    match datasets.find(catalog, dataset) {
        Ok(dataset) => {
            dataset.touch();
            Arc::clone(&dataset.schema)
        }
        Err(_) => anything(),
    }
}

fn anything() -> Arc<SchemaState> {
    Arc::new(SchemaState::new(Schema::Open { columns_max: usize::MAX }))
}

impl DatasetRows {
    fn new(schema: Arc<SchemaState>, first_seq: u64, came: Nanos) -> Self {
        let (rows, batch) = (GroupRows::default(), Batch::new(Arc::clone(&schema)));
        Self { span: (first_seq, first_seq), came, rows, schema, batch, ended_bytes: 0 }
    }

    fn bytes(&self) -> usize {
        self.ended_bytes + self.batch.bytes()
    }

    /// Whether the record could be read.
    fn decode(&mut self, payload: &[u8], arrival: Nanos, registry: &Registry) -> bool {
        if decode_record(payload, arrival, registry, &mut self.batch).is_ok() {
            if self.batch.len() >= BATCH_ROWS_MAX {
                self.end_batch();
            }
            return true;
        }
        // Taken in when the schema was another one: still a row.
        let mut alone = Batch::new(anything());
        let is_row = decode_record(payload, arrival, registry, &mut alone).is_ok();
        if is_row {
            self.end_batch();
            self.push(alone);
        }
        is_row
    }

    fn end_batch(&mut self) {
        if !self.batch.is_empty() {
            let next = Batch::new(Arc::clone(&self.schema));
            let ended = std::mem::replace(&mut self.batch, next);
            self.push(ended);
        }
    }

    fn push(&mut self, batch: Batch) {
        self.ended_bytes += batch.bytes();
        self.rows.push(batch);
    }
}
