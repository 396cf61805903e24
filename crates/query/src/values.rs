//! The values of a column by their beginning, for whoever is typing one.

use std::collections::BTreeSet;

use perflab_store::segment::{ColumnData, Segment, SegmentColumn, SegmentError, Snapshot};

/// The first values of a column that begin with `prefix`, sorted by their bytes.
///
/// Looked up in the sorted dictionaries, so that the cost grows with the segments and with
/// `limit`, not with rows or values; of a column of lists, the items that it has are found once.
/// Columns of numbers have none.
pub fn column_values(
    column: &str,
    prefix: &str,
    limit: usize,
    snapshot: &Snapshot,
) -> Result<Vec<String>, SegmentError> {
    let mut found: BTreeSet<&str> = BTreeSet::new();
    for segment in &snapshot.segments {
        for column in segment.columns_named(column) {
            for value in values_from(segment, column, prefix)?.take(limit) {
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

/// The values of a column of one segment that begin with `prefix`, sorted.
fn values_from<'s>(
    segment: &'s Segment,
    column: &'s SegmentColumn,
    prefix: &str,
) -> Result<Box<dyn Iterator<Item = &'s str> + 's>, SegmentError> {
    let (strings, used) = match (column.stored()?.values(), segment.lists()) {
        (ColumnData::String { strings, .. }, _) => (strings, None),
        (ColumnData::List { .. }, Some(lists)) => {
            lists.check()?;
            (lists.items(), Some(column.items_used(lists)?))
        }
        _ => return Ok(Box::new(std::iter::empty())),
    };
    let first = strings.first_from(prefix.as_bytes());
    let codes: Box<dyn Iterator<Item = u32> + 's> = match used {
        Some(used) => {
            let start = used.partition_point(|&code| code < first);
            Box::new(used[start..].iter().copied())
        }
        None => Box::new(first..u32::try_from(strings.len()).unwrap_or(u32::MAX)),
    };
    let prefix = prefix.to_owned();
    let values = codes.map(|code| strings.get(code));
    Ok(Box::new(values.take_while(move |value| value.starts_with(&prefix))))
}
