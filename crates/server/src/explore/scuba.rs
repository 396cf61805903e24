//! `GET /intern/scuba/query/`: Scuba's links, with nothing but their host changed.

use axum::extract::RawQuery;
use axum::http::{StatusCode, header};
use axum::response::Redirect;
use perflab_query::document::Document;
use perflab_query::drillstate::read_url_query;
use serde_json::json;

use crate::endpoint::{Endpoint, Operation};
use crate::error::ApiError;

pub(super) fn endpoints() -> [Endpoint; 2] {
    let open = "Opens a link of Scuba's.";
    ["/intern/scuba/query", "/intern/scuba/query/"]
        .map(|path| Endpoint::get(path, get_scuba, open, described).for_anyone())
}

fn described(operation: Operation<'_>) -> Operation<'_> {
    let text = || json!({"type": "string"});
    let drillstate = "The query as JSON, as Scuba writes it.";
    let operation = operation
        .parameter("query", "dataset", "", text())
        .parameter("query", "drillstate", drillstate, text())
        .parameter("query", "view", "", text());
    redirects(operation)
}

/// The answer that leads elsewhere.
pub(super) fn redirects(operation: Operation<'_>) -> Operation<'_> {
    let (status, location) = (StatusCode::SEE_OTHER, header::LOCATION);
    operation.answer_without_body(status, "Leads there.").answer_header(
        status,
        location.as_str(),
        "Where it leads.",
    )
}

async fn get_scuba(RawQuery(query): RawQuery) -> Result<Redirect, ApiError> {
    let document = read_url_query(query.as_deref().unwrap_or_default())
        .map_err(|error| ApiError::caused_by(StatusCode::BAD_REQUEST, &error))?;
    Ok(Redirect::to(&explore_path(&document)?))
}

/// Where a query is shown.
pub(super) fn explore_path(document: &Document) -> Result<String, ApiError> {
    let json = serde_json::to_string(document).map_err(|error| ApiError::failed(&error))?;
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("query", &json);
    Ok(format!("/explore?{}", query.finish()))
}
