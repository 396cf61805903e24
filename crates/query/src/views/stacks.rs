//! The distinct lists of a column of vectors, with what the rows that have them weigh.
//!
//! Rows are looked at once, to add up what each list of a segment weighs. All that follows is
//! done per distinct list, of which there are far fewer than rows.

use std::ops::AddAssign;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use perflab_model::Kind;
use perflab_store::segment::{ColumnData, ListTable, Segment, SegmentColumn, Snapshot};

use crate::QueryError;
use crate::limits::Budget;
use crate::selection::{RowNumbers, Scan, Selection, of_segments};
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

/// The lists of all segments that rows of the selections have.
#[derive(Debug)]
pub(crate) struct Stacks<'s> {
    /// The strings in lists, the same string of several segments once.
    pub(crate) frames: Vec<&'s str>,
    parts: Vec<Part<'s>>,
    /// Of rows without a list.
    pub(super) without: Sides,
    pub(super) rows_scanned: u64,
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

impl<'s> Stacks<'s> {
    /// Of a column of vectors.
    pub(super) fn of_vectors(
        column: &str,
        a: &Selection,
        b: Option<&Selection>,
        snapshot: &'s Snapshot,
        budget: &Budget<'_>,
    ) -> Result<Self, QueryError> {
        check_kind(column, snapshot)?;
        Self::new((column, Kind::Vector), a, b, snapshot, budget)
    }

    /// Of a column of lists, by its name and kind.
    pub(crate) fn new(
        column: (&str, Kind),
        a: &Selection,
        b: Option<&Selection>,
        snapshot: &'s Snapshot,
        budget: &Budget<'_>,
    ) -> Result<Self, QueryError> {
        let a = Scan::new(a, snapshot, budget)?;
        let b = b.map(|b| Scan::new(b, snapshot, budget)).transpose()?;
        let parts = of_segments(snapshot, |segment| Part::new(column, &a, b.as_ref(), segment))?;
        let rows_scanned = parts.iter().map(|part| part.rows_scanned).sum();
        let mut stacks =
            Self { frames: Vec::new(), parts, without: Sides::default(), rows_scanned };
        stacks.number_frames();
        Ok(stacks)
    }

    fn number_frames(&mut self) {
        let mut known: HashMap<&'s str, u32, RandomState> = HashMap::default();
        for part in &mut self.parts {
            self.without += part.loads.pop().unwrap_or_default();
            for item in part.lists.into_iter().flat_map(|lists| lists.items().iter()) {
                part.frames.push(*known.entry(item).or_insert_with(|| {
                    self.frames.push(item);
                    u32::try_from(self.frames.len() - 1).unwrap_or(u32::MAX)
                }));
            }
        }
    }

    /// The number of a frame, where a list has it.
    pub(super) fn frame(&self, name: &str) -> Option<u32> {
        let place = self.frames.iter().position(|frame| *frame == name)?;
        u32::try_from(place).ok()
    }

    /// Shows each list that a row has, as numbers of frames from the root to the leaf.
    pub(crate) fn each(
        &self,
        mut see: impl FnMut(&[u32], Sides) -> Result<(), QueryError>,
    ) -> Result<(), QueryError> {
        let mut list = Vec::new();
        for part in &self.parts {
            let Some(lists) = part.lists else { continue };
            for (id, load) in (0_u32..).zip(&part.loads) {
                if *load == Sides::default() {
                    continue;
                }
                list.clear();
                list.extend(lists.codes(id).map(|code| part.frames[code as usize]));
                see(&list, *load)?;
            }
        }
        Ok(())
    }
}

impl<'s> Part<'s> {
    fn new(
        column: (&str, Kind),
        a: &Scan<'_>,
        b: Option<&Scan<'_>>,
        segment: &'s Segment,
    ) -> Result<Self, QueryError> {
        let lists = segment.lists();
        lists.map_or(Ok(()), ListTable::check)?;
        let count = lists.map_or(0, ListTable::len) + 1;
        a.budget().take(count * size_of::<Sides>())?;
        let mut loads = vec![Sides::default(); count];
        let mut rows_scanned = add_loads(column, a, segment, &mut loads, |sides| &mut sides.a)?;
        if let Some(b) = b {
            rows_scanned += add_loads(column, b, segment, &mut loads, |sides| &mut sides.b)?;
        }
        Ok(Self { lists, loads, frames: Vec::new(), rows_scanned })
    }
}

/// Adds what each row weighs to its list; returns how many rows were looked at.
fn add_loads(
    (name, kind): (&str, Kind),
    scan: &Scan<'_>,
    segment: &Segment,
    loads: &mut [Sides],
    side: impl Fn(&mut Sides) -> &mut Load,
) -> Result<u64, QueryError> {
    let ids = match segment.column(name, kind).map(SegmentColumn::data).transpose()? {
        Some(ColumnData::List { ids }) => Some(ids),
        Some(_) | None => None,
    };
    let (weights, hits) = (segment.weights()?, RowNumbers::new("hits", segment)?);
    let without = loads.len() - 1;
    scan.each_row(segment, |row| {
        let id = ids.map_or(without, |ids| ids.get(row) as usize);
        let samples = hits.get(row).unwrap_or(1.0);
        *side(&mut loads[id]) += Load { weight: weights.get(row), samples };
    })
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
