//! An answer as a stream of CSV or Arrow.

use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::ipc::writer::StreamWriter;
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures::stream::try_unfold;
use jiff::tz::TimeZone;

use super::super::answer::text_of;
use super::super::form::Form;
use super::{Answering, Unanswered, values};
use crate::error::ApiError;
use crate::state::blocking;

/// What goes wrong before the first rows are there has a status; after that, the stream breaks
/// off, which no client takes for its end.
pub(super) async fn response(
    mut answering: Answering,
    form: Form,
) -> Result<Response, Unanswered> {
    let schema = Arc::clone(answering.rows.schema());
    let encoder = Encoder::new(&schema, form).map_err(|error| ApiError::failed(&error))?;
    let first = answering.next().await?;
    let missing = answering.rows.progress().missing();
    let streaming = Streaming { next: first, answering, encoder };
    let chunks = try_unfold(Some(streaming), next_chunk);
    Ok(form.around(Body::from_stream(chunks), &missing))
}

struct Streaming {
    next: Option<RecordBatch>,
    answering: Answering,
    encoder: Encoder,
}

/// The next chunk, and what is left after it: nothing after the last.
async fn next_chunk(
    streaming: Option<Streaming>,
) -> Result<Option<(Bytes, Option<Streaming>)>, ApiError> {
    let Some(Streaming { next, mut answering, encoder }) = streaming else { return Ok(None) };
    let Some(batch) = next else {
        let last = encoder.finish().map_err(|error| ApiError::failed(&error))?;
        return Ok(Some((last, None)));
    };
    let encoded = blocking(move || encoder.encode(&batch)).await?;
    let (chunk, encoder) = encoded.map_err(|error| ApiError::failed(&error))?;
    let next = answering.next().await.map_err(|error| match error {
        Unanswered::Refused(error) => error,
        Unanswered::Mended => ApiError::internal("rows were damaged: ask again"),
    })?;
    Ok(Some((chunk, Some(Streaming { next, answering, encoder }))))
}

/// Writes batches one after the other, each into a chunk of its own.
enum Encoder {
    Csv(csv::Writer<Vec<u8>>),
    Arrow(SchemaRef, StreamWriter<Vec<u8>>),
}

/// Why a batch can't be written.
#[derive(Debug, thiserror::Error)]
#[error("failed to write rows")]
enum EncodeError {
    Csv(#[from] csv::Error),
    Arrow(#[from] ArrowError),
    Io(#[from] std::io::Error),
}

impl Encoder {
    fn new(schema: &Schema, form: Form) -> Result<Self, EncodeError> {
        if form == Form::Csv {
            let mut writer = csv::Writer::from_writer(Vec::new());
            writer.write_record(values::columns(schema).iter().map(|column| &column.name))?;
            return Ok(Self::Csv(writer));
        }
        let field = |field: &Arc<arrow::datatypes::Field>| {
            let data_type = values::plain(field.data_type());
            field.as_ref().clone().with_data_type(data_type)
        };
        let schema = Arc::new(Schema::new(schema.fields().iter().map(field).collect::<Vec<_>>()));
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
        }
    }

    fn finish(self) -> Result<Bytes, EncodeError> {
        match self {
            Self::Csv(writer) => {
                Ok(writer.into_inner().map_err(csv::IntoInnerError::into_error)?.into())
            }
            Self::Arrow(_, writer) => Ok(writer.into_inner()?.into()),
        }
    }
}

fn as_of(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let columns = batch.columns().iter().zip(schema.fields());
    let columns = columns.map(|(column, field)| values::cast_exactly(column, field.data_type()));
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let columns = columns.collect::<Result<_, _>>()?;
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)
}
