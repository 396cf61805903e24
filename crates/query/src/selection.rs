//! The rows that are looked at one after the other, for what no aggregate says.

use std::ops::Range;

use perflab_model::Kind;
use perflab_store::segment::{Segment, SegmentColumn, Snapshot, Vocabularies};
use rayon::prelude::*;

use crate::algebra::{Aggregate, Condition, Dimension, Question};
use crate::filter::{Conditions, Filter, Masks};
use crate::group::Cells;
use crate::{QueryError, Value};

/// How many rows are tested together.
const BLOCK_ROWS: usize = 4096;

/// Which rows of a dataset are meant.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Selection {
    /// Half-open, in nanoseconds since the Unix epoch; `None`: all of time.
    pub range: Option<(i64, i64)>,
    /// Rows that meet all conditions of any of these; all rows when there are none.
    pub any_of: Vec<Vec<Condition>>,
}

impl Selection {
    /// A question about these rows.
    pub fn question(&self, group_by: Vec<Dimension>, aggregates: Vec<Aggregate>) -> Question {
        let (range, any_of) = (self.range, self.any_of.clone());
        Question { range, any_of, group_by, aggregates, ..Question::default() }
    }

    /// Shows each of these rows of a segment, from the first to the last; returns how many were
    /// looked at.
    pub(crate) fn each_row(
        &self,
        segment: &Segment,
        mut see: impl FnMut(usize),
    ) -> Result<u64, QueryError> {
        let rows = self.rows(segment)?;
        let conditions = Conditions::new(&self.any_of, &Vocabularies::default())?;
        let Some(filter) = Filter::new(&conditions, segment)? else {
            return Ok(rows.len() as u64);
        };
        let mut chosen = Vec::new();
        for block in blocks(&rows) {
            choose(&filter, block, &mut chosen);
            chosen.iter().for_each(|&row| see(row));
        }
        Ok(rows.len() as u64)
    }

    /// The last of these rows of a segment, up to a number, from the last to the first; and how
    /// many were looked at.
    pub(crate) fn last_rows(
        &self,
        segment: &Segment,
        count: usize,
    ) -> Result<(Vec<usize>, u64), QueryError> {
        let conditions = Conditions::new(&self.any_of, &Vocabularies::default())?;
        let Some(filter) = Filter::new(&conditions, segment)? else {
            return Ok((Vec::new(), 0));
        };
        let (mut found, mut chosen, mut scanned) = (Vec::new(), Vec::new(), 0);
        for block in blocks(&self.rows(segment)?).rev() {
            if found.len() >= count {
                break;
            }
            scanned += block.len() as u64;
            choose(&filter, block, &mut chosen);
            found.extend(chosen.iter().rev());
        }
        found.truncate(count);
        Ok((found, scanned))
    }

    /// The rows of the range; times ascend.
    pub(crate) fn rows(&self, segment: &Segment) -> Result<Range<usize>, QueryError> {
        let times = segment.times()?;
        let Some((start, end)) = self.range else { return Ok(0..times.len()) };
        let first = times.partition_point(|&time| time < start);
        Ok(first..first.max(times.partition_point(|&time| time < end)))
    }
}

pub(crate) fn blocks(rows: &Range<usize>) -> impl DoubleEndedIterator<Item = Range<usize>> {
    let Range { start, end } = *rows;
    let starts = (start..end).step_by(BLOCK_ROWS);
    starts.map(move |start| start..end.min(start + BLOCK_ROWS))
}

/// The rows of a block that meet a filter.
fn choose(filter: &Filter<'_>, block: Range<usize>, into: &mut Vec<usize>) {
    into.clear();
    if filter.is_all() {
        into.extend(block);
        return;
    }
    let (start, mut masks) = (block.start, Masks::default());
    let places = filter.select(block, &mut masks);
    into.extend(places.iter().map(|&place| start + place as usize));
}

/// What each segment has of something, in the order of the segments.
pub(crate) fn of_segments<'s, T: Send>(
    snapshot: &'s Snapshot,
    of: impl Fn(&'s Segment) -> Result<T, QueryError> + Sync,
) -> Result<Vec<T>, QueryError> {
    snapshot.segments.par_iter().map(|segment| of(segment)).collect()
}

/// The numbers of a name in a segment, row by row.
#[derive(Debug)]
pub(crate) struct RowNumbers<'s>(Cells<'s>);

impl<'s> RowNumbers<'s> {
    pub(crate) fn new(name: &str, segment: &'s Segment) -> Result<Self, QueryError> {
        let is_number = |column: &&SegmentColumn| matches!(column.kind(), Kind::Int | Kind::Float);
        let columns: Vec<_> = segment.columns_named(name).filter(is_number).collect();
        Ok(Self(Cells::new(&columns, segment)?))
    }

    pub(crate) fn get(&self, row: usize) -> Option<f64> {
        match self.0.value(row) {
            #[expect(clippy::cast_precision_loss, reason = "numbers are floats in all views")]
            Value::Int(value) => Some(value as f64),
            Value::Float(value) => Some(value),
            Value::Null | Value::String(_) | Value::List(_) | Value::Time(_) => None,
        }
    }
}
