//! Raw rows.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use perflab_store::segment::{Segment, Snapshot};

use crate::group::Cells;
use crate::selection::{Selection, of_segments};
use crate::{QueryError, Value};

/// The most rows that are shown as they are.
pub const SAMPLES_MAX: usize = 100_000;

/// Rows as they are, newest first.
#[derive(Debug, Clone, PartialEq)]
pub struct Samples {
    /// The names of the columns shown.
    pub columns: Vec<String>,
    pub rows: Vec<Sample>,
    /// How many rows were looked at to find these.
    pub rows_scanned: u64,
}

/// One row.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// In nanoseconds since the Unix epoch.
    pub time: i64,
    pub weight: f64,
    /// One per column shown; of a name with several kinds, the first that the row has.
    pub values: Vec<Value>,
}

/// The newest `count` rows of a selection; `columns` of them, or all when there are none. Rows of
/// one time are in the order of their segments, of one segment the last first.
pub fn samples(
    selection: &Selection,
    columns: &[String],
    count: usize,
    snapshot: &Snapshot,
) -> Result<Samples, QueryError> {
    if count > SAMPLES_MAX {
        return Err(QueryError::TooManySamples { count });
    }
    let columns = if columns.is_empty() { all_columns(snapshot) } else { columns.to_vec() };
    let found = of_segments(snapshot, |segment| selection.last_rows(segment, count))?;
    let mut newest = Vec::new();
    for (segment, (rows, _)) in found.iter().enumerate() {
        let times = snapshot.segments[segment].times()?;
        newest.extend(rows.iter().map(|&row| (Reverse(times[row]), segment, Reverse(row))));
    }
    newest.sort_unstable();
    newest.truncate(count);
    let mut readers = Vec::new();
    for segment in &snapshot.segments {
        readers.push(cells(&columns, segment)?);
    }
    let rows = newest.into_iter().map(|(Reverse(time), segment, Reverse(row))| {
        let weight = snapshot.segments[segment].weights()?.get(row);
        let values = readers[segment].iter().map(|cells| cells.value(row)).collect();
        Ok(Sample { time, weight, values })
    });
    Ok(Samples {
        rows: rows.collect::<Result<_, QueryError>>()?,
        columns,
        rows_scanned: found.iter().map(|(_, scanned)| scanned).sum(),
    })
}

fn all_columns(snapshot: &Snapshot) -> Vec<String> {
    let columns = snapshot.segments.iter().flat_map(|segment| segment.columns());
    let names: BTreeSet<&str> = columns.map(|column| column.name()).collect();
    names.into_iter().map(str::to_owned).collect()
}

fn cells<'s>(columns: &[String], segment: &'s Segment) -> Result<Vec<Cells<'s>>, QueryError> {
    let of_name =
        |name: &String| Cells::new(&segment.columns_named(name).collect::<Vec<_>>(), segment);
    columns.iter().map(of_name).collect()
}
