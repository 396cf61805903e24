//! Raw rows.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use perflab_store::segment::{Segment, Snapshot};
use rayon::prelude::*;

use crate::group::Cells;
use crate::limits::Budget;
use crate::numbering::text_bytes;
use crate::selection::{Scan, Selection};
use crate::{Limits, QueryError, Value};

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
    limits: &Limits,
) -> Result<Samples, QueryError> {
    if count > SAMPLES_MAX {
        return Err(QueryError::TooManySamples { count });
    }
    let columns = if columns.is_empty() { all_columns(snapshot) } else { columns.to_vec() };
    let budget = Budget::of(limits);
    let mut newest = Newest::default();
    newest.find(selection, count, snapshot, &budget)?;
    budget.take(newest.rows.len() * columns.len() * size_of::<Value>())?;
    // Columns are read only of segments that have one of the rows.
    let mut readers: BTreeMap<usize, Vec<Cells<'_>>> = BTreeMap::new();
    for (_, segment, _) in &newest.rows {
        if !readers.contains_key(segment) {
            readers.insert(*segment, cells(&columns, &snapshot.segments[*segment])?);
        }
    }
    let row = |&(Reverse(time), segment, Reverse(row)): &Place| {
        let weight = snapshot.segments[segment].weights()?.get(row);
        let values: Vec<Value> = readers[&segment].iter().map(|cells| cells.value(row)).collect();
        budget.check()?;
        budget.take(values.iter().map(text_bytes).sum())?;
        Ok(Sample { time, weight, values })
    };
    let rows = newest.rows.iter().map(row).collect::<Result<_, QueryError>>()?;
    Ok(Samples { columns, rows, rows_scanned: newest.rows_scanned })
}

/// How many segments are looked at together.
const SEGMENTS_AT_ONCE: usize = 8;

/// The time, segment and number of a row, in the order in which rows are shown.
type Place = (Reverse<i64>, usize, Reverse<usize>);

/// The newest rows that were found so far.
#[derive(Debug, Default)]
struct Newest {
    rows: Vec<Place>,
    rows_scanned: u64,
}

impl Newest {
    /// Begins with the segments that end last, and leaves out those that end too early.
    fn find(
        &mut self,
        selection: &Selection,
        count: usize,
        snapshot: &Snapshot,
        budget: &Budget<'_>,
    ) -> Result<(), QueryError> {
        let scan = Scan::new(selection, snapshot, budget)?;
        let mut ends = Vec::new();
        for (place, segment) in snapshot.segments.iter().enumerate() {
            let rows = selection.rows(segment)?;
            ends.extend(segment.times()?[rows].last().map(|&end| (Reverse(end), place)));
        }
        ends.sort_unstable();
        for several in ends.chunks(SEGMENTS_AT_ONCE) {
            let is_full = self.rows.len() >= count;
            let oldest = self.rows.last().map(|(time, ..)| *time);
            if is_full && oldest.is_none_or(|oldest| oldest < several[0].0) {
                break;
            }
            let find = |&(_, place): &(Reverse<i64>, usize)| {
                let segment = &snapshot.segments[place];
                let (rows, scanned) = scan.last_rows(segment, count)?;
                let times = segment.times()?;
                let places = rows.into_iter().map(|row| (Reverse(times[row]), place, Reverse(row)));
                Ok((places.collect::<Vec<Place>>(), scanned))
            };
            let found: Vec<_> = several.par_iter().map(find).collect::<Result<_, QueryError>>()?;
            for (places, scanned) in found {
                self.rows.extend(places);
                self.rows_scanned += scanned;
            }
            self.rows.sort_unstable();
            self.rows.truncate(count);
        }
        Ok(())
    }
}

/// The names of all columns, sorted.
pub(crate) fn all_columns(snapshot: &Snapshot) -> Vec<String> {
    let columns = snapshot.segments.iter().flat_map(|segment| segment.columns());
    let names: BTreeSet<&str> = columns.map(|column| column.name()).collect();
    names.into_iter().map(str::to_owned).collect()
}

/// What reads the values of these columns in a segment.
pub(super) fn cells<'s>(
    columns: &[String],
    segment: &'s Segment,
) -> Result<Vec<Cells<'s>>, QueryError> {
    let of_name =
        |name: &String| Cells::new(&segment.columns_named(name).collect::<Vec<_>>(), segment);
    columns.iter().map(of_name).collect()
}
