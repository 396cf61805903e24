//! perflab over HTTP: the doors that entries come in by, and what reads them back.
//!
//! [`router`] is all endpoints as a service, for in-process callers; [`serve`] adds the
//! listeners, TLS, the work that is done in the background and an orderly end.

mod access;
mod background;
mod body;
mod budget;
mod categories;
mod check;
mod endpoint;
mod error;
mod explore;
mod health;
mod ingest;
mod listen;
mod metrics;
mod origin;
mod page;
mod query;
mod serve;
mod settings;
mod state;
mod tail;
mod thrift;
mod tls;
mod tokens;
mod unread;
mod watch;

pub use access::Peer;
pub use serve::{Bound, ServeError, serve};
pub use settings::{PORT, ServerLimits, ServerSettings, TlsFiles};
pub use tls::TlsError;

use std::sync::Arc;

use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::{Router, middleware};
use perflab_store::Home;

use endpoint::{Endpoint, get_document};
use error::ApiError;
use state::Server;

/// All endpoints. Callers in the same process insert [`Peer::Owner`] as a request extension; a
/// request without a [`Peer`] is treated as coming from anywhere.
pub fn router(home: Arc<Home>, settings: ServerSettings) -> Router {
    routes(&Server::new(home, settings))
}

fn routes(server: &Arc<Server>) -> Router {
    let endpoints = endpoints().into_iter();
    endpoints
        .fold(Router::new(), |router, endpoint| endpoint.add_to(router, server))
        .fallback(not_found)
        .method_not_allowed_fallback(wrong_method)
        // Bodies are read by `Server::receive`, which has limits of its own.
        .layer(DefaultBodyLimit::disable())
        .layer(middleware::from_fn_with_state(Arc::clone(server), origin::check))
        .layer(middleware::from_fn_with_state(Arc::clone(server), watch::watch))
        .with_state(Arc::clone(server))
}

/// All there are: the router and the OpenAPI document are made of these.
fn endpoints() -> Vec<Endpoint> {
    let document = Endpoint::get(
        "/api/openapi.json",
        get_document,
        "Says what can be called here, as an OpenAPI document.",
        |operation| operation.ok::<serde_json::Value>("This document."),
    );
    let mut all = vec![document.for_anyone()];
    all.extend(ingest::endpoints());
    all.extend(tail::endpoints());
    all.extend(categories::endpoints());
    all.extend(check::endpoints());
    all.extend(tokens::endpoints());
    all.extend(thrift::endpoints());
    all.extend(health::endpoints());
    all.extend(page::endpoints());
    all.extend(explore::endpoints());
    all
}

async fn not_found() -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, "there is nothing at this path")
}

async fn wrong_method() -> ApiError {
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "this path does not take that method")
}
