//! Too many possible groups for a place each: the rows are sorted into partitions by their
//! groups, and then one partition after the other is counted, small enough for the caches. When
//! only the first groups are asked for, only these are kept.
//!
//! Where rows are about as many as possible groups, a partition is a range of groups, each with a
//! place; where they are far fewer, groups are partitioned by their hashes, and hashed again.

use std::ops::Range;

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use crate::QueryError;
use crate::algebra::{Aggregate, Question};
use crate::engine::for_pieces;
use crate::filter::Masks;
use crate::kernels::{BLOCK_ROWS, CodeSlice, WeightScratch, WeightSlice};
use crate::limits::Budget;
use crate::local::{Expected, Local, LocalScratch, Presence};
use crate::prepare::{Plan, Prepared};
use crate::source::Block;
use crate::states::{Layout, States};
use crate::table::{Strides, Table, first, ranks};

/// So that what is left to do between two partitions, and between the rows of one segment and the
/// next, is small beside the rows.
const PARTITIONS_MAX: u64 = 1 << 14;

pub(crate) fn table<'s>(
    plan: &Plan<'s>,
    strides: &Strides,
    budget: &Budget<'_>,
) -> Result<(Table, Layout<'s>), QueryError> {
    let layout = Layout::new(&plan.question.aggregates, &plan.distinct, None);
    let rows = plan.segments.iter().map(|segment| segment.part.rows.len() as u64).sum::<u64>();
    let bits = budget.thresholds.partition_bits.min(u16::BITS);
    let ranges = strides.possible.div_ceil(1 << bits);
    let hashed = ((rows >> bits) + 1).min(PARTITIONS_MAX);
    let is_hashed = ranges > PARTITIONS_MAX
        || strides.possible > rows.saturating_mul(budget.thresholds.groups_per_row);
    let partitions = if is_hashed { hashed } else { ranges };
    let only_counts = plan.question.aggregates.iter().all(|one| matches!(one, Aggregate::Count));
    let is_whole = plan.segments.iter().all(|segment| segment.weight_max().is_some());
    let division = Division { partitions, bits };
    let sparse = Sparse { plan, strides, layout: &layout, budget, rows, division };
    let table = match (is_hashed, only_counts && is_whole) {
        (false, true) => sparse.table::<u16, u16>(),
        (false, false) => sparse.table::<u16, u32>(),
        (true, true) => sparse.table::<u64, u16>(),
        (true, false) => sparse.table::<u64, u32>(),
    }?;
    Ok((table, layout))
}

/// How groups are divided.
#[derive(Clone, Copy)]
struct Division {
    partitions: u64,
    /// Of a group's number within a range.
    bits: u32,
}

/// What is kept of a row's group: its number in a range, or all of it.
trait Key: Copy + Default + Send + Sync {
    fn partition(group: u64, division: Division) -> u64;
    fn of(group: u64, division: Division) -> Self;
    /// How many groups a partition has, if that is known.
    fn groups(division: Division) -> Option<usize>;
    /// Numbers groups that are not known yet.
    fn learn(keys: &[Self], known: &mut Known);
    /// The groups of a partition's rows, numbered from 0 on.
    fn numbers<'b>(keys: &'b [Self], known: &'b Known) -> CodeSlice<'b>;
    /// What a number stands for.
    fn group(number: u32, partition: u64, division: Division, known: &[u64]) -> u64;
}

/// The groups of a partition that was hashed, in the order of their numbers.
#[derive(Default)]
struct Known {
    numbers: HashMap<u64, u32, RandomState>,
    groups: Vec<u64>,
    /// The numbers of the rows that were looked at last.
    of_rows: Vec<u32>,
}

impl Key for u16 {
    fn partition(group: u64, division: Division) -> u64 {
        group >> division.bits
    }

    #[expect(clippy::cast_possible_truncation, reason = "16 bits at most are left")]
    fn of(group: u64, division: Division) -> Self {
        (group & ((1 << division.bits) - 1)) as Self
    }

    fn groups(division: Division) -> Option<usize> {
        Some(1 << division.bits)
    }

    fn learn(_: &[Self], _: &mut Known) {}

