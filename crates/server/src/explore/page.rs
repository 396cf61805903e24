//! `GET /explore`: the page that shows a query. Like the other page it holds no data itself.

use axum::response::{Html, IntoResponse};

use crate::page::{CACHE, POLICY, SCRIPT};

pub(crate) async fn get_page() -> impl IntoResponse {
    ([POLICY, CACHE], Html(include_str!("explore.html")))
}

pub(crate) async fn get_script() -> impl IntoResponse {
    ([SCRIPT, CACHE], include_str!("explore.js"))
}
