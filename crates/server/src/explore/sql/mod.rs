//! `POST /api/sql`: a query in SQL in, an answer out.
//!
//! Rows come in batches, as they are found. As JSON they are put in one document, with a limit of
//! rows and bytes; as CSV and Arrow they are sent on, all of them. The work stops when the answer
//! is dropped, as it is when the client goes away.

mod document;
mod stream;
mod values;

use std::collections::HashMap;
use std::sync::Arc;

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
use super::run::turn;
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
        described(operation, |form| matches!(form, Form::Json | Form::Csv | Form::Arrow))
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
    if matches!(form, Form::Parquet | Form::Tree(_)) {
        let message = "SQL is answered as json, csv or arrow";
        return Err(ApiError::new(StatusCode::NOT_ACCEPTABLE, message));
    }
    let received = server.receive(body, BODY_BYTES_MAX).await?;
    let sql = sql_of(&headers, &received.bytes)?;
    let answering = Answering::start(&server, access, sql).await?;
    if form == Form::Json {
        return document::response(answering).await;
    }
    stream::response(answering, form).await
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
    rows: Rows,
    started: Instant,
    ending: CancellationToken,
    _canceled_with_the_answer: DropGuard,
}

impl Answering {
    /// Starts when it is the query's turn, within the time and the memory there is for it.
    async fn start(server: &Arc<Server>, access: Access, sql: String) -> Result<Self, ApiError> {
        let limits = Limits {
            memory_bytes: server.settings.limits.query_memory_bytes,
            started: Instant::now(),
            time: server.settings.limits.query_timeout,
        };
        let turn = turn(server).await?;
        let canceled = server.ending.child_token();
        let guard = canceled.clone().drop_guard();
        let home = Arc::clone(&server.home);
        let prepare = move || prepare(&home, &access, &sql, limits, &canceled);
        let (query, datasets) = blocking(prepare).await??;
        let rows = execute(query, datasets, limits, turn).await;
        let rows = rows.map_err(|error| refused(&error))?;
        Ok(Self {
            rows,
            started: limits.started,
            ending: server.ending.clone(),
            _canceled_with_the_answer: guard,
        })
    }

    /// `None` after the last batch.
    async fn next(&mut self) -> Result<Option<RecordBatch>, ApiError> {
        let next = self.ending.run_until_cancelled(self.rows.next()).await;
        let Some(batch) = next else {
            let message = "the server ends: the query was canceled";
            return Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, message));
        };
        batch.transpose().map_err(|error| refused(&error))
    }
}

/// Reads a query, and finds what it is about.
fn prepare(
    home: &Arc<Home>,
    access: &Access,
    sql: &str,
    limits: Limits,
    canceled: &CancellationToken,
) -> Result<(Query, HashMap<String, Dataset>), ApiError> {
    let query = Query::parse(sql).map_err(|error| refused(&error))?;
    let mut datasets = HashMap::new();
    for name in query.datasets() {
        let readable = Readable::find(home, access, name);
        let readable = readable.map_err(|error| error.with_hint(QUOTES_HINT))?;
        let columns = readable.columns(home)?;
        let (home, canceled) = (Arc::clone(home), canceled.clone());
        let source = Arc::new(InHome { home, readable, limits, canceled });
        datasets.insert(name.clone(), Dataset { columns, source });
    }
    Ok((query, datasets))
}

/// The rows of a dataset that may be read, for a query.
#[derive(Debug)]
struct InHome {
    home: Arc<Home>,
    readable: Readable,
    limits: Limits,
    canceled: CancellationToken,
}

impl Source for InHome {
    fn snapshot(&self, reach: Reach) -> Result<Snapshot, SnapshotError> {
        let is_late = || self.limits.started.elapsed() > self.limits.time;
        self.readable.try_snapshot(&self.home, reach, &|| self.canceled.is_cancelled() || is_late())
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
