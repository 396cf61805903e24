//! Groups over time.

use std::cmp::Ordering;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use perflab_store::segment::Snapshot;

use crate::algebra::{Dimension, Question};
use crate::group::CellKey;
use crate::limits::Budget;
use crate::{Answer, AnswerRow, Limits, QueryError, Value, answer};

/// One line per group, one point per bucket.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Where each bucket starts, in nanoseconds since the Unix epoch.
    pub starts: Vec<i64>,
    /// In the order of the question's top, then by their groups.
    pub lines: Vec<Line>,
    pub rows_scanned: u64,
    pub rows_recalled: u64,
}

/// A group over time.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    pub group: Vec<Value>,
    /// The aggregates of the group over all buckets together.
    pub whole: Vec<Option<f64>>,
    /// For each bucket, the aggregates; all `None` where the group has no row.
    pub points: Vec<Vec<Option<f64>>>,
}

/// Answers a question in buckets of time: for the groups that are first over the whole range.
///
/// A row before the first bucket is in no point, and a bucket lasts until the next one starts.
pub fn series(
    question: &Question,
    starts: &[i64],
    snapshot: &Snapshot,
    limits: &Limits,
) -> Result<Series, QueryError> {
    let mut groups = answer(question, snapshot, limits)?;
    let by_group =
        |x: &AnswerRow, y: &AnswerRow| x.group.partial_cmp(&y.group).unwrap_or(Ordering::Equal);
    match question.top {
        None => groups.rows.sort_by(by_group),
        // They come in order; only among equals it is open.
        Some(top) => groups
            .rows
            .chunk_by_mut(|x, y| x.values[top.by] == y.values[top.by])
            .for_each(|equal| equal.sort_by(by_group)),
    }
    let values = size_of::<Vec<f64>>() + question.aggregates.len() * size_of::<Option<f64>>();
    Budget::of(limits)
        .take(groups.rows.len().saturating_mul(starts.len()).saturating_mul(values))?;
    let empty = vec![vec![None; question.aggregates.len()]; starts.len()];
    let line = |row: AnswerRow| Line { group: row.group, whole: row.values, points: empty.clone() };
    let mut lines: Vec<Line> = groups.rows.into_iter().map(line).collect();
    let mut over_time = question.clone();
    over_time.top = None;
    over_time.group_by.push(Dimension::Time(starts.to_vec()));
    let points = answer(&over_time, snapshot, limits)?;
    let keys = |group: &[Value]| group.iter().map(CellKey::of).collect::<Vec<_>>();
    let places: HashMap<Vec<CellKey>, usize, RandomState> =
        lines.iter().enumerate().map(|(place, line)| (keys(&line.group), place)).collect();
    for row in points.rows {
        if let Some((Value::Time(start), group)) = row.group.split_last()
            && let Some(&place) = places.get(&keys(group))
            && let Ok(bucket) = starts.binary_search(start)
        {
            lines[place].points[bucket] = row.values;
        }
    }
    let Answer { rows_scanned, rows_recalled, .. } = points;
    Ok(Series { starts: starts.to_vec(), lines, rows_scanned, rows_recalled })
}
