//! One column of an Arrow batch, ready to be read row by row.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, StringViewArray, UInt32Array};
use arrow::array::{Float64Array, Int64Array, TimestampNanosecondArray};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{
    DataType, Field, Float64Type, Int64Type, TimeUnit, TimestampNanosecondType, UInt32Type,
};
use perflab_model::Nanos;
use perflab_model::batch::{ListKind, RowBuilder};

use super::unfit;
use crate::MessageError;
use crate::json::Number;
use crate::message::{Properties, TIME};

/// The key of a field's metadata that says which kind a column of lists is.
const KIND_KEY: &str = "perflab.kind";
/// The most items of all lists of a message: a dictionary of lists can say them in few bytes.
const ITEMS_MAX: usize = 1 << 24;

/// The values of a column, by what they become.
pub(super) enum Values {
    Int(Int64Array),
    Float(Float64Array),
    String(StringViewArray),
    List(Box<Lists>),
    Time(TimestampNanosecondArray),
}

/// Lists, each row's own or one of a dictionary.
pub(super) struct Lists {
    lists: ListArray,
    items: StringViewArray,
    ids: Option<UInt32Array>,
    kind: ListKind,
}

impl Values {
    /// `None`: every value is null, of no kind.
    pub(super) fn new(field: &Field, values: &ArrayRef) -> Result<Option<Self>, MessageError> {
        let kind = values.data_type();
        let convert = |to: DataType| convert(field, values, &to);
        if kind.is_null() {
            return Ok(None);
        }
        if kind.is_integer() {
            let values = convert(DataType::Int64)?.as_primitive::<Int64Type>().clone();
            return Ok(Some(Self::Int(values)));
        }
        if kind.is_floating() {
            let values = convert(DataType::Float64)?.as_primitive::<Float64Type>().clone();
            return Ok(Some(Self::Float(values)));
        }
        if *kind == DataType::Boolean || is_text(undictionary(kind)) {
            let values = convert(DataType::Utf8View)?.as_string_view().clone();
            return Ok(Some(Self::String(values)));
        }
        if is_list(undictionary(kind)) {
            return Self::lists(field, values).map(Some);
        }
        let is_instant =
            matches!(kind, DataType::Timestamp(..) | DataType::Date32 | DataType::Date64);
        if is_instant && field.name() == TIME {
            let time = convert(DataType::Timestamp(TimeUnit::Nanosecond, None))?;
            let time = time.as_primitive::<TimestampNanosecondType>().clone();
            return Ok(Some(Self::Time(time)));
        }
        Err(unfit(field, kind))
    }

    fn lists(field: &Field, values: &ArrayRef) -> Result<Self, MessageError> {
        let (values, ids) = match values.as_any_dictionary_opt() {
            Some(dictionary) => {
                let keys = dictionary.keys().slice(0, values.len());
                let ids = convert(field, &keys, &DataType::UInt32)?;
                (dictionary.values(), Some(ids.as_primitive::<UInt32Type>().clone()))
            }
            None => (values, None),
        };
        let item = Arc::new(Field::new("item", DataType::Utf8View, true));
        let lists = convert(field, values, &DataType::List(item))?.as_list::<i32>().clone();
        let items = lists.values().as_string_view().clone();
        let lists = Self::List(Box::new(Lists { lists, items, ids, kind: list_kind(field)? }));
        let spans = (0..lists.len()).filter_map(|row| lists.list(row));
        if spans.map(|span| span.len()).sum::<usize>() > ITEMS_MAX {
            let name = field.name();
            return Err(MessageError::Arrow(format!(
                "the lists of column `{name}` have more than {ITEMS_MAX} items together"
            )));
        }
        Ok(lists)
    }

    fn len(&self) -> usize {
        match self {
            Self::Int(values) => values.len(),
            Self::Float(values) => values.len(),
            Self::String(values) => values.len(),
            Self::List(all) => all.ids.as_ref().map_or(all.lists.len(), Array::len),
            Self::Time(values) => values.len(),
        }
    }

