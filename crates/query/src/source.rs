//! What aggregates read of a segment.

use std::ops::Range;

use arrow::buffer::{BooleanBuffer, ScalarBuffer};
use perflab_model::Kind;
use perflab_store::segment::{ColumnData, Ints, Segment};

use crate::QueryError;
use crate::group::LocalDimension;
use crate::kernels::{CodeSlice, WeightSlice};

/// The rows of a block that count, with their groups and weights.
#[derive(Debug)]
pub(crate) struct Block<'b> {
    /// Where the block is in its segment.
    pub(crate) rows: Range<usize>,
    /// The places of the rows in the block; `None`: all of them.
    pub(crate) selected: Option<&'b [u32]>,
    /// The group of each row, counted from `base`.
    pub(crate) groups: CodeSlice<'b>,
    pub(crate) base: usize,
    pub(crate) weights: WeightSlice<'b>,
}

impl Block<'_> {
    /// The rows of the segment, in the order of `groups`.
    pub(crate) fn rows(&self) -> impl Iterator<Item = usize> {
        let (start, count) = (self.rows.start, self.groups.len());
        (0..count).map(move |n| start + self.selected.map_or(n, |selected| selected[n] as usize))
    }
}

/// What an aggregate reads beside groups and weights.
#[derive(Debug)]
pub(crate) enum Source<'s> {
    Nothing,
    Numbers(Numbers),
    Codes(LocalDimension<'s>),
}

impl Source<'_> {
    /// The numbers of a block.
    pub(crate) fn numbers<'b>(&'b self, block: &Block<'_>, scratch: &'b mut Vec<f64>) -> &'b [f64] {
        match self {
            Self::Numbers(numbers) => numbers.of(block, scratch),
            Self::Nothing | Self::Codes(_) => unreachable!("made for the same aggregates"),
        }
    }

    pub(crate) fn codes(&self) -> &LocalDimension<'_> {
        match self {
            Self::Codes(dimension) => dimension,
            Self::Nothing | Self::Numbers(_) => unreachable!("made for the same aggregates"),
        }
    }
}

/// The numbers of a name in a segment.
#[derive(Debug)]
pub(crate) struct Numbers {
    ints: Option<(Ints, Option<BooleanBuffer>)>,
    floats: Option<ScalarBuffer<f64>>,
    /// The smallest and the largest of them, if there are any.
    pub(crate) range: Option<(f64, f64)>,
}

impl Numbers {
    pub(crate) fn new(name: &str, segment: &Segment) -> Result<Self, QueryError> {
        let mut numbers = Self { ints: None, floats: None, range: None };
        let mut other = None;
        for column in segment.columns_named(name) {
            match column.data()? {
                ColumnData::Int { values, validity } => numbers.ints = Some((values, validity)),
                ColumnData::Float { values } => numbers.floats = Some(values),
                ColumnData::String { .. } | ColumnData::List { .. } => other = Some(column.kind()),
            }
            numbers.range = joined(numbers.range, column.number_range());
        }
        match other {
            Some(kind) if numbers.ints.is_none() && numbers.floats.is_none() => {
                let (column, found) = (name.to_owned(), found(kind));
                Err(QueryError::NoNumbers { column, found })
            }
            _ => Ok(numbers),
        }
    }

    /// NaN where there is none.
    fn get(&self, row: usize) -> f64 {
        if let Some((values, valid)) = &self.ints
            && valid.as_ref().is_none_or(|valid| valid.value(row))
        {
            #[expect(clippy::cast_precision_loss, reason = "aggregates are floats")]
            return values.get(row) as f64;
        }
        self.floats.as_ref().map_or(f64::NAN, |values| values[row])
    }

    /// Those of a block, in the order of its groups.
    fn of<'b>(&'b self, block: &Block<'_>, scratch: &'b mut Vec<f64>) -> &'b [f64] {
        scratch.clear();
        match (&self.ints, &self.floats, block.selected) {
            (None, Some(values), None) => return &values[block.rows.clone()],
            (None, Some(values), Some(selected)) => {
                let values = &values[block.rows.clone()];
                scratch.extend(selected.iter().map(|&place| values[place as usize]));
            }
            _ => scratch.extend(block.rows().map(|row| self.get(row))),
        }
        scratch
    }
}

/// The range of both.
pub(crate) fn joined(one: Option<(f64, f64)>, other: Option<(f64, f64)>) -> Option<(f64, f64)> {
    match (one, other) {
        (Some(one), Some(other)) => Some((one.0.min(other.0), one.1.max(other.1))),
        (one, other) => one.or(other),
    }
}

pub(crate) fn found(kind: Kind) -> &'static str {
    match kind {
        Kind::Int | Kind::Float => "numbers",
        Kind::String => "strings",
        Kind::Set => "sets",
        Kind::Vector => "vectors",
    }
}
