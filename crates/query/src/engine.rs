//! Answering a question: every segment by itself, in parallel, then all of them together.

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use perflab_store::segment::{Segment, Weights};
use rayon::prelude::*;

use crate::aggregate::{Block, Local, State, hash_of};
use crate::algebra::{Aggregate, Dimension, Question};
use crate::error::{DIMENSIONS_MAX, GROUPS_MAX};
use crate::filter::Filter;
use crate::group::{CellKey, LocalDimension, widens};
use crate::{QueryError, Value};

/// How many rows are looked at together: their masks, groups and numbers stay in the nearest
/// caches.
const BLOCK_ROWS: usize = 4096;
/// Up to so many possible groups of a segment have a place each; beyond, groups are hashed.
const DENSE_GROUPS_MAX: u64 = 1 << 18;

/// What a question is answered with.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// In no order.
    pub rows: Vec<AnswerRow>,
    /// How many rows were looked at: those of the time that was asked for.
    pub rows_scanned: u64,
}

/// One group.
#[derive(Debug, Clone, PartialEq)]
pub struct AnswerRow {
    pub group: Vec<Value>,
    /// One per aggregate; `None` when the group has no value to compute it from.
    pub values: Vec<Option<f64>>,
}

/// Answers a question from these segments.
pub fn answer(question: &Question, segments: &[&Segment]) -> Result<Answer, QueryError> {
    if question.group_by.len() > DIMENSIONS_MAX {
        return Err(QueryError::TooManyDimensions);
    }
    let scan = Scan::new(question, segments);
    let table = segments
        .par_iter()
        .try_fold(Table::default, |mut table, segment| {
            scan.add(segment, &mut table)?;
            Ok::<_, QueryError>(table)
        })
        .try_reduce(Table::default, |mut left, right| {
            left.merge(right)?;
            Ok(left)
        })?;
    Ok(table.finish(&question.aggregates, question.group_by.is_empty()))
}

/// A question, and what is the same of it for all segments.
struct Scan<'q> {
    question: &'q Question,
    /// For each dimension, whether integers in it are shown as floats.
    widens: Vec<bool>,
    /// The column of each aggregate that counts different values, and the same for it.
    distinct: Vec<Option<(Dimension, bool)>>,
}

impl<'q> Scan<'q> {
    fn new(question: &'q Question, segments: &[&Segment]) -> Self {
        let column = |aggregate: &Aggregate| {
            let Aggregate::Distinct(column) = aggregate else { return None };
            let dimension = Dimension::Column(column.clone());
            let widens = widens(&dimension, segments);
            Some((dimension, widens))
        };
        Self {
            question,
            widens: question.group_by.iter().map(|d| widens(d, segments)).collect(),
            distinct: question.aggregates.iter().map(column).collect(),
        }
    }

    fn add(&self, segment: &Segment, table: &mut Table) -> Result<(), QueryError> {
        let times = segment.times()?;
        let rows = match self.question.range {
            None => 0..times.len(),
            Some((start, end)) => {
                let first = times.partition_point(|&time| time < start);
                first..first.max(times.partition_point(|&time| time < end))
            }
        };
        table.rows_scanned += rows.len() as u64;
        let Some(mut filter) = Filter::new(&self.question.any_of, segment)? else {
            return Ok(());
        };
        let mut groups = LocalGroups::new(&self.question.group_by, &self.widens, segment)?;
        let mut locals = Vec::new();
        for (aggregate, distinct) in self.question.aggregates.iter().zip(&self.distinct) {
            locals.push(Local::new(aggregate, distinct.as_ref(), segment)?);
        }
        let weights = segment.weights()?;
        let (mut selected, mut block_weights) = (Vec::new(), Vec::new());
        let mut start = rows.start;
        while start < rows.end {
            let block = start..rows.end.min(start + BLOCK_ROWS);
            start = block.end;
            let chosen = if filter.is_all() {
                None
            } else {
                filter.select(block.clone(), &mut selected);
                Some(&selected[..])
            };
            if chosen.is_some_and(<[u32]>::is_empty) {
                continue;
            }
            groups.fill(block.clone(), chosen)?;
            fill_weights(weights, block.clone(), chosen, &mut block_weights);
            let block = Block {
                rows: block,
                selected: chosen,
                groups: &groups.of_rows,
                weights: &block_weights,
            };
            locals.iter_mut().for_each(|local| local.add(&block, groups.rows.len()));
        }
        table.add(&self.question.aggregates, &groups, &locals)
    }
}

