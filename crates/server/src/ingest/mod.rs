//! The doors that entries come in by, and what they have in common:
//! read the body → decode it → check and queue its entries → wait for the commit → answer.

mod answer;
mod headers;
mod ndjson;
mod scribe;

pub(crate) use ndjson::post_log;
pub(crate) use scribe::post_scribe_logs;

use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use perflab_model::Nanos;
use perflab_store::{Access, Answer, Door, Keys, Origin, Ticket};
use perflab_wire::{BodyError, BodyForm, MessageForm, Request, Secret};

use crate::access::Peer;
use crate::body::{Encoding, Received};
use crate::budget::Hold;
use crate::error::ApiError;
use crate::state::{Server, blocking};
use headers::{arrival_of, keys_of};

/// Bodies up to this size are decoded right where they were read: that takes less time than
/// handing them to another thread and back. Larger ones would keep other requests waiting.
const INLINE_BYTES_MAX: usize = 64 << 10;

/// How a request's body is to be understood.
#[derive(Debug)]
struct Form {
    door: Door,
    body: BodyForm,
    messages: MessageForm,
}

/// What is needed to decode a body and take its entries in.
struct Delivery {
    server: Arc<Server>,
    form: Form,
    /// `None`: the token is in the body.
    access: Option<Access>,
    peer: Peer,
    keys: Option<Keys>,
    arrival: Nanos,
    encoding: Encoding,
}

/// Entries that were queued.
struct Queued {
    request: Request,
    ticket: Ticket,
    /// Until the answer is known.
    _hold: Hold,
}

async fn accept(
    server: &Arc<Server>,
    (peer, token): (Peer, Option<Secret>),
    headers: &HeaderMap,
    form: Form,
    body: Body,
) -> Result<Response, ApiError> {
    let door = form.door;
    let delivery = Delivery {
        server: Arc::clone(server),
        // Before the body is read: a bad token is no reason to take 100 MB.
        access: head_access(server, peer, token.as_ref(), &form.body)?,
        form,
        peer,
        keys: keys_of(headers)?,
        arrival: arrival_of(headers, server.home.now())?,
        encoding: Encoding::of(headers)?,
    };
    let received = server.receive(body, server.settings.limits.body_bytes_max).await?;
    server.metrics.body_bytes.inc_by(received.bytes.len() as u64);
    let queued = delivery.run(received).await?;
    let settled = queued.ticket.settled().await;
    let request = queued.request;
    let answer = settled.answer(&server.home, |index| request.entries().nth(index)?.ok());
    note(server, door, &answer);
    Ok(answer::respond(door, &answer))
}

/// What the token in the head allows. A body may hold one instead, except that NDJSON can't.
fn head_access(
    server: &Server,
    peer: Peer,
    token: Option<&Secret>,
    body: &BodyForm,
) -> Result<Option<Access>, ApiError> {
    let is_last_chance = matches!(body, BodyForm::Ndjson { .. });
    if token.is_some() || is_last_chance || server.needs_no_token(peer) {
        return server.access(peer, token).map(Some);
    }
    Ok(None)
}

impl Delivery {
    async fn run(self, received: Received) -> Result<Queued, ApiError> {
        let is_small =
            received.bytes.len() <= INLINE_BYTES_MAX && self.encoding == Encoding::Identity;
        if is_small {
            return self.take_in(received);
        }
        let server = Arc::clone(&self.server);
        // Never closed, so there is always a turn.
        let turn = server.decoders.acquire().await;
        let queued = blocking(|| self.take_in(received)).await?;
        drop(turn);
        queued
    }

    fn take_in(self, received: Received) -> Result<Queued, ApiError> {
        let limits = &self.server.settings.limits;
        let Received { bytes, hold } = received.decompress(self.encoding, limits.body_bytes_max)?;
        let Form { door, body, messages } = &self.form;
        let request = Request::decode(body, *messages, bytes, &limits.request)
            .map_err(|error| unreadable(&error))?;
        let access = match &self.access {
            Some(access) => access.clone(),
            None => self.server.access(self.peer, request.token())?,
        };
        if let Some(keys) = &self.keys {
            keys.check(request.len())
                .map_err(|error| ApiError::caused_by(StatusCode::BAD_REQUEST, &error))?;
        }
        let origin = Origin {
            access: &access,
            door: *door,
            arrival: self.arrival,
            keys: self.keys.as_ref(),
        };
        let ticket = self.server.home.ingest(&request, &origin);
        Ok(Queued { request, ticket, _hold: hold })
    }
}

fn unreadable(error: &BodyError) -> ApiError {
    let status = match error {
        BodyError::TooManyEntries { .. } | BodyError::DecompressedTooLarge { .. } => {
            StatusCode::PAYLOAD_TOO_LARGE
        }
        BodyError::Json(_)
        | BodyError::Logs(_)
        | BodyError::NoLogs
        | BodyError::Twice { .. }
        | BodyError::Type { .. }
        | BodyError::TokenUtf8
        | BodyError::Base64(_)
        | BodyError::Bzip2(_) => StatusCode::BAD_REQUEST,
    };
    ApiError::caused_by(status, error)
}

/// Counts the outcomes, and says in the log that something was refused.
fn note(server: &Server, door: Door, answer: &Answer) {
    let refused = server.metrics.count_entries(answer);
    if refused == 0 {
        return;
    }
    let first = answer.outcomes.iter().find_map(|outcome| outcome.reason.as_deref());
    let (door, reason) = (door.as_str(), first.unwrap_or_default());
    tracing::warn!(door, refused, entries = answer.outcomes.len(), reason, "entries refused");
}
