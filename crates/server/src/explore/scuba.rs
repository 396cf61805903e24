//! `GET /intern/scuba/query/`: Scuba's links, with nothing but their host changed.

use axum::extract::RawQuery;
use axum::http::StatusCode;
use axum::response::Redirect;
use perflab_query::document::Document;
use perflab_query::drillstate::read_url_query;

use crate::error::ApiError;

pub(crate) async fn get_scuba(RawQuery(query): RawQuery) -> Result<Redirect, ApiError> {
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
