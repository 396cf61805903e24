//! The HTTP client of every command: to a Unix socket, TCP, TLS, or a server in this process.

pub(crate) mod connect;
mod find;
mod local;
pub(crate) mod once;
pub(crate) mod tls;
mod url;

use std::error::Error;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, HOST, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use perflab_store::DrainReport;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::failure::{Exit, Failure};
use crate::settings::Token;

pub(crate) use connect::ConnectError;
pub(crate) use find::find;
use local::LocalServer;
pub(crate) use local::{Owner, ServedHome, own, serve_home};
pub(crate) use url::{ServerUrl, UrlError, split_host_and_port};

/// How long a server may take to begin its answer.
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// The same for work that reads the whole log.
pub(crate) const LONG_ANSWER_TIMEOUT: Duration = Duration::from_secs(3600);
/// The largest answer that is read as a whole: the codes of a few million entries.
const ANSWER_BYTES_MAX: usize = 64 << 20;

pub(crate) const TOKEN_HINT: &str = "give a token in PERFLAB_TOKEN, and in PERFLAB_SERVER or \
    --server the server that it is for; on the server's machine, `perflab token add` makes one";

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    /// Nothing was sent.
    #[error("no server answers at {target}")]
    NoServer {
        target: String,
        #[source]
        error: ConnectError,
    },
    /// It may have been done all the same.
    #[error("the connection to {target} broke before the answer came")]
    Lost {
        target: String,
        #[source]
        error: Box<dyn Error + Send + Sync>,
    },
    /// It may have been done all the same.
    #[error("no answer from {target} within {} s", after.as_secs())]
    Timeout { target: String, after: Duration },
    #[error("the answer of {target} is larger than {ANSWER_BYTES_MAX} bytes")]
    TooLarge { target: String },
    #[error("`{path}` can't be requested")]
    Request {
        path: String,
        #[source]
        error: http::Error,
    },
}

/// Where the server is.
#[derive(Debug)]
enum Target {
    /// On this home's Unix socket.
    Home(PathBuf),
    At(ServerUrl),
    /// In this process.
    Local(LocalServer),
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Home(home) | Self::Local(LocalServer { dir: home, .. }) => {
                write!(f, "`{}`", home.display())
            }
            Self::At(server) => write!(f, "{server}"),
        }
    }
}

/// A request: everything but where it goes.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) method: Method,
    /// Path and query below the server's address.
    pub(crate) path: String,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Bytes,
    pub(crate) answer_timeout: Duration,
}

impl Call {
    pub(crate) fn new(method: Method, path: impl Into<String>) -> Self {
        Self {
            method,
            path: path.into(),
            headers: Vec::new(),
            body: Bytes::new(),
            answer_timeout: ANSWER_TIMEOUT,
        }
    }

    pub(crate) fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path)
    }

    pub(crate) fn body(mut self, content_type: &str, body: impl Into<Bytes>) -> Self {
        self.headers.push(("content-type", content_type.to_owned()));
        self.body = body.into();
        self
    }

    pub(crate) fn json(self, body: &serde_json::Value) -> Self {
        self.body("application/json", body.to_string())
    }

    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

/// A client of one server. Keeps its connection open between calls.
#[derive(Debug)]
pub(crate) struct Client {
    target: Target,
    token: Option<Token>,
    open: Option<SendRequest<Full<Bytes>>>,
}

impl Client {
    /// A client of the server on the home, whether one runs or not.
    pub(crate) fn of_home(home: PathBuf) -> Self {
        Self { target: Target::Home(home), token: None, open: None }
    }

    /// A client of a server elsewhere.
    pub(crate) fn of_server(server: ServerUrl, token: Option<Token>) -> Self {
        Self { target: Target::At(server), token, open: None }
    }

    /// A client of a server in this process.
    fn of_local(server: LocalServer) -> Self {
        Self { target: Target::Local(server), token: None, open: None }
    }

    /// Who is spoken to, in words.
    pub(crate) fn target(&self) -> String {
        self.target.to_string()
    }

