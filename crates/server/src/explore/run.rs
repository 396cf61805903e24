//! `POST /api/query`: a query document in, an answer out.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use perflab_query::document::{
    AskError, DOCUMENT_BYTES_MAX, Document, answer_document, times_touched,
};
use perflab_query::{Limits, QueryError, Stop};
use perflab_store::{Access, Home, Reach};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::answer::{Answered, Form};
use super::rows::Readable;
use crate::access::Known;
use crate::error::ApiError;
use crate::state::{Server, blocking};

pub(crate) async fn post_query(
    State(server): State<Arc<Server>>,
    Known(access): Known,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let form = Form::wanted(&headers)?;
    let received = server.receive(body, DOCUMENT_BYTES_MAX).await?;
    let document = Document::from_json(&received.bytes)
        .map_err(|error| ApiError::caused_by(StatusCode::BAD_REQUEST, &error))?;
    let answered = run(&server, access, document).await?;
    form.response(&answered)
}

/// Waits until a query may be answered.
pub(super) async fn turn(server: &Server) -> Result<OwnedSemaphorePermit, ApiError> {
    let turn = Arc::clone(&server.queries).acquire_owned();
    match timeout(server.settings.limits.query_timeout, turn).await {
        Ok(Ok(turn)) => Ok(turn),
        Ok(Err(_)) | Err(_) => {
            Err(ApiError::too_busy("too many queries are answered at the moment"))
        }
    }
}

/// Answers a query when it is its turn, within the time and the memory there is for it, and only
/// as long as someone waits for the answer.
async fn run(
    server: &Arc<Server>,
    access: Access,
    document: Document,
) -> Result<Answered, ApiError> {
    let limits = &server.settings.limits;
    let started = Instant::now();
    let turn = turn(server).await?;
    let canceled = CancellationToken::new();
    let _canceled_with_the_request = canceled.clone().drop_guard();
    let (ending, time) = (server.ending.clone(), limits.query_timeout);
    let stop = move || match started.elapsed() > time {
        _ if canceled.is_cancelled() || ending.is_cancelled() => Some(Stop::Canceled),
        true => Some(Stop::TimedOut(time)),
        false => None,
    };
    let (memory_bytes, stop) = (limits.query_memory_bytes, Box::new(stop));
    let cache = Some(Arc::clone(&server.cache));
    let query_limits = Limits { memory_bytes, stop, cache, ..Limits::default() };
    let server = Arc::clone(server);
    blocking(move || {
        // Held by the work, not by whoever waits for it.
        let _turn = turn;
        answer(&server.home, &access, &document, &query_limits)
    })
    .await?
}

fn answer(
    home: &Home,
    access: &Access,
    document: &Document,
    limits: &Limits,
) -> Result<Answered, ApiError> {
    let started = Instant::now();
    let readable = Readable::find(home, access, &document.dataset)?;
    let now = home.now();
    let (start, end) = times_touched(document, now).map_err(|error| refused(&error.into()))?;
    let must_stop = || (limits.stop)().is_some();
    let snapshot = readable.snapshot(home, Reach::Times(start, end), &must_stop)?;
    let recorded = readable.columns(home)?;
    let answered = answer_document(document, &snapshot, &recorded, now, limits);
    Ok(Answered {
        answer: answered.map_err(|error| refused(&error))?,
        missing: snapshot.missing,
        elapsed: started.elapsed(),
    })
}

/// Damage is this machine's fault, lack of time the moment's, all else the query's.
fn refused(error: &AskError) -> ApiError {
    let AskError::Query(query_error) = error else {
        return ApiError::caused_by(StatusCode::BAD_REQUEST, error);
    };
    if matches!(query_error, QueryError::Segment(_)) {
        return ApiError::failed(error);
    }
    let is_moment = matches!(query_error, QueryError::TimedOut { .. } | QueryError::Canceled);
    let status = if is_moment { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::BAD_REQUEST };
    ApiError::caused_by(status, error)
}
