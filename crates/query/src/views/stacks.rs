//! The distinct lists of a column of vectors, with what the rows that have them weigh.
//!
//! Rows are looked at once, to add up what each list weighs. All that follows is done per distinct
//! list, of which there are far fewer than rows: those of the dataset where it has numbered them,
//! otherwise those of each segment.

use std::ops::AddAssign;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use perflab_model::Kind;
use perflab_store::segment::{
    ColumnData, ListTable, NO_LIST, Segment, SegmentColumn, SharedTrie, Snapshot,
    VocabularyStrings, Way,
};

use crate::QueryError;
use crate::limits::Budget;
use crate::selection::{RowNumbers, Scan, Selection, of_segments, sums_of_segments};
use crate::source::found;

/// What something weighs in one selection of rows.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Load {
    /// The sum of the weights of the rows.
    pub weight: f64,
    /// The sum of their `hits`, 1 where a row has none; unweighted.
    pub samples: f64,
}

impl AddAssign for Load {
    fn add_assign(&mut self, other: Self) {
        self.weight += other.weight;
        self.samples += other.samples;
    }
}

/// What something weighs in selection A and in selection B; nothing in B where none was given.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Sides {
    pub a: Load,
    pub b: Load,
}

impl Sides {
    /// How much more weight it has in A than in B.
    pub fn delta(&self) -> f64 {
        self.a.weight - self.b.weight
    }

    /// What decides which of two is shown first: the weight of both sides.
    pub fn size(&self) -> f64 {
        self.a.weight + self.b.weight
    }
}

impl AddAssign for Sides {
    fn add_assign(&mut self, other: Self) {
        self.a += other.a;
        self.b += other.b;
    }
}

/// The selections that are looked at.
#[derive(Debug)]
pub(crate) struct Scans<'q> {
    a: Scan<'q>,
    b: Option<Scan<'q>>,
}

impl<'q> Scans<'q> {
    pub(crate) fn new(
        a: &'q Selection,
        b: Option<&'q Selection>,
        snapshot: &Snapshot,
        budget: &'q Budget<'q>,
    ) -> Result<Self, QueryError> {
        let b = b.map(|b| Scan::new(b, snapshot, budget)).transpose()?;
        Ok(Self { a: Scan::new(a, snapshot, budget)?, b })
    }
}

/// A column of lists: by its name and kind, and the way that its lists are read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ListColumn<'q> {
    pub(crate) name: &'q str,
    pub(crate) kind: Kind,
    pub(crate) way: Way,
}

impl ListColumn<'_> {
    fn of<'s>(&self, segment: &'s Segment) -> Option<(&'s SegmentColumn, &'s ListTable)> {
        segment.column(self.name, self.kind).zip(segment.lists())
    }
}

/// The lists that rows of the selections have, as numbers of frames.
#[derive(Debug)]
pub(crate) struct Stacks<'s> {
    lists: Lists<'s>,
    way: Way,
    /// Of rows without a list.
    pub(super) without: Sides,
    pub(super) rows_scanned: u64,
}

#[derive(Debug)]
enum Lists<'s> {
    /// As the dataset numbers them.
    Known(Known),
    /// As they are in each segment, with the strings in them, the same of several segments once;
    /// the first is null's, as where the dataset numbers them.
    Parts(Vec<Part<'s>>, Vec<&'s str>),
}

/// The lists of the dataset.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) trie: Arc<SharedTrie>,
    /// What each of them weighs, by its number.
    pub(super) loads: Vec<Sides>,
}

/// What frames are called.
pub(crate) enum Names<'n> {
    Known(VocabularyStrings<'n>),
    Parts(&'n [&'n str]),
}

impl Names<'_> {
    pub(crate) fn get(&self, frame: u32) -> &str {
        match self {
            Self::Known(strings) => strings.get(frame).unwrap_or_default(),
            Self::Parts(strings) => strings.get(frame as usize).copied().unwrap_or_default(),
        }
    }

    /// How many numbers there are, that of null included.
    pub(crate) fn count(&self) -> usize {
        match self {
            Self::Known(strings) => strings.count(),
            Self::Parts(strings) => strings.len(),
        }
    }

    /// The number of a frame, where a list has it.
    pub(super) fn find(&self, name: &str) -> Option<u32> {
        match self {
            Self::Known(strings) => strings.find(name),
            Self::Parts(strings) => {
                let mut frames = (0_u32..).zip(*strings).skip(1);
                frames.find(|(_, string)| **string == name).map(|(frame, _)| frame)
            }
        }
    }
}

