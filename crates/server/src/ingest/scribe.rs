//! `POST /scribe_logs`, as Scribe's clients know it.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use perflab_store::Door;
use perflab_wire::{BodyForm, MessageForm};

use super::headers::media_type;
use super::{Form, accept};
use crate::access::{HeadToken, Peer};
use crate::error::ApiError;
use crate::state::Server;

pub(crate) async fn post_scribe_logs(
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
