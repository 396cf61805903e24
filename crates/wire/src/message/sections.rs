//! Messages of typed sections: `{"int":{…},"normal":{…},…}`.

use super::error::{MessageError, quote};
use super::properties::Properties;
use crate::json::{Next, Number, Reader};
use perflab_model::{Kind, ListKind, RowBuilder};
use std::borrow::Cow;

/// The key that names the part of a dataset that a row is of. Its value is a string, not a
/// section.
const SUBSET: &str = "__subset__";

/// 2^63: the first float above every `i64`.
const I64_END: f64 = 9_223_372_036_854_775_808.0;

/// A section of a message, by its name there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Section {
    Int,
    Float,
    Double,
    Normal,
    Denorm,
    Normvector,
    Tags,
}

impl Section {
    pub(super) const LIST: &'static str =
        "`int`, `float`, `double`, `normal`, `denorm`, `normvector`, `tags` and `__subset__`";

    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "int" => Self::Int,
            "float" => Self::Float,
            "double" => Self::Double,
            "normal" => Self::Normal,
            "denorm" => Self::Denorm,
            "normvector" => Self::Normvector,
            "tags" => Self::Tags,
            _ => return None,
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::Int => "int",
            Self::Float => "float",
            Self::Double => "double",
            Self::Normal => "normal",
            Self::Denorm => "denorm",
            Self::Normvector => "normvector",
            Self::Tags => "tags",
        }
    }

    fn kind(self) -> Kind {
        match self {
            Self::Int => Kind::Int,
            Self::Float | Self::Double => Kind::Float,
            Self::Normal | Self::Denorm => Kind::String,
            Self::Normvector => Kind::Vector,
            Self::Tags => Kind::Set,
        }
    }

    fn wrong_type(self, column: &str, found: Next) -> MessageError {
        let section = Some(self.name());
        MessageError::Type { column: quote(column), section, found: found.describe() }
    }
}

pub(super) fn decode(
    reader: &mut Reader<'_>,
    row: &mut RowBuilder<'_>,
    properties: &mut Properties,
) -> Result<(), MessageError> {
    let mut seen = 0_u8;
    reader.begin_object()?;
    while let Some(key) = reader.next_key()? {
        let Some(section) = Section::named(&key) else {
            decode_subset(&key, reader, row)?;
            continue;
        };
        let bit = 1 << section as u8;
        if seen & bit != 0 {
            return Err(MessageError::SectionTwice { section: section.name() });
        }
        seen |= bit;
        decode_section(section, reader, row, properties)?;
    }
    Ok(())
}

fn decode_subset(
    key: &str,
    reader: &mut Reader<'_>,
    row: &mut RowBuilder<'_>,
) -> Result<(), MessageError> {
    if key != SUBSET {
        return Err(MessageError::UnknownSection { section: quote(key) });
    }
    match reader.peek()? {
        Next::String => row.string(SUBSET, &reader.string()?)?,
        Next::Null => {
            reader.null()?;
            row.null(SUBSET, Kind::String)?;
        }
        other @ (Next::Object | Next::Array | Next::Number | Next::True | Next::False) => {
            let found = other.describe();
            return Err(MessageError::Type { column: SUBSET.to_owned(), section: None, found });
        }
    }
    Ok(())
}

fn decode_section(
    section: Section,
    reader: &mut Reader<'_>,
    row: &mut RowBuilder<'_>,
    properties: &mut Properties,
) -> Result<(), MessageError> {
    let found = reader.peek()?;
    if found != Next::Object {
        let (section, found) = (section.name(), found.describe());
        return Err(MessageError::SectionType { section, found });
    }
    reader.begin_object()?;
    match section.kind() {
        Kind::Int | Kind::Float => {
            while let Some(column) = reader.next_key()? {
                decode_number(section, &column, reader, row, properties)?;
            }
        }
        Kind::String => {
            while let Some(column) = reader.next_key()? {
                decode_string(section, &column, reader, row)?;
            }
        }
        Kind::Set | Kind::Vector => {
            while let Some(column) = reader.next_key()? {
                decode_list(section, &column, reader, row)?;
            }
        }
    }
    Ok(())
}

#[inline]
fn decode_number(
    section: Section,
    column: &str,
    reader: &mut Reader<'_>,
    row: &mut RowBuilder<'_>,
    properties: &mut Properties,
) -> Result<(), MessageError> {
    let value = read_number(section, column, reader)?;
    if Properties::is_property(column) {
        return Ok(properties.set(column, value)?);
    }
    let Some(value) = value else {
        return Ok(row.null(column, section.kind())?);
    };
    properties.note(column, value);
    match value {
        Number::Int(value) => row.int(column, value)?,
        Number::Float(value) => row.float(column, value)?,
    }
    Ok(())
}