impl<'s> Stacks<'s> {
    /// Of a column of vectors.
    pub(super) fn of_vectors(
        name: &str,
        way: Way,
        scans: &Scans<'_>,
        snapshot: &'s Snapshot,
    ) -> Result<Self, QueryError> {
        check_kind(name, snapshot)?;
        Self::new(ListColumn { name, kind: Kind::Vector, way }, scans, snapshot)
    }

    /// Of a column of lists.
    pub(crate) fn new(
        column: ListColumn<'_>,
        scans: &Scans<'_>,
        snapshot: &'s Snapshot,
    ) -> Result<Self, QueryError> {
        let trie = snapshot.vocabularies.lists(column.name, column.kind, column.way);
        match Sum::of(column, &trie, scans, snapshot)? {
            Some(Sum { loads, rows_scanned }) => {
                let without = loads[NO_LIST as usize];
                let lists = Lists::Known(Known { trie, loads });
                Ok(Self { lists, way: column.way, without, rows_scanned })
            }
            None => Self::of_parts(column, scans, snapshot),
        }
    }

    fn of_parts(
        column: ListColumn<'_>,
        scans: &Scans<'_>,
        snapshot: &'s Snapshot,
    ) -> Result<Self, QueryError> {
        let mut parts = of_segments(snapshot, |segment| Part::new(column, scans, segment))?;
        let (mut frames, mut known) = (vec![""], HashMap::<&'s str, u32, RandomState>::default());
        let (mut without, mut rows_scanned) = (Sides::default(), 0);
        for part in &mut parts {
            without += part.loads.pop().unwrap_or_default();
            rows_scanned += part.rows_scanned;
            for item in part.lists.into_iter().flat_map(|lists| lists.items().iter()) {
                part.frames.push(*known.entry(item).or_insert_with(|| {
                    frames.push(item);
                    u32::try_from(frames.len() - 1).unwrap_or(u32::MAX)
                }));
            }
        }
        let lists = Lists::Parts(parts, frames);
        Ok(Self { lists, way: column.way, without, rows_scanned })
    }

    /// Those of the dataset, if it has numbered them.
    pub(super) fn known(&self) -> Option<&Known> {
        match &self.lists {
            Lists::Known(known) => Some(known),
            Lists::Parts(..) => None,
        }
    }

    pub(crate) fn names(&self) -> Names<'_> {
        match &self.lists {
            Lists::Known(known) => Names::Known(known.trie.items().strings()),
            Lists::Parts(_, frames) => Names::Parts(frames),
        }
    }

    /// Shows each list that a row has, as numbers of frames.
    pub(crate) fn each(
        &self,
        mut see: impl FnMut(&[u32], Sides) -> Result<(), QueryError>,
    ) -> Result<(), QueryError> {
        match &self.lists {
            Lists::Known(known) => known.each(see),
            Lists::Parts(parts, _) => {
                parts.iter().try_for_each(|part| part.each(self.way, &mut see))
            }
        }
    }
}

impl Known {
    fn each(
        &self,
        mut see: impl FnMut(&[u32], Sides) -> Result<(), QueryError>,
    ) -> Result<(), QueryError> {
        let (trie, mut list) = (self.trie.read(), Vec::new());
        for (number, load) in (0_u32..).zip(&self.loads) {
            if number != NO_LIST && *load != Sides::default() {
                trie.list(number, &mut list);
                see(&list, *load)?;
            }
        }
        Ok(())
    }
}

/// What each list of the dataset weighs, by its number.
#[derive(Debug)]
struct Sum {
    /// As many as there are numbers in the segments so far.
    loads: Vec<Sides>,
    rows_scanned: u64,
}

impl Sum {
    /// `None` where the dataset has too many lists to number them.
    fn of(
        column: ListColumn<'_>,
        trie: &Arc<SharedTrie>,
        scans: &Scans<'_>,
        snapshot: &Snapshot,
    ) -> Result<Option<Self>, QueryError> {
        let new = || Some(Self { loads: vec![Sides::default()], rows_scanned: 0 });
        let sums = sums_of_segments(
            snapshot,
            || Ok(new()),
            |sum, segment| {
                if let Some(some) = sum
                    && !some.add(column, trie, scans, segment)?
                {
                    *sum = None;
                }
                Ok(())
            },
        )?;
        let together = |one: Option<Self>, other| one.zip(other).map(|(x, y)| x.joined(y));
        Ok(sums.into_iter().reduce(together).unwrap_or_else(new))
    }

