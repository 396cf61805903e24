//! Building one row of a batch.

use super::{Batch, Column, Kind, NO_COLUMN, Value};
use crate::{COLUMNS_MAX, Nanos, SchemaError};

/// The longest name of a column, in bytes.
pub const COLUMN_NAME_BYTES_MAX: usize = 255;

/// Why a row can't be added to a batch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RowError {
    #[error("column `{column}` appears twice")]
    Twice { column: String },
    #[error("a column has no name")]
    Unnamed,
    #[error("column name `{start}…` has {bytes} bytes, more than {COLUMN_NAME_BYTES_MAX}")]
    NameTooLong { start: String, bytes: usize },
    #[error("column `{column}` of the batch is full")]
    Full { column: String },
    #[error(transparent)]
    Schema(#[from] SchemaError),
}

impl RowError {
    /// Of a name that starts like this and has so many bytes.
    pub fn name_too_long(start: &str, bytes: usize) -> Self {
        Self::NameTooLong { start: start.chars().take(32).collect(), bytes }
    }
}

/// A row that is being built: its values are in the batch, and go away again unless committed.
#[derive(Debug)]
pub struct RowBuilder<'b> {
    batch: &'b mut Batch,
    columns_before: usize,
    text_bytes_before: usize,
    /// The column of the field before this one: what came after it last time is the first guess.
    previous: usize,
    /// Nulls in columns that the batch doesn't have, sorted: they make no column, but the row may
    /// not have such a field again.
    nulls: Vec<(Box<str>, Kind)>,
    committed: bool,
}

impl<'b> RowBuilder<'b> {
    pub(super) fn new(batch: &'b mut Batch) -> Self {
        Self {
            columns_before: batch.columns.len(),
            text_bytes_before: batch.text_bytes,
            batch,
            previous: NO_COLUMN,
            nulls: Vec::new(),
            committed: false,
        }
    }

    pub fn int(&mut self, name: &str, value: i64) -> Result<(), RowError> {
        self.slot(name, Kind::Int)?.push_int(value);
        Ok(())
    }

    pub fn float(&mut self, name: &str, value: f64) -> Result<(), RowError> {
        self.slot(name, Kind::Float)?.push_float(value);
        Ok(())
    }

    /// A string; null when the schema says that this string means null.
    pub fn string(&mut self, name: &str, value: &str) -> Result<(), RowError> {
        if self.batch.schema.schema().null_string() == Some(value) {
            return self.null(name, Kind::String);
        }
        let is_new = self.slot(name, Kind::String)?.push_string(value);
        self.note_interned(is_new, name, value)
    }

