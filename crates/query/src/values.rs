//! The values of a column by their beginning, for whoever is typing one.

use std::collections::BTreeSet;

use perflab_store::segment::{ColumnData, Segment, SegmentColumn, SegmentError, Snapshot, Strings};

/// The first values of a column that begin with `prefix`, sorted by their bytes.
///
/// Looked up in the sorted dictionaries, so that the cost grows with the segments and with
/// `limit`, not with rows or values. Columns of numbers have none. The lists of a segment share
/// one dictionary: of a column of lists, items of the segment's other columns of lists are among
/// the values.
pub fn column_values(
    column: &str,
    prefix: &str,
    limit: usize,
    snapshot: &Snapshot,
) -> Result<Vec<String>, SegmentError> {
    let mut found: BTreeSet<&str> = BTreeSet::new();
    for segment in &snapshot.segments {
        for column in segment.columns_named(column) {
            let Some(strings) = dictionary(segment, column)? else { continue };
            for value in strings_from(strings, prefix).take(limit) {
                let is_after_all = found.len() >= limit && found.last() < Some(&value);
                if is_after_all {
                    break;
                }
                found.insert(value);
                if found.len() > limit {
                    found.pop_last();
                }
            }
        }
    }
    Ok(found.into_iter().map(str::to_owned).collect())
}

fn dictionary<'s>(
    segment: &'s Segment,
    column: &'s SegmentColumn,
) -> Result<Option<&'s Strings>, SegmentError> {
    match column.data()? {
        ColumnData::String { strings, .. } => Ok(Some(strings)),
        ColumnData::List { .. } => {
            let Some(lists) = segment.lists() else { return Ok(None) };
            lists.check()?;
            Ok(Some(lists.items()))
        }
        ColumnData::Int { .. } | ColumnData::Float { .. } => Ok(None),
    }
}

fn strings_from<'s>(strings: &'s Strings, prefix: &str) -> impl Iterator<Item = &'s str> {
    let first = strings.first_from(prefix.as_bytes());
    let codes = first..u32::try_from(strings.len()).unwrap_or(u32::MAX);
    let values = codes.map(|code| strings.get(code));
    values.take_while(move |value| value.starts_with(prefix))
}