    fn numbers<'b>(keys: &'b [Self], _: &'b Known) -> CodeSlice<'b> {
        CodeSlice::U16(keys)
    }

    fn group(number: u32, partition: u64, division: Division, _: &[u64]) -> u64 {
        (partition << division.bits) | u64::from(number)
    }
}

impl Key for u64 {
    fn partition(group: u64, division: Division) -> u64 {
        // Fibonacci hashing: the upper bits depend on all others.
        let hash = group.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((hash >> 32) * division.partitions) >> 32
    }

    fn of(group: u64, _: Division) -> Self {
        group
    }

    fn groups(_: Division) -> Option<usize> {
        None
    }

    fn learn(keys: &[Self], known: &mut Known) {
        let Known { numbers, groups, of_rows } = known;
        of_rows.clear();
        of_rows.extend(keys.iter().map(|&group| {
            *numbers.entry(group).or_insert_with(|| {
                groups.push(group);
                u32::try_from(groups.len() - 1).unwrap_or(u32::MAX)
            })
        }));
    }

    fn numbers<'b>(_: &'b [Self], known: &'b Known) -> CodeSlice<'b> {
        CodeSlice::U32(&known.of_rows)
    }

    fn group(number: u32, _: u64, _: Division, known: &[u64]) -> u64 {
        known[number as usize]
    }
}

/// What is kept of a row: its weight where that is all that counts, else where it is.
trait Kept: Copy + Default + Send + Sync {
    const HAS_ROWS: bool;

    fn append(
        rows: Range<usize>,
        selected: Option<&[u32]>,
        weights: WeightSlice<'_>,
        into: &mut Vec<Self>,
    );
    /// The weights, or the rows.
    fn split(kept: &[Self]) -> (&[u16], &[u32]);
}

impl Kept for u16 {
    const HAS_ROWS: bool = false;

    fn append(_: Range<usize>, _: Option<&[u32]>, weights: WeightSlice<'_>, into: &mut Vec<Self>) {
        match weights {
            WeightSlice::U8(weights) => into.extend(weights.iter().map(|&w| Self::from(w))),
            WeightSlice::U16(weights) => into.extend_from_slice(weights),
            WeightSlice::F64(_) => unreachable!("all weights are whole"),
        }
    }

    fn split(kept: &[Self]) -> (&[u16], &[u32]) {
        (kept, &[])
    }
}

impl Kept for u32 {
    const HAS_ROWS: bool = true;

    fn append(
        rows: Range<usize>,
        selected: Option<&[u32]>,
        _: WeightSlice<'_>,
        into: &mut Vec<Self>,
    ) {
        let narrow = |row| Self::try_from(row).unwrap_or(Self::MAX);
        let start = narrow(rows.start);
        match selected {
            None => into.extend(start..narrow(rows.end)),
            Some(places) => into.extend(places.iter().map(|&place| start + place)),
        }
    }

    fn split(kept: &[Self]) -> (&[u16], &[u32]) {
        (&[], kept)
    }
}

/// The rows of a segment, sorted by partition.
struct Sorted<K, P> {
    /// Where each partition begins, and where the last one ends.
    starts: Vec<u32>,
    keys: Vec<K>,
    kept: Vec<P>,
}

impl<K, P> Sorted<K, P> {
    fn rows(&self, partition: usize) -> Range<usize> {
        self.starts[partition] as usize..self.starts[partition + 1] as usize
    }
}

struct Sparse<'p, 's> {
    plan: &'p Plan<'s>,
    strides: &'p Strides,
    layout: &'p Layout<'s>,
    budget: &'p Budget<'p>,
    rows: u64,
    division: Division,
}

/// Room for the rows of one segment after the other.
#[derive(Default)]
struct SortScratch<P> {
    masks: Masks,
    weights: WeightScratch,
    block: Vec<u64>,
    groups: Vec<u64>,
    kept: Vec<P>,
}

