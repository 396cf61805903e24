//! A place for every possible group. Those of a segment are counted by its own codes, in arrays
//! that fit the caches, which are then added to the arrays of all segments.

use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;

use crate::QueryError;
use crate::cache::{Found, Spot};
use crate::engine::for_pieces;
use crate::filter::Masks;
use crate::group::{Buckets, LocalCodes, LocalDimension};
use crate::kernels::{CodeSlice, WeightScratch};
use crate::limits::Budget;
use crate::local::{Expected, Local, LocalScratch, Presence};
use crate::prepare::{Plan, Prepared};
use crate::source::Block;
use crate::states::{Layout, States};
use crate::table::{Strides, Table};

/// Buckets of time are runs of rows where these are at least so long on average; where they are
/// shorter, rows have the codes of their buckets.
const RUN_ROWS_MIN: usize = 1024;

/// `None` when there are too many possible groups.
pub(crate) fn table<'s>(
    plan: &Plan<'s>,
    strides: &Strides,
    budget: &Budget<'_>,
) -> Result<Option<(Table, Layout<'s>)>, QueryError> {
    let aggregates = &plan.question.aggregates;
    let Some(places) = places(plan, strides, budget) else { return Ok(None) };
    let layout = Layout::new(aggregates, &plan.distinct, Some(places));
    if !takes(&layout, &plan.found) {
        return Ok(None);
    }
    budget.take(rayon::current_num_threads() * places * (layout.bytes() + 1))?;
    let start = || Worker::new(plan, &layout, places);
    let workers = for_pieces(plan.segments.len(), start, |worker, at| {
        worker.add(&plan.segments[at], strides, budget)?;
        worker.remember(plan, at, &layout, strides);
        Ok(())
    })?;
    let mut workers = workers.into_iter();
    let mut all = workers.next().unwrap_or_else(start);
    workers.for_each(|worker| all.merge(&worker));
    plan.found.iter().for_each(|(spot, found)| all.recall(spot, found, strides));
    // Without columns to group by there is one group, even of no rows.
    if plan.question.group_by.is_empty() {
        all.seen.fill(1);
    }
    Ok(Some((all.finish(&layout), layout)))
}

/// Whether all that segments said before can be used.
fn takes(layout: &Layout<'_>, found: &[(Spot, Arc<Found>)]) -> bool {
    let none = layout.states(0);
    found
        .iter()
        .all(|(_, found)| none.iter().zip(&found.states).all(|(one, other)| one.takes(other)))
}

/// How many places are needed, unless they are too many.
fn places(plan: &Plan<'_>, strides: &Strides, budget: &Budget<'_>) -> Option<usize> {
    let places = usize::try_from(strides.possible).ok()?;
    let layout = Layout::new(&plan.question.aggregates, &plan.distinct, Some(places));
    let bytes = places.checked_mul(layout.bytes() + 1)?;
    let workers = rayon::current_num_threads();
    let fits_segments = plan.segments.iter().all(|segment| {
        let counts = segment.dimensions.iter().map(|dimension| dimension.codes.count());
        let groups = counts.fold(1, usize::saturating_mul);
        groups <= budget.thresholds.segment_groups
    });
    let fits = bytes <= budget.thresholds.table_bytes
        && bytes.saturating_mul(workers) <= budget.left()
        && fits_segments;
    // All rows together always have their place.
    (fits || plan.question.group_by.is_empty()).then_some(places)
}

/// What one thread has found.
struct Worker {
    /// 1 for each group that has a row.
    seen: Vec<u8>,
    states: Vec<States>,
    locals: Vec<Local>,
    scratch: Scratch,
}

/// Room that is used for one segment after the other.
#[derive(Default)]
struct Scratch {
    masks: Masks,
    groups: GroupScratch,
    weights: WeightScratch,
    local: LocalScratch,
    presence: Presence,
    present: Vec<u32>,
    places: Vec<u64>,
    pairs: Vec<(u32, u32)>,
}

impl Worker {
    fn new(plan: &Plan<'_>, layout: &Layout<'_>, places: usize) -> Self {
        let locals = plan.question.aggregates.iter().zip(&plan.middles);
        Self {
            seen: vec![0; places],
            states: layout.states(places),
            locals: locals.map(|(aggregate, &middle)| Local::new(aggregate, middle)).collect(),
            scratch: Scratch::default(),
        }
    }

    fn add(
        &mut self,
        segment: &Prepared<'_>,
        strides: &Strides,
        budget: &Budget<'_>,
    ) -> Result<(), QueryError> {
        let groups = LocalGroups::new(segment, strides);
        let expected = Expected {
            groups: Some(groups.count),
            rows: segment.part.rows.len(),
            weight_max: segment.weight_max(),
        };
        for (local, source) in self.locals.iter_mut().zip(&segment.sources) {
            local.reset_for(expected, source);
        }
        self.scan(segment, &groups, budget)?;
        self.find_pairs(&groups);
        self.scratch.pairs.iter().for_each(|&(_, place)| self.seen[place as usize] = 1);
        for ((states, local), source) in
            self.states.iter_mut().zip(&self.locals).zip(&segment.sources)
        {
            states.add(local, Some(source), &self.scratch.pairs);
        }
        Ok(())
    }

