//! What is computed of groups that are numbered from 0 on: those of one segment, or of one part
//! of all groups.

use foldhash::fast::RandomState;
use hashbrown::HashSet;

use crate::algebra::Aggregate;
use crate::kernels::{CodeSlice, Lanes, WeightSlice};
use crate::moments::LocalMoments;
use crate::sketch::{Bins, Sketch};
use crate::source::{Block, Source};

/// One aggregate, by local group.
#[derive(Debug)]
pub(crate) enum Local {
    Count(Tallies),
    Samples(Lanes<f64>),
    Moments(LocalMoments),
    Weights(Lanes<WeightSums>),
    Extremes(Lanes<Ends>),
    Quantile(Quantiles),
    Distinct(Pairs),
}

/// What is known of the rows before they are looked at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Expected {
    /// `None`: not known.
    pub(crate) groups: Option<usize>,
    pub(crate) rows: usize,
    /// The most that a weight can be, where all are small integers.
    pub(crate) weight_max: Option<u16>,
}

impl Expected {
    /// Whether rows and their weights can be counted in one number.
    pub(crate) fn fits_tally(self) -> bool {
        self.weight_max.is_some() && self.rows <= TALLY_ROWS_MAX
    }

    /// Whether the weights of all rows together leave a bit of a word.
    fn fits_word(self) -> bool {
        self.weight_max.is_some_and(|most| self.rows as u64 * u64::from(most) < u64::from(SEEN))
    }
}

/// Room for the numbers and codes of a block.
#[derive(Debug, Default)]
pub(crate) struct LocalScratch {
    numbers: Vec<f64>,
    codes: Vec<u32>,
}

impl Local {
    /// `middle`: about in the middle of all its numbers, if it takes any.
    pub(crate) fn new(aggregate: &Aggregate, middle: f64) -> Self {
        match aggregate {
            Aggregate::Count => Self::Count(Tallies::default()),
            Aggregate::Samples => Self::Samples(Lanes::default()),
            Aggregate::Sum(_) | Aggregate::Avg(_) | Aggregate::Stddev(_) => {
                let wants_squares = matches!(aggregate, Aggregate::Stddev(_));
                Self::Moments(LocalMoments::new(middle, wants_squares))
            }
            Aggregate::EffectiveSize(_) => Self::Weights(Lanes::default()),
            Aggregate::Min(_) | Aggregate::Max(_) => Self::Extremes(Lanes::default()),
            Aggregate::Percentile(part, _) => Self::Quantile(Quantiles::new(*part)),
            Aggregate::Distinct(_) => Self::Distinct(Pairs::default()),
        }
    }

    /// Begins anew with the rows of one segment.
    pub(crate) fn reset_for(&mut self, expected: Expected, source: &Source<'_>) {
        match (&mut *self, source) {
            (Self::Quantile(quantiles), Source::Numbers(numbers)) => {
                quantiles.reset(expected, numbers.range);
            }
            (Self::Distinct(pairs), Source::Codes(codes)) => {
                pairs.reset(expected.groups.unwrap_or(0), Some(codes.codes.count()));
            }
            _ => self.reset(expected),
        }
    }

    /// Begins anew with rows of any segments.
    pub(crate) fn reset(&mut self, expected: Expected) {
        match self {
            Self::Count(tallies) => tallies.reset(expected),
            Self::Samples(sums) => sums.reset(expected.groups),
            Self::Moments(moments) => moments.reset(expected),
            Self::Weights(sums) => sums.reset(expected.groups),
            Self::Extremes(ends) => ends.reset(expected.groups),
            Self::Quantile(quantiles) => quantiles.reset(expected, None),
            Self::Distinct(pairs) => pairs.reset(0, None),
        }
    }

    /// There are so many groups by now.
    pub(crate) fn grow(&mut self, groups: usize) {
        match self {
            Self::Count(tallies) => tallies.grow(groups),
            Self::Samples(sums) => sums.grow(groups),
            Self::Moments(moments) => moments.grow(groups),
            Self::Weights(sums) => sums.grow(groups),
            Self::Extremes(ends) => ends.grow(groups),
            Self::Quantile(quantiles) => quantiles.grow(groups),
            Self::Distinct(_) => {}
        }
    }

