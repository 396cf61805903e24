//! What is the same for all rows of a question: which segments and rows it is about, what it
//! reads of them, and the numbers of the values that it groups by.

use std::ops::Range;
use std::sync::Arc;

use perflab_store::segment::{Segment, SegmentColumn, Snapshot, Weights};
use rayon::prelude::*;

use crate::algebra::{Aggregate, Question};
use crate::cache::{Found, Recall, Spot};
use crate::error::DIMENSIONS_MAX;
use crate::filter::{Conditions, Filter, Masks};
use crate::group::LocalDimension;
use crate::kernels::{BLOCK_ROWS, whole_weight};
use crate::limits::Budget;
use crate::numbering::{Numbered, Values};
use crate::selection::rows_in;
use crate::source::{Numbers, Source, joined};
use crate::table::Strides;
use crate::{Cache, QueryError};

/// The rows of a segment that a question is about.
#[derive(Debug)]
pub(crate) struct Part<'s> {
    pub(crate) segment: &'s Segment,
    /// Those of its time.
    pub(crate) rows: Range<usize>,
    filter: Filter,
    /// Where the result is kept, if it is.
    pub(crate) spot: Option<Spot>,
}

/// What there is of a segment.
enum Had<'s> {
    Nothing,
    Part(Part<'s>),
    /// What it said before.
    Found(Spot, Arc<Found>),
}

impl<'s> Had<'s> {
    /// Nothing when there are no rows, as far as can be seen without looking at them; and how many
    /// rows are of its time.
    fn of(
        segment: &'s Segment,
        question: &Question,
        conditions: &Conditions<'_>,
        recall: Option<&Recall<'_>>,
        budget: &Budget<'_>,
    ) -> Result<(Self, usize), QueryError> {
        let rows = rows_in(question.range, segment)?;
        let count = rows.len();
        if count == 0 {
            return Ok((Self::Nothing, 0));
        }
        let mut kept = None;
        if let Some(recall) = recall
            && let Some(spot) = recall.spot(segment)
        {
            if let Some(found) = recall.get(&spot) {
                return Ok((Self::Found(spot, found), count));
            }
            kept = Some(spot);
        }
        let filter = Filter::new(conditions, segment)?;
        if filter.is_some() {
            // It is there until the question is answered.
            let columns = question.columns().flat_map(|name| segment.columns_named(name));
            budget.take(columns.map(SegmentColumn::made_bytes).sum())?;
        }
        let part = filter.map(|filter| Part { segment, rows, filter, spot: kept });
        Ok((part.map_or(Self::Nothing, Self::Part), count))
    }
}

/// A segment, ready to be looked at.
#[derive(Debug)]
pub(crate) struct Prepared<'s> {
    pub(crate) part: Part<'s>,
    pub(crate) weights: &'s Weights,
    pub(crate) dimensions: Vec<LocalDimension<'s>>,
    /// One per aggregate.
    pub(crate) sources: Vec<Source<'s>>,
}

impl Prepared<'_> {
    /// The most that a weight can be, where all are small integers.
    pub(crate) fn weight_max(&self) -> Option<u16> {
        match self.weights {
            Weights::All(weight) => whole_weight(*weight).filter(|w| *w <= u8::MAX.into()),
            Weights::U8(_) => Some(u8::MAX.into()),
            Weights::U16(_) => Some(u16::MAX),
            Weights::F64(_) => None,
        }
    }

    /// How many codes there are that surely have a row, when it is grouped by one column and all
    /// rows are asked for: dictionaries have no other entries.
    pub(crate) fn used_codes(&self) -> Option<usize> {
        let is_whole =
            self.part.filter.is_all() && self.part.rows.len() == self.part.segment.rows();
        match &self.dimensions[..] {
            [dimension] if is_whole => dimension.codes.used(),
            _ => None,
        }
    }

    /// Looks at all rows, block by block: gives the rows of a block and the places of those that
    /// are chosen, `None` for all. `cut` says where a block that begins at a row has to end.
    pub(crate) fn for_blocks(
        &self,
        budget: &Budget<'_>,
        masks: &mut Masks,
        mut cut: impl FnMut(usize) -> usize,
        mut visit: impl FnMut(Range<usize>, Option<&[u32]>),
    ) -> Result<(), QueryError> {
        let (rows, filter) = (self.part.rows.clone(), &self.part.filter);
        let mut start = rows.start;
        while start < rows.end {
            budget.check()?;
            let block = start..cut(start).min(start + BLOCK_ROWS);
            start = block.end;
            if filter.is_all() {
                visit(block, None);
                continue;
            }
            let selected = filter.select(block.clone(), masks);
            if !selected.is_empty() {
                visit(block, Some(selected));
            }
        }
        Ok(())
    }
}

/// A question and the segments it is about.
#[derive(Debug)]
pub(crate) struct Plan<'s> {
    pub(crate) question: &'s Question,
    pub(crate) segments: Vec<Prepared<'s>>,
    /// What the other segments said before.
    pub(crate) found: Vec<(Spot, Arc<Found>)>,
    pub(crate) recall: Option<Recall<'s>>,
    /// For each dimension.
    pub(crate) values: Vec<Values<'s>>,
    /// For each aggregate, how many different values it may count.
    pub(crate) distinct: Vec<usize>,
    /// For each aggregate, about in the middle of its numbers.
    pub(crate) middles: Vec<f64>,
    pub(crate) rows_scanned: u64,
    pub(crate) rows_recalled: u64,
}

