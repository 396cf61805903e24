//! Passing a request on, as it came, and its answer back.

use std::path::PathBuf;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_TYPE, HOST, HeaderName, HeaderValue, PROXY_AUTHORIZATION,
    TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::{Request, Response, StatusCode, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::time::timeout;

use super::upstream::Upstream;
use crate::client::connect::{Stream, to_home, to_server};
use crate::client::{ConnectError, ServerUrl, tls};
use crate::failure::in_words;
use crate::settings::Token;

/// How long the other end may take to begin its answer: longer than any client waits.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);
/// Headers that are about one connection, not about the request.
const HOP_BY_HOP: [HeaderName; 7] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// The server that takes the messages.
#[derive(Debug, Clone)]
pub(crate) enum Destination {
    /// Through its socket, with the owner's rights.
    Home(PathBuf),
    Server {
        url: ServerUrl,
        token: Option<Token>,
    },
}

impl Destination {
    async fn connect(&self) -> Result<Box<dyn Stream>, ConnectError> {
        match self {
            Self::Home(home) => to_home(home).await,
            Self::Server { url, .. } => to_server(url).await,
        }
    }
}

/// Passes a request on to perflab under the given path and query.
pub(super) async fn forward(
    mut request: Request<Incoming>,
    path: Uri,
    destination: &Destination,
) -> Response<Body> {
    let (host, base_path, token) = match destination {
        Destination::Home(_) => ("localhost".to_owned(), "", None),
        Destination::Server { url, token } => {
            (url.authority(), url.base_path.as_str(), token.as_ref())
        }
    };
    let Ok(uri) = format!("{base_path}{path}").parse::<Uri>() else {
        return answer_text(StatusCode::BAD_REQUEST, "the path is malformed");
    };
    *request.uri_mut() = uri;
    if let Some(token) = token
        && let Ok(value) = HeaderValue::try_from(format!("Bearer {}", token.reveal()))
    {
        request.headers_mut().insert(AUTHORIZATION, value);
    }
    match destination.connect().await {
        Ok(stream) => exchange(stream, request, &host).await,
        Err(error) => {
            let words = format!("no perflab server answers: {}", in_words(&error));
            answer_text(StatusCode::BAD_GATEWAY, &words)
        }
    }
}

/// Passes a request on to the host that it was meant for.
pub(super) async fn forward_to_real_host(
    request: Request<Incoming>,
    host: &str,
    upstream: &Upstream,
) -> Response<Body> {
    let stream = match upstream.connect(host, super::TLS_PORT).await {
        Ok(stream) => stream,
        Err(error) => return answer_text(StatusCode::BAD_GATEWAY, &error.in_words()),
    };
    match timeout(super::HANDSHAKE_TIMEOUT, tls::connect(host, stream)).await {
        Ok(Ok(stream)) => exchange(stream, request, host).await,
        Ok(Err(error)) => answer_text(StatusCode::BAD_GATEWAY, &in_words(&error)),
        Err(_elapsed) => {
            answer_text(StatusCode::GATEWAY_TIMEOUT, &format!("no TLS handshake with {host}"))
        }
    }
}

async fn exchange(
    stream: impl Stream + 'static,
    mut request: Request<Incoming>,
    host: &str,
) -> Response<Body> {
    for name in &HOP_BY_HOP {
        request.headers_mut().remove(name);
    }
    if let Ok(value) = HeaderValue::try_from(host) {
        request.headers_mut().insert(HOST, value);
    }
    let exchanged = async {
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        sender.send_request(request).await
    };
    match timeout(ANSWER_TIMEOUT, exchanged).await {
        Ok(Ok(mut response)) => {
            for name in &HOP_BY_HOP {
                response.headers_mut().remove(name);
            }
            response.map(Body::new)
        }
        Ok(Err(error)) => answer_text(StatusCode::BAD_GATEWAY, &in_words(&error)),
        Err(_elapsed) => {
            answer_text(StatusCode::GATEWAY_TIMEOUT, &format!("no answer from {host}"))
        }
    }
}

/// An answer of the gateway itself.
pub(super) fn answer_text(status: StatusCode, words: &str) -> Response<Body> {
    let body = Full::new(Bytes::from(format!("perflab with: {words}\n")));
    let mut response = Response::new(Body::new(body));
    *response.status_mut() = status;
    let text = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, text);
    response
}