    /// Takes in a block.
    pub(crate) fn add(
        &mut self,
        block: &Block<'_>,
        source: &Source<'_>,
        scratch: &mut LocalScratch,
    ) {
        let (base, groups) = (block.base, block.groups);
        match self {
            Self::Count(tallies) => tallies.add(block),
            Self::Samples(sums) => {
                let hits = source.numbers(block, &mut scratch.numbers).iter();
                sums.fold(base, groups, hits, |sum, &hits| {
                    *sum += if hits.is_nan() { 1.0 } else { hits };
                });
            }
            Self::Moments(moments) => {
                moments.add(block, source.numbers(block, &mut scratch.numbers));
            }
            Self::Weights(sums) => {
                let numbers = match source {
                    Source::Nothing => {
                        scratch.numbers.clear();
                        scratch.numbers.resize(groups.len(), 0.0);
                        &scratch.numbers[..]
                    }
                    Source::Numbers(_) | Source::Codes(_) => {
                        source.numbers(block, &mut scratch.numbers)
                    }
                };
                fold_weighted(sums, block, numbers, WeightSums::add);
            }
            Self::Extremes(ends) => {
                let numbers = source.numbers(block, &mut scratch.numbers).iter();
                ends.fold(base, groups, numbers, |ends, &value| *ends = ends.with(value));
            }
            Self::Quantile(quantiles) => {
                quantiles.add(block, source.numbers(block, &mut scratch.numbers));
            }
            Self::Distinct(pairs) => pairs.add(block, source, scratch),
        }
    }
}

/// Which groups have rows. An aggregate that counts them knows it; without one, they are marked.
#[derive(Debug, Default)]
pub(crate) struct Presence {
    is_counted: bool,
    /// 1 for each group that has a row.
    marks: Vec<u8>,
    groups: usize,
}

impl Presence {
    /// Begins anew; `used` of the groups are known to have rows.
    pub(crate) fn reset(&mut self, locals: &[Local], groups: usize, used: usize) {
        self.is_counted = locals.iter().any(|local| matches!(local, Local::Count(_)));
        self.marks.clear();
        self.groups = 0;
        if !self.is_counted {
            self.marks.resize(used, 1);
        }
        self.grow(groups);
    }

    /// There are so many groups by now.
    pub(crate) fn grow(&mut self, groups: usize) {
        self.groups = self.groups.max(groups);
        if !self.is_counted {
            self.marks.resize(groups, 0);
        }
    }

    pub(crate) fn add(&mut self, block: &Block<'_>) {
        if !self.is_counted {
            block.groups.mark(block.base, &mut self.marks);
        }
    }

    /// The groups that have rows.
    pub(crate) fn find(&self, locals: &[Local], into: &mut Vec<u32>) {
        into.clear();
        for local in locals {
            if let Local::Count(tallies) = local {
                return tallies.find(self.groups, into);
            }
        }
        let marks = (0_u32..).zip(&self.marks);
        into.extend(marks.filter(|(_, mark)| **mark == 1).map(|(group, _)| group));
    }
}

/// One row, in a sum of rows and of small integer weights: its upper bits count the rows.
pub(crate) const ROW: u64 = 1 << WEIGHT_BITS;
const WEIGHT_BITS: u32 = 40;
/// Beyond so many rows of a group their number does not fit.
const TALLY_ROWS_MAX: usize = (1 << (u64::BITS - WEIGHT_BITS)) - 1;

const _: () = assert!(TALLY_ROWS_MAX as u64 * (u16::MAX as u64) < ROW, "weights stay below rows");

/// The sum of the weights in a sum of rows and weights.
#[expect(clippy::cast_precision_loss, reason = "40 bits at most")]
pub(crate) fn weight_of(tally: u64) -> f64 {
    (tally % ROW) as f64
}

/// Beside a sum of weights: that there is a row, whatever it weighs.
const SEEN: u32 = 1 << 31;

/// Which groups have rows, and the sums of their weights. Of many groups, what takes half as much
/// memory is nearer to the processor.
#[derive(Debug)]
pub(crate) enum Tallies {
    /// Both in half a number.
    Word(Lanes<u32>),
    /// Both in one number.
    Whole(Lanes<u64>),
    Any(Lanes<(u64, f64)>),
}

impl Default for Tallies {
    fn default() -> Self {
        Self::Whole(Lanes::default())
    }
}

