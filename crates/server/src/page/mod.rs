//! `GET /`: a small page that shows what arrives. It holds no data itself, so it needs no token;
//! it asks the API, which may.

use axum::http::{HeaderName, header};
use axum::response::{Html, IntoResponse};

use crate::endpoint::Endpoint;

/// Nothing from elsewhere, nothing inline, not in a frame.
pub(crate) const POLICY: (HeaderName, &str) = (
    header::CONTENT_SECURITY_POLICY,
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);

pub(crate) const CACHE: (HeaderName, &str) = (header::CACHE_CONTROL, "no-cache");
pub(crate) const SCRIPT: (HeaderName, &str) =
    (header::CONTENT_TYPE, "text/javascript; charset=utf-8");

pub(crate) fn endpoints() -> [Endpoint; 3] {
    [
        Endpoint::page("/", get_page),
        Endpoint::page("/page.css", get_style),
        Endpoint::page("/page.js", get_script),
    ]
}

async fn get_page() -> impl IntoResponse {
    ([POLICY, CACHE], Html(include_str!("page.html")))
}

async fn get_style() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/css; charset=utf-8"), CACHE], include_str!("page.css"))
}

async fn get_script() -> impl IntoResponse {
    ([SCRIPT, CACHE], include_str!("page.js"))
}
