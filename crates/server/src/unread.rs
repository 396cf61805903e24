//! Bodies that are refused before all of them is read.
//!
//! Whoever answers early (a bad token, a wrong path, a body that is too large) just drops the body.
//! The rest of it is then read and thrown away while the answer is on its way: if the connection
//! were closed on a client that still sends, it would see a broken connection and no answer.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::http::{HeaderMap, header};
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::runtime::Handle;
use tokio::time::timeout;

/// How much of a refused body is read and thrown away,
const DISCARD_BYTES_MAX: u64 = 4 << 30;
/// and for how long.
const DISCARD_TIME_MAX: Duration = Duration::from_secs(30);

/// A request's body; what is unread when it is dropped is discarded.
#[derive(Debug)]
pub(crate) struct Unread {
    /// `None` once nothing more is to be read.
    body: Option<Incoming>,
    /// The client waits to be told to send it: not read at all, it is never sent.
    is_on_demand: bool,
}

impl Unread {
    pub(crate) fn new(headers: &HeaderMap, body: Incoming) -> Self {
        Self { body: Some(body), is_on_demand: headers.contains_key(header::EXPECT) }
    }
}

impl Body for Unread {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        self.is_on_demand = false;
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let polled = Pin::new(body).poll_frame(context);
        if matches!(polled, Poll::Ready(None | Some(Err(_)))) {
            self.body = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint)
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        let is_over = self.is_on_demand || self.is_end_stream();
        // Without a runtime there is no connection left either.
        if let (Some(body), false, Ok(runtime)) = (self.body.take(), is_over, Handle::try_current())
        {
            drop(runtime.spawn(timeout(DISCARD_TIME_MAX, discard(body))));
        }
    }
}

async fn discard(mut body: Incoming) {
    let mut bytes = 0;
    while let Some(Ok(frame)) = body.frame().await {
        bytes += frame.data_ref().map_or(0, |chunk| chunk.len() as u64);
        if bytes > DISCARD_BYTES_MAX {
            break;
        }
    }
}
