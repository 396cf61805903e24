//! `POST /api/query` and `POST /api/compare`: a document in, an answer out.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use perflab_model::{Kind, Nanos};
use perflab_query::document::{
    self, AskError, Comparison, DOCUMENT_BYTES_MAX, Document, DocumentError, answer_comparison,
    answer_document, times_compared, times_touched,
};
use perflab_query::{Limits, QueryError, Stop};
use perflab_store::segment::Snapshot;
use perflab_store::{Access, Home, Reach};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::answer::Answered;
use super::form::{Form, described};
use super::rows::Readable;
use crate::access::Known;
use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::metrics::QueryEnd;
use crate::state::{Server, blocking};

type Answer<D> =
    fn(&D, &Snapshot, &[(String, Kind)], Nanos, &Limits) -> Result<document::Answered, AskError>;

type Touched<D> = fn(&D, Nanos) -> Result<(i64, i64), DocumentError>;

/// How a kind of document is read and answered.
struct Asking<D> {
    read: fn(&[u8]) -> Result<D, DocumentError>,
    dataset: fn(&D) -> &str,
    /// The times that its answer is made of.
    touched: Touched<D>,
    answer: Answer<D>,
}

const QUERY: Asking<Document> = Asking {
    read: Document::from_json,
    dataset: |document| &document.dataset,
    touched: times_touched,
    answer: answer_document,
};

const COMPARISON: Asking<Comparison> = Asking {
    read: Comparison::from_json,
    dataset: |comparison| &comparison.dataset,
    touched: times_compared,
    answer: answer_comparison,
};

pub(super) fn endpoints() -> [Endpoint; 2] {
    let compare = "Judges stored measurements of two states of the code.";
    [
        Endpoint::post("/api/query", post_query, "Answers a query.", |operation| {
            described(operation.body::<Document>(), |_| true)
        }),
        Endpoint::post("/api/compare", post_compare, compare, |operation| {
            described(operation.body::<Comparison>(), Form::is_of_rows)
        }),
    ]
}

async fn post_query(
    State(server): State<Arc<Server>>,
    Known(access): Known,
    form: Form,
    body: Body,
) -> Result<Response, ApiError> {
    respond(&QUERY, &server, access, form, body).await
}

async fn post_compare(
    State(server): State<Arc<Server>>,
    Known(access): Known,
    form: Form,
    body: Body,
) -> Result<Response, ApiError> {
    respond(&COMPARISON, &server, access, form, body).await
}

async fn respond<D: Send + 'static>(
    asking: &'static Asking<D>,
    server: &Arc<Server>,
    access: Access,
    form: Form,
    body: Body,
) -> Result<Response, ApiError> {
    let received = server.receive(body, DOCUMENT_BYTES_MAX).await?;
    let document = (asking.read)(&received.bytes)
        .map_err(|error| ApiError::caused_by(StatusCode::BAD_REQUEST, &error))?;
    let answered = run(asking, server, access, document).await?;
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
async fn run<D: Send + 'static>(
    asking: &'static Asking<D>,
    server: &Arc<Server>,
    access: Access,
    document: D,
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
        asking.answer(&server, &access, &document, &query_limits)
    })
    .await?
}

impl<D> Asking<D> {
    fn answer(
        &self,
        server: &Server,
        access: &Access,
        document: &D,
        limits: &Limits,
    ) -> Result<Answered, ApiError> {
        let started = Instant::now();
        let home = &server.home;
        let readable = Readable::find(home, access, (self.dataset)(document))?;
        let now = home.now();
        let (start, end) = (self.touched)(document, now).map_err(|error| refused(&error.into()))?;
        let must_stop = || (limits.stop)().is_some();
        let (answered, missing) = loop {
            let snapshot = readable.snapshot(home, Reach::Times(start, end), &must_stop)?;
            let recorded = readable.columns(home)?;
            let answered = (self.answer)(document, &snapshot, &recorded, now, limits);
            // Each time there are fewer segments that can be damaged.
            if !is_damage(&answered) || !report_damage(home, &readable.dataset, &snapshot) {
                break (answered, snapshot.missing);
            }
        };
        server.metrics.count_query(end_of(&answered));
        Ok(Answered {
            answer: answered.map_err(|error| refused(&error))?,
            dataset: readable.dataset,
            missing,
            elapsed: started.elapsed(),
        })
    }
}

fn is_damage(answered: &Result<document::Answered, AskError>) -> bool {
    matches!(answered, Err(AskError::Query(QueryError::Segment(_))))
}

/// Has damaged segments set aside and made again from the log; whether there were any. Without
/// them the question has an answer, which says what is missing until they are back.
pub(super) fn report_damage(home: &Home, dataset: &str, snapshot: &Snapshot) -> bool {
    let damaged = snapshot.segments.iter().filter(|segment| home.report_damage(dataset, segment));
    damaged.count() > 0
}

fn end_of(answered: &Result<document::Answered, AskError>) -> QueryEnd {
    match answered {
        Ok(_) => QueryEnd::Answered,
        Err(AskError::Query(QueryError::Canceled)) => QueryEnd::Canceled,
        Err(AskError::Query(QueryError::TimedOut { .. })) => QueryEnd::TimedOut,
        Err(_) => QueryEnd::Refused,
    }
}

/// Damage is this machine's fault, lack of time the moment's, all else the query's.
pub(super) fn refused(error: &AskError) -> ApiError {
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