impl Sparse<'_, '_> {
    fn table<K: Key, P: Kept>(&self) -> Result<Table, QueryError> {
        let partitions = self.division.partitions;
        let row_bytes = (size_of::<K>() + size_of::<P>()) as u64;
        let bytes = self.rows.saturating_mul(row_bytes);
        let room = self.budget.thresholds.round_bytes.min(self.budget.left() / 2).max(1) as u64;
        let rounds = bytes.div_ceil(room).clamp(1, partitions);
        let mut all = Groups::new(self.plan.question, self.layout, self.budget);
        for round in 0..rounds {
            let range = partitions * round / rounds..partitions * (round + 1) / rounds;
            let taken = usize::try_from(bytes / rounds).unwrap_or(usize::MAX);
            self.budget.take(taken)?;
            self.round::<K, P>(range, &mut all)?;
            self.budget.give_back(taken);
        }
        Ok(all.finish())
    }

    /// Counts the groups of some partitions.
    fn round<K: Key, P: Kept>(
        &self,
        range: Range<u64>,
        all: &mut Groups<'_>,
    ) -> Result<(), QueryError> {
        let scratch = || (SortScratch::default(), Vec::new());
        let segments = &self.plan.segments;
        let sorters = for_pieces(segments.len(), scratch, |(scratch, sorted), at| {
            let one = self.sort::<K, P>(&segments[at], range.clone(), scratch)?;
            sorted.push((at, one));
            Ok(())
        })?;
        let mut sorted: Vec<_> = sorters.into_iter().flat_map(|(_, sorted)| sorted).collect();
        sorted.sort_by_key(|(at, _)| *at);
        let sorted: Vec<Sorted<K, P>> = sorted.into_iter().map(|(_, sorted)| sorted).collect();
        let pieces = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        let start = || Worker::new(self);
        let workers = for_pieces(pieces, start, |worker, at| {
            worker.add::<K, P>(&sorted, at, range.start + at as u64)
        })?;
        workers.iter().try_for_each(|worker| all.merge(&worker.groups))
    }

    /// Sorts the rows of a segment that are in a range of partitions.
    fn sort<K: Key, P: Kept>(
        &self,
        segment: &Prepared<'_>,
        range: Range<u64>,
        scratch: &mut SortScratch<P>,
    ) -> Result<Sorted<K, P>, QueryError> {
        let SortScratch { masks, weights, block, groups, kept } = scratch;
        groups.clear();
        kept.clear();
        let all = |_| segment.part.rows.end;
        segment.for_blocks(self.budget, masks, all, |rows, selected| {
            block.clear();
            block.resize(rows.len(), 0);
            for (dimension, stride) in segment.dimensions.iter().zip(self.strides.iter()) {
                dimension.add_ids(rows.clone(), stride, block);
            }
            match selected {
                None => groups.extend_from_slice(block),
                Some(places) => groups.extend(places.iter().map(|&place| block[place as usize])),
            }
            let weights = weights.of(segment.weights, rows.clone(), selected);
            P::append(rows, selected, weights, kept);
        })?;
        Ok(sorted(groups, kept, range, self.division))
    }
}

/// A counting sort.
fn sorted<K: Key, P: Kept>(
    groups: &[u64],
    kept: &[P],
    range: Range<u64>,
    division: Division,
) -> Sorted<K, P> {
    let count = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
    // Those of other rounds are below, and wrap, or above.
    let partition = |group: u64| {
        let partition = K::partition(group, division).wrapping_sub(range.start);
        usize::try_from(partition).unwrap_or(usize::MAX).min(count)
    };
    let mut starts = vec![0_u32; count + 2];
    groups.iter().for_each(|&group| starts[partition(group) + 1] += 1);
    for at in 1..starts.len() {
        starts[at] += starts[at - 1];
    }
    let len = starts[count] as usize;
    let (mut keys, mut sorted) = (vec![K::default(); len], vec![P::default(); len]);
    for (&group, &kept) in groups.iter().zip(kept) {
        let next = &mut starts[partition(group)];
        if let (Some(key), Some(place)) =
            (keys.get_mut(*next as usize), sorted.get_mut(*next as usize))
        {
            (*key, *place) = (K::of(group, division), kept);
        }
        *next += 1;
    }
    // Each start has moved to its end, which is the next one's start.
    starts.rotate_right(1);
    starts[0] = 0;
    starts.truncate(count + 1);
    Sorted { starts, keys, kept: sorted }
}

