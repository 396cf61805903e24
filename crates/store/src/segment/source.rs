//! Where the rows of a new segment come from, and their columns one after the other.

use std::collections::BTreeSet;
use std::hash::BuildHasher as _;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use perflab_model::batch::{Data, Dictionary};
use perflab_model::{Batch, Kind};

use super::dictionary::Union;
use super::{Codes, ColumnData, ListTable, Segment, SegmentColumn, SegmentError};

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
    Segment(&'a ColumnData, Option<&'a ListTable>),
}

impl<'a> SourceColumn<'a> {
    fn read(segment: &'a Segment, column: &'a SegmentColumn) -> Result<Self, SegmentError> {
        if let Some(lists) = segment.lists() {
            lists.check()?;
        }
        Ok(Self::Segment(column.data()?, segment.lists()))
    }

    pub(super) fn int(self, row: usize) -> Option<i64> {
        match self {
            Self::Batch(column) => {
                let Data::Int(values) = column.data() else { return None };
                column.validity().is_valid(row).then(|| values[row])
            }
            Self::Segment(ColumnData::Int { values, validity }, _) => {
                validity.as_ref().is_none_or(|valid| valid.value(row)).then(|| values.get(row))
            }
            Self::Segment(..) => None,
        }
    }

    /// NaN for null.
    pub(super) fn float(self, row: usize) -> f64 {
        match self {
            Self::Batch(column) => {
                let Data::Float(values) = column.data() else { return f64::NAN };
                if column.validity().is_valid(row) { values[row] } else { f64::NAN }
            }
            Self::Segment(ColumnData::Float { values }, _) => values[row],
            Self::Segment(..) => f64::NAN,
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

    /// Appends the ids of a column of lists.
    pub(super) fn append(&mut self, column: SourceColumn<'a>, rows: usize, into: &mut Vec<u32>) {
        let start = into.len();
        match column {
            SourceColumn::Batch(column) => self.append_batch(column, into),
            SourceColumn::Segment(ColumnData::List { ids }, Some(lists)) => {
                self.append_segment(ids, lists, rows, into);
            }
            SourceColumn::Segment(..) => {}
        }
        into.resize(start + rows, NULL);
    }

    fn append_batch(&mut self, column: &'a perflab_model::batch::Column, into: &mut Vec<u32>) {
        let (Data::Set(lists) | Data::Vector(lists)) = column.data() else { return };
        let dictionary: &'a Dictionary = lists.dictionary();
        let mut known = Translation::new(dictionary.len());
        let mut list = Vec::new();
        let mut start = 0;
        for (row, &end) in lists.ends().iter().enumerate() {
            let codes = &lists.codes()[start..end as usize];
            start = end as usize;
            if !column.validity().is_valid(row) {
                into.push(NULL);
                continue;
            }
            list.clear();
            for &code in codes {
                let items = &mut self.items;
                list.push(known.get(code, || items.intern(dictionary.get(code))));
            }
            into.push(self.intern(&list));
        }
    }

    fn append_segment(
        &mut self,
        ids: &Codes,
        lists: &'a ListTable,
        rows: usize,
        into: &mut Vec<u32>,
    ) {
        let mut known_items = Translation::new(lists.items().len());
        let mut known = Translation::new(lists.len());
        for row in 0..rows {
            let id = ids.get(row);
            if id as usize >= lists.len() {
                into.push(NULL);
                continue;
            }
            into.push(known.get(id, || {
                let codes = lists.codes(id);
                let list: Vec<u32> = codes
                    .map(|code| {
                        known_items.get(code, || self.items.intern(lists.items().get(code)))
                    })
                    .collect();
                self.intern(&list)
            }));
        }
    }
}

/// What ends where `ends` says.
fn part<'c>(codes: &'c [u32], ends: &[usize], id: u32) -> &'c [u32] {
    let start = (id as usize).checked_sub(1).map_or(0, |before| ends[before]);
    &codes[start..ends[id as usize]]
}
