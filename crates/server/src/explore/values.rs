//! `GET /api/columns/values`: what a column holds, for whoever is typing.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use perflab_query::column_values;
use perflab_store::{Access, Home, Reach};
use serde::{Deserialize, Serialize};

use super::rows::{self, Readable};
use crate::access::Known;
use crate::error::ApiError;
use crate::query::Asked;
use crate::state::{Server, blocking};

/// How many values are given unless fewer or more are asked for,
const VALUES: usize = 20;
/// and at most.
const VALUES_MAX: usize = 1000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wanted {
    dataset: String,
    column: String,
    #[serde(default)]
    prefix: String,
    limit: Option<usize>,
    /// Looked at elsewhere.
    #[serde(rename = "access_token")]
    _token: Option<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Values {
    values: Vec<String>,
}

pub(crate) async fn get_values(
    State(server): State<Arc<Server>>,
    Known(access): Known,
    Asked(wanted): Asked<Wanted>,
) -> Result<Json<Values>, ApiError> {
    blocking(move || find(&server.home, &access, &wanted)).await?.map(Json)
}

fn find(home: &Home, access: &Access, wanted: &Wanted) -> Result<Values, ApiError> {
    let limit = wanted.limit.unwrap_or(VALUES);
    if limit > VALUES_MAX {
        let message = format!("`limit` is {limit}, and no more than {VALUES_MAX} values are given");
        return Err(ApiError::bad_request(message));
    }
    let readable = Readable::find(home, access, &wanted.dataset)?;
    // Whoever is typing does not wait for old rows to be thawed.
    let snapshot = readable.snapshot(home, Reach::Hot, &|| false)?;
    rows::columns(&snapshot, readable.columns(home)?)
        .kinds(&readable.dataset, &wanted.column)
        .map_err(|error| ApiError::caused_by(StatusCode::BAD_REQUEST, &error))?;
    let values = column_values(&wanted.column, &wanted.prefix, limit, &snapshot);
    Ok(Values { values: values.map_err(|error| ApiError::failed(&error))? })
}