    /// A vector keeps the order and duplicates; a set is sorted and made unique.
    pub fn strings<'s>(
        &mut self,
        name: &str,
        kind: ListKind,
        items: impl IntoIterator<Item = &'s str>,
    ) -> Result<(), RowError> {
        self.slot(name, kind.into())?;
        for item in items {
            let is_new = self.batch.columns[self.previous].push_item(item);
            self.note_interned(is_new, name, item)?;
        }
        let ended = self.batch.columns[self.previous].end_list();
        ended.ok_or_else(|| RowError::Full { column: name.to_owned() })
    }

    /// A value that was read from a batch.
    pub(super) fn value(&mut self, name: &str, value: Value<'_>) -> Result<(), RowError> {
        match value {
            Value::Int(value) => self.int(name, value),
            Value::Float(value) => self.float(name, value),
            Value::String(value) => self.string(name, value),
            Value::Set(items) => self.strings(name, ListKind::Set, items),
            Value::Vector(items) => self.strings(name, ListKind::Vector, items),
        }
    }

    /// A null whose kind is known. It is checked like a value and makes no column: a dataset has
    /// the columns that some row has a value in.
    pub fn null(&mut self, name: &str, kind: Kind) -> Result<(), RowError> {
        let guessed = self.batch.columns.get(self.guess());
        let is_known = guessed.is_some_and(|column| column.is(name, kind))
            || self.batch.position(name, kind).is_some();
        if is_known {
            let len = self.batch.len() + 1;
            self.slot(name, kind)?.pad_to(len);
            return Ok(());
        }
        check_name(name)?;
        self.batch.schema.check_kind(name, kind)?;
        match self.find_null(name, kind) {
            Ok(_) => Err(RowError::Twice { column: name.to_owned() }),
            Err(_) if self.nulls.len() >= COLUMNS_MAX => {
                let (column, columns_max) = (name.to_owned(), COLUMNS_MAX);
                Err(SchemaError::TooManyColumns { column, columns_max }.into())
            }
            Err(place) => {
                self.nulls.insert(place, (name.into(), kind));
                Ok(())
            }
        }
    }

    /// Where among the nulls this one is, or where it would be.
    fn find_null(&self, name: &str, kind: Kind) -> Result<usize, usize> {
        self.nulls.binary_search_by(|(null, null_kind)| (&**null, *null_kind).cmp(&(name, kind)))
    }

    /// Whether the row has a field of this name, of any kind.
    pub fn contains(&self, name: &str) -> bool {
        let has_null = || Kind::ALL.iter().any(|&kind| self.find_null(name, kind).is_ok());
        self.kinds_of(name) > 0 || has_null()
    }

    /// Whether the field that was added last has a namesake of another kind in this row.
    pub fn last_has_namesake(&self) -> bool {
        let last = self.batch.columns.get(self.previous);
        last.is_some_and(|last| last.shares_name && self.kinds_of(last.name()) > 1)
    }

    fn kinds_of(&self, name: &str) -> usize {
        let row = self.batch.len();
        let has = |&kind: &Kind| {
            let position = self.batch.position(name, kind);
            position.is_some_and(|position| self.batch.columns[position].len() > row)
        };
        Kind::ALL.iter().filter(|kind| has(kind)).count()
    }

    /// The kind that a declared schema gives this column.
    pub fn declared_kind(&self, name: &str) -> Option<Kind> {
        self.batch.schema.schema().declared_kind(name)
    }

    /// Makes the row part of the batch, unless the schema refuses one of its columns.
    pub fn commit(mut self, time: Nanos, weight: f64) -> Result<(), RowError> {
        if self.columns_before < self.batch.columns.len() {
            let new = self.batch.columns[self.columns_before..].iter();
            self.batch.schema.admit(new.map(|column| (column.name(), column.kind())))?;
        }
        self.batch.times.push(time.as_i64());
        self.batch.weights.push(weight);
        self.batch.interned.clear();
        self.committed = true;
        Ok(())
    }

    /// The column to add this row's value to.
    #[inline]
    fn slot(&mut self, name: &str, kind: Kind) -> Result<&mut Column, RowError> {
        let guess = self.guess();
        let position = match self.batch.columns.get(guess) {
            Some(column) if column.is(name, kind) => guess,
            _ => self.find_or_add(name, kind)?,
        };
        self.previous = position;
        let row = self.batch.len();
        let column = &mut self.batch.columns[position];
        if column.len() > row {
            return Err(RowError::Twice { column: name.to_owned() });
        }
        column.pad_to(row);
        Ok(column)
    }

    /// Producers write their fields in the same order in every row: comparing one name is much
    /// cheaper than hashing it.
    #[inline]
    fn guess(&self) -> usize {
        match self.batch.columns.get(self.previous) {
            Some(previous) => previous.next,
            None => self.batch.first,
        }
    }

    #[cold]
    fn find_or_add(&mut self, name: &str, kind: Kind) -> Result<usize, RowError> {
        let position = match self.batch.position(name, kind) {
            Some(position) => position,
            None => {
                check_name(name)?;
                if self.find_null(name, kind).is_ok() {
                    return Err(RowError::Twice { column: name.to_owned() });
                }
                // Before the column takes any memory: it is filled up to this row.
                let added = self.batch.columns.len() - self.columns_before;
                self.batch.schema.check_new(name, kind, added)?;
                self.batch.add_column(name, kind)
            }
        };
        match self.batch.columns.get_mut(self.previous) {
            Some(previous) => previous.next = position,
            None => self.batch.first = position,
        }
        Ok(position)
    }

    #[inline]
    fn note_interned(
        &mut self,
        is_new: Option<bool>,
        name: &str,
        string: &str,
    ) -> Result<(), RowError> {
        match is_new {
            Some(false) => {}
            Some(true) => {
                self.batch.interned.push(self.previous);
                self.batch.text_bytes += string.len();
            }
            None => {
                return Err(RowError::Full { column: name.to_owned() });
            }
        }
        Ok(())
    }
}

impl Drop for RowBuilder<'_> {
    fn drop(&mut self) {
        if !self.committed {
            self.batch.roll_back(self.columns_before);
            self.batch.text_bytes = self.text_bytes_before;
        }
    }
}

/// The kinds whose values are several strings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListKind {
    Set,
    Vector,
}

impl From<ListKind> for Kind {
    fn from(kind: ListKind) -> Self {
        match kind {
            ListKind::Set => Self::Set,
            ListKind::Vector => Self::Vector,
        }
    }
}

fn check_name(name: &str) -> Result<(), RowError> {
    if name.is_empty() {
        return Err(RowError::Unnamed);
    }
    if name.len() > COLUMN_NAME_BYTES_MAX {
        return Err(RowError::name_too_long(name, name.len()));
    }
    Ok(())
}
