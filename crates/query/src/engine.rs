//! Answering a question: every segment by itself, in parallel, then all of them together.

use std::ops::Range;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use perflab_store::segment::{Segment, Snapshot, Weights};
use rayon::prelude::*;

use crate::aggregate::{Block, Local, States};
use crate::algebra::{Aggregate, Dimension, Order, Question, Top};
use crate::error::{DIMENSIONS_MAX, GROUPS_MAX};
use crate::filter::Filter;
use crate::group::{Interner, LocalDimension, widens};
use crate::{QueryError, Value};

/// How many rows are looked at together: their masks, groups and numbers stay in the nearest
/// caches.
const BLOCK_ROWS: usize = 4096;
/// Up to so many possible groups of a segment have a place each; beyond, groups are hashed.
const DENSE_GROUPS_MAX: u64 = 1 << 18;

/// What a question is answered with.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// In the order that was asked for.
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

/// Answers a question from the rows of a dataset.
pub fn answer(question: &Question, snapshot: &Snapshot) -> Result<Answer, QueryError> {
    if question.group_by.len() > DIMENSIONS_MAX {
        return Err(QueryError::TooManyDimensions);
    }
    let scan = Scan::new(question, &snapshot.segments);
    let table = snapshot
        .segments
        .par_iter()
        .try_fold(
            || Table::new(question),
            |mut table, segment| {
                scan.add(segment, &mut table)?;
                Ok::<_, QueryError>(table)
            },
        )
        .try_reduce(|| Table::new(question), Table::merged)?;
    table.finish(question)
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
    fn new(question: &'q Question, segments: &[Arc<Segment>]) -> Self {
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
        let rows = rows_in(self.question.range, segment.times()?);
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
            locals.iter_mut().for_each(|local| local.add(&block, groups.seen.len()));
        }
        table.add(&groups, &locals)
    }
}

/// The rows of a range of time; times ascend.
fn rows_in(range: Option<(i64, i64)>, times: &[i64]) -> Range<usize> {
    let Some((start, end)) = range else { return 0..times.len() };
    let first = times.partition_point(|&time| time < start);
    first..first.max(times.partition_point(|&time| time < end))
}

fn fill_weights(
    weights: &Weights,
    rows: Range<usize>,
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
    /// 1 for each group that has a row.
    seen: Vec<u8>,
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
            seen: vec![0; if is_dense { places } else { 0 }],
            numbers: Vec::new(),
            of_rows: Vec::new(),
        })
    }

    /// Finds the groups of the chosen rows of a block.
    fn fill(&mut self, rows: Range<usize>, selected: Option<&[u32]>) -> Result<(), QueryError> {
        if self.hashed.is_none() {
            self.fill_dense(rows, selected);
            return Ok(());
        }
        self.fill_hashed(rows, selected);
        if self.keys.len() > GROUPS_MAX { Err(QueryError::TooManyGroups) } else { Ok(()) }
    }

    fn fill_dense(&mut self, rows: Range<usize>, selected: Option<&[u32]>) {
        self.of_rows.clear();
        self.of_rows.resize(rows.len(), 0);
        for (dimension, &stride) in self.dimensions.iter().zip(&self.strides) {
            let stride = u32::try_from(stride).unwrap_or(u32::MAX);
            dimension.add_codes(rows.clone(), stride, &mut self.of_rows);
        }
        if let Some(selected) = selected {
            // A chosen row never moves up, so that none is overwritten before it is read.
            for (n, &place) in selected.iter().enumerate() {
                self.of_rows[n] = self.of_rows[place as usize];
            }
            self.of_rows.truncate(selected.len());
        }
        self.of_rows.iter().for_each(|&group| self.seen[group as usize] = 1);
    }

    fn fill_hashed(&mut self, rows: Range<usize>, selected: Option<&[u32]>) {
        self.numbers.clear();
        self.numbers.resize(rows.len(), 0);
        for (dimension, &stride) in self.dimensions.iter().zip(&self.strides) {
            dimension.add_codes(rows.clone(), stride, &mut self.numbers);
        }
        self.of_rows.clear();
        let Some(groups) = &mut self.hashed else { return };
        let count = selected.map_or(rows.len(), <[u32]>::len);
        for n in 0..count {
            let number = self.numbers[selected.map_or(n, |selected| selected[n] as usize)];
            let group = *groups.entry(number).or_insert_with(|| {
                self.keys.push(number);
                u32::try_from(self.keys.len() - 1).unwrap_or(u32::MAX)
            });
            self.of_rows.push(group);
        }
        self.seen.resize(self.keys.len(), 1);
    }

    /// The code of a group in each dimension.
    fn codes(&self, group: usize) -> impl Iterator<Item = usize> {
        let number = if self.hashed.is_some() { self.keys[group] } else { group as u64 };
        let dimensions = self.dimensions.iter().zip(&self.strides);
        dimensions.map(move |(dimension, stride)| {
            let code = number / stride % dimension.count() as u64;
            usize::try_from(code).unwrap_or(usize::MAX)
        })
    }
}