    fn scan(
        &mut self,
        segment: &Prepared<'_>,
        groups: &LocalGroups<'_>,
        budget: &Budget<'_>,
    ) -> Result<(), QueryError> {
        let used = segment.used_codes();
        let Scratch { masks, groups: of_rows, weights, local: scratch, presence, .. } =
            &mut self.scratch;
        presence.reset(&self.locals, groups.count, used.unwrap_or(0));
        let (locals, rows) = (&mut self.locals, segment.part.rows.clone());
        let run = Cell::new(Run { end: rows.start, base: 0 });
        let cut = |row: usize| {
            if row >= run.get().end {
                run.set(groups.run(row..rows.end));
            }
            run.get().end
        };
        segment.for_blocks(budget, masks, cut, |rows, selected| {
            let block = Block {
                groups: groups.of_block(rows.clone(), selected, of_rows),
                base: run.get().base,
                weights: weights.of(segment.weights, rows.clone(), selected),
                selected,
                rows,
            };
            if used.is_none() {
                presence.add(&block);
            }
            for (local, source) in locals.iter_mut().zip(&segment.sources) {
                local.add(&block, source, scratch);
            }
        })
    }

    /// Finds the groups that have rows, and the places they are added to.
    fn find_pairs(&mut self, groups: &LocalGroups<'_>) {
        let Scratch { presence, present, places, pairs, .. } = &mut self.scratch;
        groups.places(places);
        presence.find(&self.locals, present);
        let place = |group: u32| u32::try_from(places[group as usize]).unwrap_or(u32::MAX);
        pairs.clear();
        pairs.extend(present.iter().map(|&group| (group, place(group))));
    }

    /// Keeps what the segment that was just looked at has said, for a question after this one.
    fn remember(&self, plan: &Plan<'_>, at: usize, layout: &Layout<'_>, strides: &Strides) {
        let segment = &plan.segments[at];
        let (Some(recall), Some(spot)) = (&plan.recall, &segment.part.spot) else { return };
        let pairs = &self.scratch.pairs;
        let renumbered: Vec<(u32, u32)> =
            (0..).zip(pairs).map(|(number, &(group, _))| (group, number)).collect();
        let mut states = layout.states(renumbered.len());
        for ((states, local), source) in states.iter_mut().zip(&self.locals).zip(&segment.sources) {
            states.add(local, Some(source), &renumbered);
        }
        let groups = pairs.iter().map(|&(_, place)| strides.ids(place.into()));
        recall.keep(spot, groups, states);
    }

    /// Adds what a segment has said before.
    fn recall(&mut self, spot: &Spot, found: &Found, strides: &Strides) {
        let place = |ids: &[u32]| {
            let numbers = ids.iter().zip(&spot.firsts).map(|(id, first)| u64::from(id + first));
            let place: u64 = numbers.zip(strides.iter()).map(|(id, stride)| id * stride).sum();
            usize::try_from(place).unwrap_or(usize::MAX)
        };
        let places: Vec<usize> = found.groups().map(place).collect();
        places.iter().for_each(|&place| self.seen[place] = 1);
        for (states, found) in self.states.iter_mut().zip(&found.states) {
            states.merge(found, places.iter().copied().enumerate());
        }
    }

    fn merge(&mut self, other: &Self) {
        let places = other.seen.iter().enumerate().filter(|(_, seen)| **seen == 1);
        for (states, other) in self.states.iter_mut().zip(&other.states) {
            states.merge(other, places.clone().map(|(place, _)| (place, place)));
        }
        self.seen.iter_mut().zip(&other.seen).for_each(|(seen, other)| *seen |= other);
    }

    /// Only the groups that have rows.
    fn finish(self, layout: &Layout<'_>) -> Table {
        let groups: Vec<u64> =
            (0..).zip(&self.seen).filter(|(_, seen)| **seen == 1).map(|(place, _)| place).collect();
        let mut states = layout.states(groups.len() + 1);
        for (states, all) in states.iter_mut().zip(&self.states) {
            let places = groups.iter().map(|&place| usize::try_from(place).unwrap_or(usize::MAX));
            states.merge(all, places.zip(0..));
        }
        Table { groups, states, has_rest: false }
    }
}

/// What the codes of several dimensions are put together in: the narrower, the more at a time.
trait Number: Copy + Default {
    /// For what is known to fit.
    fn of(code: u32) -> Self;
    fn plus(self, code: Self, stride: Self) -> Self;
}

impl Number for u16 {
    #[expect(clippy::cast_possible_truncation, reason = "known to fit")]
    fn of(code: u32) -> Self {
        code as Self
    }

