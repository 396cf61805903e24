//! Flat messages: any other JSON object. The types of columns are those of the values.

use super::error::{MessageError, quote};
use super::properties::Properties;
use crate::json::{JsonError, Next, Number, Reader};
use perflab_model::batch::COLUMN_NAME_BYTES_MAX;
use perflab_model::{COLUMNS_MAX, Kind, ListKind, RowBuilder, RowError, SchemaError};
use std::borrow::Cow;

pub(super) fn decode(
    reader: &mut Reader<'_>,
    row: &mut RowBuilder<'_>,
    properties: &mut Properties,
) -> Result<(), MessageError> {
    let mut flat = Flat { row, properties, valueless: Vec::new() };
    flat.object(None, reader)?;
    flat.check_valueless()
}

struct Flat<'m, 'b> {
    row: &'m mut RowBuilder<'b>,
    properties: &'m mut Properties,
    /// The fields that are null or objects: they have no kind, so the batch doesn't know them.
    valueless: Vec<String>,
}

impl Flat<'_, '_> {
    /// Adds the fields of an object, whose own name is in front of theirs. Calls itself as
    /// deep as the reader allows.
    fn object(
        &mut self,
        prefix: Option<&str>,
        reader: &mut Reader<'_>,
    ) -> Result<(), MessageError> {
        reader.begin_object()?;
        while let Some(key) = reader.next_key()? {
            check_key(prefix, &key)?;
            match prefix {
                None => self.field(&key, reader)?,
                Some(prefix) => self.field(&format!("{prefix}.{key}"), reader)?,
            }
        }
        Ok(())
    }

    fn field(&mut self, column: &str, reader: &mut Reader<'_>) -> Result<(), MessageError> {
        let next = reader.peek()?;
        if Properties::is_property(column) {
            return self.property(column, next, reader);
        }
        match next {
            Next::String => self.row.string(column, &reader.string()?)?,
            Next::Number => self.number(column, reader)?,
            Next::True | Next::False => {
                self.row.string(column, if reader.bool()? { "true" } else { "false" })?;
            }
            Next::Array => self.list(column, reader)?,
            Next::Object => {
                self.note_valueless(column)?;
                return self.object(Some(column), reader);
            }
            Next::Null => {
                reader.null()?;
                return self.note_valueless(column);
            }
        }
        // A key that appears twice with two types would be two columns, each with one value.
        if self.row.last_has_namesake() {
            return Err(RowError::Twice { column: column.to_owned() }.into());
        }
        Ok(())
    }

    fn property(
        &mut self,
        column: &str,
        next: Next,
        reader: &mut Reader<'_>,
    ) -> Result<(), MessageError> {
        let value = match next {
            Next::Number => Some(reader.number()?),
            Next::Null => {
                reader.null()?;
                None
            }
            other @ (Next::Object | Next::Array | Next::String | Next::True | Next::False) => {
                let (column, found) = (column.to_owned(), other.describe());
                return Err(MessageError::Type { column, section: None, found });
            }
        };
        Ok(self.properties.set(column, value)?)
    }

    fn number(&mut self, column: &str, reader: &mut Reader<'_>) -> Result<(), MessageError> {
        let start = reader.at();
        let number = reader.number()?;
        self.properties.note(column, number);
        match number {
            // A producer that prints 1 for 1.0 still means the declared float.
            Number::Int(value) if self.row.declared_kind(column) == Some(Kind::Float) => {
                self.row.float(column, value as f64)?;
            }
            Number::Int(value) => self.row.int(column, value)?,
            Number::Float(value) if value.is_finite() => self.row.float(column, value)?,
            Number::Float(_) => {
                let (column, value) = (quote(column), quote(reader.text_since(start)));
                let section = None;
                return Err(MessageError::OutOfRange { column, section, value, kind: "float" });
            }
        }
        Ok(())
    }

    fn list(&mut self, column: &str, reader: &mut Reader<'_>) -> Result<(), MessageError> {
        let text = reader.raw_value()?;
        match read_strings(text)? {
            Some(items) => {
                self.row.strings(column, ListKind::Vector, items.iter().map(|item| &**item))?;
            }
            None => self.row.string(column, text)?,
        }
        Ok(())
    }

    fn note_valueless(&mut self, column: &str) -> Result<(), MessageError> {
        if self.valueless.len() >= COLUMNS_MAX {
            let (column, columns_max) = (column.to_owned(), COLUMNS_MAX);
            return Err(RowError::from(SchemaError::TooManyColumns { column, columns_max }).into());
        }
        self.valueless.push(column.to_owned());
        Ok(())
    }

    fn check_valueless(&mut self) -> Result<(), MessageError> {
        self.valueless.sort_unstable();
        let is_twice = |(at, column): &(usize, &String)| {
            self.valueless.get(at + 1) == Some(*column) || self.row.contains(column)
        };
        match self.valueless.iter().enumerate().find(is_twice) {
            None => Ok(()),
            Some((_, column)) => Err(RowError::Twice { column: quote(column) }.into()),
        }
    }
}

/// Before the names are put together: an object's long name, in front of each of many short ones,
/// would take more memory than any message.
#[inline]
fn check_key(prefix: Option<&str>, key: &str) -> Result<(), RowError> {
    let bytes = prefix.map_or(0, |prefix| prefix.len() + 1) + key.len();
    if key.is_empty() {
        Err(RowError::Unnamed)
    } else if bytes > COLUMN_NAME_BYTES_MAX {
        Err(RowError::name_too_long(prefix.unwrap_or(key), bytes))
    } else {
        Ok(())
    }
}

/// The items of a list of strings; `None` when something else is in it.
fn read_strings(text: &str) -> Result<Option<Vec<Cow<'_, str>>>, JsonError> {
    let mut reader = Reader::new(text);
    let mut items = Vec::new();
    reader.begin_array()?;
    while reader.next_item()? {
        if reader.peek()? != Next::String {
            return Ok(None);
        }
        items.push(reader.string()?);
    }
    Ok(Some(items))
}