    /// Where the items of a row's list are.
    fn list(&self, row: usize) -> Option<std::ops::Range<usize>> {
        let Self::List(all) = self else { return None };
        let Lists { lists, ids, .. } = &**all;
        let list = match ids {
            Some(ids) if ids.is_null(row) => return None,
            Some(ids) => ids.value(row) as usize,
            None => row,
        };
        let offsets = lists.value_offsets();
        let place = |offset: i32| usize::try_from(offset).unwrap_or(0);
        lists.is_valid(list).then(|| place(offsets[list])..place(offsets[list + 1]))
    }

    /// Adds a row's value; null adds nothing.
    pub(super) fn add(
        &self,
        name: &str,
        row: usize,
        to: &mut RowBuilder<'_>,
    ) -> Result<(), MessageError> {
        match self {
            Self::Int(values) if values.is_valid(row) => to.int(name, values.value(row))?,
            // NaN is how data frames say null.
            Self::Float(values) if values.is_valid(row) && !values.value(row).is_nan() => {
                to.float(name, finite(name, values.value(row))?)?;
            }
            Self::String(values) if values.is_valid(row) => to.string(name, values.value(row))?,
            Self::List(all) => {
                let Some(span) = self.list(row) else { return Ok(()) };
                if span.clone().any(|item| all.items.is_null(item)) {
                    let (column, section) = (name.to_owned(), None);
                    return Err(MessageError::ListType { column, section, found: "null" });
                }
                let items = span.map(|item| all.items.value(item));
                to.strings(name, all.kind, items)?;
            }
            Self::Int(_) | Self::Float(_) | Self::String(_) | Self::Time(_) => {}
        }
        Ok(())
    }

    /// A row's value, where it is a number.
    pub(super) fn number(&self, row: usize) -> Option<Number> {
        match self {
            Self::Int(values) => values.is_valid(row).then(|| Number::Int(values.value(row))),
            Self::Float(values) => {
                let is_null = values.is_null(row) || values.value(row).is_nan();
                (!is_null).then(|| Number::Float(values.value(row)))
            }
            Self::String(_) | Self::List(_) | Self::Time(_) => None,
        }
    }

    /// Sets what the row's `time` or `weight` is.
    pub(super) fn set_property(
        &self,
        name: &str,
        row: usize,
        of: &mut Properties,
    ) -> Result<(), MessageError> {
        match self {
            Self::Time(values) => {
                if values.is_valid(row) {
                    of.set_instant(Nanos(values.value(row)));
                }
            }
            Self::Int(_) | Self::Float(_) => of.set(name, self.number(row))?,
            Self::String(_) | Self::List(_) => {
                let (column, section) = (name.to_owned(), None);
                return Err(MessageError::Type { column, section, found: "strings" });
            }
        }
        Ok(())
    }
}

fn finite(name: &str, value: f64) -> Result<f64, MessageError> {
    if value.is_finite() {
        return Ok(value);
    }
    let (column, value, kind) = (name.to_owned(), value.to_string(), "float");
    Err(MessageError::OutOfRange { column, section: None, value, kind })
}

/// Which kind a column of lists is.
fn list_kind(field: &Field) -> Result<ListKind, MessageError> {
    match field.metadata().get(KIND_KEY).map(String::as_str) {
        Some("set") => Ok(ListKind::Set),
        Some("vector") | None => Ok(ListKind::Vector),
        Some(other) => {
            let (name, other) = (field.name(), crate::message::quote(other));
            Err(MessageError::Arrow(format!(
                "`{KIND_KEY}` of column `{name}` is `{other}`, not `set` or `vector`"
            )))
        }
    }
}

/// What the values of a dictionary are; other types are what they are.
fn undictionary(kind: &DataType) -> &DataType {
    if let DataType::Dictionary(_, of) = kind { of } else { kind }
}

fn is_text(kind: &DataType) -> bool {
    matches!(kind, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

/// A list of strings, or of codes of strings.
fn is_list(kind: &DataType) -> bool {
    if let DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) =
        kind
    {
        return is_text(undictionary(item.data_type()));
    }
    false
}

/// The same values in another type; an error where one of them doesn't fit.
fn convert(field: &Field, values: &ArrayRef, to: &DataType) -> Result<ArrayRef, MessageError> {
    let options = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(values, to, &options).map_err(|error| {
        MessageError::Arrow(format!("column `{}` can't be read: {error}", field.name()))
    })
}
