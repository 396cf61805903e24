//! `/healthz` and `/metrics`: for whoever watches over the server.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use schemars::JsonSchema;
use serde::Serialize;

use crate::access::Known;
use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::state::Server;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const OK: &str = "ok";
const DEGRADED: &str = "degraded";

#[derive(Debug, Serialize, JsonSchema)]
struct Health {
    #[schemars(extend("enum" = [OK, DEGRADED]))]
    status: &'static str,
    version: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reasons: Vec<&'static str>,
}

pub(crate) fn endpoints() -> [Endpoint; 2] {
    let health = Endpoint::get("/healthz", get_health, "Says whether all is well.", |operation| {
        let unwell = (StatusCode::SERVICE_UNAVAILABLE, "It is not, for these reasons.");
        operation.ok::<Health>("All is well.").answer::<Health>(unwell.0, unwell.1)
    });
    let metrics = Endpoint::get("/metrics", get_metrics, "Counts and measures.", |operation| {
        operation.answer_as::<String>(StatusCode::OK, "In the form of OpenMetrics.", OPEN_METRICS)
    });
    [health.for_anyone(), metrics]
}

async fn get_health(State(server): State<Arc<Server>>) -> (StatusCode, Json<Health>) {
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
        (StatusCode::OK, OK)
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, DEGRADED)
    };
    (code, Json(Health { status, version: env!("CARGO_PKG_VERSION"), reasons }))
}

async fn get_metrics(
    State(server): State<Arc<Server>>,
    _: Known,
) -> Result<impl IntoResponse, ApiError> {
    let text = server.metrics.to_text().map_err(|error| ApiError::failed(&error))?;
    Ok(([(header::CONTENT_TYPE, OPEN_METRICS)], text))
}
