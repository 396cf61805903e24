//! An answer as one JSON document.

use std::sync::Arc;

use arrow::record_batch::RecordBatch;
use axum::http::StatusCode;
use axum::response::Response;
use jiff::tz::TimeZone;
use perflab_query::document::TableColumn;
use serde_json::value::{RawValue, to_raw_value};

use super::super::answer::{Column, Document, FORMAT, Row, Stats};
use super::super::form::Form;
use super::{Answering, Unanswered, values};
use crate::error::ApiError;
use crate::state::blocking;

/// The most rows of a document,
const ROWS_MAX: usize = 100_000;
/// and about the most bytes of them. What is beyond either is left out, and the document says so.
const ROWS_BYTES_MAX: usize = 32 << 20;

pub(super) async fn response(mut answering: Answering) -> Result<Response, Unanswered> {
    let columns: Arc<[TableColumn]> = values::columns(answering.rows.schema()).into();
    let mut missing = answering.rows.progress().missing();
    let mut written = Written::default();
    while let Some(batch) = answering.next().await? {
        let columns = Arc::clone(&columns);
        written = blocking(move || written.with(&batch, &columns)).await??;
        if written.is_cut {
            missing.push(format!(
                "all rows after the first {}: use LIMIT, or ask for CSV, Arrow or Parquet, which \
                 have all",
                written.rows.len()
            ));
            break;
        }
    }
    let rows_scanned = answering.rows.progress().rows_scanned();
    let elapsed = answering.started.elapsed();
    let document = Document {
        format: FORMAT,
        columns: columns.iter().map(Column::of).collect(),
        rows: written.rows,
        other: None,
        total: None,
        stats: Stats::new(rows_scanned, elapsed, &missing),
    };
    let json = serde_json::to_vec(&document).map_err(|error| ApiError::failed(&error))?;
    Ok(Form::Json.around(json, &missing))
}

/// The rows so far, each as an object.
#[derive(Default)]
struct Written {
    rows: Vec<Box<RawValue>>,
    bytes: usize,
    /// Whether there are more rows than fit.
    is_cut: bool,
}

impl Written {
    fn with(mut self, batch: &RecordBatch, columns: &[TableColumn]) -> Result<Self, ApiError> {
        let left = ROWS_MAX - self.rows.len();
        let kept = batch.slice(0, batch.num_rows().min(left));
        let rows = values::rows(&kept)
            .map_err(|error| ApiError::caused_by(StatusCode::BAD_REQUEST, &error))?;
        for values in &rows {
            if self.bytes >= ROWS_BYTES_MAX {
                self.is_cut = true;
                return Ok(self);
            }
            let row = to_raw_value(&Row { columns, values, zone: &TimeZone::UTC });
            let row = row.map_err(|error| ApiError::failed(&error))?;
            self.bytes += row.get().len();
            self.rows.push(row);
        }
        self.is_cut = kept.num_rows() < batch.num_rows();
        Ok(self)
    }
}
