//! Answers that say what went wrong.

use std::error::Error;
use std::fmt;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use perflab_store::{Busy, chain};
use schemars::JsonSchema;
use serde::Serialize;

/// Seconds after which a client should try again when the server has too much to do,
const RETRY_SOON: HeaderValue = HeaderValue::from_static("1");
/// and when someone has to make room on the disk first.
const RETRY_LATER: HeaderValue = HeaderValue::from_static("10");

/// The code by which Graph clients know a bad token.
const BAD_TOKEN: u32 = 190;

/// A request that can't be answered as hoped.
#[derive(Debug)]
pub(crate) struct ApiError {
    status: StatusCode,
    message: String,
    hint: Option<&'static str>,
    retry_after: Option<HeaderValue>,
}

/// What went wrong.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Error")]
pub(crate) struct ErrorDocument<'a> {
    error: Described<'a>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ErrorDescription")]
struct Described<'a> {
    message: &'a str,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'static str>,
    /// Of a token that is missing or bad, as Graph clients know it.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    /// The same as a number.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<u32>,
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), hint: None, retry_after: None }
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, message)
    }

    /// A failure of this machine, not of the request.
    pub(crate) fn failed(error: &dyn Error) -> Self {
        let message = chain(error);
        tracing::error!(error = message, "a request failed");
        Self::internal(message)
    }

    /// A mistake in the request, with its causes.
    pub(crate) fn caused_by(status: StatusCode, error: &dyn Error) -> Self {
        Self::new(status, chain(error))
    }

    pub(crate) fn unauthorized(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, message)
    }

    pub(crate) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, message)
    }

    pub(crate) fn too_large(bytes_max: usize) -> Self {
        let message = format!("the body is larger than the limit of {bytes_max} bytes");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, message).with_hint("send fewer entries at once")
    }

    /// More than the server has memory for at the moment.
    pub(crate) fn over_budget() -> Self {
        Self::too_busy("too much is being received at the moment")
    }

    /// More to do than is done at once.
    pub(crate) fn too_busy(message: &str) -> Self {
        let message = format!("{message}: try again later");
        let status = StatusCode::TOO_MANY_REQUESTS;
        Self { retry_after: Some(RETRY_SOON), ..Self::new(status, message) }
    }

    pub(crate) fn with_hint(self, hint: &'static str) -> Self {
        Self { hint: Some(hint), ..self }
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for ApiError {}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let is_token = self.status == StatusCode::UNAUTHORIZED;
        let document = ErrorDocument {
            error: Described {
                message: &self.message,
                hint: self.hint,
                kind: is_token.then_some("OAuthException"),
                code: is_token.then_some(BAD_TOKEN),
            },
        };
        let mut response = (self.status, axum::Json(document)).into_response();
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, seconds);
        }
        if is_token {
            let scheme = HeaderValue::from_static("Bearer");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
        }
        response
    }
}

/// How a request of which nothing could be taken at the moment is answered.
pub(crate) fn busy_status(busy: Busy) -> (StatusCode, HeaderValue) {
    match busy {
        Busy::QueueFull => (StatusCode::TOO_MANY_REQUESTS, RETRY_SOON),
        Busy::DiskFull => (StatusCode::SERVICE_UNAVAILABLE, RETRY_LATER),
        Busy::WriteFailed | Busy::CatalogFailed | Busy::Closing => {
            (StatusCode::SERVICE_UNAVAILABLE, RETRY_SOON)
        }
    }
}
