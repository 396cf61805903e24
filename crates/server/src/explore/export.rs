//! `POST /api/export`: all rows that a query selects, as a Parquet file that is sent while it is
//! written.

use std::io::{self, Write};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use arrow::array::RecordBatch;
use axum::body::Body;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame};
use parquet::arrow::ArrowWriter;
use parquet::errors::ParquetError;
use perflab_query::document::{DOCUMENT_BYTES_MAX, Document, each_rows, times_touched};
use perflab_query::{Limits, QueryError, Stop};
use perflab_store::{Access, Reach};
use tokio::sync::{mpsc, oneshot};

use super::arrays::{batch, parquet_writer};
use super::form::PARQUET;
use super::rows::Readable;
use super::run::{refused, turn};
use crate::access::Known;
use crate::endpoint::{Binary, Endpoint};
use crate::error::ApiError;
use crate::state::Server;

/// How many pieces of the file wait for a slow reader.
const PIECES_MAX: usize = 4;

type Piece = Result<Bytes, io::Error>;

pub(super) fn endpoints() -> [Endpoint; 1] {
    let export = "Gives all rows that a query selects; it may say nothing but which and which columns.";
    let export = Endpoint::post("/api/export", post_export, export, |operation| {
        operation
            .body::<Document>()
            .answer_as::<Binary>(StatusCode::OK, "A Parquet file.", PARQUET)
            .refusals(&[StatusCode::NOT_FOUND, StatusCode::SERVICE_UNAVAILABLE])
    });
    [export]
}

async fn post_export(
    State(server): State<Arc<Server>>,
    Known(access): Known,
    body: Body,
) -> Result<Response, ApiError> {
    let received = server.receive(body, DOCUMENT_BYTES_MAX).await?;
    let document = Document::from_json(&received.bytes)
        .map_err(|error| ApiError::caused_by(StatusCode::BAD_REQUEST, &error))?;
    // It has a turn like any query, but then all the time that its reader takes.
    let turn = turn(&server).await?;
    let (pieces, sent) = mpsc::channel(PIECES_MAX);
    let (begin, begun) = oneshot::channel();
    tokio::task::spawn_blocking(move || {
        let _turn = turn;
        let mut file = File { pieces, begin: Some(begin), writer: None };
        let written = export(&server, &access, &document, &mut file);
        file.end(written);
    });
    begun.await.map_err(|_gone| ApiError::internal("the export ended before it began"))??;
    Ok(([(header::CONTENT_TYPE, PARQUET)], Body::new(Pieces(sent))).into_response())
}

fn export(
    server: &Server,
    access: &Access,
    document: &Document,
    file: &mut File,
) -> Result<(), ApiError> {
    let home = &server.home;
    let readable = Readable::find(home, access, &document.dataset)?;
    let now = home.now();
    let (start, end) = times_touched(document, now).map_err(|error| refused(&error.into()))?;
    let (ending, reader) = (server.ending.clone(), file.pieces.clone());
    let is_over = move || reader.is_closed() || ending.is_cancelled();
    let snapshot = readable.snapshot(home, Reach::Times(start, end), &is_over)?;
    if !snapshot.missing.is_empty() {
        let message = format!("not all rows are there yet: {}", snapshot.missing.join("; "));
        return Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, message));
    }
    let recorded = readable.columns(home)?;
    let stop = Box::new(move || is_over().then_some(Stop::Canceled));
    let memory_bytes = server.settings.limits.query_memory_bytes;
    let limits = Limits { memory_bytes, stop, ..Limits::default() };
    let mut failed = None;
    let shown = each_rows(document, &snapshot, &recorded, now, &limits, |table, zone| {
        let written = batch(table, zone).map_err(ParquetError::from);
        written.and_then(|batch| file.write(&batch)).map_err(|error| {
            failed = Some(error);
            QueryError::Canceled
        })
    });
    match failed {
        Some(error) => return Err(ApiError::failed(&error)),
        None => shown.map_err(|error| refused(&error))?,
    }
    file.finish().map_err(|error| ApiError::failed(&error))
}

/// The file on its way.
struct File {
    pieces: mpsc::Sender<Piece>,
    /// Told once it is known that there is something to send, or why there is not.
    begin: Option<oneshot::Sender<Result<(), ApiError>>>,
    writer: Option<ArrowWriter<Sending>>,
}

impl File {
    fn write(&mut self, batch: &RecordBatch) -> Result<(), ParquetError> {
        if let Some(writer) = &mut self.writer {
            return writer.write(batch);
        }
        self.writer = Some(parquet_writer(Sending(self.pieces.clone()), batch.schema())?);
        self.tell(Ok(()));
        Ok(())
    }

    fn finish(&mut self) -> Result<(), ParquetError> {
        self.writer.take().map_or(Ok(()), |writer| writer.close().map(drop))
    }

    /// Whoever asked may be gone by now, which needs no words.
    fn tell(&mut self, begun: Result<(), ApiError>) {
        drop(self.begin.take().map(|begin| begin.send(begun)));
    }

    /// Breaks the connection if it is too late for an answer: half a file must not look whole.
    fn end(mut self, written: Result<(), ApiError>) {
        match written {
            Ok(()) => {}
            Err(error) if self.begin.is_some() => self.tell(Err(error)),
            Err(error) => {
                let broken = io::Error::other(error.to_string());
                drop(self.pieces.blocking_send(Err(broken)));
            }
        }
    }
}

/// Takes what is written and sends it, at the speed of its reader.
struct Sending(mpsc::Sender<Piece>);

impl Write for Sending {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let sent = self.0.blocking_send(Ok(Bytes::copy_from_slice(bytes)));
        sent.map_err(|_gone| io::Error::from(io::ErrorKind::BrokenPipe))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The answer's body: pieces of the file as they come.
struct Pieces(mpsc::Receiver<Piece>);

impl HttpBody for Pieces {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        self.0.poll_recv(context).map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }
}
