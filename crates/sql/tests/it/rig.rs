//! Datasets in memory, and queries that wait for the whole answer.

use std::collections::BTreeMap;
use std::time::Duration;

use arrow::record_batch::RecordBatch;
use arrow::util::display::array_value_to_string;
use perflab_query::testing::{Cell, Row, segment_of};
use perflab_sql::{Datasets, Limits, SqlError, execute};
use perflab_store::segment::Snapshot;

pub(crate) const LIMITS: Limits = Limits { memory_bytes: 1 << 28, time: Duration::from_secs(100) };

#[derive(Clone)]
pub(crate) struct Known(pub(crate) BTreeMap<String, Snapshot>);

impl Datasets for Known {
    fn snapshot(&self, name: &str) -> Option<Snapshot> {
        self.0.get(name).cloned()
    }

    fn names(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }
}

/// A dataset of one segment per part.
pub(crate) fn dataset(name: &str, parts: &[Vec<Row>]) -> Known {
    let snapshot = Snapshot::of(parts.iter().map(|rows| segment_of(rows)));
    Known(BTreeMap::from([(name.to_owned(), snapshot)]))
}

/// A row of weight 1.
pub(crate) fn row(time: i64, cells: &[(&str, Cell)]) -> Row {
    let cells = cells.iter().map(|(name, cell)| ((*name).to_owned(), cell.clone())).collect();
    Row { time, weight: 1.0, cells }
}

pub(crate) fn string(text: &str) -> Cell {
    Cell::String(text.to_owned())
}

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
}

/// The batches of an answer, and how many rows were read for it.
pub(crate) fn batches(
    sql: &str,
    known: &Known,
    limits: Limits,
) -> Result<(Vec<RecordBatch>, u64), SqlError> {
    block_on(async {
        let mut rows = execute(sql, known.clone(), limits).await?;
        let mut batches = Vec::new();
        while let Some(batch) = rows.next().await {
            batches.push(batch?);
        }
        Ok((batches, rows.progress().rows_scanned()))
    })
}

/// The rows of an answer as text.
pub(crate) fn ask(sql: &str, known: &Known) -> Vec<String> {
    let (batches, _) = batches(sql, known, LIMITS).unwrap();
    let line = |batch: &RecordBatch, row| {
        let value = |column| array_value_to_string(column, row).unwrap();
        batch.columns().iter().map(|column| value(column)).collect::<Vec<_>>().join("|")
    };
    let lines = |batch: RecordBatch| (0..batch.num_rows()).map(|row| line(&batch, row)).collect();
    batches.into_iter().flat_map(|batch| -> Vec<String> { lines(batch) }).collect()
}

pub(crate) fn rows_scanned(sql: &str, known: &Known) -> u64 {
    batches(sql, known, LIMITS).unwrap().1
}

pub(crate) fn error(sql: &str, known: &Known, limits: Limits) -> SqlError {
    match batches(sql, known, limits) {
        Ok(_) => panic!("there is an answer to {sql}"),
        Err(error) => error,
    }
}