/// What one thread has found.
struct Worker<'p> {
    groups: Groups<'p>,
    locals: Vec<Local>,
    part: Vec<States>,
    part_groups: Vec<u64>,
    known: Known,
    weights: WeightScratch,
    scratch: LocalScratch,
    presence: Presence,
    present: Vec<u32>,
    pairs: Vec<(u32, u32)>,
    sparse: &'p Sparse<'p, 'p>,
    weight_max: Option<u16>,
}

impl<'p> Worker<'p> {
    fn new(sparse: &'p Sparse<'p, 'p>) -> Self {
        let locals = sparse.plan.question.aggregates.iter().zip(&sparse.plan.middles);
        let mut weight_maxes = sparse.plan.segments.iter().map(Prepared::weight_max);
        Self {
            groups: Groups::new(sparse.plan.question, sparse.layout, sparse.budget),
            locals: locals.map(|(aggregate, &middle)| Local::new(aggregate, middle)).collect(),
            part: sparse.layout.states(0),
            part_groups: Vec::new(),
            known: Known::default(),
            weights: WeightScratch::default(),
            scratch: LocalScratch::default(),
            presence: Presence::default(),
            present: Vec::new(),
            pairs: Vec::new(),
            weight_max: weight_maxes.try_fold(0, |most, one| one.map(|one| one.max(most))),
            sparse,
        }
    }

    /// Counts the groups of a partition.
    fn add<K: Key, P: Kept>(
        &mut self,
        sorted: &[Sorted<K, P>],
        at: usize,
        partition: u64,
    ) -> Result<(), QueryError> {
        let rows = sorted.iter().map(|sorted| sorted.rows(at).len()).sum();
        if rows == 0 {
            return Ok(());
        }
        let Self { sparse, weight_max, .. } = *self;
        let groups = K::groups(sparse.division);
        let expected = Expected { groups, rows, weight_max };
        self.locals.iter_mut().for_each(|local| local.reset(expected));
        self.known.numbers.clear();
        self.known.groups.clear();
        self.presence.reset(&self.locals, groups.unwrap_or(0), 0);
        for (sorted, segment) in sorted.iter().zip(&sparse.plan.segments) {
            let rows = sorted.rows(at);
            let pieces = sorted.keys[rows.clone()].chunks(BLOCK_ROWS);
            for (keys, kept) in pieces.zip(sorted.kept[rows].chunks(BLOCK_ROWS)) {
                sparse.budget.check()?;
                self.add_rows(segment, keys, kept);
            }
        }
        self.finish::<K>(partition)
    }

    fn add_rows<K: Key, P: Kept>(&mut self, segment: &Prepared<'_>, keys: &[K], kept: &[P]) {
        K::learn(keys, &mut self.known);
        let groups = K::groups(self.sparse.division).unwrap_or(self.known.groups.len());
        let (weights, rows) = P::split(kept);
        let all = 0..segment.part.segment.rows();
        let block = Block {
            weights: if P::HAS_ROWS {
                self.weights.of(segment.weights, all.clone(), Some(rows))
            } else {
                WeightSlice::U16(weights)
            },
            rows: all,
            selected: P::HAS_ROWS.then_some(rows),
            groups: K::numbers(keys, &self.known),
            base: 0,
        };
        self.presence.grow(groups);
        self.presence.add(&block);
        for (local, source) in self.locals.iter_mut().zip(&segment.sources) {
            local.grow(groups);
            local.add(&block, source, &mut self.scratch);
        }
    }

    /// Adds the groups of the partition to those of all.
    fn finish<K: Key>(&mut self, partition: u64) -> Result<(), QueryError> {
        self.presence.find(&self.locals, &mut self.present);
        self.pairs.clear();
        self.pairs.extend(self.present.iter().copied().zip(0..));
        self.part_groups.clear();
        let group = |&number| K::group(number, partition, self.sparse.division, &self.known.groups);
        self.part_groups.extend(self.present.iter().map(group));
        for (states, local) in self.part.iter_mut().zip(&self.locals) {
            states.resize(0);
            states.resize(self.pairs.len());
            states.add(local, None, &self.pairs);
        }
        self.groups.add(&self.part_groups, &self.part)
    }
}

