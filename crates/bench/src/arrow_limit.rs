//! The parse limit: how fast one core turns the messages into Arrow builders, and nothing else.
//!
//! serde_json streams each message into the builders of its columns: ints, floats, and strings
//! with a dictionary. Columns are found as they come; the next one is guessed from the order of
//! the fields, which doubles the rate. No check of the schema, no log, no network.

use crate::clock;
use crate::joined::Joined;
use crate::messages::FIELDS;
use anyhow::{Result, bail};
use arrow::array::{
    Array, ArrowPrimitiveType, Float64Builder, Int64Builder, PrimitiveBuilder,
    StringDictionaryBuilder,
};
use arrow::datatypes::Int32Type;
use arrow::error::ArrowError;
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, Visitor,
};
use std::collections::HashMap;
use std::fmt;

/// How many rows per second of CPU time one core parses, going once over all messages.
///
/// Arrays are built of every `rows_per_batch` rows: of as many as a request has, because that is
/// what the server decodes at once, and because small dictionaries stay in the cache. One set of
/// arrays for all messages would make a lower limit, and so a bar that is easier to reach.
pub(crate) fn rows_per_s(messages: &Joined, rows_per_batch: usize) -> Result<f64> {
    let start = clock::thread_cpu();
    let mut rows = Rows::default();
    for (index, message) in messages.iter().enumerate() {
        let mut json = serde_json::Deserializer::from_slice(message);
        RowSeed(&mut rows).deserialize(&mut json)?;
        if rows.count == rows_per_batch || index + 1 == messages.len() {
            let columns = rows.finish();
            if columns != FIELDS {
                bail!("{columns} complete columns were built of {FIELDS}");
            }
        }
    }
    let used = clock::thread_cpu() - start;
    Ok(messages.len() as f64 / used.as_secs_f64())
}

#[derive(Default)]
struct Rows {
    count: usize,
    ints: Columns<Int64Builder>,
    strings: Columns<StringDictionaryBuilder<Int32Type>>,
    floats: Columns<Float64Builder>,
}

impl Rows {
    /// Builds the arrays, gives the number of those that are complete, and starts anew.
    fn finish(&mut self) -> usize {
        let rows = std::mem::take(&mut self.count);
        self.ints.finish(rows) + self.strings.finish(rows) + self.floats.finish(rows)
    }
}

/// An Arrow builder, with the names that all three kinds have in common.
trait Builder: Default {
    type Value<'v>;

    fn append(&mut self, value: Self::Value<'_>) -> Result<(), ArrowError>;
    fn append_null(&mut self);
    fn finish(&mut self) -> impl Array;
}

impl<T: ArrowPrimitiveType> Builder for PrimitiveBuilder<T> {
    type Value<'v> = T::Native;

    fn append(&mut self, value: T::Native) -> Result<(), ArrowError> {
        self.append_value(value);
        Ok(())
    }

    fn append_null(&mut self) {
        Self::append_null(self);
    }

    fn finish(&mut self) -> impl Array {
        Self::finish(self)
    }
}

impl Builder for StringDictionaryBuilder<Int32Type> {
    type Value<'v> = &'v str;

    fn append(&mut self, value: &str) -> Result<(), ArrowError> {
        Self::append(self, value).map(|_code| ())
    }

    fn append_null(&mut self) {
        Self::append_null(self);
    }

    fn finish(&mut self) -> impl Array {
        Self::finish(self)
    }
}

/// The columns of one kind.
#[derive(Default)]
struct Columns<B> {
    columns: Vec<Column<B>>,
    positions: HashMap<String, usize>,
}

struct Column<B> {
    name: String,
    builder: B,
    rows: usize,
}

impl<B: Builder> Columns<B> {
    /// Adds a value to row `row` of the column `name`, and gives the column's position.
    fn append(
        &mut self,
        guess: usize,
        name: &str,
        row: usize,
        value: B::Value<'_>,
    ) -> Result<usize, ArrowError> {
        let position = match self.columns.get(guess) {
            Some(column) if column.name == name => guess,
            _ => self.find_or_add(name),
        };
        let column = &mut self.columns[position];
        column.pad_to(row);
        column.builder.append(value)?;
        column.rows += 1;
        Ok(position)
    }

