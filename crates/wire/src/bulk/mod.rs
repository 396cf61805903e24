//! Arrow batches: many rows in one message.
//!
//! A body is an Arrow IPC stream of any number of record batches. Each becomes one message, or
//! several where it is large: an IPC stream of one batch with everything that is needed to read
//! it. So a record of the log stays readable by itself, and of moderate size.
//!
//! Columns: numbers, booleans (as the strings `true` and `false`), strings, lists of strings, and
//! dictionaries of the last two. A list is a vector, or a set where its field's metadata says
//! `perflab.kind` = `set`. `time` is a timestamp, a date, or seconds since the Unix epoch.

mod column;
mod stream;

use arrow::array::{ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Field};
use arrow::error::ArrowError;
use arrow::ipc::writer::{IpcWriteOptions, StreamWriter};
use arrow_select::dictionary::garbage_collect_any_dictionary;
use perflab_model::{Batch, Nanos};

use crate::MessageError;
use crate::message::Properties;
use column::Values;

/// The most rows of one message.
pub const BULK_ROWS_MAX: usize = 1 << 16;
/// The most values of one message: rows times columns.
pub const BULK_VALUES_MAX: usize = 1 << 22;
/// The longest message, in bytes: larger than of other kinds, because it is many rows.
pub const BULK_BYTES_MAX: usize = 8 << 20;

/// Why an Arrow stream can't be taken in.
#[derive(Debug, thiserror::Error)]
pub enum BulkError {
    #[error("the body is no Arrow IPC stream")]
    Stream(#[source] ArrowError),
    #[error("one row of the Arrow stream has more than {BULK_BYTES_MAX} bytes")]
    RowTooLarge,
    #[error("the Arrow stream has {columns} columns, more than {BULK_VALUES_MAX}")]
    TooManyColumns { columns: usize },
}

/// Calls `message` with each message that the batches of a stream become.
pub(crate) fn split<E: From<BulkError>>(
    body: &[u8],
    mut message: impl FnMut(Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    for batch in stream::read(body).map_err(BulkError::Stream)? {
        let mut first = 0;
        while first < batch.num_rows() {
            let (rows, encoded) = encode_some(&batch, first)?;
            message(encoded)?;
            first += rows;
        }
    }
    Ok(())
}

/// As many rows from `first` on as fit one message.
fn encode_some(batch: &RecordBatch, first: usize) -> Result<(usize, Vec<u8>), BulkError> {
    let columns = batch.num_columns().max(1);
    if columns > BULK_VALUES_MAX {
        return Err(BulkError::TooManyColumns { columns });
    }
    let mut rows = (batch.num_rows() - first).min(BULK_ROWS_MAX).min(BULK_VALUES_MAX / columns);
    loop {
        let encoded = encode(&slice(batch, first, rows)?).map_err(BulkError::Stream)?;
        match rows {
            _ if encoded.len() <= BULK_BYTES_MAX => return Ok((rows, encoded)),
            1 => return Err(BulkError::RowTooLarge),
            _ => rows /= 2,
        }
    }
}

/// Some rows, whose dictionaries have what these rows need.
fn slice(batch: &RecordBatch, first: usize, rows: usize) -> Result<RecordBatch, BulkError> {
    let part = batch.slice(first, rows);
    if rows == batch.num_rows() {
        return Ok(part);
    }
    let shrink = |column: &ArrayRef| match column.as_any_dictionary_opt() {
        Some(dictionary) => garbage_collect_any_dictionary(dictionary),
        None => Ok(ArrayRef::clone(column)),
    };
    let columns = part.columns().iter().map(shrink).collect::<Result<_, _>>();
    let columns = columns.map_err(BulkError::Stream)?;
    RecordBatch::try_new(part.schema(), columns).map_err(BulkError::Stream)
}

fn encode(batch: &RecordBatch) -> Result<Vec<u8>, ArrowError> {
    let options = IpcWriteOptions::default();
    let mut writer = StreamWriter::try_new_with_options(Vec::new(), &batch.schema(), options)?;
    writer.write(batch)?;
    writer.finish()?;
    writer.into_inner()
}

/// Adds all rows of a message to an empty batch, or leaves it empty.
pub(crate) fn decode(message: &[u8], arrival: Nanos, into: &mut Batch) -> Result<(), MessageError> {
    debug_assert!(into.is_empty(), "rows that were there could not be told apart");
    let mut rows = into.fresh();
    let wrong = |error: ArrowError| MessageError::Arrow(error.to_string());
    for batch in stream::read(message).map_err(wrong)? {
        let values = batch.num_rows().saturating_mul(batch.num_columns());
        if rows.len() + batch.num_rows() > BULK_ROWS_MAX || values > BULK_VALUES_MAX {
            return Err(MessageError::Arrow(format!(
                "it has more than {BULK_ROWS_MAX} rows or {BULK_VALUES_MAX} values"
            )));
        }
        add_rows(&batch, arrival, &mut rows)?;
    }
    *into = rows;
    Ok(())
}

fn add_rows(rows: &RecordBatch, arrival: Nanos, into: &mut Batch) -> Result<(), MessageError> {
    let mut columns = Vec::new();
    let (mut properties, mut sample_rate) = (Vec::new(), None);
    let schema = rows.schema();
    for (field, values) in schema.fields().iter().zip(rows.columns()) {
        let name = field.name();
        let Some(values) = Values::new(field, values)? else { continue };
        if Properties::is_property(name) {
            properties.push((name.as_str(), values));
        } else {
            if Properties::is_sample_rate(name) {
                sample_rate = Some(columns.len());
            }
            columns.push((name.as_str(), values));
        }
    }
    for row in 0..rows.num_rows() {
        let mut built = into.begin_row();
        for (name, values) in &columns {
            values.add(name, row, &mut built)?;
        }
        let mut own = Properties::default();
        for (name, values) in &properties {
            values.set_property(name, row, &mut own)?;
        }
        if let Some((name, values)) = sample_rate.map(|at| &columns[at])
            && let Some(rate) = values.number(row)
        {
            own.note(name, rate);
        }
        let (time, weight) = own.resolve(arrival)?;
        built.commit(time, weight)?;
    }
    Ok(())
}

/// What is said of a column that no kind fits.
fn unfit(field: &Field, kind: &DataType) -> MessageError {
    MessageError::Arrow(format!(
        "column `{}` holds {kind}: send numbers, strings, or lists of strings",
        field.name()
    ))
}
