//! What is known of groups over all segments so far.

use std::hash::BuildHasher;

use foldhash::quality::FixedState;
use perflab_store::segment::NULL_ID;

use crate::algebra::{Aggregate, Order};
use crate::distinct::Distinct;
use crate::local::{Ends, Local, Pairs, WeightSums};
use crate::moments::MomentSums;
use crate::sketch::Sketch;
use crate::source::Source;

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
    fn around(middle: f64, sums: MomentSums) -> Self {
        let MomentSums { rows, weight, first, second } = sums;
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

/// One aggregate, over all segments so far, by group.
#[derive(Debug)]
pub(crate) enum States {
    Sum(Vec<f64>),
    Moments(Vec<Moments>),
    Weights(Vec<WeightSums>),
    Extremes(Vec<Ends>),
    Quantile(Vec<Sketch>),
    Distinct(Vec<Distinct>),
    /// For few groups and values: 1 where a group has a value, by group and number.
    Marks {
        values: usize,
        marks: Vec<u8>,
    },
}

/// So many pairs of group and value are marked; beyond, values are counted by their hashes.
const MARKS_MAX: usize = 1 << 24;

/// The aggregates of a question, each with how many values it marks for a group, if it does.
#[derive(Debug)]
pub(crate) struct Layout<'q> {
    aggregates: Vec<(&'q Aggregate, Option<usize>)>,
}

impl<'q> Layout<'q> {
    /// `values`: for each aggregate, how many different ones are counted. `groups`: how many
    /// there are at most, if that is known.
    pub(crate) fn new(
        aggregates: &'q [Aggregate],
        values: &[usize],
        groups: Option<usize>,
    ) -> Self {
        let marked = |values: usize| {
            let pairs = groups.map_or(usize::MAX, |groups| groups.saturating_mul(values));
            (pairs <= MARKS_MAX).then_some(values)
        };
        let values = values.iter().map(|&values| marked(values));
        Self { aggregates: aggregates.iter().zip(values).collect() }
    }

    /// Of so many groups.
    pub(crate) fn states(&self, groups: usize) -> Vec<States> {
        let states = self.aggregates.iter();
        states.map(|(aggregate, values)| States::new(aggregate, groups, *values)).collect()
    }

    /// What a group takes, at the least.
    pub(crate) fn bytes(&self) -> usize {
        self.aggregates.iter().map(|(aggregate, _)| States::bytes(aggregate)).sum()
    }
}

impl States {
    fn new(aggregate: &Aggregate, groups: usize, values: Option<usize>) -> Self {
        match (aggregate, values) {
            (Aggregate::Count | Aggregate::Samples, _) => Self::Sum(vec![0.0; groups]),
            (Aggregate::Sum(_) | Aggregate::Avg(_) | Aggregate::Stddev(_), _) => {
                Self::Moments(vec![Moments::default(); groups])
            }
            (Aggregate::EffectiveSize(_), _) => Self::Weights(vec![WeightSums::default(); groups]),
            (Aggregate::Min(_) | Aggregate::Max(_), _) => {
                Self::Extremes(vec![Ends::default(); groups])
            }
            (Aggregate::Percentile(..), _) => Self::Quantile(vec![Sketch::default(); groups]),
            (Aggregate::Distinct(_), Some(values)) => {
                Self::Marks { values, marks: vec![0; groups * values] }
            }
            (Aggregate::Distinct(_), None) => Self::Distinct(vec![Distinct::default(); groups]),
        }
    }

    /// There are so many groups now.
    pub(crate) fn resize(&mut self, groups: usize) {
        match self {
            Self::Sum(sums) => sums.resize(groups, 0.0),
            Self::Moments(moments) => moments.resize(groups, Moments::default()),
            Self::Weights(sums) => sums.resize(groups, WeightSums::default()),
            Self::Extremes(ends) => ends.resize(groups, Ends::default()),
            Self::Quantile(sketches) => sketches.resize(groups, Sketch::default()),
            Self::Distinct(distinct) => distinct.resize(groups, Distinct::default()),
            Self::Marks { values, marks } => marks.resize(groups * *values, 0),
        }
    }

    fn bytes(aggregate: &Aggregate) -> usize {
        match aggregate {
            Aggregate::Count | Aggregate::Samples => size_of::<f64>(),
            Aggregate::Sum(_) | Aggregate::Avg(_) | Aggregate::Stddev(_) => size_of::<Moments>(),
            Aggregate::EffectiveSize(_) => size_of::<WeightSums>(),
            Aggregate::Min(_) | Aggregate::Max(_) => size_of::<Ends>(),
            Aggregate::Percentile(..) => size_of::<Sketch>(),
            Aggregate::Distinct(_) => size_of::<Distinct>(),
        }
    }

    /// What they take by now.
    pub(crate) fn held_bytes(&self) -> usize {
        match self {
            Self::Sum(sums) => size_of_val(&sums[..]),
            Self::Moments(moments) => size_of_val(&moments[..]),
            Self::Weights(sums) => size_of_val(&sums[..]),
            Self::Extremes(ends) => size_of_val(&ends[..]),
            Self::Quantile(sketches) => sketches.iter().map(Sketch::held_bytes).sum(),
            Self::Distinct(distinct) => distinct.iter().map(Distinct::held_bytes).sum(),
            Self::Marks { marks, .. } => marks.len(),
        }
    }

    /// Whether those of a segment, made for a question before, can be merged into these.
    pub(crate) fn takes(&self, other: &Self) -> bool {
        match (self, other) {
            // Of a hash nobody knows whose it is.
            (Self::Marks { .. }, Self::Distinct(_)) => false,
            (Self::Marks { values, .. }, Self::Marks { values: others, .. }) => others <= values,
            _ => true,
        }
    }

    /// Adds what a part has: for each pair, a group of the part to one of all.
    pub(crate) fn add(&mut self, local: &Local, source: Option<&Source<'_>>, pairs: &[(u32, u32)]) {
        let places = pairs.iter().map(|&(from, into)| (from as usize, into as usize));
        match (self, local) {
            (Self::Sum(sums), Local::Count(tallies)) => {
                tallies.add_to(sums, places);
            }
            (Self::Sum(sums), Local::Samples(local)) => {
                places.for_each(|(from, into)| sums[into] += local.get(from, |a, b| a + b));
            }
            (Self::Moments(moments), Local::Moments(local)) => places.for_each(|(from, into)| {
                moments[into].merge(&Moments::around(local.middle(), local.get(from)));
            }),
            (Self::Weights(sums), Local::Weights(local)) => places.for_each(|(from, into)| {
                sums[into] = sums[into].joined(local.get(from, WeightSums::joined));
            }),
            (Self::Extremes(ends), Local::Extremes(local)) => {
                places.for_each(|(from, into)| {
                    ends[into] = ends[into].joined(local.get(from, Ends::joined));
                });
            }
            (Self::Quantile(sketches), Local::Quantile(local)) => {
                places.for_each(|(from, into)| local.add_to(&mut sketches[into], from));
            }
            (distinct, Local::Distinct(seen)) => distinct.add_distinct(seen, source, pairs),
            _ => unreachable!("states are made for the same aggregates"),
        }
    }

    /// `pairs` ascend.
    fn add_distinct(&mut self, seen: &Pairs, source: Option<&Source<'_>>, pairs: &[(u32, u32)]) {
        let ids = source.map(|source| &source.codes().ids[..]);
        for (group, id) in seen.iter(ids).filter(|(_, id)| *id != NULL_ID) {
            let Ok(at) = pairs.binary_search_by_key(&group, |pair| pair.0) else { continue };
            let into = pairs[at].1 as usize;
            match self {
                Self::Marks { values, marks } => marks[into * *values + id as usize] = 1,
                Self::Distinct(distinct) => distinct[into].add(hash_of(id)),
                Self::Sum(_)
                | Self::Moments(_)
                | Self::Weights(_)
                | Self::Extremes(_)
                | Self::Quantile(_) => unreachable!("states are made for the same aggregates"),
            }
        }
    }

    /// Adds those of other groups: for each pair, one of the others to one of these.
    pub(crate) fn merge(&mut self, other: &Self, pairs: impl Iterator<Item = (usize, usize)>) {
        match (self, other) {
            (Self::Sum(sums), Self::Sum(other)) => {
                pairs.for_each(|(from, into)| sums[into] += other[from]);
            }
            (Self::Moments(moments), Self::Moments(other)) => {
                pairs.for_each(|(from, into)| moments[into].merge(&other[from]));
            }
            (Self::Weights(sums), Self::Weights(other)) => {
                pairs.for_each(|(from, into)| sums[into] = sums[into].joined(other[from]));
            }
            (Self::Extremes(ends), Self::Extremes(other)) => {
                pairs.for_each(|(from, into)| ends[into] = ends[into].joined(other[from]));
            }
            (Self::Quantile(sketches), Self::Quantile(other)) => {
                pairs.for_each(|(from, into)| sketches[into].merge(&other[from]));
            }
            (Self::Distinct(distinct), Self::Distinct(other)) => {
                pairs.for_each(|(from, into)| distinct[into].merge(&other[from]));
            }
            // A dataset's values only become more.
            (Self::Marks { values, marks }, Self::Marks { values: others, marks: other }) => {
                pairs.for_each(|(from, into)| {
                    let into = &mut marks[into * *values..][..*values];
                    let other = &other[from * *others..][..*others];
                    into.iter_mut().zip(other).for_each(|(mark, other)| *mark |= other);
                });
            }
            (Self::Distinct(distinct), Self::Marks { values, marks }) => {
                pairs.for_each(|(from, into)| {
                    let marks = (0_u32..).zip(&marks[from * *values..][..*values]);
                    let found = marks.filter(|(_, mark)| **mark == 1);
                    found.for_each(|(id, _)| distinct[into].add(hash_of(id)));
                });
            }
            _ => unreachable!("states are made for the same aggregates"),
        }
    }

    /// What the first so many groups are ordered by: the smaller, the further ahead. Groups
    /// without a value come last.
    pub(crate) fn ranks(&self, aggregate: &Aggregate, order: Order, groups: usize) -> Vec<f64> {
        let sign = if order == Order::Descending { -1.0 } else { 1.0 };
        if let Self::Sum(sums) = self {
            return sums[..groups].iter().map(|sum| sum * sign).collect();
        }
        let rank = |group| self.finish(aggregate, group).map_or(f64::INFINITY, |v| v * sign);
        (0..groups).map(rank).collect()
    }

    /// `None`: the group has no value to compute it from.
    pub(crate) fn finish(&self, aggregate: &Aggregate, group: usize) -> Option<f64> {
        match self {
            Self::Sum(sums) => Some(sums[group]),
            Self::Moments(moments) => moments[group].finish(aggregate),
            Self::Weights(sums) => sums[group].effective_size(),
            Self::Extremes(ends) => {
                let Ends { least, most } = ends[group];
                let is_least = matches!(aggregate, Aggregate::Min(_));
                (least <= most).then_some(if is_least { least } else { most })
            }
            Self::Quantile(sketches) => {
                let Aggregate::Percentile(part, _) = aggregate else { return None };
                sketches[group].quantile(*part)
            }
            Self::Distinct(distinct) => Some(distinct[group].count()),
            Self::Marks { values, marks } => {
                let marks = &marks[group * values..][..*values];
                #[expect(clippy::cast_precision_loss, reason = "a count of values in memory")]
                let count = marks.iter().filter(|mark| **mark == 1).count() as f64;
                Some(count)
            }
        }
    }
}

/// The same for the same value, in whatever segment.
fn hash_of(id: u32) -> u64 {
    FixedState::with_seed(0).hash_one(id)
}