    #[cold]
    fn find_or_add(&mut self, name: &str) -> usize {
        if let Some(position) = self.positions.get(name) {
            return *position;
        }
        let position = self.columns.len();
        self.positions.insert(name.to_owned(), position);
        self.columns.push(Column { name: name.to_owned(), builder: B::default(), rows: 0 });
        position
    }

    /// Builds the arrays and gives the number of those that are complete.
    fn finish(&mut self, rows: usize) -> usize {
        let arrays = self.columns.iter_mut().map(|column| {
            column.pad_to(rows);
            column.rows = 0;
            column.builder.finish().len()
        });
        arrays.filter(|length| *length == rows).count()
    }
}

impl<B: Builder> Column<B> {
    fn pad_to(&mut self, rows: usize) {
        while self.rows < rows {
            self.builder.append_null();
            self.rows += 1;
        }
    }
}

/// Reads one message into [`Rows`].
struct RowSeed<'r>(&'r mut Rows);

impl<'de> DeserializeSeed<'de> for RowSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for RowSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of sections")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut sections: M) -> Result<(), M::Error> {
        let rows = self.0;
        let row = rows.count;
        while let Some(section) = sections.next_key::<&str>()? {
            match section {
                "int" => sections.next_value_seed(SectionSeed(&mut rows.ints, row))?,
                "normal" => sections.next_value_seed(SectionSeed(&mut rows.strings, row))?,
                "float" => sections.next_value_seed(SectionSeed(&mut rows.floats, row))?,
                _ => {
                    sections.next_value::<IgnoredAny>()?;
                }
            }
        }
        rows.count += 1;
        Ok(())
    }
}

/// Reads one section into the columns of its kind.
struct SectionSeed<'r, B>(&'r mut Columns<B>, usize);

impl<'de, B> DeserializeSeed<'de> for SectionSeed<'_, B>
where
    B: Builder,
    B::Value<'de>: Deserialize<'de>,
{
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de, B> Visitor<'de> for SectionSeed<'_, B>
where
    B: Builder,
    B::Value<'de>: Deserialize<'de>,
{
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of fields")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut fields: M) -> Result<(), M::Error> {
        let Self(columns, row) = self;
        let mut guess = 0;
        while let Some(name) = fields.next_key::<&str>()? {
            let value = fields.next_value::<B::Value<'de>>()?;
            guess = columns.append(guess, name, row, value).map_err(M::Error::custom)? + 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages;

    #[test]
    fn every_field_of_every_message_is_built() {
        assert!(rows_per_s(&messages::generate(100), 30).unwrap() > 0.0);
    }

    #[test]
    fn a_field_that_some_rows_lack_is_null_there() {
        let mut rows = Rows::default();
        for message in [
            r#"{"int": {"a": 1}}"#,
            r#"{"int": {"b": 2}, "normal": {"c": "x"}}"#,
            r#"{"int": {"b": 3, "a": 4}}"#,
        ] {
            let mut json = serde_json::Deserializer::from_str(message);
            RowSeed(&mut rows).deserialize(&mut json).unwrap();
        }
        rows.ints.columns[1].pad_to(3);
        let built = rows.ints.columns[1].builder.finish_cloned();
        assert_eq!(built.iter().collect::<Vec<_>>(), [None, Some(2), Some(3)]);
        assert_eq!(rows.finish(), 3);
        assert_eq!(rows.count, 0);
    }

    #[test]
    fn a_message_of_another_shape_is_an_error() {
        let mut messages = Joined::new("\n");
        messages.push_with(|out| out.extend_from_slice(br#"{"int": {"a": "x"}}"#));
        assert!(rows_per_s(&messages, 1).is_err());
    }
}
