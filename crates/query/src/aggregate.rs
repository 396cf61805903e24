//! What is computed of groups: per segment in arrays by local group, then merged.

use std::hash::BuildHasher;
use std::ops::Range;

use arrow::buffer::BooleanBuffer;
use foldhash::fast::RandomState;
use foldhash::quality::FixedState;
use hashbrown::HashSet;
use perflab_model::Kind;
use perflab_store::segment::{ColumnData, Ints, Segment};

use crate::QueryError;
use crate::algebra::{Aggregate, Dimension};
use crate::distinct::Distinct;
use crate::group::{CellKey, LocalDimension};
use crate::sketch::Sketch;

/// The rows of a block that count, with their groups and weights.
#[derive(Debug)]
pub(crate) struct Block<'b> {
    /// Where the block is in its segment.
    pub(crate) rows: Range<usize>,
    /// The places of the rows in the block; `None`: all of them.
    pub(crate) selected: Option<&'b [u32]>,
    pub(crate) groups: &'b [u32],
    pub(crate) weights: &'b [f64],
}

impl Block<'_> {
    /// The rows of the segment, in the order of `groups`.
    fn rows(&self) -> impl Iterator<Item = usize> {
        let (start, count) = (self.rows.start, self.groups.len());
        (0..count).map(move |n| start + self.selected.map_or(n, |selected| selected[n] as usize))
    }
}

/// The numbers of a name in a segment.
#[derive(Debug)]
pub(crate) struct Numbers<'s> {
    ints: Option<(&'s Ints, Option<&'s BooleanBuffer>)>,
    floats: Option<&'s [f64]>,
    /// About in the middle of them.
    middle: f64,
    /// Those of the block that is looked at.
    block: Vec<f64>,
}

impl<'s> Numbers<'s> {
    fn new(name: &str, segment: &'s Segment) -> Result<Self, QueryError> {
        let mut numbers = Self { ints: None, floats: None, middle: 0.0, block: Vec::new() };
        let mut other = None;
        for column in segment.columns_named(name) {
            match column.data()? {
                ColumnData::Int { values, validity } => {
                    numbers.ints = Some((values, validity.as_ref()));
                }
                ColumnData::Float { values } => numbers.floats = Some(values),
                ColumnData::String { .. } | ColumnData::List { .. } => other = Some(column.kind()),
            }
            if let Some((least, most)) = column.number_range() {
                numbers.middle = least / 2.0 + most / 2.0;
            }
        }
        match other {
            Some(kind) if numbers.ints.is_none() && numbers.floats.is_none() => {
                let (column, found) = (name.to_owned(), found(kind));
                Err(QueryError::Kind { column, found, wanted: "numbers" })
            }
            _ => Ok(numbers),
        }
    }

    /// NaN where there is none.
    fn get(&self, row: usize) -> f64 {
        if let Some((values, valid)) = self.ints
            && valid.is_none_or(|valid| valid.value(row))
        {
            #[expect(clippy::cast_precision_loss, reason = "aggregates are floats")]
            return values.get(row) as f64;
        }
        self.floats.map_or(f64::NAN, |values| values[row])
    }

    /// Those of a block, in the order of its groups.
    fn of(&mut self, block: &Block<'_>) -> &[f64] {
        let mut into = std::mem::take(&mut self.block);
        into.clear();
        match (self.ints, self.floats, block.selected) {
            (None, Some(values), None) => into.extend_from_slice(&values[block.rows.clone()]),
            (None, Some(values), Some(selected)) => {
                let values = &values[block.rows.clone()];
                into.extend(selected.iter().map(|&place| values[place as usize]));
            }
            _ => into.extend(block.rows().map(|row| self.get(row))),
        }
        self.block = into;
        &self.block
    }
}

fn found(kind: Kind) -> &'static str {
    match kind {
        Kind::Int | Kind::Float => "numbers",
        Kind::String => "strings",
        Kind::Set => "sets",
        Kind::Vector => "vectors",
    }
}

/// Sums of the deviations from a middle, which keeps them exact where values are large and close.
#[derive(Debug, Clone, Default)]
pub(crate) struct Moments {
    rows: u64,
    weight: f64,
    mean: f64,
    /// The weighted sum of squared deviations from the mean.
    squares: f64,
}

