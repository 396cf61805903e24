//! `GET /api/columns/values`: what a column holds, for whoever is typing.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use perflab_query::column_values;
use perflab_store::{Access, Home, Reach};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::rows::{self, Readable};
use crate::access::Known;
use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::query::Asked;
use crate::state::{Server, blocking};

/// How many values are given unless fewer or more are asked for,
const VALUES: usize = 20;
/// and at most.
const VALUES_MAX: usize = 1000;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Wanted {
    dataset: String,
    column: String,
    /// What values begin with.
    #[serde(default)]
    prefix: String,
    /// How many are wanted at most; 20 unless said.
    #[schemars(range(max = VALUES_MAX))]
    limit: Option<usize>,
    /// Looked at elsewhere.
    #[serde(rename = "access_token")]
    #[schemars(skip)]
    _token: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Values {
    values: Vec<String>,
    /// Which rows were not looked at, and why; empty when all were.
    missing: Vec<String>,
}

pub(super) fn endpoints() -> [Endpoint; 1] {
    let values = "Gives values of a column, for whoever is typing.";
    let values = Endpoint::get("/api/columns/values", get_values, values, |operation| {
        operation
            .query::<Wanted>()
            .ok::<Values>("Values that begin so.")
            .refusals(&[StatusCode::NOT_FOUND, StatusCode::SERVICE_UNAVAILABLE])
    });
    [values]
}

async fn get_values(
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
    let values = column_values(&wanted.column, &wanted.prefix, limit, &snapshot)
        .map_err(|error| ApiError::failed(&error))?;
    Ok(Values { values, missing: snapshot.missing })
}
