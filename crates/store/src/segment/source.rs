//! Where the rows of a new segment come from, and their columns one after the other.

use std::collections::BTreeSet;
use std::hash::BuildHasher as _;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use perflab_model::batch::{Data, Dictionary};
use perflab_model::{Batch, Kind};

use super::dictionary::Union;
use super::{ColumnData, ListTable, Segment, SegmentColumn, SegmentError, Stored, Strings};

/// The code of null while a segment is built.
pub(super) const NULL: u32 = u32::MAX;
/// In a translation: not asked for yet.
const UNSEEN: u32 = u32::MAX - 1;

/// Rows to make a segment of.
#[derive(Debug, Clone, Copy)]
pub enum Source<'a> {
    Batch(&'a Batch),
    Segment(&'a Segment),
}

impl<'a> Source<'a> {
    pub(super) fn rows(self) -> usize {
        match self {
            Self::Batch(batch) => batch.len(),
            Self::Segment(segment) => segment.rows(),
        }
    }

    pub(super) fn times(self) -> Result<&'a [i64], SegmentError> {
        match self {
            Self::Batch(batch) => Ok(batch.times()),
            Self::Segment(segment) => segment.times(),
        }
    }

    pub(super) fn append_weights(self, into: &mut Vec<f64>) -> Result<(), SegmentError> {
        match self {
            Self::Batch(batch) => into.extend_from_slice(batch.weights()),
            Self::Segment(segment) => {
                let weights = segment.weights()?;
                into.extend((0..segment.rows()).map(|row| weights.get(row)));
            }
        }
        Ok(())
    }

    pub(super) fn add_columns(self, into: &mut BTreeSet<(String, Kind)>) {
        match self {
            Self::Batch(batch) => {
                let columns = batch.columns().iter();
                into.extend(columns.map(|column| (column.name().to_owned(), column.kind())));
            }
            Self::Segment(segment) => {
                let columns = segment.columns().iter();
                into.extend(columns.map(|column| (column.name().to_owned(), column.kind())));
            }
        }
    }

    /// `None` when it has no such column: all null.
    pub(super) fn column(
        self,
        name: &str,
        kind: Kind,
    ) -> Result<Option<SourceColumn<'a>>, SegmentError> {
        match self {
            Self::Batch(batch) => Ok(batch.column(name, kind).map(SourceColumn::Batch)),
            Self::Segment(segment) => match segment.column(name, kind) {
                None => Ok(None),
                Some(column) => Ok(Some(SourceColumn::read(segment, column)?)),
            },
        }
    }
}

/// A column of a source.
#[derive(Debug, Clone, Copy)]
pub(super) enum SourceColumn<'a> {
    /// May be shorter than its batch: the rest is null.
    Batch(&'a perflab_model::batch::Column),
    Segment {
        rows: usize,
        stored: &'a Stored,
        lists: Option<&'a ListTable>,
    },
}

impl<'a> SourceColumn<'a> {
    fn read(segment: &'a Segment, column: &'a SegmentColumn) -> Result<Self, SegmentError> {
        let lists = segment.lists();
        lists.map_or(Ok(()), ListTable::check)?;
        Ok(Self::Segment { rows: segment.rows(), stored: column.stored()?, lists })
    }

    /// How many values it has at most.
    pub(super) fn values_max(self) -> usize {
        match self {
            Self::Batch(column) => column.validity().len() - column.validity().nulls(),
            Self::Segment { rows, stored: Stored::Dense(_), .. } => rows,
            Self::Segment { stored: Stored::Sparse(sparse), .. } => sparse.rows().len(),
        }
    }

    /// Shows each row that has a value, with the value.
    pub(super) fn ints(self, mut see: impl FnMut(usize, i64)) {
        match self {
            Self::Batch(column) => {
                let Data::Int(values) = column.data() else { return };
                column.validity().valid().for_each(|row| see(row, values[row]));
            }
            Self::Segment { rows, stored, .. } => {
                let ColumnData::Int { values, validity } = stored.values() else { return };
                each_place(stored, rows, |row, place| {
                    if validity.as_ref().is_none_or(|valid| valid.value(place)) {
                        see(row, values.get(place));
                    }
                });
            }
        }
    }

    /// The same for floats.
    pub(super) fn floats(self, mut see: impl FnMut(usize, f64)) {
        let mut see_number = |row, value: f64| {
            if !value.is_nan() {
                see(row, value);
            }
        };
        match self {
            Self::Batch(column) => {
                let Data::Float(values) = column.data() else { return };
                column.validity().valid().for_each(|row| see_number(row, values[row]));
            }
            Self::Segment { rows, stored, .. } => {
                let ColumnData::Float { values } = stored.values() else { return };
                each_place(stored, rows, |row, place| see_number(row, values[place]));
            }
        }
    }