fn fill_weights(
    weights: &Weights,
    rows: std::ops::Range<usize>,
    selected: Option<&[u32]>,
    into: &mut Vec<f64>,
) {
    fn widen<W: Copy + Into<f64>>(weights: &[W], selected: Option<&[u32]>, into: &mut Vec<f64>) {
        match selected {
            None => into.extend(weights.iter().map(|&weight| weight.into())),
            Some(places) => into.extend(places.iter().map(|&at| weights[at as usize].into())),
        }
    }
    into.clear();
    match weights {
        Weights::All(weight) => into.resize(selected.map_or(rows.len(), <[u32]>::len), *weight),
        Weights::U8(weights) => widen(&weights[rows], selected, into),
        Weights::U16(weights) => widen(&weights[rows], selected, into),
        Weights::F64(weights) => widen(&weights[rows], selected, into),
    }
}

/// The groups of a segment: numbers from 0 on.
struct LocalGroups<'s> {
    dimensions: Vec<LocalDimension<'s>>,
    /// What the codes of each dimension are multiplied by to make one number.
    strides: Vec<u64>,
    /// The groups by that number; `None`: the number is the group.
    hashed: Option<HashMap<u64, u32, RandomState>>,
    /// The number of each group, where they are hashed.
    keys: Vec<u64>,
    /// How many rows each group has.
    rows: Vec<u64>,
    numbers: Vec<u64>,
    of_rows: Vec<u32>,
}

impl<'s> LocalGroups<'s> {
    fn new(
        group_by: &'s [Dimension],
        widens: &[bool],
        segment: &'s Segment,
    ) -> Result<Self, QueryError> {
        let mut dimensions = Vec::new();
        for (dimension, &widens) in group_by.iter().zip(widens) {
            dimensions.push(LocalDimension::new(dimension, segment, widens)?);
        }
        let (mut strides, mut possible) = (Vec::new(), 1_u64);
        for dimension in &dimensions {
            strides.push(possible);
            let next = possible.checked_mul(dimension.count() as u64);
            possible = next.ok_or(QueryError::TooManyGroups)?;
        }
        let is_dense = possible <= DENSE_GROUPS_MAX;
        let places = usize::try_from(possible).unwrap_or(usize::MAX);
        Ok(Self {
            dimensions,
            strides,
            hashed: (!is_dense).then(HashMap::default),
            keys: Vec::new(),
            rows: vec![0; if is_dense { places } else { 0 }],
            numbers: Vec::new(),
            of_rows: Vec::new(),
        })
    }

    /// Finds the groups of the chosen rows of a block.
    fn fill(
        &mut self,
        rows: std::ops::Range<usize>,
        selected: Option<&[u32]>,
    ) -> Result<(), QueryError> {
        self.numbers.clear();
        self.numbers.resize(rows.len(), 0);
        for (dimension, &stride) in self.dimensions.iter().zip(&self.strides) {
            dimension.add_codes(rows.clone(), stride, &mut self.numbers);
        }
        self.of_rows.clear();
        let count = selected.map_or(rows.len(), <[u32]>::len);
        for n in 0..count {
            let number = self.numbers[selected.map_or(n, |selected| selected[n] as usize)];
            let group = match &mut self.hashed {
                None => u32::try_from(number).unwrap_or(u32::MAX),
                Some(groups) => *groups.entry(number).or_insert_with(|| {
                    self.keys.push(number);
                    self.rows.push(0);
                    u32::try_from(self.keys.len() - 1).unwrap_or(u32::MAX)
                }),
            };
            self.rows[group as usize] += 1;
            self.of_rows.push(group);
        }
        if self.rows.len() > GROUPS_MAX { Err(QueryError::TooManyGroups) } else { Ok(()) }
    }

