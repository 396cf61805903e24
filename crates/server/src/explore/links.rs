//! `POST /api/links` and `GET /l/ID`: short links to queries, and to anything else.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Redirect;
use perflab_query::document::{DOCUMENT_BYTES_MAX, Document};
use perflab_query::drillstate::{is_scuba_url, read_url_query};
use perflab_store::LinkError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::scuba::{explore_path, redirects};
use crate::access::{Known, Peer};
use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::serve::url_of;
use crate::state::{Server, blocking};

/// What a link is made of: one of the two.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NewLink")]
struct Wanted {
    #[schemars(with = "Option<Document>")]
    query: Option<Value>,
    /// A web address, or one of Scuba's.
    url: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Link {
    id: String,
    /// The short link.
    url: String,
    /// Where it leads.
    target: String,
}

pub(super) fn endpoints() -> [Endpoint; 2] {
    let make = "Makes a short link to a query or to a web address.";
    let make = Endpoint::post("/api/links", post_link, make, |operation| {
        operation.body::<Wanted>().ok::<Link>("The link.")
    });
    let follow = Endpoint::get("/l/{id}", get_link, "Follows a short link.", |operation| {
        redirects(operation).refusals(&[StatusCode::NOT_FOUND])
    });
    [make, follow.for_anyone()]
}

async fn post_link(
    State(server): State<Arc<Server>>,
    Known(_): Known,
    peer: Peer,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Link>, ApiError> {
    let received = server.receive(body, DOCUMENT_BYTES_MAX).await?;
    let wanted: Wanted = serde_json::from_slice(&received.bytes)
        .map_err(|error| ApiError::bad_request(format!("the body is no link: {error}")))?;
    let target = target(wanted)?;
    let base = base_url(&server, peer, &headers);
    let keep = move || server.home.add_link(&target).map(|id| (id, target));
    let (id, target) = blocking(keep).await?.map_err(|error| match error {
        LinkError::TooLong { .. } | LinkError::TooMany => {
            ApiError::caused_by(StatusCode::BAD_REQUEST, &error)
        }
        LinkError::Catalog(_) => ApiError::failed(&error),
    })?;
    Ok(Json(Link { url: format!("{base}/l/{id}"), id, target }))
}

fn target(wanted: Wanted) -> Result<String, ApiError> {
    let bad = |error: &dyn std::error::Error| ApiError::caused_by(StatusCode::BAD_REQUEST, error);
    match (wanted.query, wanted.url) {
        (Some(query), None) => {
            let document = Document::from_json(query.to_string().as_bytes());
            explore_path(&document.map_err(|error| bad(&error))?)
        }
        (None, Some(url)) if is_scuba_url(&url) => {
            let query = url.split_once('?').map_or("", |(_, query)| query);
            explore_path(&read_url_query(query).map_err(|error| bad(&error))?)
        }
        (None, Some(url)) if is_web_address(&url) => Ok(url),
        (None, Some(url)) => {
            let message = format!("`{}` is not a web address", url.escape_debug());
            Err(ApiError::bad_request(message).with_hint("begin it with http:// or https://"))
        }
        (Some(_), Some(_)) | (None, None) => {
            Err(ApiError::bad_request("give either `query` or `url`"))
        }
    }
}

/// Whether it can be put into a header, and leads to a page and not to a script.
fn is_web_address(url: &str) -> bool {
    let is_http = url.starts_with("http://") || url.starts_with("https://");
    is_http && url.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Where this peer reaches the server: as it called it or, on the home's socket, as people on
/// this machine do.
fn base_url(server: &Server, peer: Peer, headers: &HeaderMap) -> String {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    match (peer, host) {
        (Peer::Tcp { is_tls, .. }, Some(host)) => {
            format!("{}://{host}", if is_tls { "https" } else { "http" })
        }
        (Peer::Tcp { .. } | Peer::Owner, _) => url_of(server.settings.listen, &server.settings),
    }
}

async fn get_link(
    State(server): State<Arc<Server>>,
    Path(id): Path<String>,
) -> Result<Redirect, ApiError> {
    let found = blocking(move || server.home.link(&id)).await?;
    match found.map_err(|error| ApiError::failed(&error))? {
        Some(target) => Ok(Redirect::to(&target)),
        None => Err(ApiError::new(StatusCode::NOT_FOUND, "there is no such link")),
    }
}