impl Tallies {
    fn reset(&mut self, expected: Expected) {
        match (&mut *self, expected.fits_word(), expected.fits_tally()) {
            (Self::Word(_), true, _) | (Self::Whole(_), false, true) => {}
            (Self::Any(_), false, false) => {}
            (_, true, _) => *self = Self::Word(Lanes::default()),
            (_, false, true) => *self = Self::Whole(Lanes::default()),
            (_, false, false) => *self = Self::Any(Lanes::default()),
        }
        match self {
            Self::Word(sums) => sums.reset(expected.groups),
            Self::Whole(sums) => sums.reset(expected.groups),
            Self::Any(sums) => sums.reset(expected.groups),
        }
    }

    fn grow(&mut self, groups: usize) {
        match self {
            Self::Word(sums) => sums.grow(groups),
            Self::Whole(sums) => sums.grow(groups),
            Self::Any(sums) => sums.grow(groups),
        }
    }

    fn add(&mut self, block: &Block<'_>) {
        let (base, groups) = (block.base, block.groups);
        let add_any = |sum: &mut (u64, f64), weight: f64| *sum = (sum.0 + 1, sum.1 + weight);
        match (self, block.weights) {
            (Self::Word(sums), WeightSlice::U8(weights)) => {
                sums.fold(base, groups, weights.iter(), |sum, &w| {
                    *sum = (*sum + u32::from(w)) | SEEN;
                });
            }
            (Self::Word(sums), WeightSlice::U16(weights)) => {
                sums.fold(base, groups, weights.iter(), |sum, &w| {
                    *sum = (*sum + u32::from(w)) | SEEN;
                });
            }
            (Self::Whole(sums), WeightSlice::U8(weights)) => {
                sums.fold(base, groups, weights.iter(), |sum, &w| *sum += ROW + u64::from(w));
            }
            (Self::Whole(sums), WeightSlice::U16(weights)) => {
                sums.fold(base, groups, weights.iter(), |sum, &w| *sum += ROW + u64::from(w));
            }
            (Self::Any(sums), WeightSlice::U8(weights)) => {
                sums.fold(base, groups, weights.iter().map(|&w| w.into()), add_any);
            }
            (Self::Any(sums), WeightSlice::U16(weights)) => {
                sums.fold(base, groups, weights.iter().map(|&w| w.into()), add_any);
            }
            (Self::Any(sums), WeightSlice::F64(weights)) => {
                sums.fold(base, groups, weights.iter().copied(), add_any);
            }
            (Self::Word(_) | Self::Whole(_), WeightSlice::F64(_)) => {
                unreachable!("said to be whole")
            }
        }
    }

    /// The groups of the first so many that have rows.
    fn find(&self, groups: usize, into: &mut Vec<u32>) {
        match self {
            Self::Word(sums) => sums.find(groups, |sum| *sum > 0, into),
            Self::Whole(sums) => sums.find(groups, |sum| *sum > 0, into),
            Self::Any(sums) => sums.find(groups, |(rows, _)| *rows > 0, into),
        }
    }

    /// Adds the weight of groups to sums: for each pair, of one of these to one of those.
    pub(crate) fn add_to(&self, sums: &mut [f64], pairs: impl Iterator<Item = (usize, usize)>) {
        match self {
            Self::Word(tallies) => pairs.for_each(|(from, into)| {
                sums[into] += f64::from(tallies.get(from, |a, b| (a & !SEEN) + b) & !SEEN);
            }),
            Self::Whole(tallies) => pairs.for_each(|(from, into)| {
                sums[into] += weight_of(tallies.get(from, |a, b| a + b));
            }),
            Self::Any(tallies) => pairs.for_each(|(from, into)| {
                sums[into] += tallies.get(from, |a, b| (a.0 + b.0, a.1 + b.1)).1;
            }),
        }
    }
}