    fn values(&self, group: usize) -> Vec<Value> {
        let number = if self.hashed.is_some() { self.keys[group] } else { group as u64 };
        let dimensions = self.dimensions.iter().zip(&self.strides);
        dimensions
            .map(|(dimension, stride)| {
                let code = number / stride % dimension.count() as u64;
                dimension.value(usize::try_from(code).unwrap_or(usize::MAX))
            })
            .collect()
    }
}

/// The groups of all segments so far.
#[derive(Debug, Default)]
struct Table {
    places: HashMap<Vec<CellKey>, usize, RandomState>,
    groups: Vec<(Vec<Value>, Vec<State>)>,
    rows_scanned: u64,
}

impl Table {
    fn place(
        &mut self,
        values: Vec<Value>,
        states: impl FnOnce() -> Vec<State>,
    ) -> Result<usize, QueryError> {
        let key: Vec<CellKey> = values.iter().map(CellKey::of).collect();
        let next = self.groups.len();
        let place = *self.places.entry(key).or_insert(next);
        if place == next {
            if next >= GROUPS_MAX {
                return Err(QueryError::TooManyGroups);
            }
            self.groups.push((values, states()));
        }
        Ok(place)
    }

    /// Adds the groups of a segment.
    fn add(
        &mut self,
        aggregates: &[Aggregate],
        groups: &LocalGroups<'_>,
        locals: &[Local<'_>],
    ) -> Result<(), QueryError> {
        let mut places = vec![usize::MAX; groups.rows.len()];
        for (group, _) in groups.rows.iter().enumerate().filter(|(_, rows)| **rows > 0) {
            let states = || aggregates.iter().map(State::new).collect();
            let place = self.place(groups.values(group), states)?;
            places[group] = place;
            for (state, local) in self.groups[place].1.iter_mut().zip(locals) {
                state.add(local, group);
            }
        }
        for (aggregate, local) in locals.iter().enumerate() {
            let Local::Distinct(dimension, seen) = local else { continue };
            let mut hashes: HashMap<u32, Option<u64>, RandomState> = HashMap::default();
            for &(group, code) in seen {
                let hash = *hashes.entry(code).or_insert_with(|| {
                    let key = CellKey::of(&dimension.value(code as usize));
                    (key != CellKey::Null).then(|| hash_of(&key))
                });
                if let Some(hash) = hash {
                    self.groups[places[group as usize]].1[aggregate].note(hash);
                }
            }
        }
        Ok(())
    }

    fn merge(&mut self, other: Self) -> Result<(), QueryError> {
        self.rows_scanned += other.rows_scanned;
        for (values, states) in other.groups {
            let before = self.groups.len();
            let place = self.place(values, || states.clone())?;
            if place < before {
                let pairs = self.groups[place].1.iter_mut().zip(&states);
                pairs.for_each(|(state, other)| state.merge(other));
            }
        }
        Ok(())
    }

    /// Without columns to group by there is one group, even of no rows.
    fn finish(mut self, aggregates: &[Aggregate], is_total: bool) -> Answer {
        if is_total && self.groups.is_empty() {
            self.groups.push((Vec::new(), aggregates.iter().map(State::new).collect()));
        }
        let finish = |(group, states): (Vec<Value>, Vec<State>)| AnswerRow {
            group,
            values: states.iter().zip(aggregates).map(|(state, a)| state.finish(a)).collect(),
        };
        let rows = self.groups.into_iter().map(finish).collect();
        Answer { rows, rows_scanned: self.rows_scanned }
    }
}