impl<'s> Plan<'s> {
    pub(crate) fn new(
        question: &'s Question,
        snapshot: &'s Snapshot,
        budget: &Budget<'_>,
        cache: Option<&'s Cache>,
    ) -> Result<Self, QueryError> {
        check(question)?;
        let recall = cache.and_then(|cache| Recall::new(cache, question, snapshot));
        let conditions = Conditions::new(&question.any_of, &snapshot.vocabularies)?;
        let found: Vec<_> = snapshot
            .segments
            .par_iter()
            .map(|segment| Had::of(segment, question, &conditions, recall.as_ref(), budget))
            .collect::<Result<_, _>>()?;
        let rows_scanned = found.iter().map(|(_, rows)| *rows as u64).sum();
        let (mut parts, mut said, mut rows_recalled) = (Vec::new(), Vec::new(), 0);
        for (had, rows) in found {
            match had {
                Had::Nothing => {}
                Had::Part(part) => parts.push(part),
                Had::Found(spot, found) => {
                    said.push((spot, found));
                    rows_recalled += rows as u64;
                }
            }
        }
        let (mut dimensions, mut values) = (Columns::new(&parts), Vec::new());
        for dimension in &question.group_by {
            let numbered = Numbered::new(dimension, &parts, snapshot, budget)?;
            dimensions.add(numbered.locals);
            values.push(numbered.values);
        }
        let (mut sources, mut distinct, mut middles) =
            (Columns::new(&parts), Vec::new(), Vec::new());
        for aggregate in &question.aggregates {
            let (column, count) = sources_of(aggregate, &parts, snapshot, budget)?;
            distinct.push(count);
            middles.push(middle(&column));
            sources.add(column);
        }
        if recall.as_ref().is_some_and(Recall::is_outdated) {
            return Self::new(question, snapshot, budget, None);
        }
        let mut segments = Vec::new();
        for ((part, dimensions), sources) in
            parts.into_iter().zip(dimensions.by_part).zip(sources.by_part)
        {
            let weights = part.segment.weights()?;
            segments.push(Prepared { part, weights, dimensions, sources });
        }
        Ok(Self {
            question,
            segments,
            found: said,
            recall,
            values,
            distinct,
            middles,
            rows_scanned,
            rows_recalled,
        })
    }
}

impl Plan<'_> {
    pub(crate) fn strides(&self) -> Result<Strides, QueryError> {
        let counts = self.values.iter().map(Values::count);
        Strides::new(counts).ok_or(QueryError::TooManyPossibleGroups)
    }
}

fn check(question: &Question) -> Result<(), QueryError> {
    if question.group_by.len() > DIMENSIONS_MAX {
        return Err(QueryError::TooManyDimensions);
    }
    for aggregate in &question.aggregates {
        if let Aggregate::Percentile(part, _) = aggregate
            && !(0.0..=1.0).contains(part)
        {
            return Err(QueryError::Percentile(part * 100.0));
        }
    }
    match question.top {
        Some(top) if top.by >= question.aggregates.len() => Err(QueryError::Order(top.by)),
        _ => Ok(()),
    }
}

/// What is found column by column and needed segment by segment.
struct Columns<T> {
    by_part: Vec<Vec<T>>,
}

impl<T> Columns<T> {
    fn new(parts: &[Part<'_>]) -> Self {
        Self { by_part: parts.iter().map(|_| Vec::new()).collect() }
    }

    fn add(&mut self, column: Vec<T>) {
        self.by_part.iter_mut().zip(column).for_each(|(part, one)| part.push(one));
    }
}

/// What an aggregate reads of each segment, and how many different values it may count.
fn sources_of<'s>(
    aggregate: &Aggregate,
    parts: &[Part<'s>],
    snapshot: &Snapshot,
    budget: &Budget<'_>,
) -> Result<(Vec<Source<'s>>, usize), QueryError> {
    let numbers = |name: &str| {
        let numbers = parts.iter().map(|part| Numbers::new(name, part.segment));
        numbers.map(|numbers| Ok(Source::Numbers(numbers?))).collect::<Result<_, QueryError>>()
    };
    let Some(column) = aggregate.column() else {
        return Ok((parts.iter().map(|_| Source::Nothing).collect(), 0));
    };
    if !matches!(aggregate, Aggregate::Distinct(_)) {
        return Ok((numbers(column)?, 0));
    }
    let numbered = Numbered::column(column, parts, snapshot, budget)?;
    let count = numbered.values.count();
    Ok((numbered.locals.into_iter().map(Source::Codes).collect(), count))
}

fn middle(sources: &[Source<'_>]) -> f64 {
    let ranges = sources.iter().map(|source| match source {
        Source::Numbers(numbers) => numbers.range,
        Source::Nothing | Source::Codes(_) => None,
    });
    ranges.fold(None, joined).map_or(0.0, |(least, most)| least / 2.0 + most / 2.0)
}
