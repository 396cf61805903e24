//! All rows of a selection, some at a time.

use std::sync::Arc;

use perflab_store::segment::{Segment, Snapshot};

use super::samples::{Sample, cells};
use crate::limits::Budget;
use crate::selection::{Scan, Selection};
use crate::{Limits, QueryError};

/// Shows the rows of a selection with these columns: segment by segment in the order in which these
/// begin, and each from its first row to its last. Only a few rows are in memory at a time, however
/// many there are.
pub fn each_rows(
    selection: &Selection,
    columns: &[String],
    snapshot: &Snapshot,
    limits: &Limits,
    mut see: impl FnMut(Vec<Sample>) -> Result<(), QueryError>,
) -> Result<(), QueryError> {
    let budget = Budget::of(limits);
    let scan = Scan::new(selection, snapshot, &budget)?;
    for segment in in_order(snapshot)? {
        let (times, weights) = (segment.times()?, segment.weights()?);
        let cells = cells(columns, segment)?;
        let sample = |row: usize| Sample {
            time: times[row],
            weight: weights.get(row),
            values: cells.iter().map(|cells| cells.value(row)).collect(),
        };
        scan.each_block(segment, |chosen| {
            let mut rows = Vec::new();
            chosen.for_each(|row| rows.push(sample(row)));
            see(rows)
        })?;
    }
    Ok(())
}

fn in_order(snapshot: &Snapshot) -> Result<Vec<&Segment>, QueryError> {
    let mut segments = Vec::new();
    for segment in snapshot.segments.iter().map(Arc::as_ref) {
        segments.push((segment.times()?.first(), segment));
    }
    segments.sort_by_key(|(first, _)| *first);
    Ok(segments.into_iter().map(|(_, segment)| segment).collect())
}
