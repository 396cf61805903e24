//! An answer as a stream of CSV or Arrow, or as a Parquet file that is sent while it is written.

use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::ipc::writer::StreamWriter;
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use axum::body::Body;
use axum::http::StatusCode;
use axum::response::Response;
use bytes::Bytes;
use futures::StreamExt;
use futures::future::ready;
use futures::stream::{once, try_unfold};
use jiff::tz::TimeZone;
use parquet::arrow::ArrowWriter;
use parquet::errors::ParquetError;
use perflab_query::document::TableColumn;

use super::super::answer::text_of;
use super::super::arrays::parquet_writer;
use super::super::form::Form;
use super::{Answering, Unanswered, values};
use crate::error::ApiError;
use crate::state::blocking;

/// What goes wrong before the first rows are written has a status; after that, the stream breaks
/// off, which no client takes for its end.
pub(super) async fn response(answering: Answering, form: Form) -> Result<Response, Unanswered> {
    let progress = answering.rows.progress().clone();
    let encoder = Encoder::new(answering.rows.schema(), form).map_err(|error| failed(&error))?;
    let (first, rest) = Streaming { answering, encoder }.next().await?;
    let rest = try_unfold(rest, async |rest| match rest {
        None => Ok(None),
        Some(streaming) => streaming.next().await.map(Some).map_err(broken_off),
    });
    let chunks = once(ready(Ok(first))).chain(rest);
    Ok(form.around(Body::from_stream(chunks), &progress.missing()))
}

fn broken_off(error: Unanswered) -> ApiError {
    match error {
        Unanswered::Refused(error) => error,
        Unanswered::Mended => ApiError::internal("rows were damaged: ask again"),
    }
}

struct Streaming {
    answering: Answering,
    encoder: Encoder,
}

impl Streaming {
    /// The next chunk, and what comes after it: nothing after the last.
    async fn next(self) -> Result<(Bytes, Option<Self>), Unanswered> {
        let Self { mut answering, encoder } = self;
        let Some(batch) = answering.next().await? else {
            let last = blocking(move || encoder.finish()).await?;
            return Ok((last.map_err(|error| failed(&error))?, None));
        };
        let encoded = blocking(move || encoder.encode(&batch)).await?;
        let (chunk, encoder) = encoded.map_err(|error| failed(&error))?;
        Ok((chunk, Some(Self { answering, encoder })))
    }
}

/// Writes batches one after the other, each into a chunk of its own; of a Parquet file many become
/// one chunk, and the others are empty.
enum Encoder {
    Csv(csv::Writer<Vec<u8>>),
    Arrow(SchemaRef, StreamWriter<Vec<u8>>),
    Parquet(SchemaRef, Box<ArrowWriter<Vec<u8>>>),
}

/// Why a batch can't be written.
#[derive(Debug, thiserror::Error)]
#[error("failed to write rows")]
enum EncodeError {
    Csv(#[from] csv::Error),
    Arrow(#[from] ArrowError),
    Parquet(#[from] ParquetError),
    Io(#[from] std::io::Error),
}

/// What a form has no type for is the query's fault, all else this machine's.
fn failed(error: &EncodeError) -> ApiError {
    if matches!(error, EncodeError::Parquet(ParquetError::NYI(_))) {
        let error = ApiError::caused_by(StatusCode::BAD_REQUEST, error);
        return error.with_hint("CAST what Parquet has no type for to text, or ask for CSV");
    }
    ApiError::failed(error)
}

impl Encoder {
    fn new(schema: &Schema, form: Form) -> Result<Self, EncodeError> {
        if form == Form::Csv {
            let mut writer = csv::Writer::from_writer(Vec::new());
            writer.write_record(values::columns(schema).iter().map(|column| &column.name))?;
            return Ok(Self::Csv(writer));
        }
        let schema = named(schema);
        if form == Form::Parquet {
            let writer = parquet_writer(Vec::new(), Arc::clone(&schema))?;
            return Ok(Self::Parquet(schema, Box::new(writer)));
        }
        let writer = StreamWriter::try_new(Vec::new(), &schema)?;
        Ok(Self::Arrow(schema, writer))
    }

    fn encode(self, batch: &RecordBatch) -> Result<(Bytes, Self), EncodeError> {
        match self {
            Self::Csv(mut writer) => {
                for row in values::rows(batch)? {
                    let cells = row.iter().map(|value| text_of(value, &TimeZone::UTC));
                    writer.write_record(cells.map(Option::unwrap_or_default))?;
                }
                let chunk = writer.into_inner().map_err(csv::IntoInnerError::into_error)?;
                Ok((chunk.into(), Self::Csv(csv::Writer::from_writer(Vec::new()))))
            }
            Self::Arrow(schema, mut writer) => {
                writer.write(&as_of(batch, &schema)?)?;
                let chunk = std::mem::take(writer.get_mut());
                Ok((chunk.into(), Self::Arrow(schema, writer)))
            }
            Self::Parquet(schema, mut writer) => {
                writer.write(&as_of(batch, &schema)?)?;
                // The writer counts what it has written, wherever that has gone.
                let chunk = std::mem::take(writer.inner_mut());
                Ok((chunk.into(), Self::Parquet(schema, writer)))
            }
        }
    }

    fn finish(self) -> Result<Bytes, EncodeError> {
        match self {
            Self::Csv(writer) => {
                Ok(writer.into_inner().map_err(csv::IntoInnerError::into_error)?.into())
            }
            Self::Arrow(_, writer) => Ok(writer.into_inner()?.into()),
            Self::Parquet(_, writer) => Ok(writer.into_inner()?.into()),
        }
    }
}

/// The columns with names of their own, as in all other forms, and with plain strings.
fn named(schema: &Schema) -> SchemaRef {
    let columns = schema.fields().iter().zip(values::columns(schema));
    let fields = columns.map(|(field, TableColumn { name, .. })| {
        let data_type = values::plain(field.data_type());
        field.as_ref().clone().with_name(name).with_data_type(data_type)
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

fn as_of(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let columns = batch.columns().iter().zip(schema.fields());
    let columns = columns.map(|(column, field)| values::cast_exactly(column, field.data_type()));
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let columns = columns.collect::<Result<_, _>>()?;
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)
}
