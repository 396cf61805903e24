//! `/healthz` and `/metrics`: for whoever watches over the server.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use serde::Serialize;

use crate::access::Known;
use crate::error::ApiError;
use crate::state::Server;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

#[derive(Debug, Serialize)]
pub(crate) struct Health {
    status: &'static str,
    version: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reasons: Vec<&'static str>,
}

pub(crate) async fn get_health(State(server): State<Arc<Server>>) -> (StatusCode, Json<Health>) {
    let mut reasons = Vec::new();
    let log = server.home.log().stats();
    if log.disk_full {
        reasons.push("disk full");
    }
    if log.closed {
        reasons.push("log closed");
    }
    if server.ending.is_cancelled() {
        reasons.push("ending");
    }
    let (code, status) = if reasons.is_empty() {
        (StatusCode::OK, "ok")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "degraded")
    };
    (code, Json(Health { status, version: env!("CARGO_PKG_VERSION"), reasons }))
}

pub(crate) async fn get_metrics(
    State(server): State<Arc<Server>>,
    _: Known,
) -> Result<impl IntoResponse, ApiError> {
    let text = server.metrics.to_text().map_err(|error| ApiError::failed(&error))?;
    Ok(([(header::CONTENT_TYPE, OPEN_METRICS)], text))
}