/// The groups of all partitions so far: the first of them, when only these are asked for.
struct Groups<'p> {
    question: &'p Question,
    layout: &'p Layout<'p>,
    budget: &'p Budget<'p>,
    groups: Vec<u64>,
    states: Vec<States>,
    /// All groups that were left out, as one.
    rest: Vec<States>,
    has_rest: bool,
    /// A group must come before this to be among the first.
    bound: f64,
}

/// So many groups more than were asked for are kept before the last of them are left out.
const SPARE_GROUPS: usize = 1024;

impl<'p> Groups<'p> {
    fn new(question: &'p Question, layout: &'p Layout<'p>, budget: &'p Budget<'p>) -> Self {
        let (groups, states, rest) = (Vec::new(), layout.states(0), layout.states(1));
        let bound = f64::INFINITY;
        Self { question, layout, budget, groups, states, rest, has_rest: false, bound }
    }

    /// Adds groups that are not among these yet.
    fn add(&mut self, groups: &[u64], states: &[States]) -> Result<(), QueryError> {
        let (mut chosen, mut left_out) = (Vec::new(), Vec::new());
        match self.question.top {
            None => chosen.extend(0..groups.len()),
            Some(top) => {
                let ranks = ranks(top, self.question, states, groups.len());
                for (place, rank) in ranks.into_iter().enumerate() {
                    // Until there are enough, also those without a value.
                    let is_ahead = rank < self.bound || self.bound == f64::INFINITY;
                    if is_ahead { chosen.push(place) } else { left_out.push(place) }
                }
            }
        }
        self.budget.take(chosen.len() * (self.layout.bytes() + size_of::<u64>()))?;
        let before = self.groups.len();
        self.groups.extend(chosen.iter().map(|&place| groups[place]));
        for (into, states) in self.states.iter_mut().zip(states) {
            into.resize(self.groups.len());
            into.merge(states, chosen.iter().copied().zip(before..));
        }
        self.leave_out(states, &left_out);
        self.keep_first()
    }

    fn leave_out(&mut self, states: &[States], places: &[usize]) {
        self.has_rest |= !places.is_empty();
        if self.question.with_other || self.question.with_total {
            for (rest, states) in self.rest.iter_mut().zip(states) {
                rest.merge(states, places.iter().map(|&place| (place, 0)));
            }
        }
    }

    /// Leaves out the last groups, once there are many more than asked for.
    fn keep_first(&mut self) -> Result<(), QueryError> {
        let Some(top) = self.question.top else {
            return self.budget.check_groups(self.groups.len());
        };
        self.budget.check_groups(top.count)?;
        if self.groups.len() <= 2 * top.count + SPARE_GROUPS {
            return Ok(());
        }
        let ranks = ranks(top, self.question, &self.states, self.groups.len());
        let kept = first(top, &ranks);
        let mut is_kept = vec![false; self.groups.len()];
        kept.iter().for_each(|&place| is_kept[place] = true);
        let left_out: Vec<usize> = (0..is_kept.len()).filter(|&place| !is_kept[place]).collect();
        self.bound = kept.last().map_or(f64::NEG_INFINITY, |&last| ranks[last]);
        let all = std::mem::replace(&mut self.states, self.layout.states(kept.len()));
        for (states, all) in self.states.iter_mut().zip(&all) {
            states.merge(all, kept.iter().copied().zip(0..));
        }
        self.leave_out(&all, &left_out);
        self.budget.give_back(left_out.len() * (self.layout.bytes() + size_of::<u64>()));
        self.groups = kept.iter().map(|&place| self.groups[place]).collect();
        Ok(())
    }

    /// Adds groups of other partitions.
    fn merge(&mut self, other: &Groups<'_>) -> Result<(), QueryError> {
        self.budget.give_back(other.groups.len() * (self.layout.bytes() + size_of::<u64>()));
        if other.has_rest {
            self.leave_out(&other.rest, &[0]);
        }
        self.add(&other.groups, &other.states)
    }

    fn finish(mut self) -> Table {
        let groups = self.groups.len();
        for (states, rest) in self.states.iter_mut().zip(&self.rest) {
            states.resize(groups + 1);
            states.merge(rest, std::iter::once((0, groups)));
        }
        Table { groups: self.groups, states: self.states, has_rest: self.has_rest }
    }
}
