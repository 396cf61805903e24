//! Segments: rows of one dataset, sorted by time, as Arrow IPC files that are read where they lie.
//!
//! The same bytes serve in memory and on disk, so that rows which arrived a second ago and rows of
//! last year are read by the same code. Strings are codes of the narrowest width into a sorted
//! dictionary; lists (sets and vectors) are ids into a table of distinct lists, kept in a file
//! beside the rows; columns of which few rows have a value are in a third file. Limits: [`ROWS_MAX`] rows. Integrity: a checksum per column, checked when it
//! is first touched, and one over everything that says where columns are, checked when the
//! segment is opened. Format: `docs/formats/segment.md`.

mod build;
mod cold;
mod column;
mod computed;
mod dictionary;
mod file;
mod image;
mod layout;
mod lists;
mod meta;
mod per_file;
mod snapshot;
mod source;
mod sparse;
#[cfg(test)]
mod tests;
mod trie;
mod vocabulary;

pub use build::{build, build_with};
pub use cold::{Cooled, cool};
pub use column::{Codes, ColumnData, Ints, SegmentColumn, Stored, Strings, Weights};
pub use computed::Computed;
pub use lists::ListTable;
pub use per_file::{Built, PerFile};
pub use snapshot::Snapshot;
pub use source::Source;
pub use sparse::{Sparse, Sparsity};
pub use trie::{Edge, NO_LIST, Shape, SharedTrie, Trie, Way};
pub use vocabulary::{NULL_ID, Vocabularies, Vocabulary, VocabularyStrings};

pub(crate) use build::lay_out;
pub(crate) use cold::thaw;
pub(crate) use column::ReadAhead;
pub(crate) use file::{Output, Sheet, Sheets, Shelf};
pub(crate) use per_file::SegmentFile;

use std::collections::HashMap;
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::buffer::ScalarBuffer;
use arrow::error::ArrowError;
use perflab_model::Kind;

use column::{RawColumn, read_column, read_weights};
use image::Image;

/// The most rows of one segment. Codes and positions of rows are 32 bits wide.
pub const ROWS_MAX: usize = 1 << 24;