/// Adds each number and its weight to the sums of its group.
pub(crate) fn fold_weighted<S: Copy + Default>(
    sums: &mut Lanes<S>,
    block: &Block<'_>,
    numbers: &[f64],
    add: impl Fn(&mut S, f64, f64),
) {
    let (base, groups, numbers) = (block.base, block.groups, numbers.iter());
    match block.weights {
        WeightSlice::U8(weights) => {
            sums.fold(base, groups, numbers.zip(weights), |sums, (&value, &weight)| {
                add(sums, value, weight.into());
            });
        }
        WeightSlice::U16(weights) => {
            sums.fold(base, groups, numbers.zip(weights), |sums, (&value, &weight)| {
                add(sums, value, weight.into());
            });
        }
        WeightSlice::F64(weights) => {
            sums.fold(base, groups, numbers.zip(weights), |sums, (&value, &weight)| {
                add(sums, value, weight);
            });
        }
    }
}

/// The sums of weights and of their squares.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct WeightSums {
    weight: f64,
    squares: f64,
}

impl WeightSums {
    fn add(&mut self, value: f64, weight: f64) {
        let weight = if value.is_nan() { 0.0 } else { weight };
        self.weight += weight;
        self.squares += weight * weight;
    }

    pub(crate) fn joined(self, other: Self) -> Self {
        Self { weight: self.weight + other.weight, squares: self.squares + other.squares }
    }

    /// How many rows of the same weight would say as much.
    pub(crate) fn effective_size(self) -> Option<f64> {
        (self.squares > 0.0).then(|| self.weight * self.weight / self.squares)
    }
}

/// The smallest and the largest number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ends {
    pub(crate) least: f64,
    pub(crate) most: f64,
}

impl Default for Ends {
    fn default() -> Self {
        Self { least: f64::INFINITY, most: f64::NEG_INFINITY }
    }
}

impl Ends {
    /// NaN is smaller and larger than nothing.
    fn with(self, value: f64) -> Self {
        Self { least: self.least.min(value), most: self.most.max(value) }
    }

    pub(crate) fn joined(self, other: Self) -> Self {
        Self { least: self.least.min(other.least), most: self.most.max(other.most) }
    }
}

/// So many buckets of all groups have a place each, or as many as there are rows.
const BINS_MAX: usize = 1 << 16;

/// How the numbers of groups are distributed.
#[derive(Debug)]
pub(crate) struct Quantiles {
    /// Smallest and largest numbers are wanted, and must be exact.
    wants_ends: bool,
    /// Where numbers are known to lie close enough together.
    bins: Option<Bins>,
    sketches: Vec<Sketch>,
}

impl Quantiles {
    fn new(part: f64) -> Self {
        Self { wants_ends: part <= 0.0 || part >= 1.0, bins: None, sketches: Vec::new() }
    }

    fn reset(&mut self, expected: Expected, range: Option<(f64, f64)>) {
        self.sketches.clear();
        let before = self.bins.take();
        if let (Some(groups), Some(range), false) = (expected.groups, range, self.wants_ends)
            && Bins::width(range).saturating_mul(groups) <= BINS_MAX.max(expected.rows)
        {
            self.bins = Some(Bins::new(range, groups, before));
        } else {
            self.sketches.resize(expected.groups.unwrap_or(0), Sketch::default());
        }
    }

    fn grow(&mut self, groups: usize) {
        if self.bins.is_none() && groups > self.sketches.len() {
            self.sketches.resize(groups, Sketch::default());
        }
    }

    fn add(&mut self, block: &Block<'_>, numbers: &[f64]) {
        let numbers = numbers.iter().copied();
        match block.weights {
            WeightSlice::U8(weights) => {
                self.add_weighted(block, numbers.zip(weights.iter().map(|&w| w.into())));
            }
            WeightSlice::U16(weights) => {
                self.add_weighted(block, numbers.zip(weights.iter().map(|&w| w.into())));
            }
            WeightSlice::F64(weights) => {
                self.add_weighted(block, numbers.zip(weights.iter().copied()));
            }
        }
    }

    fn add_weighted(&mut self, block: &Block<'_>, weighted: impl Iterator<Item = (f64, f64)>) {
        if let Some(bins) = &mut self.bins {
            return bins.add(block.base, block.groups, weighted);
        }
        let sketches = &mut self.sketches[block.base..];
        block.groups.for_each(weighted, |group, (value, weight)| {
            if !value.is_nan() {
                sketches[group as usize].add(value, weight);
            }
        });
    }

    /// Adds the distribution of a group to one of all segments.
    pub(crate) fn add_to(&self, sketch: &mut Sketch, group: usize) {
        match &self.bins {
            Some(bins) => bins.add_to(sketch, group),
            None => sketch.merge(&self.sketches[group]),
        }
    }
}