/// A number of the section's kind; `None` for null.
#[inline]
fn read_number(
    section: Section,
    column: &str,
    reader: &mut Reader<'_>,
) -> Result<Option<Number>, MessageError> {
    let is_int = section == Section::Int;
    match reader.peek()? {
        Next::Number => {
            let start = reader.at();
            let number = reader.number()?;
            let kept = if is_int { as_int(number) } else { as_float(number) };
            kept.map(Some)
                .ok_or_else(|| unfit_number(section, column, number, reader.text_since(start)))
        }
        Next::True | Next::False if is_int => Ok(Some(Number::Int(i64::from(reader.bool()?)))),
        Next::Null => {
            reader.null()?;
            Ok(None)
        }
        other @ (Next::Object | Next::Array | Next::String | Next::True | Next::False) => {
            Err(section.wrong_type(column, other))
        }
    }
}

#[inline]
fn as_int(number: Number) -> Option<Number> {
    match number {
        Number::Int(_) => Some(number),
        #[expect(clippy::cast_possible_truncation, reason = "the range is checked before")]
        Number::Float(value) => (is_whole(value) && (-I64_END..I64_END).contains(&value))
            .then_some(Number::Int(value as i64)),
    }
}

#[inline]
fn as_float(number: Number) -> Option<Number> {
    match number {
        Number::Int(value) => Some(Number::Float(value as f64)),
        Number::Float(value) => value.is_finite().then_some(number),
    }
}

/// Whether a float has no fraction. Infinite values (numbers too large for a float) have none.
fn is_whole(value: f64) -> bool {
    value.fract().abs() == 0.0 || value.is_infinite()
}

#[cold]
fn unfit_number(section: Section, column: &str, number: Number, text: &str) -> MessageError {
    let (column, value, name) = (quote(column), quote(text), Some(section.name()));
    match (section, number) {
        (Section::Int, Number::Float(float)) if !is_whole(float) => {
            MessageError::NotWhole { column, section: name, value }
        }
        (Section::Int, _) => {
            MessageError::OutOfRange { column, section: name, value, kind: "integer" }
        }
        _ => MessageError::OutOfRange { column, section: name, value, kind: "float" },
    }
}

#[inline]
fn decode_string(
    section: Section,
    column: &str,
    reader: &mut Reader<'_>,
    row: &mut RowBuilder<'_>,
) -> Result<(), MessageError> {
    match next_value(section, column, reader, row)? {
        None => Ok(()),
        Some(Next::String) => Ok(row.string(column, &reader.string()?)?),
        Some(Next::True | Next::False) => {
            Ok(row.string(column, if reader.bool()? { "true" } else { "false" })?)
        }
        Some(other) => Err(section.wrong_type(column, other)),
    }
}

/// What comes next for a column that is not numeric; `None` for a null, which is taken.
#[inline]
fn next_value(
    section: Section,
    column: &str,
    reader: &mut Reader<'_>,
    row: &mut RowBuilder<'_>,
) -> Result<Option<Next>, MessageError> {
    let next = reader.peek()?;
    if Properties::is_property(column) {
        return Err(section.wrong_type(column, next));
    }
    if next == Next::Null {
        reader.null()?;
        row.null(column, section.kind())?;
        return Ok(None);
    }
    Ok(Some(next))
}

fn decode_list(
    section: Section,
    column: &str,
    reader: &mut Reader<'_>,
    row: &mut RowBuilder<'_>,
) -> Result<(), MessageError> {
    match next_value(section, column, reader, row)? {
        None => Ok(()),
        Some(Next::Array) => {
            let items = read_list(section, column, reader)?;
            let kind = if section == Section::Tags { ListKind::Set } else { ListKind::Vector };
            Ok(row.strings(column, kind, items.iter().map(|item| &**item))?)
        }
        Some(other) => Err(section.wrong_type(column, other)),
    }
}

fn read_list<'t>(
    section: Section,
    column: &str,
    reader: &mut Reader<'t>,
) -> Result<Vec<Cow<'t, str>>, MessageError> {
    let mut items = Vec::new();
    reader.begin_array()?;
    while reader.next_item()? {
        let next = reader.peek()?;
        if next != Next::String {
            let (column, found) = (quote(column), next.describe());
            return Err(MessageError::ListType { column, section: Some(section.name()), found });
        }
        items.push(reader.string()?);
    }
    Ok(items)
}