impl Moments {
    /// As Chan, Golub and LeVeque: "Updating formulae and a pairwise algorithm" (1979).
    fn merge(&mut self, other: &Self) {
        self.rows += other.rows;
        let weight = self.weight + other.weight;
        if other.weight == 0.0 {
            return;
        }
        let delta = other.mean - self.mean;
        self.mean += delta * other.weight / weight;
        self.squares += other.squares + delta * delta * self.weight * other.weight / weight;
        self.weight = weight;
    }
}

/// One aggregate of one segment, by local group.
#[derive(Debug)]
pub(crate) enum Local<'s> {
    Count(Vec<f64>),
    Samples(Numbers<'s>, Vec<f64>),
    /// Rows, and the weighted sums of 1, of deviations from the middle, and of their squares.
    Moments(Numbers<'s>, Vec<(u64, [f64; 3])>),
    Extremes(Numbers<'s>, Vec<(f64, f64)>),
    Quantile(Numbers<'s>, Vec<Sketch>),
    /// Pairs of group and code.
    Distinct(LocalDimension<'s>, HashSet<(u32, u32), RandomState>),
}

impl<'s> Local<'s> {
    pub(crate) fn new(
        aggregate: &Aggregate,
        distinct: Option<&'s (Dimension, bool)>,
        segment: &'s Segment,
    ) -> Result<Self, QueryError> {
        let numbers = |column: &str| Numbers::new(column, segment);
        Ok(match aggregate {
            Aggregate::Count => Self::Count(Vec::new()),
            Aggregate::Samples => Self::Samples(numbers("hits")?, Vec::new()),
            Aggregate::Sum(column) | Aggregate::Avg(column) | Aggregate::Stddev(column) => {
                Self::Moments(numbers(column)?, Vec::new())
            }
            Aggregate::Min(column) | Aggregate::Max(column) => {
                Self::Extremes(numbers(column)?, Vec::new())
            }
            Aggregate::Percentile(part, _) if !(0.0..=1.0).contains(part) => {
                return Err(QueryError::Percentile(part * 100.0));
            }
            Aggregate::Percentile(_, column) => Self::Quantile(numbers(column)?, Vec::new()),
            Aggregate::Distinct(_) => {
                let (dimension, widens) = distinct.expect("made for every such aggregate");
                let dimension = LocalDimension::new(dimension, segment, *widens)?;
                Self::Distinct(dimension, HashSet::default())
            }
        })
    }

    /// Takes in a block; there are so many groups by now.
    pub(crate) fn add(&mut self, block: &Block<'_>, groups: usize) {
        let weighted = block.groups.iter().zip(block.weights);
        match self {
            Self::Count(counts) => {
                counts.resize(groups, 0.0);
                weighted.for_each(|(&group, weight)| counts[group as usize] += weight);
            }
            Self::Samples(hits, sums) => {
                sums.resize(groups, 0.0);
                for (&group, &hits) in block.groups.iter().zip(hits.of(block)) {
                    sums[group as usize] += if hits.is_nan() { 1.0 } else { hits };
                }
            }
            Self::Moments(numbers, sums) => {
                sums.resize(groups, (0, [0.0; 3]));
                let middle = numbers.middle;
                for ((&group, &weight), &value) in weighted.zip(numbers.of(block)) {
                    if !value.is_nan() {
                        let (rows, sums) = &mut sums[group as usize];
                        let deviation = value - middle;
                        *rows += 1;
                        sums[0] += weight;
                        sums[1] += weight * deviation;
                        sums[2] += weight * deviation * deviation;
                    }
                }
            }
            Self::Extremes(numbers, ends) => {
                ends.resize(groups, (f64::INFINITY, f64::NEG_INFINITY));
                for (&group, &value) in block.groups.iter().zip(numbers.of(block)) {
                    let (least, most) = &mut ends[group as usize];
                    // NaN is smaller and larger than nothing.
                    *least = least.min(value);
                    *most = most.max(value);
                }
            }
            Self::Quantile(numbers, sketches) => {
                sketches.resize(groups, Sketch::default());
                for ((&group, &weight), &value) in weighted.zip(numbers.of(block)) {
                    if !value.is_nan() {
                        sketches[group as usize].add(value, weight);
                    }
                }
            }
            Self::Distinct(dimension, seen) => {
                let mut codes = vec![0; block.rows.len()];
                dimension.add_codes(block.rows.clone(), 1, &mut codes);
                for (n, &group) in block.groups.iter().enumerate() {
                    let place = block.selected.map_or(n, |selected| selected[n] as usize);
                    seen.insert((group, u32::try_from(codes[place]).unwrap_or(u32::MAX)));
                }
            }
        }
    }
}

/// One aggregate of one group, over all segments so far.
#[derive(Debug, Clone)]
pub(crate) enum State {
    Sum(f64),
    Moments(Moments),
    Extremes(f64, f64),
    Quantile(Sketch),
    Distinct(Distinct),
}

impl State {
    pub(crate) fn new(aggregate: &Aggregate) -> Self {
        match aggregate {
            Aggregate::Count | Aggregate::Samples => Self::Sum(0.0),
            Aggregate::Sum(_) | Aggregate::Avg(_) | Aggregate::Stddev(_) => {
                Self::Moments(Moments::default())
            }
            Aggregate::Min(_) | Aggregate::Max(_) => {
                Self::Extremes(f64::INFINITY, f64::NEG_INFINITY)
            }
            Aggregate::Percentile(..) => Self::Quantile(Sketch::default()),
            Aggregate::Distinct(_) => Self::Distinct(Distinct::default()),
        }
    }

    /// Adds what a segment has for a group.
    pub(crate) fn add(&mut self, local: &Local<'_>, group: usize) {
        match (self, local) {
            (Self::Sum(sum), Local::Count(sums) | Local::Samples(_, sums)) => *sum += sums[group],
            (Self::Moments(moments), Local::Moments(numbers, sums)) => {
                let (rows, [weight, first, second]) = sums[group];
                let shift = if weight == 0.0 { 0.0 } else { first / weight };
                moments.merge(&Moments {
                    rows,
                    weight,
                    mean: numbers.middle + shift,
                    squares: (second - first * shift).max(0.0),
                });
            }
            (Self::Extremes(least, most), Local::Extremes(_, ends)) => {
                *least = least.min(ends[group].0);
                *most = most.max(ends[group].1);
            }
            (Self::Quantile(sketch), Local::Quantile(_, sketches)) => {
                sketch.merge(&sketches[group]);
            }
            // Pairs are added by `add_distinct`, all groups at once.
            (Self::Distinct(_), Local::Distinct(..)) => {}
            _ => unreachable!("states are made for the same aggregates"),
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        match (self, other) {
            (Self::Sum(sum), Self::Sum(other)) => *sum += other,
            (Self::Moments(moments), Self::Moments(other)) => moments.merge(other),
            (Self::Extremes(least, most), Self::Extremes(other_least, other_most)) => {
                *least = least.min(*other_least);
                *most = most.max(*other_most);
            }
            (Self::Quantile(sketch), Self::Quantile(other)) => sketch.merge(other),
            (Self::Distinct(distinct), Self::Distinct(other)) => distinct.merge(other),
            _ => unreachable!("states are made for the same aggregates"),
        }
    }

    /// Notes a value that the group has.
    pub(crate) fn note(&mut self, hash: u64) {
        if let Self::Distinct(distinct) = self {
            distinct.add(hash);
        }
    }

    /// `None`: the group has no value to compute it from.
    pub(crate) fn finish(&self, aggregate: &Aggregate) -> Option<f64> {
        match (self, aggregate) {
            (Self::Sum(sum), _) => Some(*sum),
            (Self::Moments(moments), _) if moments.rows == 0 => None,
            (Self::Moments(moments), Aggregate::Sum(_)) => Some(moments.mean * moments.weight),
            (Self::Moments(moments), _) if moments.weight == 0.0 => None,
            (Self::Moments(moments), Aggregate::Avg(_)) => Some(moments.mean),
            (Self::Moments(moments), _) => Some((moments.squares / moments.weight).sqrt()),
            (Self::Extremes(least, most), _) if least > most => None,
            (Self::Extremes(least, _), Aggregate::Min(_)) => Some(*least),
            (Self::Extremes(_, most), _) => Some(*most),
            (Self::Quantile(sketch), Aggregate::Percentile(part, _)) => sketch.quantile(*part),
            (Self::Quantile(_), _) => None,
            (Self::Distinct(distinct), _) => Some(distinct.count()),
        }
    }
}

/// The same for the same value, in whatever segment.
pub(crate) fn hash_of(key: &CellKey) -> u64 {
    FixedState::with_seed(0).hash_one(key)
}
