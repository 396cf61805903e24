//! The doors that entries come in by, and what they have in common:
//! read the body → decode it → check and queue its entries → wait for the commit → answer.

mod answer;
mod headers;
mod ndjson;
mod scribe;

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use perflab_model::Nanos;
use perflab_store::{Access, Answer, Door, Keys, Origin, Settled, Ticket};
use perflab_wire::{BodyError, BodyForm, Limits, MessageForm, Request, Secret};

use crate::access::Peer;
use crate::body::{Encoding, Received};
use crate::budget::Hold;
use crate::endpoint::{Endpoint, Operation};
use crate::error::ApiError;
use crate::state::{Server, blocking};
use headers::{arrival_of, keys_of};

/// Bodies up to this size are decoded right where they were read: that takes less time than
/// handing them to another thread and back. Larger ones would keep other requests waiting.
const INLINE_BYTES_MAX: usize = 64 << 10;
/// Nor are bodies of more entries than this decoded there: each that is refused becomes a row of
/// its own, many times longer than the entry.
const INLINE_ENTRIES_MAX: usize = 1000;

pub(crate) fn endpoints() -> impl Iterator<Item = Endpoint> {
    scribe::endpoints().into_iter().chain(ndjson::endpoints())
}

/// What the doors have in common.
fn described(operation: Operation<'_>) -> Operation<'_> {
    answer::described(headers::described(operation)).refusals(&[StatusCode::UNSUPPORTED_MEDIA_TYPE])
}

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
    /// Whether it took so long to take in that the answer may too.
    is_large: bool,
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
    let Queued { request, ticket, is_large, _hold } = delivery.run(received).await?;
    let settled = ticket.settled().await;
    if is_large {
        let server = Arc::clone(server);
        return blocking(move || conclude(&server, door, &request, settled)).await;
    }
    Ok(conclude(server, door, &request, settled))
}

/// The answer to entries that have landed.
fn conclude(server: &Server, door: Door, request: &Request, settled: Settled) -> Response {
    let answer = settled.answer(&server.home, |index| request.entry(index));
    note(server, door, &answer);
    answer::respond(door, &answer)
}

/// What the token in the head allows. A body may hold one instead, except that NDJSON and Arrow
/// can't.
fn head_access(
    server: &Server,
    peer: Peer,
    token: Option<&Secret>,
    body: &BodyForm,
) -> Result<Option<Access>, ApiError> {
    let is_last_chance = matches!(body, BodyForm::Ndjson { .. } | BodyForm::Arrow { .. });
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
            let limits = inline_limits(&self.server.settings.limits.request);
            match self.decode(received.bytes.clone(), &limits) {
                // Not so small: the other way in has the limits that count.
                Err(
                    BodyError::TooManyEntries { .. }
                    | BodyError::DecompressedTooLarge { .. }
                    | BodyError::BatchesTooLarge { .. },
                ) => {}
                Err(error) => return Err(unreadable(&error)),
                Ok(request) => return self.queue(request, received, false),
            }
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
        let received = received.decompress(self.encoding, limits.body_bytes_max)?;
        let request = self
            .decode(received.bytes.clone(), &limits.request)
            .map_err(|error| unreadable(&error))?;
        self.queue(request, received, true)
    }

    fn decode(&self, bytes: Bytes, limits: &Limits) -> Result<Request, BodyError> {
        let Form { body, messages, .. } = &self.form;
        Request::decode(body, *messages, bytes, limits)
    }

    /// Checks the entries and queues those that are good.
    fn queue(
        self,
        request: Request,
        received: Received,
        is_large: bool,
    ) -> Result<Queued, ApiError> {
        let Received { bytes, mut hold } = received;
        // What was compressed inside the body is longer than the body.
        if hold.grow(request.message_bytes().saturating_sub(bytes.len())).is_err() {
            return Err(ApiError::over_budget());
        }
        drop(bytes);
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
            door: self.form.door,
            arrival: self.arrival,
            keys: self.keys.as_ref(),
        };
        let ticket = self.server.home.ingest(&request, &origin);
        Ok(Queued { request, ticket, is_large, _hold: hold })
    }
}

/// The limits within which a small body is no more work than its size says.
fn inline_limits(limits: &Limits) -> Limits {
    Limits {
        message_bytes_max: limits.message_bytes_max,
        entries_max: limits.entries_max.min(INLINE_ENTRIES_MAX),
        decompressed_bytes_max: limits.decompressed_bytes_max.min(INLINE_BYTES_MAX),
    }
}

fn unreadable(error: &BodyError) -> ApiError {
    let status = match error {
        BodyError::TooManyEntries { .. }
        | BodyError::DecompressedTooLarge { .. }
        | BodyError::BatchesTooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
        BodyError::Json(_)
        | BodyError::Logs(_)
        | BodyError::NoLogs
        | BodyError::Twice { .. }
        | BodyError::TwoLogs
        | BodyError::NotText { .. }
        | BodyError::NoMark
        | BodyError::Type { .. }
        | BodyError::TokenUtf8
        | BodyError::Arrow(_)
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
