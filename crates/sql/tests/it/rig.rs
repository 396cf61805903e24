//! Datasets in memory, and queries that wait for the whole answer.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use arrow::record_batch::RecordBatch;
use arrow::util::display::array_value_to_string;
use perflab_query::testing::{Cell, Row, segment_of};
use perflab_sql::{Dataset, Limits, Query, Rows, SqlError, execute};
use perflab_store::segment::Snapshot;
use tokio::time::Instant;

pub(crate) type Known = HashMap<String, Dataset>;

/// More than any of these queries needs.
pub(crate) fn limits() -> Limits {
    let time = Duration::from_secs(100);
    Limits { memory_bytes: 1 << 28, started: Instant::now(), time }
}

pub(crate) fn snapshot_of(parts: &[Vec<Row>]) -> Snapshot {
    Snapshot::of(parts.iter().map(|rows| segment_of(rows)))
}

pub(crate) fn dataset_of(snapshot: &Snapshot) -> Dataset {
    let columns = snapshot.segments.iter().flat_map(|segment| segment.columns());
    let columns = columns.map(|column| (column.name().to_owned(), column.kind())).collect();
    Dataset { columns, source: Arc::new(snapshot.clone()) }
}

/// A dataset of one segment per part.
pub(crate) fn dataset(name: &str, parts: &[Vec<Row>]) -> Known {
    HashMap::from([(name.to_owned(), dataset_of(&snapshot_of(parts)))])
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

/// Asks, and holds something for as long as there is work.
pub(crate) fn start(
    sql: &str,
    known: &Known,
    limits: Limits,
    held: impl Send + 'static,
) -> Result<Rows, SqlError> {
    block_on(execute(Query::parse(sql)?, known.clone(), limits, held))
}

/// The batches of an answer, and how many rows were read for it.
pub(crate) fn batches(
    sql: &str,
    known: &Known,
    limits: Limits,
) -> Result<(Vec<RecordBatch>, u64), SqlError> {
    let mut rows = start(sql, known, limits, ())?;
    block_on(async {
        let mut batches = Vec::new();
        while let Some(batch) = rows.next().await {
            batches.push(batch?);
        }
        Ok((batches, rows.progress().rows_scanned()))
    })
}

/// The rows of an answer as text.
pub(crate) fn ask(sql: &str, known: &Known) -> Vec<String> {
    let (batches, _) = batches(sql, known, limits()).unwrap();
    let line = |batch: &RecordBatch, row| {
        let value = |column| array_value_to_string(column, row).unwrap();
        batch.columns().iter().map(|column| value(column)).collect::<Vec<_>>().join("|")
    };
    let lines = |batch: RecordBatch| (0..batch.num_rows()).map(|row| line(&batch, row)).collect();
    batches.into_iter().flat_map(|batch| -> Vec<String> { lines(batch) }).collect()
}

pub(crate) fn rows_scanned(sql: &str, known: &Known) -> u64 {
    batches(sql, known, limits()).unwrap().1
}

pub(crate) fn error(sql: &str, known: &Known, limits: Limits) -> SqlError {
    match batches(sql, known, limits) {
        Ok(_) => panic!("there is an answer to {sql}"),
        Err(error) => error,
    }
}