    /// The same for the codes of a segment's strings, which are returned.
    pub(super) fn codes(self, mut see: impl FnMut(usize, u32)) -> Option<&'a Strings> {
        let Self::Segment { rows, stored, .. } = self else { return None };
        let ColumnData::String { codes, strings } = stored.values() else { return None };
        each_place(stored, rows, |row, place| {
            let code = codes.get(place);
            if (code as usize) < strings.len() {
                see(row, code);
            }
        });
        Some(strings)
    }
}

/// Shows each row of which something is stored, and its place among the values.
#[inline]
fn each_place(stored: &Stored, rows: usize, mut see: impl FnMut(usize, usize)) {
    match stored {
        Stored::Dense(_) => (0..rows).for_each(|row| see(row, row)),
        Stored::Sparse(sparse) => {
            let rows = sparse.rows().iter().enumerate();
            rows.for_each(|(place, &row)| see(row as usize, place));
        }
    }
}

/// From the codes of one dictionary to those of a union; only what is used gets there.
pub(super) struct Translation(Vec<u32>);

impl Translation {
    pub(super) fn new(codes: usize) -> Self {
        Self(vec![UNSEEN; codes])
    }

    pub(super) fn get(&mut self, code: u32, make: impl FnOnce() -> u32) -> u32 {
        let known = &mut self.0[code as usize];
        if *known == UNSEEN {
            *known = make();
        }
        *known
    }
}

/// Distinct lists of several sources, and their distinct items.
#[derive(Debug, Default)]
pub(super) struct ListUnion<'a> {
    pub(super) items: Union<'a>,
    /// Lists, by their items.
    ids: HashTable<u32>,
    hasher: RandomState,
    /// Where each list ends in `codes`.
    pub(super) ends: Vec<usize>,
    /// Items, by their numbers.
    pub(super) codes: Vec<u32>,
}

impl<'a> ListUnion<'a> {
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    fn intern(&mut self, list: &[u32]) -> u32 {
        let Self { ids, hasher, ends, codes, .. } = self;
        let hash = hasher.hash_one(list);
        if let Some(&id) = ids.find(hash, |&id| part(codes, ends, id) == list) {
            return id;
        }
        let id = u32::try_from(ends.len()).unwrap_or(NULL);
        codes.extend_from_slice(list);
        ends.push(codes.len());
        ids.insert_unique(hash, id, |&id| hasher.hash_one(part(codes, ends, id)));
        id
    }

    /// Shows each row of a column of lists that has one, and its id.
    pub(super) fn of_column(&mut self, column: SourceColumn<'a>, see: impl FnMut(usize, u32)) {
        match column {
            SourceColumn::Batch(column) => self.of_batch(column, see),
            SourceColumn::Segment { rows, stored, lists: Some(lists) } => {
                self.of_segment((stored, rows), lists, see);
            }
            SourceColumn::Segment { .. } => {}
        }
    }

    fn of_batch(
        &mut self,
        column: &'a perflab_model::batch::Column,
        mut see: impl FnMut(usize, u32),
    ) {
        let (Data::Set(lists) | Data::Vector(lists)) = column.data() else { return };
        let dictionary: &'a Dictionary = lists.dictionary();
        let mut known = Translation::new(dictionary.len());
        let mut list = Vec::new();
        let end = |row: usize| lists.ends()[row] as usize;
        for row in column.validity().valid() {
            let start = row.checked_sub(1).map_or(0, end);
            list.clear();
            for &code in &lists.codes()[start..end(row)] {
                let items = &mut self.items;
                list.push(known.get(code, || items.intern(dictionary.get(code))));
            }
            see(row, self.intern(&list));
        }
    }

    fn of_segment(
        &mut self,
        (stored, rows): (&Stored, usize),
        lists: &'a ListTable,
        mut see: impl FnMut(usize, u32),
    ) {
        let ColumnData::List { ids } = stored.values() else { return };
        let mut known_items = Translation::new(lists.items().len());
        let mut known = Translation::new(lists.len());
        each_place(stored, rows, |row, place| {
            let id = ids.get(place);
            if id as usize >= lists.len() {
                return;
            }
            let translated = known.get(id, || {
                let codes = lists.codes(id);
                let list: Vec<u32> = codes
                    .map(|code| {
                        known_items.get(code, || self.items.intern(lists.items().get(code)))
                    })
                    .collect();
                self.intern(&list)
            });
            see(row, translated);
        });
    }
}

/// What ends where `ends` says.
fn part<'c>(codes: &'c [u32], ends: &[usize], id: u32) -> &'c [u32] {
    let start = (id as usize).checked_sub(1).map_or(0, |before| ends[before]);
    &codes[start..ends[id as usize]]
}