    /// Whether the home is served by this very process.
    pub(crate) fn is_local(&self) -> bool {
        matches!(self.target, Target::Local(_))
    }

    /// What came in from the spool when this process took the home; `None` when it did not.
    pub(crate) fn drained(&self) -> Option<DrainReport> {
        match &self.target {
            Target::Local(server) => Some(server.drained),
            Target::Home(_) | Target::At(_) => None,
        }
    }

    /// Finishes what a server in this process has begun.
    pub(crate) async fn close(self) {
        if let Target::Local(server) = self.target {
            server.close().await;
        }
    }

    /// Whether a server is there to be spoken to.
    pub(crate) async fn is_answered(&mut self) -> bool {
        self.connect().await.is_ok()
    }

    /// Makes sure that there is a connection.
    async fn connect(&mut self) -> Result<(), ClientError> {
        if let Some(open) = &mut self.open
            && open.ready().await.is_ok()
        {
            return Ok(());
        }
        let connected = match &self.target {
            Target::Home(home) => connect::to_home(home).await,
            Target::At(server) => connect::to_server(server).await,
            Target::Local(_) => return Ok(()),
        };
        let stream =
            connected.map_err(|error| ClientError::NoServer { target: self.target(), error })?;
        let (open, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|error| self.lost(error))?;
        // It ends with the connection; what it says is said again where an answer is awaited.
        tokio::spawn(connection);
        self.open = Some(open);
        Ok(())
    }

    /// Sends a request and waits for the head of its answer.
    pub(crate) async fn send(&mut self, call: &Call) -> Result<Response<Body>, ClientError> {
        let waited = timeout(call.answer_timeout, self.send_untimed(call)).await;
        waited.unwrap_or_else(|_elapsed| {
            self.open = None;
            Err(ClientError::Timeout { target: self.target(), after: call.answer_timeout })
        })
    }

    async fn send_untimed(&mut self, call: &Call) -> Result<Response<Body>, ClientError> {
        let request = self.request(call)?;
        if let Target::Local(server) = &self.target {
            return Ok(server.answer(request).await);
        }
        self.connect().await?;
        match self.send_on_open(request).await? {
            Ok(response) => Ok(response),
            // The server closed the idle connection before this request was on its way.
            Err(unsent) => {
                self.open = None;
                self.connect().await?;
                match self.send_on_open(unsent).await? {
                    Ok(response) => Ok(response),
                    Err(_unsent) => Err(self.lost("closed by the server")),
                }
            }
        }
    }

