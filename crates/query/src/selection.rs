//! The rows that are looked at one after the other, for what no aggregate says.

use std::ops::Range;
use std::sync::Arc;

use arrow::buffer::{BooleanBuffer, ScalarBuffer};
use perflab_store::segment::{ColumnData, Ints, Segment, Snapshot};
use rayon::prelude::*;

use crate::QueryError;
use crate::algebra::{Aggregate, Condition, Dimension, Question};
use crate::filter::{Conditions, Filter, Masks};
use crate::limits::Budget;

/// How many rows are tested together, and how often it is asked whether to go on.
pub(crate) const BLOCK_ROWS: usize = 4096;

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

    /// The rows of the range.
    pub(crate) fn rows(&self, segment: &Segment) -> Result<Range<usize>, QueryError> {
        rows_in(self.range, segment)
    }
}

/// The rows of a segment in a range of time.
pub(crate) fn rows_in(
    range: Option<(i64, i64)>,
    segment: &Segment,
) -> Result<Range<usize>, QueryError> {
    match range {
        Some((start, end)) => Ok(segment.rows_within(start..=end.saturating_sub(1))?),
        None => Ok(0..segment.rows()),
    }
}

/// A selection, ready for all segments.
#[derive(Debug)]
pub(crate) struct Scan<'q> {
    selection: &'q Selection,
    conditions: Conditions<'q>,
    budget: &'q Budget<'q>,
}

impl<'q> Scan<'q> {
    pub(crate) fn new(
        selection: &'q Selection,
        snapshot: &Snapshot,
        budget: &'q Budget<'q>,
    ) -> Result<Self, QueryError> {
        let conditions = Conditions::new(&selection.any_of, &snapshot.vocabularies)?;
        Ok(Self { selection, conditions, budget })
    }

    /// What may still be used, to count what is made of the rows.
    pub(crate) fn budget(&self) -> &Budget<'q> {
        self.budget
    }

    /// Shows each of the rows of a segment, from the first to the last; returns how many were
    /// looked at.
    pub(crate) fn each_row(
        &self,
        segment: &Segment,
        mut see: impl FnMut(usize),
    ) -> Result<u64, QueryError> {
        self.each_block(segment, |chosen| {
            chosen.for_each(&mut see);
            Ok(())
        })
    }

    /// The same, for what may fail or has to stop: shows some rows at a time.
    pub(crate) fn each_block(
        &self,
        segment: &Segment,
        mut see: impl FnMut(Chosen<'_>) -> Result<(), QueryError>,
    ) -> Result<u64, QueryError> {
        let rows = self.selection.rows(segment)?;
        let Some(filter) = Filter::new(&self.conditions, segment)? else {
            return Ok(rows.len() as u64);
        };
        let mut masks = Masks::default();
        for block in blocks(&rows) {
            self.budget.check()?;
            if filter.is_all() {
                see(Chosen { rows: block, places: None })?;
                continue;
            }
            let places = filter.select(block.clone(), &mut masks);
            if !places.is_empty() {
                see(Chosen { rows: block, places: Some(places) })?;
            }
        }
        Ok(rows.len() as u64)
    }

    /// The last of the rows of a segment, up to a number, from the last to the first; and how many
    /// were looked at.
    pub(crate) fn last_rows(
        &self,
        segment: &Segment,
        count: usize,
    ) -> Result<(Vec<usize>, u64), QueryError> {
        let Some(filter) = Filter::new(&self.conditions, segment)? else {
            return Ok((Vec::new(), 0));
        };
        let (mut masks, mut found, mut scanned) = (Masks::default(), Vec::new(), 0);
        for block in blocks(&self.selection.rows(segment)?).rev() {
            if found.len() >= count {
                break;
            }
            self.budget.check()?;
            scanned += block.len() as u64;
            if filter.is_all() {
                found.extend(block.rev());
                continue;
            }
            let start = block.start;
            let chosen = filter.select(block, &mut masks).iter().rev();
            found.extend(chosen.map(|&place| start + place as usize));
        }
        found.truncate(count);
        Ok((found, scanned))
    }
}

/// The rows of a block that are meant.
pub(crate) struct Chosen<'b> {
    rows: Range<usize>,
    /// Their places in the block; `None`: all of them.
    places: Option<&'b [u32]>,
}

impl Chosen<'_> {
    pub(crate) fn for_each(self, mut see: impl FnMut(usize)) {
        match self.places {
            Some(places) => {
                places.iter().for_each(|&place| see(self.rows.start + place as usize));
            }
            None => self.rows.for_each(see),
        }
    }
}

pub(crate) fn blocks(rows: &Range<usize>) -> impl DoubleEndedIterator<Item = Range<usize>> {
    let Range { start, end } = *rows;
    let starts = (start..end).step_by(BLOCK_ROWS);
    starts.map(move |start| start..end.min(start + BLOCK_ROWS))
}

/// What each segment has of something, in the order of the segments.
pub(crate) fn of_segments<'s, T: Send>(
    snapshot: &'s Snapshot,
    of: impl Fn(&'s Segment) -> Result<T, QueryError> + Sync,
) -> Result<Vec<T>, QueryError> {
    snapshot.segments.par_iter().map(|segment| of(segment)).collect()
}

/// What all segments have together, in one sum for each thread. The segments of a thread follow
/// each other, so that sums do not depend on which thread was faster.
pub(crate) fn sums_of_segments<'s, T: Send>(
    snapshot: &'s Snapshot,
    start: impl Fn() -> Result<T, QueryError> + Sync,
    add: impl Fn(&mut T, &'s Segment) -> Result<(), QueryError> + Sync,
) -> Result<Vec<T>, QueryError> {
    let of_thread = snapshot.segments.len().div_ceil(rayon::current_num_threads()).max(1);
    let sum = |segments: &'s [Arc<Segment>]| {
        let mut sum = start()?;
        segments.iter().try_for_each(|segment| add(&mut sum, segment))?;
        Ok(sum)
    };
    snapshot.segments.par_chunks(of_thread).map(sum).collect()
}

/// The numbers of a name in a segment, row by row; of a row with both kinds, the integer.
#[derive(Debug, Default)]
pub(crate) struct RowNumbers {
    ints: Option<(Ints, Option<BooleanBuffer>)>,
    floats: Option<ScalarBuffer<f64>>,
}

impl RowNumbers {
    pub(crate) fn new(name: &str, segment: &Segment) -> Result<Self, QueryError> {
        let mut numbers = Self::default();
        for column in segment.columns_named(name) {
            match column.data()? {
                ColumnData::Int { values, validity } => numbers.ints = Some((values, validity)),
                ColumnData::Float { values } => numbers.floats = Some(values),
                ColumnData::String { .. } | ColumnData::List { .. } => {}
            }
        }
        Ok(numbers)
    }

    pub(crate) fn get(&self, row: usize) -> Option<f64> {
        if let Some((values, valid)) = &self.ints
            && valid.as_ref().is_none_or(|valid| valid.value(row))
        {
            #[expect(clippy::cast_precision_loss, reason = "numbers are floats in all views")]
            return Some(values.get(row) as f64);
        }
        self.floats.as_ref().map(|values| values[row]).filter(|value| !value.is_nan())
    }
}
