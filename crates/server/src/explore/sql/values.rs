//! Batches of rows as columns and values of an answer.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{
    DataType, Field, Float64Type, Int64Type, Schema, TimeUnit, TimestampNanosecondType,
};
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use perflab_query::Value;
use perflab_query::document::{ColumnKind, TableColumn};

/// The columns of an answer. In an object, a name can be there only once: those that come again
/// get a number, as in `time:2`.
pub(super) fn columns(schema: &Schema) -> Vec<TableColumn> {
    let mut taken = HashSet::new();
    let mut column = |field: &Arc<Field>| {
        let numbered = (2..).map(|number| format!("{}:{number}", field.name()));
        let mut names = std::iter::once(field.name().clone()).chain(numbered);
        let name = names.find(|name| taken.insert(name.clone())).unwrap_or_default();
        TableColumn { name, kind: kind(field.data_type()) }
    };
    schema.fields().iter().map(&mut column).collect()
}

fn kind(data_type: &DataType) -> ColumnKind {
    if data_type.is_integer() {
        ColumnKind::Int
    } else if data_type.is_floating() {
        ColumnKind::Float
    } else if matches!(data_type, DataType::Timestamp(..)) {
        ColumnKind::Time
    } else if matches!(data_type, DataType::List(item) if item.data_type().is_string()) {
        ColumnKind::Vector
    } else {
        // Booleans, days, structures: what has no kind is text.
        ColumnKind::String
    }
}

/// The rows of a batch.
pub(super) fn rows(batch: &RecordBatch) -> Result<Vec<Vec<Value>>, ArrowError> {
    let mut rows = vec![Vec::with_capacity(batch.num_columns()); batch.num_rows()];
    for column in batch.columns() {
        let values = values(column)?;
        for (row, value) in rows.iter_mut().zip(values) {
            row.push(value);
        }
    }
    Ok(rows)
}

fn values(array: &ArrayRef) -> Result<Vec<Value>, ArrowError> {
    let cast = |to| cast_exactly(array, &to);
    let found = |value: Option<Value>| value.unwrap_or(Value::Null);
    Ok(match kind(array.data_type()) {
        ColumnKind::Int => {
            let ints = cast(DataType::Int64)?;
            ints.as_primitive::<Int64Type>().iter().map(|int| found(int.map(Value::Int))).collect()
        }
        ColumnKind::Float => {
            let floats = cast(DataType::Float64)?;
            let floats = floats.as_primitive::<Float64Type>().iter();
            floats.map(|float| found(float.map(Value::Float))).collect()
        }
        ColumnKind::Time => {
            let times = cast(DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())))?;
            let times = times.as_primitive::<TimestampNanosecondType>().iter();
            times.map(|time| found(time.map(Value::Time))).collect()
        }
        ColumnKind::Vector | ColumnKind::Set => {
            let lists = cast(plain(array.data_type()))?;
            lists.as_list::<i32>().iter().map(|list| found(list.as_ref().map(items))).collect()
        }
        ColumnKind::String | ColumnKind::Mixed => texts(array)?,
    })
}

fn items(list: &ArrayRef) -> Value {
    let items = list.as_string::<i32>().iter();
    Value::List(items.map(|item| item.unwrap_or_default().to_owned()).collect())
}

fn texts(array: &ArrayRef) -> Result<Vec<Value>, ArrowError> {
    let options = FormatOptions::default();
    let formatter = ArrayFormatter::try_new(array, &options)?;
    let text = |row| match array.is_null(row) {
        true => Ok(Value::Null),
        false => Ok(Value::String(formatter.value(row).try_to_string()?)),
    };
    (0..array.len()).map(text).collect()
}

/// What does not fit is an error, and not null.
pub(super) fn cast_exactly(array: &ArrayRef, to: &DataType) -> Result<ArrayRef, ArrowError> {
    let exactly = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(array, to, &exactly)
}

/// The same type, with strings that bring their text along. Those of the engine are views, and
/// what they look at would be sent with every batch, used or not.
pub(super) fn plain(data_type: &DataType) -> DataType {
    if *data_type == DataType::Utf8View {
        return DataType::Utf8;
    }
    if let DataType::List(item) = data_type
        && item.data_type().is_string()
    {
        let item = item.as_ref().clone().with_data_type(DataType::Utf8);
        return DataType::List(Arc::new(item));
    }
    data_type.clone()
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{BooleanArray, Date32Array, UInt64Array};

    #[test]
    fn a_name_is_there_once() {
        let field = |name: &str| Field::new(name, DataType::Int64, true);
        let schema = Schema::new(vec![field("x"), field("x:2"), field("x"), field("x")]);
        let names: Vec<_> = columns(&schema).into_iter().map(|column| column.name).collect();
        assert_eq!(names, ["x", "x:2", "x:3", "x:4"]);
    }

    #[test]
    fn what_has_no_kind_is_text() {
        let of = |array: ArrayRef| values(&array).unwrap();
        let text = |text: &str| Value::String(text.to_owned());
        let booleans = BooleanArray::from(vec![Some(true), None]);
        assert_eq!(of(Arc::new(booleans)), [text("true"), Value::Null]);
        assert_eq!(of(Arc::new(Date32Array::from(vec![1]))), [text("1970-01-02")]);
    }

    #[test]
    fn what_does_not_fit_is_not_null() {
        let of = |number| values(&(Arc::new(UInt64Array::from(vec![number])) as ArrayRef));
        assert_eq!(of(7).unwrap(), [Value::Int(7)]);
        assert!(of(u64::MAX).is_err());
    }
}
