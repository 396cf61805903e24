//! All rows that a document selects, for whoever writes them to a file.

use jiff::tz::TimeZone;
use perflab_model::{Kind, Nanos};
use perflab_store::segment::Snapshot;

use super::run::{AskError, Asking};
use super::{Document, DocumentError, Table, Times, plan, shapes};
use crate::selection::Selection;
use crate::views::{self, Samples, all_columns};
use crate::{Limits, QueryError};

/// Shows all rows that a document selects, a table of some rows at a time. All have the same
/// columns, and the first has no rows, so that the columns are known even if there are none. The
/// other arguments are those of [`super::answer_document`].
pub fn each_rows(
    document: &Document,
    snapshot: &Snapshot,
    recorded: &[(String, Kind)],
    now: Nanos,
    limits: &Limits,
    mut see: impl FnMut(&Table, &TimeZone) -> Result<(), QueryError>,
) -> Result<(), AskError> {
    check_plain(document)?;
    let asking = Asking { document, times: Times::new(document, now)?, limits };
    let snapshot = asking.with_computed(snapshot, recorded)?;
    let columns = asking.columns(&snapshot, recorded);
    let any_of = plan::conditions(&document.any_of, &document.dataset, &columns)?;
    for column in &document.columns {
        columns.kinds(&document.dataset, column)?;
    }
    let shown = match &document.columns[..] {
        [] => all_columns(&snapshot),
        some => some.to_vec(),
    };
    let Times { range, zone } = &asking.times;
    let range = Some((range.start.as_i64(), range.end.as_i64()));
    let mut show = |rows| {
        let samples = Samples { columns: shown.clone(), rows, rows_scanned: 0 };
        see(&shapes::of_samples(&samples, &columns), zone)
    };
    show(Vec::new())?;
    let selection = Selection { range, any_of };
    Ok(views::each_rows(&selection, &shown, &snapshot, limits, show)?)
}

/// Refuses what raw rows have no use for, rather than leaving it out in silence.
fn check_plain(document: &Document) -> Result<(), DocumentError> {
    let Document { since, until, timezone, any_of, derived, columns, .. } = document.clone();
    let dataset = &document.dataset;
    let plain =
        Document { since, until, timezone, any_of, derived, columns, ..Document::new(dataset) };
    if *document == plain { Ok(()) } else { Err(DocumentError::NotRaw) }
}