    fn plus(self, code: Self, stride: Self) -> Self {
        self.wrapping_add(code.wrapping_mul(stride))
    }
}

impl Number for u32 {
    fn of(code: u32) -> Self {
        code
    }

    fn plus(self, code: Self, stride: Self) -> Self {
        self.wrapping_add(code.wrapping_mul(stride))
    }
}

/// Room for the groups of a block.
#[derive(Default)]
struct GroupScratch {
    narrow: Vec<u16>,
    wide: Vec<u32>,
    chosen: Vec<u32>,
}

/// The groups of a segment, numbered by its own codes.
struct LocalGroups<'p> {
    /// What the codes of each dimension are multiplied by to make one number, that of the runs
    /// left out.
    codes: Vec<(&'p LocalDimension<'p>, u32)>,
    /// The dimension whose buckets are runs of rows, and what its codes are multiplied by.
    runs: Option<(Buckets<'p>, usize)>,
    /// All dimensions, those with the smallest factors first, with their factors over all
    /// segments.
    ordered: Vec<(&'p LocalDimension<'p>, u64)>,
    count: usize,
}

/// Rows that follow each other in the same bucket of time.
#[derive(Clone, Copy)]
struct Run {
    end: usize,
    /// The first of their groups.
    base: usize,
}

impl<'p> LocalGroups<'p> {
    fn new(segment: &'p Prepared<'p>, strides: &Strides) -> Self {
        let rows = segment.part.rows.len();
        let mut ordered: Vec<_> = segment.dimensions.iter().zip(strides.iter()).collect();
        let is_runs = |dimension: &LocalDimension<'_>| {
            matches!(dimension.codes, LocalCodes::Time(buckets)
                if buckets.count().saturating_mul(RUN_ROWS_MIN) <= rows)
        };
        // The groups of a run then follow each other.
        if let Some(at) = ordered.iter().position(|(dimension, _)| is_runs(dimension)) {
            let runs = ordered.remove(at);
            ordered.push(runs);
        }
        let (mut codes, mut runs, mut count) = (Vec::new(), None, 1);
        for (n, &(dimension, _)) in ordered.iter().enumerate() {
            if let LocalCodes::Time(buckets) = dimension.codes
                && n + 1 == ordered.len()
                && is_runs(dimension)
            {
                runs = Some((buckets, count));
            } else {
                codes.push((dimension, u32::try_from(count).unwrap_or(u32::MAX)));
            }
            count *= dimension.codes.count();
        }
        Self { codes, runs, ordered, count }
    }

    /// The run that begins with the first of these rows.
    fn run(&self, rows: Range<usize>) -> Run {
        match &self.runs {
            None => Run { end: rows.end, base: 0 },
            Some((buckets, stride)) => {
                let (code, end) = buckets.run(rows);
                Run { end, base: code * stride }
            }
        }
    }

    /// The groups of the chosen rows of a block, counted from the first of their run.
    fn of_block<'b>(
        &'b self,
        rows: Range<usize>,
        selected: Option<&[u32]>,
        scratch: &'b mut GroupScratch,
    ) -> CodeSlice<'b> {
        if self.codes.is_empty() {
            return CodeSlice::zeros(selected.map_or(rows.len(), <[u32]>::len));
        }
        if let [(dimension, 1)] = self.codes[..]
            && let Some(codes) = dimension.codes.slice(rows.clone())
        {
            return match selected {
                None => codes,
                Some(places) => codes.gather(places, &mut scratch.wide),
            };
        }
        let made = if self.count <= 1 << u16::BITS {
            self.fill(rows, &mut scratch.narrow);
            CodeSlice::U16(&scratch.narrow)
        } else {
            self.fill(rows, &mut scratch.wide);
            CodeSlice::U32(&scratch.wide)
        };
        match selected {
            None => made,
            Some(places) => made.gather(places, &mut scratch.chosen),
        }
    }

    /// The groups of all rows of a block.
    fn fill<N: Number>(&self, rows: Range<usize>, groups: &mut Vec<N>) {
        groups.resize(rows.len(), N::default());
        for (n, &(dimension, stride)) in self.codes.iter().enumerate() {
            if n == 0 {
                dimension.codes.for_each(rows.clone(), groups, |group, code| *group = N::of(code));
            } else {
                let add = |group: &mut N, code| *group = group.plus(N::of(code), N::of(stride));
                dimension.codes.for_each(rows.clone(), groups, add);
            }
        }
    }

    /// The place of each group among those of all segments.
    fn places(&self, places: &mut Vec<u64>) {
        places.clear();
        places.push(0);
        for (dimension, stride) in &self.ordered {
            let count = places.len();
            for &id in &dimension.ids[1..] {
                places.extend_from_within(..count);
                let last = places.len() - count;
                places[last..].iter_mut().for_each(|place| *place += u64::from(id) * stride);
            }
            let first = u64::from(dimension.ids[0]) * stride;
            places[..count].iter_mut().for_each(|place| *place += first);
        }
    }
}
