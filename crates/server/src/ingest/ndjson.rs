//! `POST /api/log?category=C`: one message per line, or an Arrow stream.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use perflab_model::CategoryName;
use perflab_store::Door;
use perflab_wire::{BodyForm, MessageForm};
use schemars::JsonSchema;
use serde::Deserialize;

use super::headers::media_type;
use super::{Form, accept, described};
use crate::access::{HeadToken, Peer};
use crate::endpoint::{Binary, Endpoint};
use crate::error::ApiError;
use crate::query::Asked;
use crate::state::Server;
use crate::tail::NDJSON;

/// The media type of Arrow's IPC stream format.
const ARROW_STREAM: &str = "application/vnd.apache.arrow.stream";

#[derive(Debug, Deserialize, JsonSchema)]
struct Target {
    category: String,
}

pub(super) fn endpoints() -> [Endpoint; 1] {
    let log = "Takes messages of one category, one in each line, or rows as an Arrow stream.";
    let log = Endpoint::post("/api/log", post_log, log, |operation| {
        described(operation.query::<Target>())
            .body_as::<String>(NDJSON)
            .body_as::<Binary>(ARROW_STREAM)
    });
    [log]
}

async fn post_log(
    State(server): State<Arc<Server>>,
    peer: Peer,
    HeadToken(token): HeadToken,
    Asked(target): Asked<Target>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let category = CategoryName::new(&target.category)
        .map_err(|error| ApiError::caused_by(StatusCode::BAD_REQUEST, &error))?;
    let (door, body_form) = if media_type(&headers).eq_ignore_ascii_case(ARROW_STREAM) {
        (Door::Arrow, BodyForm::Arrow { category })
    } else {
        (Door::Ndjson, BodyForm::Ndjson { category })
    };
    let form = Form { door, body: body_form, messages: MessageForm::Plain };
    accept(&server, (peer, token), &headers, form, body).await
}
