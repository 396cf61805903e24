//! Rows of one category as columns: what decoding fills and what the memory table takes.
//!
//! 1. A column is a name and a kind; two kinds under one name are two columns.
//! 2. Strings are codes into a dictionary per column.
//! 3. A column that a row doesn't mention isn't touched: it is shorter than the batch, and what
//!    is missing at its end is null.
//! 4. A row is committed or rolled back whole. Whatever a failed row wrote (values, dictionary
//!    entries, columns) is taken back, so that refused input leaves no trace.

mod column;
mod dictionary;
mod row;
mod validity;
mod value;

pub use column::{Column, Data, Lists};
pub use dictionary::{DICTIONARY_BYTES_MAX, Dictionary};
pub use row::{COLUMN_NAME_BYTES_MAX, ListKind, RowBuilder, RowError};
pub use validity::Validity;
pub use value::{Kind, Strings, Value};

use crate::{Nanos, SchemaState};
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;

/// The position of a column that doesn't exist.
const NO_COLUMN: usize = usize::MAX;

/// A columnar batch of typed rows for one category.
#[derive(Debug, Clone)]
pub struct Batch {
    schema: Arc<SchemaState>,
    times: Vec<i64>,
    weights: Vec<f64>,
    columns: Vec<Column>,
    /// Positions in `columns`, by name and kind.
    index: HashTable<usize>,
    hasher: RandomState,
    /// The column that a row is guessed to start with: the one that the previous row did.
    first: usize,
    /// The columns whose dictionary the row that is being built made longer, in that order.
    interned: Vec<usize>,
    /// The bytes of all dictionaries' strings.
    text_bytes: usize,
}

impl Batch {
    /// An empty batch for the dataset with this schema.
    pub fn new(schema: Arc<SchemaState>) -> Self {
        Self {
            schema,
            times: Vec::new(),
            weights: Vec::new(),
            columns: Vec::new(),
            index: HashTable::new(),
            hasher: RandomState::default(),
            first: NO_COLUMN,
            interned: Vec::new(),
            text_bytes: 0,
        }
    }

    /// An empty batch for the same dataset.
    pub fn fresh(&self) -> Self {
        Self::new(Arc::clone(&self.schema))
    }

    /// Starts a row. Dropped without [`RowBuilder::commit`], it leaves the batch as it was.
    pub fn begin_row(&mut self) -> RowBuilder<'_> {
        RowBuilder::new(self)
    }

    pub fn schema(&self) -> &SchemaState {
        &self.schema
    }

    /// The number of committed rows.
    pub fn len(&self) -> usize {
        self.times.len()
    }

    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// About how much memory the rows take: what every column would if it were full, and all
    /// distinct strings.
    pub fn bytes(&self) -> usize {
        /// A time, a weight, or one value of a column.
        const VALUE_BYTES: usize = 8;
        self.len() * (self.columns.len() + 2) * VALUE_BYTES + self.text_bytes
    }

    /// How many values the rows have, nulls aside.
    pub fn values(&self) -> usize {
        self.columns.iter().map(|column| column.len() - column.validity().nulls()).sum()
    }

    /// Each row's time, in nanoseconds since the Unix epoch.
    pub fn times(&self) -> &[i64] {
        &self.times
    }

    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// In the order in which rows brought them. A column may be shorter than the batch: see
    /// [`Column::value`].
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    pub fn column(&self, name: &str, kind: Kind) -> Option<&Column> {
        self.position(name, kind).map(|position| &self.columns[position])
    }

    /// `None` past the last row.
    pub fn row(&self, row: usize) -> Option<Row<'_>> {
        (row < self.len()).then_some(Row { batch: self, row })
    }

    pub fn rows(&self) -> impl ExactSizeIterator<Item = Row<'_>> {
        (0..self.len()).map(|row| Row { batch: self, row })
    }

    /// A copy that has only the rows at positions that are wanted.
    #[must_use]
    pub fn select(&self, is_wanted: impl Fn(usize) -> bool) -> Self {
        const FITS: &str = "the row was in a batch of this schema before";
        let mut selected = Self::new(Arc::clone(&self.schema));
        for (_, row) in self.rows().enumerate().filter(|(position, _)| is_wanted(*position)) {
            let mut copy = selected.begin_row();
            for (name, value) in row.fields() {
                copy.value(name, value).expect(FITS);
            }
            copy.commit(row.time(), row.weight()).expect(FITS);
        }
        selected
    }

    fn position(&self, name: &str, kind: Kind) -> Option<usize> {
        let is_wanted = |&position: &usize| self.columns[position].is(name, kind);
        self.index.find(self.hash(name, kind), is_wanted).copied()
    }

    fn hash(&self, name: &str, kind: Kind) -> u64 {
        column_hash(&self.hasher, name, kind)
    }

    fn add_column(&mut self, name: &str, kind: Kind) -> usize {
        let position = self.columns.len();
        let hash = self.hash(name, kind);
        let mut column = Column::new(name, kind);
        for other in Kind::ALL {
            if let Some(namesake) = self.position(name, other) {
                column.shares_name = true;
                self.columns[namesake].shares_name = true;
            }
        }
        self.columns.push(column);
        let (columns, hasher) = (&self.columns, &self.hasher);
        self.index.insert_unique(hash, position, |&position| {
            column_hash(hasher, columns[position].name(), columns[position].kind())
        });
        position
    }

    /// Takes back what a row wrote that wasn't committed.
    fn roll_back(&mut self, columns_before: usize) {
        while let Some(position) = self.interned.pop() {
            self.columns[position].forget_last_string();
        }
        while self.columns.len() > columns_before {
            let position = self.columns.len() - 1;
            let hash = self.hash(self.columns[position].name(), self.columns[position].kind());
            if let Ok(entry) = self.index.find_entry(hash, |&other| other == position) {
                entry.remove();
            }
            self.columns.pop();
        }
        let rows = self.len();
        for column in &mut self.columns {
            column.truncate(rows);
        }
    }
}

fn column_hash(hasher: &RandomState, name: &str, kind: Kind) -> u64 {
    let mut hasher = hasher.build_hasher();
    hasher.write(name.as_bytes());
    hasher.write_u8(kind as u8);
    hasher.finish()
}

/// One committed row.
#[derive(Debug, Clone, Copy)]
pub struct Row<'b> {
    batch: &'b Batch,
    row: usize,
}

impl<'b> Row<'b> {
    pub fn time(&self) -> Nanos {
        Nanos(self.batch.times[self.row])
    }

    pub fn weight(&self) -> f64 {
        self.batch.weights[self.row]
    }

    /// The columns that have a value in this row, in the batch's order of columns.
    pub fn fields(&self) -> impl Iterator<Item = (&'b str, Value<'b>)> + use<'b> {
        let row = self.row;
        let columns = self.batch.columns.iter();
        columns.filter_map(move |column| Some((column.name(), column.value(row)?)))
    }

    /// `None` when the row has no such column, or null in it.
    pub fn value(&self, name: &str, kind: Kind) -> Option<Value<'b>> {
        self.batch.column(name, kind)?.value(self.row)
    }
}
