//! Columns of which few rows have a value: only those values and their rows are kept, in a file of
//! their own. So a dataset of thousands of columns takes space for what its rows have, not for
//! what they lack.

mod collect;
mod read;

pub(super) use collect::{SparseColumns, SparseValues};
pub(super) use read::{open, parts};

use arrow::array::BooleanBufferBuilder;
use arrow::buffer::ScalarBuffer;
use arrow::datatypes::ArrowNativeType;

use super::{Codes, ColumnData, Ints};

/// Which columns are sparse.
#[derive(Debug, Clone, Copy)]
pub struct Sparsity {
    /// At most one in this many rows has a value,
    pub rows_per_value: usize,
    /// and the segment has at least this many rows.
    pub rows_min: usize,
}

impl Sparsity {
    /// A value takes up to 12 bytes with its row, and a null among others up to 8: with one in 16
    /// rows, a sparse column takes a tenth. In segments of few rows nulls take little.
    pub const DEFAULT: Self = Self { rows_per_value: 16, rows_min: 256 };
    /// No column is.
    pub const NONE: Self = Self { rows_min: usize::MAX, ..Self::DEFAULT };

    /// The most that a segment of so many rows, columns and values takes, besides text.
    pub(crate) fn bytes_max(self, rows: usize, columns: usize, values: usize) -> usize {
        const VALUE_BYTES: usize = 8;
        // A time and a weight.
        let of_all = rows * 2 * VALUE_BYTES;
        let dense = rows * columns * VALUE_BYTES;
        if rows < self.rows_min {
            return of_all + dense;
        }
        // Of a dense column, at least one in so many rows has a value; a sparse one takes less.
        of_all + dense.min(values * self.rows_per_value * VALUE_BYTES)
    }

    pub(super) fn is_sparse(self, values: usize, rows: usize) -> bool {
        rows >= self.rows_min && values * self.rows_per_value <= rows
    }
}

/// The values of a sparse column.
#[derive(Debug, Clone)]
pub struct Sparse {
    /// Ascending.
    rows: ScalarBuffer<u32>,
    /// Of these rows: none is null.
    values: ColumnData,
    segment_rows: usize,
    /// Of the segment's table, for the id of null.
    lists: usize,
}

impl Sparse {
    /// The rows that have a value, ascending.
    pub fn rows(&self) -> &[u32] {
        &self.rows
    }

    /// The values of these rows.
    pub fn values(&self) -> &ColumnData {
        &self.values
    }

    /// A value, or null, for every row of the segment.
    pub(super) fn spread(&self) -> ColumnData {
        match &self.values {
            ColumnData::Int { values, .. } => {
                let mut valid = BooleanBufferBuilder::new(self.segment_rows);
                valid.append_n(self.segment_rows, false);
                self.rows.iter().for_each(|&row| valid.set_bit(row as usize, true));
                let values = Ints::I64(self.spread_out(0, |at| values.get(at)));
                ColumnData::Int { values, validity: Some(valid.finish()) }
            }
            ColumnData::Float { values } => {
                ColumnData::Float { values: self.spread_out(f64::NAN, |at| values[at]) }
            }
            ColumnData::String { codes, strings } => {
                let codes = self.spread_codes(codes, strings.len());
                ColumnData::String { codes, strings: strings.clone() }
            }
            ColumnData::List { ids } => {
                ColumnData::List { ids: self.spread_codes(ids, self.lists) }
            }
        }
    }

    /// How much memory that takes.
    pub(super) fn spread_bytes(&self) -> usize {
        let code_bytes = |null: usize| match null {
            0..=0xff => size_of::<u8>(),
            0x100..=0xffff => size_of::<u16>(),
            _ => size_of::<u32>(),
        };
        let bits = self.segment_rows.div_ceil(8);
        match &self.values {
            ColumnData::Int { .. } => self.segment_rows * size_of::<i64>() + bits,
            ColumnData::Float { .. } => self.segment_rows * size_of::<f64>(),
            ColumnData::String { strings, .. } => self.segment_rows * code_bytes(strings.len()),
            ColumnData::List { .. } => self.segment_rows * code_bytes(self.lists),
        }
    }

    /// As narrow as the code of null, which is the largest.
    fn spread_codes(&self, codes: &Codes, null: usize) -> Codes {
        let null = u32::try_from(null).unwrap_or(u32::MAX);
        #[expect(clippy::cast_possible_truncation, reason = "no code is above that of null")]
        if let Ok(null) = u8::try_from(null) {
            Codes::U8(self.spread_out(null, |at| codes.get(at) as u8))
        } else if let Ok(null) = u16::try_from(null) {
            Codes::U16(self.spread_out(null, |at| codes.get(at) as u16))
        } else {
            Codes::U32(self.spread_out(null, |at| codes.get(at)))
        }
    }

    fn spread_out<T: ArrowNativeType>(
        &self,
        null: T,
        value: impl Fn(usize) -> T,
    ) -> ScalarBuffer<T> {
        let mut values = vec![null; self.segment_rows];
        for (at, &row) in self.rows.iter().enumerate() {
            values[row as usize] = value(at);
        }
        values.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_that_a_segment_takes_is_in_proportion_to_its_values() {
        let most = |rows, columns, values| Sparsity::DEFAULT.bytes_max(rows, columns, values);
        assert_eq!(most(1000, 10, 10_000), 1000 * 12 * 8, "all are there");
        assert_eq!(most(1000, 2000, 2_000_000), 1000 * 2002 * 8);
        assert_eq!(most(1000, 2000, 20_000), 16_000 + 20_000 * 128, "not 16 MB");
        assert_eq!(most(100, 2000, 2000), 100 * 2002 * 8, "too few rows for sparse columns");
    }
}
