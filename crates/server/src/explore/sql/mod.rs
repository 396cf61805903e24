//! `POST /api/sql`: a query in SQL in, an answer out.
//!
//! Rows come in batches, as they are found. As JSON they are put in one document, with a limit of
//! rows and bytes; as CSV, Arrow and Parquet they are sent on, all of them. The work stops when the
//! answer is dropped, as it is when the client goes away.

mod document;
mod stream;
mod values;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::record_batch::RecordBatch;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use perflab_sql::{Dataset, Limits, Query, Rows, SQL_BYTES_MAX, Source, SqlError, execute};
use perflab_store::segment::Snapshot;
use perflab_store::{Access, Home, Reach, SnapshotError};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::form::{Form, described};
use super::rows::{Readable, no_snapshot};
use super::run::{report_damage, turn};
use crate::access::Known;
use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::state::{Server, blocking};

/// The largest body: the longest query, every character of it escaped, and what is around it.
const BODY_BYTES_MAX: usize = 8 * SQL_BYTES_MAX;
const QUOTES_HINT: &str = "names with other characters than letters, digits and `_` go in double \
    quotes, texts in single ones";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Sql")]
struct Asked {
    sql: String,
}

pub(super) fn endpoints() -> [Endpoint; 1] {
    let sql = Endpoint::post("/api/sql", post_sql, "Answers a query in SQL.", |operation| {
        let operation = operation.body::<Asked>().body_as::<String>("text/plain");
        described(operation, Form::is_of_rows)
    });
    [sql]
}

async fn post_sql(
    State(server): State<Arc<Server>>,
    Known(access): Known,
    form: Form,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    if !form.is_of_rows() {
        let message = "SQL is answered as json, csv, arrow or parquet";
        return Err(ApiError::new(StatusCode::NOT_ACCEPTABLE, message));
    }
    let received = server.receive(body, BODY_BYTES_MAX).await?;
    let limits = Limits {
        memory_bytes: server.settings.limits.query_memory_bytes,
        started: Instant::now(),
        time: server.settings.limits.query_timeout,
    };
    let sql = sql_of(&headers, &received.bytes)?;
    // Each time there are fewer segments that can be damaged.
    loop {
        let answering = Answering::start(&server, &access, &sql, limits).await;
        let answered = match answering {
            Ok(answering) if form == Form::Json => document::response(answering).await,
            Ok(answering) => stream::response(answering, form).await,
            Err(error) => Err(error),
        };
        match answered {
            Ok(response) => return Ok(response),
            Err(Unanswered::Mended) => {}
            Err(Unanswered::Refused(error)) => return Err(error),
        }
    }
}

/// Why there is no answer, or no more of it.
#[derive(Debug)]
enum Unanswered {
    /// Segments were damaged, and are now set aside: there is an answer without them.
    Mended,
    Refused(ApiError),
}

impl From<ApiError> for Unanswered {
    fn from(error: ApiError) -> Self {
        Self::Refused(error)
    }
}

fn sql_of(headers: &HeaderMap, body: &[u8]) -> Result<String, ApiError> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    if kind.is_some_and(|kind| kind.starts_with("text/plain")) {
        let text = str::from_utf8(body);
        return text
            .map(str::to_owned)
            .map_err(|error| ApiError::caused_by(StatusCode::BAD_REQUEST, &error));
    }
    let asked: Asked = serde_json::from_slice(body).map_err(|error| {
        let error = ApiError::caused_by(StatusCode::BAD_REQUEST, &error);
        error.with_hint("send {\"sql\": \"SELECT …\"} as JSON, or the query itself as text/plain")
    })?;
    Ok(asked.sql)
}

/// A query that is being answered.
struct Answering {
    server: Arc<Server>,
    rows: Rows,
    seen: Arc<Seen>,
    started: Instant,
    _canceled_with_the_answer: DropGuard,
}

impl Answering {
    /// Starts when it is the query's turn, within the time and the memory there is for it.
    async fn start(
        server: &Arc<Server>,
        access: &Access,
        sql: &str,
        limits: Limits,
    ) -> Result<Self, Unanswered> {
        let turn = turn(server).await?;
        let canceled = server.ending.child_token();
        let guard = canceled.clone().drop_guard();
        let seen = Arc::new(Seen::default());
        let asking = Asking {
            home: Arc::clone(&server.home),
            access: access.clone(),
            limits,
            canceled,
            seen: Arc::clone(&seen),
        };
        let sql = sql.to_owned();
        let (query, datasets) = blocking(move || asking.prepare(&sql)).await??;
        let rows = match execute(query, datasets, limits, turn).await {
            Ok(rows) => rows,
            Err(error) => return Err(unanswered(server, &seen, &error).await),
        };
        let (server, started) = (Arc::clone(server), limits.started);
        Ok(Self { server, rows, seen, started, _canceled_with_the_answer: guard })
    }

