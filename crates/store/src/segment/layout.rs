//! The columns of a new segment: in the file of its rows, or apart from it where few rows have a
//! value.

use perflab_model::Kind;

use super::build::{encode_floats, encode_ints, encode_list_ids, encode_strings, float_range};
use super::dictionary::Entries;
use super::file::{Encoded, Sheet, Sheets, Shelf};
use super::meta::{ColumnMeta, MetaKind};
use super::source::NULL;
use super::sparse::{SparseColumns, SparseValues};
use super::{SegmentError, Sparsity};

/// The values of a column that are there, and their rows in the segment.
#[derive(Debug)]
pub(super) struct Present<T> {
    rows: Vec<u32>,
    pub(super) values: Vec<T>,
}

impl<T> Default for Present<T> {
    fn default() -> Self {
        Self { rows: Vec::new(), values: Vec::new() }
    }
}

impl<T: Copy> Present<T> {
    pub(super) fn with_capacity(values: usize) -> Self {
        Self { rows: Vec::with_capacity(values), values: Vec::with_capacity(values) }
    }

    #[inline]
    pub(super) fn push(&mut self, row: u32, value: T) {
        self.rows.push(row);
        self.values.push(value);
    }

    fn len(&self) -> usize {
        self.rows.len()
    }

    /// One for each of so many rows.
    fn spread(self, rows: usize, null: T) -> Vec<T> {
        if self.len() == rows && self.rows.is_sorted() {
            return self.values;
        }
        let mut spread = vec![null; rows];
        for (row, value) in self.rows.into_iter().zip(self.values) {
            spread[row as usize] = value;
        }
        spread
    }

    /// In the order of rows.
    fn sorted(self) -> Self {
        if self.rows.is_sorted() {
            return self;
        }
        let mut pairs: Vec<(u32, T)> = self.rows.into_iter().zip(self.values).collect();
        pairs.sort_unstable_by_key(|(row, _)| *row);
        let (rows, values) = pairs.into_iter().unzip();
        Self { rows, values }
    }
}

/// The columns of a segment that is being made.
pub(super) struct Layout<'s> {
    rows: usize,
    shelf: Option<&'s dyn Shelf>,
    sparsity: Sparsity,
    dense: Vec<Encoded>,
    sparse: SparseColumns,
}

impl<'s> Layout<'s> {
    pub(super) fn new(rows: usize, shelf: Option<&'s dyn Shelf>, sparsity: Sparsity) -> Self {
        Self { rows, shelf, sparsity, dense: Vec::new(), sparse: SparseColumns::default() }
    }

    /// Adds a column of which every row has a value, or that is written as if.
    pub(super) fn add(&mut self, column: Encoded) -> Result<(), SegmentError> {
        self.dense.push(column.shelved(self.shelf)?);
        Ok(())
    }

    pub(super) fn add_ints(
        &mut self,
        name: &str,
        present: Present<i64>,
    ) -> Result<(), SegmentError> {
        if !self.is_sparse(&present) {
            let mut valid = vec![false; self.rows];
            present.rows.iter().for_each(|&row| valid[row as usize] = true);
            return self.add(encode_ints(name, &present.spread(self.rows, 0), &valid));
        }
        let (least, most) = (present.values.iter().min(), present.values.iter().max());
        let range = least.zip(most).map(|(least, most)| (least.to_string(), most.to_string()));
        self.add_sparse((name, MetaKind::Int, range), present, SparseValues::Ints)
    }

    /// None of them is NaN.
    pub(super) fn add_floats(
        &mut self,
        name: &str,
        present: Present<f64>,
    ) -> Result<(), SegmentError> {
        if !self.is_sparse(&present) {
            return self.add(encode_floats(name, present.spread(self.rows, f64::NAN)));
        }
        // In the order of rows: which zero is the smallest depends on which comes first.
        let present = present.sorted();
        let range = float_range(present.values.iter().copied());
        self.add_sparse((name, MetaKind::Float, range), present, SparseValues::Floats)
    }

    /// Codes of these strings, which are sorted.
    pub(super) fn add_strings(
        &mut self,
        name: &str,
        present: Present<u32>,
        strings: Entries,
    ) -> Result<(), SegmentError> {
        if !self.is_sparse(&present) {
            return self.add(encode_strings(name, &present.spread(self.rows, NULL), strings)?);
        }
        let range = strings.range();
        let values = |codes| SparseValues::Strings(codes, strings);
        self.add_sparse((name, MetaKind::String, range), present, values)
    }

    /// Ids of a table of so many lists.
    pub(super) fn add_lists(
        &mut self,
        name: &str,
        kind: Kind,
        present: Present<u32>,
        lists: usize,
    ) -> Result<(), SegmentError> {
        if !self.is_sparse(&present) {
            return self.add(encode_list_ids(name, kind, &present.spread(self.rows, NULL), lists));
        }
        let kind = if kind == Kind::Set { MetaKind::Set } else { MetaKind::Vector };
        self.add_sparse((name, kind, None), present, SparseValues::Lists)
    }

    fn is_sparse<T: Copy>(&self, present: &Present<T>) -> bool {
        self.sparsity.is_sparse(present.len(), self.rows)
    }

    fn add_sparse<T: Copy>(
        &mut self,
        (name, kind, range): (&str, MetaKind, Option<(String, String)>),
        present: Present<T>,
        values: impl FnOnce(Vec<T>) -> SparseValues,
    ) -> Result<(), SegmentError> {
        let nulls = self.rows - present.len();
        let meta = ColumnMeta { name: name.to_owned(), kind, nulls, crc: 0, range };
        let Present { rows, values: found } = present.sorted();
        self.sparse.push(meta, &rows, &values(found))
    }

    /// The files of the segment.
    pub(super) fn finish(self, lists: Option<Sheet>) -> Result<Sheets, SegmentError> {
        let sparse = self.sparse.into_sheet()?;
        let rows = Sheet::new(self.rows, self.dense).beside(sparse.as_ref());
        Ok(Sheets { rows, lists, sparse })
    }
}
