//! Reading segments in batches, on several cores.

use std::ops::Range;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use perflab_store::segment::Segment;

use crate::column::Column;
use crate::columns::Content;
use crate::progress::Progress;

/// The most rows of a batch.
pub(crate) const BATCH_ROWS: usize = 8192;

/// Rows of a segment that follow each other.
#[derive(Debug, Clone)]
pub(crate) struct Piece {
    pub(crate) segment: Arc<Segment>,
    pub(crate) rows: Range<usize>,
}

/// Shares pieces among so many readers, each getting as many rows; fewer readers where there is
/// not a batch for each, but always one.
pub(crate) fn shared(pieces: Vec<Piece>, readers: usize) -> Vec<Vec<Piece>> {
    let rows: usize = pieces.iter().map(|piece| piece.rows.len()).sum();
    let readers = readers.min(rows.div_ceil(BATCH_ROWS)).max(1);
    let share = rows.div_ceil(readers);
    let mut shares = vec![Vec::new()];
    let mut room = share;
    for Piece { segment, mut rows } in pieces {
        while !rows.is_empty() {
            if room == 0 {
                shares.push(Vec::new());
                room = share;
            }
            let end = rows.end.min(rows.start + room);
            let part = Piece { segment: Arc::clone(&segment), rows: rows.start..end };
            room -= part.rows.len();
            rows.start = end;
            shares.last_mut().expect("there is one from the start").push(part);
        }
    }
    shares
}

/// What one core reads.
#[derive(Debug)]
pub(crate) struct Share {
    pub(crate) schema: SchemaRef,
    pub(crate) contents: Arc<[Content]>,
    pub(crate) pieces: Vec<Piece>,
    pub(crate) progress: Progress,
}

impl PartitionStream for Share {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let batches = Batches {
            schema: Arc::clone(&self.schema),
            contents: Arc::clone(&self.contents),
            pieces: self.pieces.clone().into_iter(),
            columns: Vec::new(),
            rows: 0..0,
            progress: self.progress.clone(),
        };
        let stream = futures::stream::iter(batches);
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), stream))
    }
}

/// The batches of a share, one after the other.
struct Batches {
    schema: SchemaRef,
    contents: Arc<[Content]>,
    pieces: std::vec::IntoIter<Piece>,
    /// Of the piece that is being read, and what is left of it.
    columns: Vec<Column>,
    rows: Range<usize>,
    progress: Progress,
}

impl Iterator for Batches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.rows.is_empty() {
            let piece = self.pieces.next()?;
            let open = |content| Column::open(content, &piece.segment);
            match self.contents.iter().map(open).collect() {
                Ok(columns) => self.columns = columns,
                Err(error) => return Some(Err(error)),
            }
            self.rows = piece.rows;
        }
        let rows = self.rows.start..self.rows.end.min(self.rows.start + BATCH_ROWS);
        self.rows.start = rows.end;
        self.progress.add_rows(rows.len());
        Some(self.batch(rows))
    }
}

impl Batches {
    fn batch(&self, rows: Range<usize>) -> Result<RecordBatch> {
        // Said here because there may be no columns.
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        let columns = self.columns.iter().map(|column| column.read(rows.clone()));
        let columns = columns.collect::<Result<_>>()?;
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?)
    }
}