    /// False where the segment's lists have no numbers.
    fn add(
        &mut self,
        column: ListColumn<'_>,
        trie: &Arc<SharedTrie>,
        scans: &Scans<'_>,
        segment: &Segment,
    ) -> Result<bool, QueryError> {
        let mut numbers: Arc<[u32]> = [NO_LIST].into();
        if let Some((column, lists)) = column.of(segment) {
            let Some(found) = column.list_numbers(lists, trie)? else { return Ok(false) };
            numbers = found;
        }
        let last = numbers.iter().copied().max().unwrap_or(NO_LIST) as usize;
        if last >= self.loads.len() {
            scans.a.budget().take((last + 1 - self.loads.len()) * size_of::<Sides>())?;
            self.loads.resize(last + 1, Sides::default());
        }
        let place = |id: u32| numbers[id as usize] as usize;
        self.rows_scanned += add_loads(column, scans, segment, &mut self.loads, place)?;
        Ok(true)
    }

    fn joined(self, other: Self) -> Self {
        let rows_scanned = self.rows_scanned + other.rows_scanned;
        let (mut loads, mut fewer) = (self.loads, other.loads);
        if loads.len() < fewer.len() {
            std::mem::swap(&mut loads, &mut fewer);
        }
        loads.iter_mut().zip(fewer).for_each(|(load, more)| *load += more);
        Self { loads, rows_scanned }
    }
}

/// The lists of one segment.
#[derive(Debug)]
struct Part<'s> {
    lists: Option<&'s ListTable>,
    /// What each list weighs; at the end, what rows without one weigh.
    loads: Vec<Sides>,
    /// The number of each of the segment's items among all frames.
    frames: Vec<u32>,
    rows_scanned: u64,
}

impl<'s> Part<'s> {
    fn new(
        column: ListColumn<'_>,
        scans: &Scans<'_>,
        segment: &'s Segment,
    ) -> Result<Self, QueryError> {
        let lists = column.of(segment).map(|(_, lists)| lists);
        lists.map_or(Ok(()), ListTable::check)?;
        let count = lists.map_or(0, ListTable::len) + 1;
        scans.a.budget().take(count * size_of::<Sides>())?;
        let mut loads = vec![Sides::default(); count];
        let rows_scanned = add_loads(column, scans, segment, &mut loads, |id| id as usize)?;
        Ok(Self { lists, loads, frames: Vec::new(), rows_scanned })
    }

    fn each(
        &self,
        way: Way,
        mut see: impl FnMut(&[u32], Sides) -> Result<(), QueryError>,
    ) -> Result<(), QueryError> {
        let Some(lists) = self.lists else { return Ok(()) };
        let mut list = Vec::new();
        for (id, load) in (0_u32..).zip(&self.loads) {
            if *load == Sides::default() {
                continue;
            }
            list.clear();
            list.extend(lists.codes(id).map(|code| self.frames[code as usize]));
            if way == Way::Backward {
                list.reverse();
            }
            see(&list, *load)?;
        }
        Ok(())
    }
}

/// Adds what each row weighs to the place of its list; returns how many rows were looked at. A
/// segment without the column has one place, for rows without a list.
fn add_loads(
    column: ListColumn<'_>,
    scans: &Scans<'_>,
    segment: &Segment,
    loads: &mut [Sides],
    place: impl Fn(u32) -> usize,
) -> Result<u64, QueryError> {
    let ids = match column.of(segment).map(|(column, _)| column.data()).transpose()? {
        Some(ColumnData::List { ids }) => Some(ids),
        Some(_) | None => None,
    };
    let (weights, hits) = (segment.weights()?, RowNumbers::new("hits", segment)?);
    let load =
        |row: usize| Load { weight: weights.get(row), samples: hits.get(row).unwrap_or(1.0) };
    let place = |row: usize| place(ids.as_ref().map_or(0, |ids| ids.get(row)));
    let mut rows_scanned = scans.a.each_row(segment, |row| loads[place(row)].a += load(row))?;
    if let Some(b) = &scans.b {
        rows_scanned += b.each_row(segment, |row| loads[place(row)].b += load(row))?;
    }
    Ok(rows_scanned)
}

/// A column that is there, but never as vectors, is a mistake; one that is nowhere has no rows.
fn check_kind(column: &str, snapshot: &Snapshot) -> Result<(), QueryError> {
    let mut kinds = snapshot
        .segments
        .iter()
        .flat_map(|segment| segment.columns_named(column))
        .map(|column| column.kind())
        .peekable();
    match kinds.peek().copied() {
        Some(kind) if !kinds.any(|kind| kind == Kind::Vector) => {
            Err(QueryError::NoVectors { column: column.to_owned(), found: found(kind) })
        }
        _ => Ok(()),
    }
}