/// Why a segment can't be made or read.
#[derive(Debug, thiserror::Error)]
pub enum SegmentError {
    #[error("the segment is damaged: {0}")]
    Damaged(String),
    #[error("{rows} rows are more than the {ROWS_MAX} of a segment")]
    TooManyRows { rows: usize },
    #[error(
        "one column, or all sparse ones together, have more than 2 GiB of distinct text or items, \
         too much for a segment"
    )]
    TooMuchText,
    #[error("failed to write the segment")]
    Write(#[from] std::io::Error),
    #[error("failed to encode the segment")]
    Arrow(#[source] ArrowError),
    #[error("failed to encode or decode the segment as Parquet")]
    Parquet(#[from] parquet::errors::ParquetError),
}

impl From<ArrowError> for SegmentError {
    fn from(error: ArrowError) -> Self {
        if let ArrowError::IoError(_, error) = error {
            return Self::Write(error);
        }
        Self::Arrow(error)
    }
}

fn damaged<T>(what: impl Into<String>) -> Result<T, SegmentError> {
    Err(SegmentError::Damaged(what.into()))
}

fn places_by_name(columns: &[SegmentColumn]) -> HashMap<String, Vec<usize>> {
    let mut by_name: HashMap<String, Vec<usize>> = HashMap::new();
    for (position, column) in columns.iter().enumerate() {
        by_name.entry(column.name().to_owned()).or_default().push(position);
    }
    by_name
}

/// An open segment.
#[derive(Debug)]
pub struct Segment {
    times: ScalarBuffer<i64>,
    times_raw: RawColumn,
    weights: Weights,
    weights_raw: RawColumn,
    columns: Vec<SegmentColumn>,
    /// Positions in `columns`, by name.
    by_name: HashMap<String, Vec<usize>>,
    lists: Option<ListTable>,
    bytes: usize,
    /// Unless it was made for one question.
    number: Option<u64>,
}

/// Numbers are given once per process.
static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);

impl Segment {
    /// Opens a segment of which these are the files. Nothing but the description of the columns is
    /// read.
    pub fn open(files: &Built) -> Result<Self, SegmentError> {
        let image = Image::open(&files.rows)?;
        let mut raw = image.columns()?.into_iter();
        let (Some(time), Some(weight)) = (raw.next(), raw.next()) else {
            return damaged("it has no time and weight");
        };
        let lists = files.lists.as_ref().map(ListTable::open).transpose()?;
        let mut columns =
            raw.map(|raw| read_column(raw, image.rows)).collect::<Result<Vec<_>, _>>()?;
        let dense = columns.len();
        if let Some(sparse) = &files.sparse {
            let lists = lists.as_ref().map_or(0, ListTable::len);
            columns.extend(sparse::open(sparse, image.rows, lists)?);
        }
        if columns.len() - dense != image.sparse() {
            return damaged("its sparse columns are missing");
        }
        columns.sort_by(|x, y| (x.name(), x.kind()).cmp(&(y.name(), y.kind())));
        if lists.is_none() && columns.iter().any(SegmentColumn::is_list) {
            return damaged("its lists are missing");
        }
        Ok(Self {
            times: time.values(image.rows)?,
            times_raw: time,
            weights: read_weights(&weight, image.rows)?,
            weights_raw: weight,
            by_name: places_by_name(&columns),
            columns,
            bytes: files.bytes(),
            lists,
            number: Some(NEXT_NUMBER.fetch_add(1, Ordering::Relaxed)),
        })
    }

    /// Has what is in these files read from them before it is touched for the first time.
    pub(crate) fn with_read_ahead(mut self, files: &PerFile<Arc<dyn ReadAhead>>) -> Self {
        self.times_raw.ahead = Some(Arc::clone(&files.rows));
        self.weights_raw.ahead = Some(Arc::clone(&files.rows));
        self.columns.iter_mut().for_each(|column| column.set_read_ahead(files));
        if let Some(lists) = &mut self.lists {
            lists.set_read_ahead(files.lists.as_ref());
        }
        self
    }

    /// What no other segment of this process has; `None` where it has columns that were computed
    /// for a question.
    pub fn number(&self) -> Option<u64> {
        self.number
    }

    pub fn rows(&self) -> usize {
        self.times.len()
    }

    /// The size of its files.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Each row's time, ascending, in nanoseconds since the Unix epoch.
    pub fn times(&self) -> Result<&[i64], SegmentError> {
        self.times_raw.check()?;
        Ok(&self.times)
    }

    /// The first and the last row's time, without reading the times of all.
    pub fn time_ends(&self) -> Option<(i64, i64)> {
        let (first, last) = self.times_raw.meta.range.as_ref()?;
        Some((first.parse().ok()?, last.parse().ok()?))
    }

    /// The rows of a range of times. Times, which ascend, are read only where the range begins or
    /// ends among them: they are most of what a quick question would read.
    pub fn rows_within(&self, range: RangeInclusive<i64>) -> Result<Range<usize>, SegmentError> {
        let Some((first, last)) = self.time_ends() else { return Ok(0..0) };
        if last < *range.start() || first > *range.end() {
            return Ok(0..0);
        }
        if range.contains(&first) && range.contains(&last) {
            return Ok(0..self.rows());
        }
        let times = self.times()?;
        let first = times.partition_point(|time| time < range.start());
        Ok(first..first.max(times.partition_point(|time| time <= range.end())))
    }

    /// Where all are the same, the description says so, and they are not read.
    pub fn weights(&self) -> Result<&Weights, SegmentError> {
        if !matches!(self.weights, Weights::All(_)) {
            self.weights_raw.check()?;
        }
        Ok(&self.weights)
    }

    /// Sorted by name and kind.
    pub fn columns(&self) -> &[SegmentColumn] {
        &self.columns
    }

    /// The columns of a name: more than one when it was sent with different kinds.
    pub fn columns_named(&self, name: &str) -> impl Iterator<Item = &SegmentColumn> {
        let positions = self.by_name.get(name).into_iter().flatten();
        positions.map(|&position| &self.columns[position])
    }

    pub fn column(&self, name: &str, kind: Kind) -> Option<&SegmentColumn> {
        self.columns_named(name).find(|column| column.kind() == kind)
    }

    /// Reads all of it and compares the checksums.
    pub fn check(&self) -> Result<(), SegmentError> {
        self.times_raw.check()?;
        self.weights_raw.check()?;
        self.columns.iter().try_for_each(SegmentColumn::check)?;
        self.lists.as_ref().map_or(Ok(()), ListTable::check)
    }

    /// What the ids of its columns of lists stand for.
    pub fn lists(&self) -> Option<&ListTable> {
        self.lists.as_ref()
    }
}
