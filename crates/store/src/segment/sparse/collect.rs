//! The sparse columns of a new segment, one after the other.

use std::sync::Arc;

use arrow::array::{ArrayRef, PrimitiveArray, StringArray};
use arrow::datatypes::{ArrowNativeType, ArrowPrimitiveType, Float64Type, Int64Type, UInt32Type};

use crate::segment::SegmentError;
use crate::segment::dictionary::Entries;
use crate::segment::file::{Sheet, list_array};
use crate::segment::meta::ColumnMeta;

/// Each column is a row of this table: lists of rows and values, empty where its kind has none.
#[derive(Debug, Default)]
pub(in crate::segment) struct SparseColumns {
    metas: Vec<ColumnMeta>,
    rows: Lists<u32>,
    ints: Lists<i64>,
    floats: Lists<f64>,
    codes: Lists<u32>,
    strings: Entries,
    /// How many strings there are up to the end of each column.
    string_ends: Vec<usize>,
}

/// The values of a sparse column.
#[derive(Debug)]
pub(in crate::segment) enum SparseValues {
    Ints(Vec<i64>),
    Floats(Vec<f64>),
    /// Codes of sorted strings.
    Strings(Vec<u32>, Entries),
    /// Ids of the table of lists.
    Lists(Vec<u32>),
}

impl SparseColumns {
    /// Adds a column; `rows` ascend.
    pub(in crate::segment) fn push(
        &mut self,
        meta: ColumnMeta,
        rows: &[u32],
        values: &SparseValues,
    ) -> Result<(), SegmentError> {
        match values {
            SparseValues::Ints(ints) => self.ints.items.extend_from_slice(ints),
            SparseValues::Floats(floats) => self.floats.items.extend_from_slice(floats),
            SparseValues::Lists(ids) => self.codes.items.extend_from_slice(ids),
            SparseValues::Strings(codes, strings) => {
                self.codes.items.extend_from_slice(codes);
                self.strings.append(strings)?;
            }
        }
        self.metas.push(meta);
        self.rows.items.extend_from_slice(rows);
        self.rows.end();
        self.ints.end();
        self.floats.end();
        self.codes.end();
        self.string_ends.push(self.strings.len());
        Ok(())
    }

    /// The file of all columns; `None` when there are none.
    pub(in crate::segment) fn into_sheet(self) -> Result<Option<Sheet>, SegmentError> {
        if self.metas.is_empty() {
            return Ok(None);
        }
        let names = self.metas.iter().map(|meta| meta.name.as_str());
        let names: ArrayRef = Arc::new(StringArray::from_iter_values(names));
        let kinds = self.metas.iter().map(|meta| meta.kind.as_str());
        let kinds: ArrayRef = Arc::new(StringArray::from_iter_values(kinds));
        let columns = vec![
            ("name", names),
            ("kind", kinds),
            ("rows", self.rows.into_array::<UInt32Type>()?),
            ("ints", self.ints.into_array::<Int64Type>()?),
            ("floats", self.floats.into_array::<Float64Type>()?),
            ("codes", self.codes.into_array::<UInt32Type>()?),
            ("strings", list_array(self.string_ends, self.strings.into_array(false)?)?),
        ];
        Ok(Some(Sheet::sparse(columns, self.metas)))
    }
}

/// A list for each column.
#[derive(Debug)]
struct Lists<T> {
    items: Vec<T>,
    /// How many items there are up to the end of each list.
    ends: Vec<usize>,
}

impl<T> Default for Lists<T> {
    fn default() -> Self {
        Self { items: Vec::new(), ends: Vec::new() }
    }
}

impl<T: ArrowNativeType> Lists<T> {
    /// Ends the list that is being filled.
    fn end(&mut self) {
        self.ends.push(self.items.len());
    }

    fn into_array<P: ArrowPrimitiveType<Native = T>>(self) -> Result<ArrayRef, SegmentError> {
        let items = PrimitiveArray::<P>::new(self.items.into(), None);
        list_array(self.ends, Arc::new(items))
    }
}
