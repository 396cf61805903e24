//! `GET /explore`: the page that shows a query. Like the other page it holds no data itself.

use axum::response::{Html, IntoResponse};

use crate::endpoint::Endpoint;
use crate::page::{CACHE, POLICY, SCRIPT};

pub(super) fn endpoints() -> [Endpoint; 2] {
    [Endpoint::page("/explore", get_page), Endpoint::page("/explore.js", get_script)]
}

async fn get_page() -> impl IntoResponse {
    ([POLICY, CACHE], Html(include_str!("explore.html")))
}

async fn get_script() -> impl IntoResponse {
    ([SCRIPT, CACHE], include_str!("explore.js"))
}
