//! `POST /api/query`: a query document in, an answer out.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use perflab_query::answer;
use perflab_query::document::{DOCUMENT_BYTES_MAX, Document, Plan, View};
use perflab_store::Access;
use tokio::time::{Instant, timeout};

use super::answer::{Answered, Form};
use super::rows::{self, Readable};
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

/// Answers a query, when it is its turn and within the time there is for it.
async fn run(
    server: &Arc<Server>,
    access: Access,
    document: Document,
) -> Result<Answered, ApiError> {
    let limit = server.settings.limits.query_timeout;
    let too_slow = |_elapsed| {
        let message = format!("the query takes longer than {} s", limit.as_secs());
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, message)
            .with_hint("ask about less time, or start the server with more --query-seconds")
    };
    let work = async {
        // Closed only when the server ends, and then nobody waits.
        let Ok(turn) = Arc::clone(&server.queries).acquire_owned().await else {
            return Err(ApiError::internal("the server is ending"));
        };
        let server = Arc::clone(server);
        blocking(move || {
            // Held by the work, not by whoever waits for it.
            let _turn = turn;
            answer_document(&server, &access, &document)
        })
        .await?
    };
    timeout(limit, work).await.map_err(too_slow)?
}

fn answer_document(
    server: &Server,
    access: &Access,
    document: &Document,
) -> Result<Answered, ApiError> {
    let started = Instant::now();
    let home = &server.home;
    let bad = |error: &dyn std::error::Error| ApiError::caused_by(StatusCode::BAD_REQUEST, error);
    if !matches!(document.view, View::Table | View::Series) {
        let message = "the view of the query is neither `table` nor `series`";
        return Err(ApiError::bad_request(message));
    }
    let readable = Readable::find(home, access, &document.dataset)?;
    let snapshot = readable.snapshot(home)?;
    let columns = rows::columns(&snapshot, readable.columns(home)?);
    let plan = Plan::new(document, &columns, home.now()).map_err(|error| bad(&error))?;
    let answer = answer(&plan.question, &snapshot).map_err(|error| bad(&error))?;
    let rows_scanned = answer.rows_scanned;
    let table = plan.finish(answer).map_err(|error| bad(&error))?;
    Ok(Answered {
        table,
        zone: plan.zone,
        range: plan.range,
        rows_scanned,
        missing: snapshot.missing,
        elapsed: started.elapsed(),
    })
}
