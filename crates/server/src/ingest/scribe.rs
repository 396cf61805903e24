//! `POST /scribe_logs`, as Scribe's clients know it.

use std::borrow::Cow;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use perflab_store::Door;
use perflab_wire::{BodyForm, MessageForm};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::json;

use super::answer::described_of_form;
use super::headers::media_type;
use super::{Form, accept, described};
use crate::access::{HeadToken, Peer};
use crate::endpoint::{Endpoint, Operation};
use crate::error::ApiError;
use crate::state::Server;

pub(super) fn endpoints() -> [Endpoint; 2] {
    let plain = "Takes entries as Scribe's clients send them.";
    let versioned = "The same for clients that put a version such as `v21.0` before it.";
    [
        Endpoint::post("/scribe_logs", post_scribe_logs, plain, scribe),
        Endpoint::post("/{version}/scribe_logs", post_scribe_logs, versioned, |operation| {
            scribe(operation).refusals(&[StatusCode::NOT_FOUND])
        }),
    ]
}

fn scribe(operation: Operation<'_>) -> Operation<'_> {
    let structured = "Whether messages are Thrift in base64.";
    let operation = operation
        .parameter("query", "structured", structured, json!({"type": "boolean"}))
        .body_as::<Logs<true>>("application/x-www-form-urlencoded")
        .body_as::<Logs<false>>("application/json");
    described_of_form(described(operation))
}

/// Describes the body that is read: the fields of a form are texts.
struct Logs<const IS_FORM: bool>;

impl<const IS_FORM: bool> JsonSchema for Logs<IS_FORM> {
    fn schema_name() -> Cow<'static, str> {
        if IS_FORM { "LogsForm".into() } else { "Logs".into() }
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let text = json!({
            "description": "The array of entries as text.",
            "type": "string", "contentMediaType": "application/json",
        });
        let entries = json!({"type": "array", "items": {
            "type": "object",
            "properties": {
                "category": {"type": "string"},
                "message": {"type": ["string", "object"]},
                "line_escape": {"type": "boolean"},
            },
            "required": ["category", "message"],
        }});
        let logs = if IS_FORM { text } else { json!({"anyOf": [entries, text]}) };
        json_schema!({
            "description": "Entries: either `logs` or `base64_bz2_logs`.",
            "type": "object",
            "properties": {
                "access_token": {"type": "string"},
                "logs": logs,
                "base64_bz2_logs": {"type": "string", "contentEncoding": "base64"},
            },
            "oneOf": [{"required": ["logs"]}, {"required": ["base64_bz2_logs"]}],
        })
    }
}

async fn post_scribe_logs(
    State(server): State<Arc<Server>>,
    peer: Peer,
    HeadToken(token): HeadToken,
    version: Option<Path<String>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    if let Some(Path(version)) = version
        && !is_version(&version)
    {
        let message = format!("`{}` is no API version", version.escape_debug());
        return Err(ApiError::new(StatusCode::NOT_FOUND, message));
    }
    let (door, body_form) = body_form(&headers);
    let form = Form { door, body: body_form, messages: message_form(query.as_deref()) };
    accept(&server, (peer, token), &headers, form, body).await
}

/// `v21.0`
fn is_version(segment: &str) -> bool {
    let Some((major, minor)) = segment.strip_prefix('v').and_then(|rest| rest.split_once('.'))
    else {
        return false;
    };
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    is_number(major) && is_number(minor)
}

/// JSON when the client says so, a form otherwise: that is what `curl -d` sends.
fn body_form(headers: &HeaderMap) -> (Door, BodyForm) {
    let media_type = media_type(headers);
    if media_type.eq_ignore_ascii_case("application/json") || media_type.ends_with("+json") {
        (Door::ScribeJson, BodyForm::Json)
    } else {
        (Door::ScribeForm, BodyForm::UrlEncoded)
    }
}

fn message_form(query: Option<&str>) -> MessageForm {
    let mut pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    let is_structured =
        pairs.any(|(key, value)| key == "structured" && matches!(&*value, "true" | "1"));
    if is_structured { MessageForm::Structured } else { MessageForm::Plain }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_told_from_other_paths() {
        assert!(is_version("v21.0"));
        assert!(is_version("v2.12"));
        for other in ["v21", "21.0", "v.0", "v1.", "vx.y", "v1.0.0", "api"] {
            assert!(!is_version(other), "{other}");
        }
    }
}