/// So many pairs have a place each; further ones are hashed.
const DENSE_PAIRS_MAX: usize = 1 << 22;

/// Which groups have which values: by the codes of a segment where there is only one, else by
/// their numbers over all segments.
#[derive(Debug, Default)]
pub(crate) struct Pairs {
    groups: usize,
    /// How many codes there are, of one segment.
    codes: Option<usize>,
    /// 1 for pairs that are there, where all of them have a place.
    dense: Vec<u8>,
    hashed: HashSet<(u32, u32), RandomState>,
}

impl Pairs {
    fn reset(&mut self, groups: usize, codes: Option<usize>) {
        (self.groups, self.codes) = (groups, codes);
        self.hashed.clear();
        self.dense.clear();
        let places = codes.map_or(usize::MAX, |codes| groups.saturating_mul(codes));
        if places <= DENSE_PAIRS_MAX {
            self.dense.resize(places, 0);
        }
    }

    fn add(&mut self, block: &Block<'_>, source: &Source<'_>, scratch: &mut LocalScratch) {
        let dimension = source.codes();
        let codes = &mut scratch.codes;
        let chosen = match (dimension.codes.slice(block.rows.clone()), block.selected) {
            (Some(slice), None) => slice,
            (Some(slice), Some(places)) => slice.gather(places, codes),
            (None, None) => {
                codes.clear();
                codes.resize(block.rows.len(), 0);
                dimension.codes.for_each(block.rows.clone(), codes, |into, code| *into = code);
                CodeSlice::U32(codes)
            }
            (None, Some(_)) => {
                codes.clear();
                codes.extend(block.rows().map(|row| dimension.codes.get(row)));
                CodeSlice::U32(codes)
            }
        };
        if self.groups == 1 && !self.dense.is_empty() {
            return chosen.mark(0, &mut self.dense);
        }
        if !self.dense.is_empty() {
            let stride = self.codes.unwrap_or(0);
            return block.groups.mark_pairs(chosen, block.base, stride, &mut self.dense);
        }
        let base = u32::try_from(block.base).unwrap_or(u32::MAX);
        let is_local = self.codes.is_some();
        let (groups, hashed) = (block.groups, &mut self.hashed);
        let mut pairs = Vec::with_capacity(groups.len());
        groups.for_each(0..groups.len(), |group, _| pairs.push((base + group, 0)));
        chosen.for_each(pairs.iter_mut(), |code, pair| {
            pair.1 = if is_local { code } else { dimension.ids[code as usize] };
        });
        hashed.extend(pairs);
    }

    /// Groups and the numbers of values over all segments.
    pub(crate) fn iter(&self, ids: Option<&[u32]>) -> impl Iterator<Item = (u32, u32)> {
        let narrow = |number| u32::try_from(number).unwrap_or(u32::MAX);
        let codes = self.codes.unwrap_or(1);
        let marks = self.dense.iter().enumerate().filter(|(_, mark)| **mark == 1);
        let dense = marks.map(move |(at, _)| (narrow(at / codes), narrow(at % codes)));
        let ids = ids.filter(|_| self.codes.is_some());
        dense
            .chain(self.hashed.iter().copied())
            .map(move |(group, code)| (group, ids.map_or(code, |ids| ids[code as usize])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_rows_than_fit_above_the_weights_are_counted_apart() {
        let mut tallies = Tallies::default();
        let mut reset = |rows, weight_max| {
            tallies.reset(Expected { groups: Some(1), rows, weight_max });
            match tallies {
                Tallies::Word(_) => "word",
                Tallies::Whole(_) => "whole",
                Tallies::Any(_) => "any",
            }
        };
        assert_eq!(reset(TALLY_ROWS_MAX, Some(u16::MAX)), "whole");
        assert_eq!(reset(TALLY_ROWS_MAX + 1, Some(u16::MAX)), "any");
        assert_eq!(reset(1, None), "any");
        assert_eq!(reset((1 << 31) / 255, Some(255)), "word");
        assert_eq!(reset((1 << 31) / 255 + 1, Some(255)), "whole");
        assert_eq!(reset(usize::MAX >> 16, Some(0)), "word");
    }
}
