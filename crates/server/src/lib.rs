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
use axum::routing::{get, post, put};
use axum::{Router, middleware};
use perflab_store::Home;

use error::ApiError;
use state::Server;

/// All endpoints. Callers in the same process insert [`Peer::Owner`] as a request extension; a
/// request without a [`Peer`] is treated as coming from anywhere.
pub fn router(home: Arc<Home>, settings: ServerSettings) -> Router {
    routes(&Server::new(home, settings))
}

fn routes(server: &Arc<Server>) -> Router {
    let admin = Router::new()
        .route("/api/categories", put(categories::put_category))
        .route("/api/check", post(check::post_check))
        .route(
            "/api/tokens",
            get(tokens::get_tokens).post(tokens::post_token).delete(tokens::delete_token),
        )
        .route("/api/thrift", post(thrift::post_thrift))
        .route_layer(middleware::from_fn_with_state(Arc::clone(server), access::require_admin));
    Router::new()
        .route("/scribe_logs", post(ingest::post_scribe_logs))
        .route("/{version}/scribe_logs", post(ingest::post_scribe_logs))
        .route("/api/log", post(ingest::post_log))
        .route("/api/tail", get(tail::get_tail))
        .route("/api/categories", get(categories::get_categories))
        .route("/api/thrift", get(thrift::get_thrift))
        .route("/healthz", get(health::get_health))
        .route("/metrics", get(health::get_metrics))
        .route("/", get(page::get_page))
        .route("/page.css", get(page::get_style))
        .route("/page.js", get(page::get_script))
        .merge(admin)
        .merge(explore::routes(server))
        .fallback(not_found)
        .method_not_allowed_fallback(wrong_method)
        // Bodies are read by `Server::receive`, which has limits of its own.
        .layer(DefaultBodyLimit::disable())
        .layer(middleware::from_fn_with_state(Arc::clone(server), origin::check))
        .layer(middleware::from_fn_with_state(Arc::clone(server), watch::watch))
        .with_state(Arc::clone(server))
}

async fn not_found() -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, "there is nothing at this path")
}

async fn wrong_method() -> ApiError {
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "this path does not take that method")
}