/// A group: the number of its value in each dimension.
type Key = [u32; DIMENSIONS_MAX];

/// The groups of all segments so far.
#[derive(Debug)]
struct Table {
    places: HashMap<Key, u32, RandomState>,
    keys: Vec<Key>,
    values: Vec<Interner>,
    states: Vec<States>,
    rows_scanned: u64,
}

impl Table {
    fn new(question: &Question) -> Self {
        Self {
            places: HashMap::default(),
            keys: Vec::new(),
            values: question.group_by.iter().map(|_| Interner::default()).collect(),
            states: question.aggregates.iter().map(States::new).collect(),
            rows_scanned: 0,
        }
    }

    fn place(&mut self, key: Key) -> Result<u32, QueryError> {
        let keys = &mut self.keys;
        let place = *self.places.entry(key).or_insert_with(|| {
            keys.push(key);
            u32::try_from(keys.len() - 1).unwrap_or(u32::MAX)
        });
        if self.keys.len() > GROUPS_MAX { Err(QueryError::TooManyGroups) } else { Ok(place) }
    }

    /// Adds the groups of a segment.
    fn add(&mut self, groups: &LocalGroups<'_>, locals: &[Local<'_>]) -> Result<(), QueryError> {
        let mut known: Vec<Vec<u32>> =
            groups.dimensions.iter().map(|d| vec![u32::MAX; d.count()]).collect();
        let mut pairs = Vec::new();
        for group in (0..groups.seen.len()).filter(|&group| groups.seen[group] == 1) {
            let mut key = Key::default();
            for (n, code) in groups.codes(group).enumerate() {
                if known[n][code] == u32::MAX {
                    known[n][code] = groups.dimensions[n].intern(code, &mut self.values[n]);
                }
                key[n] = known[n][code];
            }
            pairs.push((u32::try_from(group).unwrap_or(u32::MAX), self.place(key)?));
        }
        for (states, local) in self.states.iter_mut().zip(locals) {
            states.resize(self.keys.len());
            states.add(local, &pairs);
        }
        Ok(())
    }

    /// The groups of both.
    fn merged(self, other: Self) -> Result<Self, QueryError> {
        let (mut large, small) =
            if self.keys.len() < other.keys.len() { (other, self) } else { (self, other) };
        large.rows_scanned += small.rows_scanned;
        let known: Vec<Vec<u32>> = large
            .values
            .iter_mut()
            .zip(small.values)
            .map(|(into, values)| {
                values.into_values().into_iter().map(|value| into.value(value)).collect()
            })
            .collect();
        let mut into = Vec::with_capacity(small.keys.len());
        for mut key in small.keys {
            for (number, known) in key.iter_mut().zip(&known) {
                *number = known[*number as usize];
            }
            into.push(large.place(key)?);
        }
        for (states, other) in large.states.iter_mut().zip(&small.states) {
            states.resize(large.keys.len());
            states.merge(other, &into);
        }
        Ok(large)
    }

    fn finish(mut self, question: &Question) -> Result<Answer, QueryError> {
        // Without columns to group by there is one group, even of no rows.
        if question.group_by.is_empty() && self.keys.is_empty() {
            self.place(Key::default())?;
            self.states.iter_mut().for_each(|states| states.resize(1));
        }
        let rows = match question.top {
            None => (0..self.keys.len()).collect(),
            Some(top) => self.top(top, question)?,
        };
        let rows = rows.into_iter().map(|group| self.row(group, question)).collect();
        Ok(Answer { rows, rows_scanned: self.rows_scanned })
    }

    /// The first groups, in order.
    fn top(&self, top: Top, question: &Question) -> Result<Vec<usize>, QueryError> {
        let aggregate = question.aggregates.get(top.by).ok_or(QueryError::Order(top.by))?;
        let value = |group| {
            let value = self.states[top.by].finish(aggregate, group)?;
            Some(if top.order == Order::Descending { -value } else { value })
        };
        let mut groups: Vec<(f64, usize)> = (0..self.keys.len())
            .map(|group| (value(group).unwrap_or(f64::INFINITY), group))
            .collect();
        let compare = |a: &(f64, usize), b: &(f64, usize)| a.0.total_cmp(&b.0);
        if top.count < groups.len() {
            groups.select_nth_unstable_by(top.count, compare);
            groups.truncate(top.count);
        }
        groups.sort_by(compare);
        Ok(groups.into_iter().map(|(_, group)| group).collect())
    }

    fn row(&self, group: usize, question: &Question) -> AnswerRow {
        let key = &self.keys[group];
        let values = self.values.iter().zip(key);
        let states = self.states.iter().zip(&question.aggregates);
        AnswerRow {
            group: values.map(|(values, &number)| values.get(number).clone()).collect(),
            values: states.map(|(states, aggregate)| states.finish(aggregate, group)).collect(),
        }
    }
}
