//! Asking about rows: queries, SQL, datasets, values, links.
//!
//! A query is work for many cores and much memory, so only [`ServerLimits::queries_max`] run at
//! once, each on threads of its own that spread over the cores; the others wait.
//!
//! [`ServerLimits::queries_max`]: crate::ServerLimits::queries_max

mod answer;
mod arrays;
mod datasets;
mod export;
mod form;
mod links;
mod page;
mod rows;
mod run;
mod scuba;
mod sql;
mod values;

use std::sync::Arc;

use axum::routing::{get, post, put};
use axum::{Router, middleware};

use crate::access::require_admin;
use crate::state::Server;

pub(crate) fn routes(server: &Arc<Server>) -> Router<Arc<Server>> {
    let change = put(datasets::put_dataset)
        .route_layer(middleware::from_fn_with_state(Arc::clone(server), require_admin));
    Router::new()
        .route("/api/query", post(run::post_query))
        .route("/api/compare", post(run::post_compare))
        .route("/api/export", post(export::post_export))
        .route("/api/sql", post(sql::post_sql))
        .route("/api/datasets", get(datasets::get_datasets))
        .route("/api/datasets/{*name}", get(datasets::get_dataset).merge(change))
        .route("/api/columns/values", get(values::get_values))
        .route("/api/links", post(links::post_link))
        .route("/l/{id}", get(links::get_link))
        .route("/intern/scuba/query", get(scuba::get_scuba))
        .route("/intern/scuba/query/", get(scuba::get_scuba))
        .route("/explore", get(page::get_page))
        .route("/explore.js", get(page::get_script))
}