    /// The inner error is a request that never left.
    async fn send_on_open(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<Result<Response<Body>, Request<Full<Bytes>>>, ClientError> {
        let Some(open) = &mut self.open else {
            return Ok(Err(request));
        };
        match open.try_send_request(request).await {
            Ok(response) => Ok(Ok(response.map(Body::new))),
            Err(mut error) => match error.take_message() {
                Some(unsent) => Ok(Err(unsent)),
                None => {
                    self.open = None;
                    Err(self.lost(error.into_error()))
                }
            },
        }
    }

    fn request(&self, call: &Call) -> Result<Request<Full<Bytes>>, ClientError> {
        let (host, base_path) = match &self.target {
            Target::At(server) => (server.authority(), server.base_path.as_str()),
            Target::Home(_) | Target::Local(_) => ("localhost".to_owned(), ""),
        };
        let path = format!("{base_path}{}", call.path);
        let mut request =
            Request::builder().method(call.method.clone()).uri(path.as_str()).header(HOST, host);
        if !call.headers.iter().any(|(name, _)| *name == ACCEPT.as_str()) {
            request = request.header(ACCEPT, "application/json");
        }
        for (name, value) in &call.headers {
            request = request.header(*name, value);
        }
        if let Some(token) = &self.token
            && let Ok(mut value) = HeaderValue::try_from(format!("Bearer {}", token.reveal()))
        {
            value.set_sensitive(true);
            request = request.header(AUTHORIZATION, value);
        }
        request
            .body(Full::new(call.body.clone()))
            .map_err(|error| ClientError::Request { path, error })
    }

    fn lost(&self, error: impl Into<Box<dyn Error + Send + Sync>>) -> ClientError {
        ClientError::Lost { target: self.target(), error: error.into() }
    }

    /// Sends a request and reads its whole answer.
    pub(crate) async fn send_whole(
        &mut self,
        call: &Call,
    ) -> Result<(StatusCode, Bytes), ClientError> {
        let response = self.send(call).await?;
        let status = response.status();
        let collecting = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect();
        match timeout(call.answer_timeout, collecting).await {
            Ok(Ok(collected)) => Ok((status, collected.to_bytes())),
            Ok(Err(error)) if error.is::<LengthLimitError>() => {
                Err(ClientError::TooLarge { target: self.target() })
            }
            Ok(Err(error)) => Err(self.lost(error)),
            Err(_elapsed) => {
                Err(ClientError::Timeout { target: self.target(), after: call.answer_timeout })
            }
        }
    }

    /// Sends a request whose answer says no more than that it was done.
    pub(crate) async fn done(&mut self, call: &Call) -> Result<(), Failure> {
        let (status, body) = self.send_whole(call).await?;
        if status.is_success() { Ok(()) } else { Err(refusal(status, &body, &self.target())) }
    }

    /// Sends a request whose answer is a JSON document of a known shape.
    pub(crate) async fn document<T: DeserializeOwned>(
        &mut self,
        call: &Call,
    ) -> Result<T, Failure> {
        let (status, body) = self.send_whole(call).await?;
        if !status.is_success() {
            return Err(refusal(status, &body, &self.target()));
        }
        serde_json::from_slice(&body).map_err(|error| {
            Failure::from(error)
                .context(format!("{} answered what this version does not know", self.target()))
        })
    }
}

/// An error as the server words it.
#[derive(Debug, Deserialize)]
struct ErrorDocument {
    error: ErrorWords,
}

#[derive(Debug, Deserialize)]
struct ErrorWords {
    message: String,
    hint: Option<String>,
}

/// Turns an answer that is no success into words.
pub(crate) fn refusal(status: StatusCode, body: &[u8], target: &str) -> Failure {
    let words = match serde_json::from_slice::<ErrorDocument>(body) {
        Ok(document) => document.error,
        Err(_no_document) => ErrorWords { message: format!("HTTP status {status}"), hint: None },
    };
    let is_refusal = status.is_client_error() && status != StatusCode::TOO_MANY_REQUESTS;
    let exit = if is_refusal { Exit::No } else { Exit::Failed };
    // The server speaks of headers; on the command line there is a better way.
    let hint = match status {
        StatusCode::UNAUTHORIZED => Some(TOKEN_HINT.to_owned()),
        _ => words.hint,
    };
    let failure = Failure::new(exit, words.message).context(format!("refused by {target}"));
    match hint {
        Some(hint) => failure.with_hint(hint),
        None => failure,
    }
}

/// Percent-encodes a value of a query.
pub(crate) fn encode_query(value: &str) -> String {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let mut encoded = String::with_capacity(value.len());
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let digit = |nibble: u8| char::from(HEX[usize::from(nibble)]);
            encoded.extend(['%', digit(byte >> 4), digit(byte & 15)]);
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_encoded() {
        assert_eq!(encode_query("perfpipe_a/b-1.x"), "perfpipe_a/b-1.x");
        assert_eq!(encode_query("-30 days&é"), "-30%20days%26%C3%A9");
    }

    #[test]
    fn a_refusal_keeps_the_servers_words() {
        let body = br#"{"error":{"message":"no such file","hint":"look again"}}"#;
        let failure = refusal(StatusCode::BAD_REQUEST, body, "http://h");
        assert_eq!(
            failure.to_string(),
            "error: refused by http://h\ncaused by: no such file\n\nhint: look again\n"
        );
        assert_eq!(failure.exit(), Exit::No);
        let failure = refusal(StatusCode::BAD_GATEWAY, b"<html>", "http://h");
        assert!(failure.to_string().contains("HTTP status 502"));
        assert_eq!(failure.exit(), Exit::Failed);
    }
}
