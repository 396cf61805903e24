//! `POST /api/export`: all rows that a query selects, as a Parquet file that is sent while it is
//! written.

use std::io::{self, Write};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

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
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

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

pub(super) fn endpoints() -> [Endpoint; 1] {
    let export =
        "Gives all rows that a query selects; it may say nothing but which and which columns.";
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
    let turn = turn(&server).await?;
    let time = server.settings.limits.export_timeout;
    let time = Time { limit: time, end: Instant::now() + time };
    let (pieces, sent) = mpsc::channel(PIECES_MAX);
    let (begin, begun) = oneshot::channel();
    let is_whole = Arc::new(AtomicBool::new(false));
    let body = Body::new(Pieces { sent, is_whole: Arc::clone(&is_whole) });
    tokio::task::spawn_blocking(move || {
        let _turn = turn;
        let mut file = File { pieces, time, begin: Some(begin), writer: None, is_whole };
        let written = export(&server, &access, &document, &mut file);
        file.end(written);
    });
    begun.await.map_err(|_gone| ApiError::internal("the export ended before it began"))??;
    Ok(([(header::CONTENT_TYPE, PARQUET)], body).into_response())
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
    let (ending, reader, time) = (server.ending.clone(), file.pieces.clone(), file.time);
    let stop = move || match reader.is_closed() || ending.is_cancelled() {
        true => Some(Stop::Canceled),
        false => time.is_over().then_some(Stop::TimedOut(time.limit)),
    };
    let snapshot = readable.snapshot(home, Reach::Times(start, end), &|| stop().is_some())?;
    if !snapshot.missing.is_empty() {
        let message = format!("not all rows are there yet: {}", snapshot.missing.join("; "));
        return Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, message));
    }
    let recorded = readable.columns(home)?;
    let memory_bytes = server.settings.limits.query_memory_bytes;
    let limits = Limits { memory_bytes, stop: Box::new(stop), ..Limits::default() };
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

/// The time that an export may take.
#[derive(Debug, Clone, Copy)]
struct Time {
    limit: Duration,
    end: Instant,
}

impl Time {
    fn is_over(self) -> bool {
        Instant::now() > self.end
    }
}

/// The file on its way.
struct File {
    pieces: mpsc::Sender<Bytes>,
    time: Time,
    /// Told once it is known that there is something to send, or why there is not.
    begin: Option<oneshot::Sender<Result<(), ApiError>>>,
    writer: Option<ArrowWriter<Sending>>,
    /// Told to the answer's body when all pieces were sent.
    is_whole: Arc<AtomicBool>,
}

impl File {
    /// The first batch has no rows, and its columns alone are no reason to begin.
    fn write(&mut self, batch: &RecordBatch) -> Result<(), ParquetError> {
        let Some(mut writer) = self.writer.take() else {
            self.writer = Some(parquet_writer(self.sending(), batch.schema())?);
            return Ok(());
        };
        self.tell(Ok(()));
        writer.write(batch)?;
        self.writer = Some(writer);
        Ok(())
    }

    fn sending(&self) -> Sending {
        Sending { pieces: self.pieces.clone(), end: self.time.end, runtime: Handle::current() }
    }

    fn finish(&mut self) -> Result<(), ParquetError> {
        self.tell(Ok(()));
        self.writer.take().map_or(Ok(()), |writer| writer.close().map(drop))
    }

    /// Whoever asked may be gone by now, which needs no words.
    fn tell(&mut self, begun: Result<(), ApiError>) {
        drop(self.begin.take().map(|begin| begin.send(begun)));
    }

    /// The connection breaks if it is too late for an answer: half a file must not look whole.
    fn end(mut self, written: Result<(), ApiError>) {
        match written {
            Ok(()) => self.is_whole.store(true, Ordering::Release),
            Err(error) if self.begin.is_some() => self.tell(Err(error)),
            Err(error) => tracing::warn!(%error, "an export broke off"),
        }
    }
}

/// Takes what is written and sends it, at the speed of its reader as long as there is time.
struct Sending {
    pieces: mpsc::Sender<Bytes>,
    end: Instant,
    runtime: Handle,
}

impl Write for Sending {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let sending = self.pieces.send(Bytes::copy_from_slice(bytes));
        match self.runtime.block_on(async { timeout_at(self.end, sending).await }) {
            Ok(Ok(())) => Ok(bytes.len()),
            Ok(Err(_gone)) => Err(io::ErrorKind::BrokenPipe.into()),
            Err(_elapsed) => Err(io::ErrorKind::TimedOut.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The answer's body: pieces of the file as they come.
struct Pieces {
    sent: mpsc::Receiver<Bytes>,
    is_whole: Arc<AtomicBool>,
}

impl HttpBody for Pieces {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        self.sent.poll_recv(context).map(|piece| match piece {
            Some(piece) => Some(Ok(Frame::data(piece))),
            None if self.is_whole.load(Ordering::Acquire) => None,
            None => Some(Err(io::Error::other("the export broke off"))),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Waker;

    #[test]
    fn half_a_file_has_no_end() {
        let (pieces, sent) = mpsc::channel(1);
        let is_whole = Arc::new(AtomicBool::new(false));
        let mut body = Pieces { sent, is_whole: Arc::clone(&is_whole) };
        drop(pieces);
        let mut next = || Pin::new(&mut body).poll_frame(&mut Context::from_waker(Waker::noop()));
        assert!(matches!(next(), Poll::Ready(Some(Err(_)))));
        is_whole.store(true, Ordering::Release);
        assert!(matches!(next(), Poll::Ready(None)));
    }

    /// A reader who reads nothing does not keep an export, and its turn, for ever.
    #[test]
    fn sending_ends_with_the_time_there_is() {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_time().build().unwrap();
        let (pieces, received) = mpsc::channel(1);
        let end = Instant::now() + Duration::from_millis(20);
        let mut sending = Sending { pieces, end, runtime: runtime.handle().clone() };
        sending.write_all(b"first").unwrap();
        let late = sending.write_all(b"second").unwrap_err();
        assert_eq!(late.kind(), io::ErrorKind::TimedOut);
        drop(received);
        let gone = sending.write_all(b"third").unwrap_err();
        assert_eq!(gone.kind(), io::ErrorKind::BrokenPipe);
    }
}
