//! Counts and traces every request.

use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::http::Uri;
use axum::middleware::Next;
use axum::response::Response;
use tokio::time::Instant;

use crate::access::ACCESS_TOKEN;
use crate::state::Server;

pub(crate) async fn watch(
    State(server): State<Arc<Server>>,
    request: Request,
    next: Next,
) -> Response {
    let start = Instant::now();
    let door = door_of(request.extensions().get::<MatchedPath>().map(MatchedPath::as_str));
    let method = request.method().clone();
    let target = tracing::enabled!(tracing::Level::DEBUG).then(|| without_token(request.uri()));
    let response = next.run(request).await;
    let took = start.elapsed();
    server.metrics.count_request(door, response.status(), took);
    if let Some(target) = target {
        let (status, took_us) = (response.status().as_u16(), took.as_micros());
        tracing::debug!(%method, target, status, took_us, "request");
    }
    response
}

/// A name for each family of paths: whatever clients make up must not become labels.
fn door_of(matched: Option<&str>) -> &'static str {
    match matched {
        Some("/scribe_logs" | "/{version}/scribe_logs") => "scribe_logs",
        Some("/api/log") => "log",
        Some("/api/tail") => "tail",
        Some("/api/categories") => "categories",
        Some("/api/query") => "query",
        Some("/api/compare") => "compare",
        Some("/api/export") => "export",
        Some("/api/sql") => "sql",
        Some("/api/datasets" | "/api/datasets/{*name}" | "/api/columns/values") => "datasets",
        Some("/api/links" | "/l/{id}") => "links",
        Some("/api/openapi.json") => "openapi",
        Some("/api/check") => "check",
        Some("/api/tokens") => "tokens",
        Some("/api/thrift") => "thrift",
        Some("/healthz") => "healthz",
        Some("/metrics") => "metrics",
        Some(_) => "page",
        None => "unknown",
    }
}

/// The path and query of a request, fit for a log.
fn without_token(uri: &Uri) -> String {
    let Some(query) = uri.query() else {
        return uri.path().to_owned();
    };
    let mut shown = form_urlencoded::Serializer::new(format!("{}?", uri.path()));
    for (key, value) in form_urlencoded::parse(query.as_bytes()) {
        shown.append_pair(&key, if key == ACCESS_TOKEN { "…" } else { &value });
    }
    shown.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_do_not_get_into_logs() {
        let uri = "/scribe_logs?structured=true&access_token=secret&access_tok%65n=secret";
        let shown = without_token(&uri.parse().unwrap());
        assert!(!shown.contains("secret"), "{shown}");
        assert!(shown.contains("structured=true"), "{shown}");
    }
}