    /// `None` after the last batch.
    async fn next(&mut self) -> Result<Option<RecordBatch>, Unanswered> {
        let next = self.server.ending.run_until_cancelled(self.rows.next()).await;
        let Some(batch) = next else {
            let message = "the server ends: the query was canceled";
            return Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, message).into());
        };
        match batch.transpose() {
            Ok(batch) => Ok(batch),
            Err(error) => Err(unanswered(&self.server, &self.seen, &error).await),
        }
    }
}

/// Has damage mended if there is any.
async fn unanswered(server: &Arc<Server>, seen: &Arc<Seen>, error: &SqlError) -> Unanswered {
    if matches!(error, SqlError::Damaged(_)) {
        let (home, seen) = (Arc::clone(&server.home), Arc::clone(seen));
        if let Ok(true) = blocking(move || seen.report_damage(&home)).await {
            return Unanswered::Mended;
        }
    }
    refused(error).into()
}

/// The snapshots that a query is answered from, with the names of their datasets.
#[derive(Debug, Default)]
struct Seen(Mutex<Vec<(String, Snapshot)>>);

impl Seen {
    fn add(&self, dataset: &str, snapshot: &Snapshot) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.push((dataset.to_owned(), snapshot.clone()));
    }

    /// Whether any was damaged.
    fn report_damage(&self, home: &Home) -> bool {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let damaged =
            seen.iter().filter(|(dataset, snapshot)| report_damage(home, dataset, snapshot));
        damaged.count() > 0
    }
}

/// What is needed to find what a query is about.
#[derive(Debug, Clone)]
struct Asking {
    home: Arc<Home>,
    access: Access,
    limits: Limits,
    canceled: CancellationToken,
    seen: Arc<Seen>,
}

impl Asking {
    /// Reads a query, and finds what it is about.
    fn prepare(&self, sql: &str) -> Result<(Query, HashMap<String, Dataset>), ApiError> {
        let query = Query::parse(sql).map_err(|error| refused(&error))?;
        let mut datasets = HashMap::new();
        for name in query.datasets() {
            let readable = Readable::find(&self.home, &self.access, name);
            let readable = readable.map_err(|error| error.with_hint(QUOTES_HINT))?;
            let columns = readable.columns(&self.home)?;
            let source = Arc::new(InHome { asking: self.clone(), readable });
            datasets.insert(name.clone(), Dataset { columns, source });
        }
        Ok((query, datasets))
    }
}

/// The rows of a dataset that may be read, for a query.
#[derive(Debug)]
struct InHome {
    asking: Asking,
    readable: Readable,
}

impl Source for InHome {
    fn snapshot(&self, reach: Reach) -> Result<Snapshot, SnapshotError> {
        let Asking { home, limits, canceled, seen, .. } = &self.asking;
        let is_late = || limits.started.elapsed() > limits.time;
        let stop = || canceled.is_cancelled() || is_late();
        let snapshot = self.readable.try_snapshot(home, reach, &stop)?;
        seen.add(&self.readable.dataset, &snapshot);
        Ok(snapshot)
    }
}

/// Damage is this machine's fault, lack of time the moment's, all else the query's.
fn refused(error: &SqlError) -> ApiError {
    let asked_wrong = || ApiError::caused_by(StatusCode::BAD_REQUEST, error);
    match error {
        SqlError::Snapshot(error) => no_snapshot(error),
        SqlError::Damaged(_) | SqlError::Defect | SqlError::Threads(_) => ApiError::failed(error),
        SqlError::Time { .. } => ApiError::caused_by(StatusCode::SERVICE_UNAVAILABLE, error),
        SqlError::Unreadable(_) | SqlError::InParts { .. } | SqlError::UnknownColumn { .. } => {
            asked_wrong().with_hint(QUOTES_HINT)
        }
        SqlError::TooLong { .. }
        | SqlError::TooManyWords { .. }
        | SqlError::Statements { .. }
        | SqlError::NotReadOnly
        | SqlError::Memory { .. }
        | SqlError::Engine(_) => asked_wrong(),
    }
}
