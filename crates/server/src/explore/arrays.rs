//! Tables as Arrow batches and as Parquet.

use std::io::Write;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, Float64Array, Int64Array, ListBuilder, RecordBatch, StringArray, StringBuilder,
    TimestampNanosecondArray,
};
use arrow::datatypes::{Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::ipc::writer::StreamWriter;
use jiff::tz::TimeZone;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use perflab_query::Value;
use perflab_query::document::{ColumnKind, Table, TableColumn};

use super::answer::text_of;

/// So many rows are compressed together, and are in memory until they are.
const ROW_GROUP_ROWS: usize = 1 << 17;

/// A table as one batch.
pub(super) fn batch(table: &Table, zone: &TimeZone) -> Result<RecordBatch, ArrowError> {
    let arrays = (0..table.columns.len()).map(|place| array(table, place, zone));
    let arrays: Vec<ArrayRef> = arrays.collect();
    let field = |(column, array): (&TableColumn, &ArrayRef)| {
        Field::new(&column.name, array.data_type().clone(), true)
    };
    let fields: Vec<_> = table.columns.iter().zip(&arrays).map(field).collect();
    let schema = Arc::new(Schema::new(fields));
    // Without columns, arrow can't know how many rows there are; here there are none.
    if arrays.is_empty() {
        return Ok(RecordBatch::new_empty(schema));
    }
    RecordBatch::try_new(schema, arrays)
}

/// A table as an Arrow IPC stream.
pub(super) fn arrow(table: &Table, zone: &TimeZone) -> Result<Vec<u8>, ArrowError> {
    let batch = batch(table, zone)?;
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema())?;
    writer.write(&batch)?;
    writer.finish()?;
    writer.into_inner()
}

/// A table as a Parquet file.
pub(super) fn parquet(table: &Table, zone: &TimeZone) -> Result<Vec<u8>, ParquetError> {
    let batch = batch(table, zone)?;
    let mut writer = parquet_writer(Vec::new(), batch.schema())?;
    writer.write(&batch)?;
    writer.into_inner()
}

/// A writer of batches with these columns.
pub(super) fn parquet_writer<W: Write + Send>(
    to: W,
    schema: SchemaRef,
) -> Result<ArrowWriter<W>, ParquetError> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
        .build();
    ArrowWriter::try_new(to, schema, Some(properties))
}

/// A column as an array: what is of another kind than the column is text in a mixed one, and does
/// not occur in others.
fn array(table: &Table, place: usize, zone: &TimeZone) -> ArrayRef {
    let values = table.rows.iter().map(|row| &row[place]);
    match table.columns[place].kind {
        ColumnKind::Int => Arc::new(values.map(int).collect::<Int64Array>()),
        ColumnKind::Float => Arc::new(values.map(float).collect::<Float64Array>()),
        ColumnKind::Time => {
            let times = values.map(int).collect::<TimestampNanosecondArray>();
            Arc::new(times.with_timezone("UTC"))
        }
        ColumnKind::Set | ColumnKind::Vector => {
            let mut lists = ListBuilder::new(StringBuilder::new());
            for value in values {
                match value {
                    Value::List(items) => lists.append_value(items.iter().map(Some)),
                    Value::Null
                    | Value::Int(_)
                    | Value::Float(_)
                    | Value::String(_)
                    | Value::Time(_) => lists.append_null(),
                }
            }
            Arc::new(lists.finish())
        }
        ColumnKind::String | ColumnKind::Mixed => {
            Arc::new(values.map(|value| text_of(value, zone)).collect::<StringArray>())
        }
    }
}

fn int(value: &Value) -> Option<i64> {
    match value {
        Value::Int(number) | Value::Time(number) => Some(*number),
        Value::Null | Value::Float(_) | Value::String(_) | Value::List(_) => None,
    }
}

fn float(value: &Value) -> Option<f64> {
    match value {
        Value::Float(number) => Some(*number),
        #[expect(clippy::cast_precision_loss, reason = "the column is one of floats")]
        Value::Int(number) => Some(*number as f64),
        Value::Null | Value::String(_) | Value::List(_) | Value::Time(_) => None,
    }
}
