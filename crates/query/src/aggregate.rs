//! What is computed of groups: per segment in arrays by local group, then merged.

use std::hash::BuildHasher;
use std::ops::Range;

use arrow::buffer::BooleanBuffer;
use foldhash::fast::RandomState;
use foldhash::quality::FixedState;
use hashbrown::{HashMap, HashSet};
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
                Err(QueryError::NoNumbers { column, found })
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

pub(crate) fn found(kind: Kind) -> &'static str {
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
    /// Of weighted sums of 1, of deviations from a middle, and of their squares.
    fn around(middle: f64, (rows, [weight, first, second]): (u64, [f64; 3])) -> Self {
        let shift = if weight == 0.0 { 0.0 } else { first / weight };
        let squares = (second - first * shift).max(0.0);
        Self { rows, weight, mean: middle + shift, squares }
    }

    fn finish(&self, aggregate: &Aggregate) -> Option<f64> {
        if self.rows == 0 {
            return None;
        }
        if matches!(aggregate, Aggregate::Sum(_)) {
            return Some(self.mean * self.weight);
        }
        let is_mean = matches!(aggregate, Aggregate::Avg(_));
        let deviation = || (self.squares / self.weight).sqrt();
        (self.weight > 0.0).then(|| if is_mean { self.mean } else { deviation() })
    }

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
    Count(Counts),
    Samples(Numbers<'s>, Vec<f64>),
    /// Rows, and the weighted sums of 1, of deviations from the middle, and of their squares.
    Moments(Numbers<'s>, Vec<(u64, [f64; 3])>),
    /// The sums of the weights and of their squares.
    Weights(Option<Numbers<'s>>, Vec<[f64; 2]>),
    Extremes(Numbers<'s>, Vec<(f64, f64)>),
    Quantile(Numbers<'s>, Vec<Sketch>),
    /// Of group and code.
    Distinct(LocalDimension<'s>, Pairs),
}

/// With few groups, a row's group is often that of the row before it, and adding to a sum has to
/// wait for the sum before it: so rows take turns among several sums.
const TURNS: usize = 4;
/// With more groups than this they are rarely the same, and memory matters more.
const TURNS_GROUPS_MAX: usize = 1024;

/// The sums of the weights of groups.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Of groups up to [`TURNS_GROUPS_MAX`].
    turns: Vec<[f64; TURNS]>,
    sums: Vec<f64>,
}

impl Counts {
    fn add(&mut self, block: &Block<'_>, groups: usize) {
        if groups > TURNS_GROUPS_MAX {
            self.sums.resize(groups, 0.0);
            let weighted = block.groups.iter().zip(block.weights);
            weighted.for_each(|(&group, weight)| self.sums[group as usize] += weight);
            return;
        }
        self.turns.resize(groups, [0.0; TURNS]);
        let (groups, rest) = block.groups.as_chunks::<TURNS>();
        let (weights, rest_weights) = block.weights.as_chunks::<TURNS>();
        for (groups, weights) in groups.iter().zip(weights) {
            for turn in 0..TURNS {
                self.turns[groups[turn] as usize][turn] += weights[turn];
            }
        }
        for (&group, &weight) in rest.iter().zip(rest_weights) {
            self.turns[group as usize][0] += weight;
        }
    }

    fn get(&self, group: usize) -> f64 {
        let turns: f64 = self.turns.get(group).into_iter().flatten().sum();
        turns + self.sums.get(group).copied().unwrap_or(0.0)
    }
}

/// So many pairs have a place each; further ones are hashed.
const DENSE_PAIRS_MAX: usize = 1 << 22;

/// Which groups have which codes.
#[derive(Debug)]
pub(crate) struct Pairs {
    /// How many codes there are.
    codes: usize,
    /// 1 for pairs that are there.
    dense: Vec<u8>,
    hashed: HashSet<(u32, u32), RandomState>,
}

impl Pairs {
    fn new(codes: usize) -> Self {
        Self { codes, dense: Vec::new(), hashed: HashSet::default() }
    }

    fn reserve(&mut self, groups: usize) {
        let wanted = groups.saturating_mul(self.codes).min(DENSE_PAIRS_MAX);
        if wanted > self.dense.len() {
            self.dense.resize(wanted, 0);
        }
    }

    fn insert(&mut self, group: u32, code: u32) {
        match self.dense.get_mut(group as usize * self.codes + code as usize) {
            Some(mark) => *mark = 1,
            None => {
                self.hashed.insert((group, code));
            }
        }
    }

    fn iter(&self) -> impl Iterator<Item = (u32, u32)> {
        let narrow = |number| u32::try_from(number).unwrap_or(u32::MAX);
        let marks = self.dense.iter().enumerate().filter(|(_, mark)| **mark == 1);
        let dense = marks.map(move |(at, _)| (narrow(at / self.codes), narrow(at % self.codes)));
        dense.chain(self.hashed.iter().copied())
    }
}

impl<'s> Local<'s> {
    pub(crate) fn new(
        aggregate: &Aggregate,
        distinct: Option<&'s (Dimension, bool)>,
        segment: &'s Segment,
    ) -> Result<Self, QueryError> {
        let numbers = |column: &str| Numbers::new(column, segment);
        Ok(match aggregate {
            Aggregate::Count => Self::Count(Counts::default()),
            Aggregate::Samples => Self::Samples(numbers("hits")?, Vec::new()),
            Aggregate::Sum(column) | Aggregate::Avg(column) | Aggregate::Stddev(column) => {
                Self::Moments(numbers(column)?, Vec::new())
            }
            Aggregate::EffectiveSize(column) => {
                let numbers = column.as_deref().map(numbers).transpose()?;
                Self::Weights(numbers, Vec::new())
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
                let pairs = Pairs::new(dimension.count());
                Self::Distinct(dimension, pairs)
            }
        })
    }

    /// Takes in a block; there are so many groups by now.
    pub(crate) fn add(&mut self, block: &Block<'_>, groups: usize) {
        let weighted = block.groups.iter().zip(block.weights);
        match self {
            Self::Count(counts) => counts.add(block, groups),
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
            Self::Weights(numbers, sums) => {
                sums.resize(groups, [0.0; 2]);
                let numbers = numbers.as_mut().map(|numbers| numbers.of(block));
                for (n, (&group, &weight)) in weighted.enumerate() {
                    if numbers.is_none_or(|numbers| !numbers[n].is_nan()) {
                        sums[group as usize][0] += weight;
                        sums[group as usize][1] += weight * weight;
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
                let mut codes = vec![0_u32; block.rows.len()];
                dimension.add_codes(block.rows.clone(), 1, &mut codes);
                seen.reserve(groups);
                for (n, &group) in block.groups.iter().enumerate() {
                    let place = block.selected.map_or(n, |selected| selected[n] as usize);
                    seen.insert(group, codes[place]);
                }
            }
        }
    }
}

/// One aggregate, over all segments so far, by group.
#[derive(Debug)]
pub(crate) enum States {
    Sum(Vec<f64>),
    Moments(Vec<Moments>),
    Weights(Vec<[f64; 2]>),
    Extremes(Vec<(f64, f64)>),
    Quantile(Vec<Sketch>),
    Distinct(Vec<Distinct>),
}

impl States {
    pub(crate) fn new(aggregate: &Aggregate) -> Self {
        match aggregate {
            Aggregate::Count | Aggregate::Samples => Self::Sum(Vec::new()),
            Aggregate::Sum(_) | Aggregate::Avg(_) | Aggregate::Stddev(_) => {
                Self::Moments(Vec::new())
            }
            Aggregate::EffectiveSize(_) => Self::Weights(Vec::new()),
            Aggregate::Min(_) | Aggregate::Max(_) => Self::Extremes(Vec::new()),
            Aggregate::Percentile(..) => Self::Quantile(Vec::new()),
            Aggregate::Distinct(_) => Self::Distinct(Vec::new()),
        }
    }

    pub(crate) fn resize(&mut self, groups: usize) {
        match self {
            Self::Sum(sums) => sums.resize(groups, 0.0),
            Self::Moments(moments) => moments.resize(groups, Moments::default()),
            Self::Weights(sums) => sums.resize(groups, [0.0; 2]),
            Self::Extremes(ends) => ends.resize(groups, (f64::INFINITY, f64::NEG_INFINITY)),
            Self::Quantile(sketches) => sketches.resize(groups, Sketch::default()),
            Self::Distinct(distinct) => distinct.resize(groups, Distinct::default()),
        }
    }

    /// Adds what a segment has: for each pair, a group of the segment to one of all.
    pub(crate) fn add(&mut self, local: &Local<'_>, pairs: &[(u32, u32)]) {
        let pairs = pairs.iter().map(|&(from, into)| (from as usize, into as usize));
        match (self, local) {
            (Self::Sum(sums), Local::Count(local)) => {
                pairs.for_each(|(from, into)| sums[into] += local.get(from));
            }
            (Self::Sum(sums), Local::Samples(_, local)) => {
                pairs.for_each(|(from, into)| sums[into] += local[from]);
            }
            (Self::Moments(moments), Local::Moments(numbers, local)) => {
                pairs.for_each(|(from, into)| {
                    moments[into].merge(&Moments::around(numbers.middle, local[from]));
                });
            }
            (Self::Weights(sums), Local::Weights(_, local)) => pairs.for_each(|(from, into)| {
                sums[into][0] += local[from][0];
                sums[into][1] += local[from][1];
            }),
            (Self::Extremes(ends), Local::Extremes(_, local)) => pairs.for_each(|(from, into)| {
                ends[into].0 = ends[into].0.min(local[from].0);
                ends[into].1 = ends[into].1.max(local[from].1);
            }),
            (Self::Quantile(sketches), Local::Quantile(_, local)) => {
                pairs.for_each(|(from, into)| sketches[into].merge(&local[from]));
            }
            (Self::Distinct(distinct), Local::Distinct(dimension, seen)) => {
                let into: HashMap<usize, usize, RandomState> = pairs.collect();
                add_distinct(distinct, dimension, seen, &into);
            }
            _ => unreachable!("states are made for the same aggregates"),
        }
    }

    /// Adds those of other groups: for each pair, one of the others to one of these.
    pub(crate) fn merge(&mut self, other: &Self, into: &[u32]) {
        let pairs = into.iter().map(|&into| into as usize).enumerate();
        match (self, other) {
            (Self::Sum(sums), Self::Sum(other)) => {
                pairs.for_each(|(from, into)| sums[into] += other[from]);
            }
            (Self::Moments(moments), Self::Moments(other)) => {
                pairs.for_each(|(from, into)| moments[into].merge(&other[from]));
            }
            (Self::Weights(sums), Self::Weights(other)) => pairs.for_each(|(from, into)| {
                sums[into][0] += other[from][0];
                sums[into][1] += other[from][1];
            }),
            (Self::Extremes(ends), Self::Extremes(other)) => pairs.for_each(|(from, into)| {
                ends[into].0 = ends[into].0.min(other[from].0);
                ends[into].1 = ends[into].1.max(other[from].1);
            }),
            (Self::Quantile(sketches), Self::Quantile(other)) => {
                pairs.for_each(|(from, into)| sketches[into].merge(&other[from]));
            }
            (Self::Distinct(distinct), Self::Distinct(other)) => {
                pairs.for_each(|(from, into)| distinct[into].merge(&other[from]));
            }
            _ => unreachable!("states are made for the same aggregates"),
        }
    }

    /// `None`: the group has no value to compute it from.
    pub(crate) fn finish(&self, aggregate: &Aggregate, group: usize) -> Option<f64> {
        match self {
            Self::Sum(sums) => Some(sums[group]),
            Self::Moments(moments) => moments[group].finish(aggregate),
            Self::Weights(sums) => {
                let [weight, squares] = sums[group];
                (squares > 0.0).then(|| weight * weight / squares)
            }
            Self::Extremes(ends) => {
                let (least, most) = ends[group];
                let is_least = matches!(aggregate, Aggregate::Min(_));
                (least <= most).then_some(if is_least { least } else { most })
            }
            Self::Quantile(sketches) => {
                let Aggregate::Percentile(part, _) = aggregate else { return None };
                sketches[group].quantile(*part)
            }
            Self::Distinct(distinct) => Some(distinct[group].count()),
        }
    }
}

/// Each value is hashed once per segment, however many groups have it.
fn add_distinct(
    distinct: &mut [Distinct],
    dimension: &LocalDimension<'_>,
    seen: &Pairs,
    into: &HashMap<usize, usize, RandomState>,
) {
    let mut hashes: HashMap<u32, Option<u64>, RandomState> = HashMap::default();
    for (group, code) in seen.iter() {
        let hash = *hashes.entry(code).or_insert_with(|| {
            let key = CellKey::of(&dimension.value(code as usize));
            (key != CellKey::Null).then(|| hash_of(&key))
        });
        if let (Some(hash), Some(&into)) = (hash, into.get(&(group as usize))) {
            distinct[into].add(hash);
        }
    }
}

/// The same for the same value, in whatever segment.
fn hash_of(key: &CellKey) -> u64 {
    FixedState::with_seed(0).hash_one(key)
}
