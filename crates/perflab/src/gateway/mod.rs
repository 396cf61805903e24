//! The gateway of `perflab with`: a loopback port through which unchanged clients reach perflab.
//!
//! It is two things on one port, both only for those who know the run's secret:
//! - a way to the server on the home, with the owner's rights: `http://127.0.0.1:PORT/SECRET/…`;
//! - a CONNECT proxy. Connections to the one host whose address clients have hard-coded are taken
//!   apart: messages for Scribe go to perflab, anything else to the real host. Connections to
//!   other hosts pass through untouched.

mod authority;
mod bundle;
pub(crate) mod environment;
mod forward;
mod no_proxy;
mod upstream;

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{HeaderMap, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION};
use http::{Method, Request, Response, StatusCode, Uri};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use subtle::ConstantTimeEq;
use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

pub(crate) use authority::Authority;
use authority::AuthorityError;
pub(crate) use bundle::Bundle;
pub(crate) use forward::Destination;
pub(crate) use upstream::Upstream;

use crate::client::split_host_and_port;
use forward::{answer_text, forward, forward_to_real_host};

/// The host that Scribe's clients have built in.
pub(crate) const SCRIBE_HOST: &str = "graph.facebook.com";
const TLS_PORT: u16 = 443;
/// Connections at the same time; further ones wait.
const CONNECTIONS_MAX: usize = 512;
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Accepting fails when descriptors run out; they come back.
const ACCEPT_RETRY_WAIT: Duration = Duration::from_millis(100);
const SECRET_BYTES: usize = 16;
/// The user name in the proxy's address.
const PROXY_USER: &str = "perflab";

/// Why there is no gateway.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GatewayError {
    #[error("failed to listen on the loopback address")]
    Listen(#[source] io::Error),
    #[error("failed to draw a random number")]
    Random(#[source] getrandom::Error),
    #[error(transparent)]
    Authority(#[from] AuthorityError),
}

/// An open gateway. It works while its runtime does.
pub(crate) struct Gateway {
    address: SocketAddr,
    secret: String,
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway").field("address", &self.address).finish_non_exhaustive()
    }
}

/// What every connection needs to know.
struct Shared {
    secret: String,
    destination: Destination,
    upstream: Upstream,
    tls: TlsAcceptor,
}

/// A connection's place among [`CONNECTIONS_MAX`], held until the tunnel through it ends too.
type Place = Arc<OwnedSemaphorePermit>;

impl Gateway {
    pub(crate) async fn start(
        destination: Destination,
        upstream: Upstream,
        authority: &Authority,
    ) -> Result<Self, GatewayError> {
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(GatewayError::Listen)?;
        let address = listener.local_addr().map_err(GatewayError::Listen)?;
        let secret = draw_secret()?;
        let tls = TlsAcceptor::from(Arc::new(authority.server_config(SCRIBE_HOST)?));
        let shared = Arc::new(Shared { secret: secret.clone(), destination, upstream, tls });
        tokio::spawn(accept(listener, shared, CONNECTIONS_MAX));
        Ok(Self { address, secret })
    }

    /// The server's address for this run.
    pub(crate) fn server_url(&self) -> String {
        format!("http://{}/{}", self.address, self.secret)
    }

    /// The proxy's address for this run.
    pub(crate) fn proxy_url(&self) -> String {
        format!("http://{PROXY_USER}:{}@{}", self.secret, self.address)
    }
}

fn draw_secret() -> Result<String, GatewayError> {
    let mut secret = [0; SECRET_BYTES];
    getrandom::fill(&mut secret).map_err(GatewayError::Random)?;
    Ok(secret.iter().map(|byte| format!("{byte:02x}")).collect())
}

async fn accept(listener: TcpListener, shared: Arc<Shared>, connections_max: usize) {
    let places = Arc::new(Semaphore::new(connections_max));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                tokio::spawn(serve_client(stream, Arc::clone(&shared), Arc::new(place)));
            }
            Err(_) => tokio::time::sleep(ACCEPT_RETRY_WAIT).await,
        }
    }
}

async fn serve_client(stream: TcpStream, shared: Arc<Shared>, place: Place) {
    stream.set_nodelay(true).ok();
    let service = service_fn(move |request| {
        let (shared, place) = (Arc::clone(&shared), Arc::clone(&place));
        async move { Ok::<_, std::convert::Infallible>(answer(request, shared, place).await) }
    });
    // How a client's connection ends is the client's business.
    http_server().serve_connection(TokioIo::new(stream), service).with_upgrades().await.ok();
}

fn http_server() -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
    builder
}

async fn answer(request: Request<Incoming>, shared: Arc<Shared>, place: Place) -> Response<Body> {
    if request.method() == Method::CONNECT {
        return answer_connect(request, shared, place).await;
    }
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    let path = path.strip_prefix('/').unwrap_or(path);
    let (secret, rest) = path.split_at_checked(shared.secret.len()).unwrap_or((path, ""));
    let is_below = rest.is_empty() || rest.starts_with(['/', '?']);
    if !is_below || !is_same(secret, &shared.secret) {
        return answer_text(StatusCode::FORBIDDEN, "this is the gateway of another program's run");
    }
    let Ok(path) = rest_as_path(rest).parse::<Uri>() else {
        return answer_text(StatusCode::BAD_REQUEST, "the path is malformed");
    };
    forward(request, path, &shared.destination).await
}

fn rest_as_path(rest: &str) -> String {
    if rest.starts_with('/') { rest.to_owned() } else { format!("/{rest}") }
}

async fn answer_connect(
    request: Request<Incoming>,
    shared: Arc<Shared>,
    place: Place,
) -> Response<Body> {
    if !is_authorized(request.headers(), &shared.secret) {
        let mut response =
            answer_text(StatusCode::PROXY_AUTHENTICATION_REQUIRED, "this proxy is another run's");
        let basic = http::HeaderValue::from_static("Basic realm=\"perflab\"");
        response.headers_mut().insert(PROXY_AUTHENTICATE, basic);
        return response;
    }
    let target = request.uri().authority().map(|authority| authority.as_str().to_owned());
    let Some(Ok((host, Some(port)))) = target.as_deref().map(split_host_and_port) else {
        return answer_text(StatusCode::BAD_REQUEST, "CONNECT takes a host and a port");
    };
    if host.eq_ignore_ascii_case(SCRIBE_HOST) && port == TLS_PORT {
        tokio::spawn(async move {
            intercept(request, shared).await;
            drop(place);
        });
        return Response::new(Body::empty());
    }
    match shared.upstream.connect(host, port).await {
        Ok(mut far) => {
            tokio::spawn(async move {
                if let Ok(near) = hyper::upgrade::on(request).await {
                    // Either end may close at any time.
                    copy_bidirectional(&mut TokioIo::new(near), &mut far).await.ok();
                }
                drop(place);
            });
            Response::new(Body::empty())
        }
        Err(error) => answer_text(StatusCode::BAD_GATEWAY, &error.in_words()),
    }
}

fn is_authorized(headers: &HeaderMap, secret: &str) -> bool {
    let expected = format!("Basic {}", STANDARD.encode(format!("{PROXY_USER}:{secret}")));
    let given = headers.get(PROXY_AUTHORIZATION).and_then(|value| value.to_str().ok());
    given.is_some_and(|given| is_same(given, &expected))
}

/// Takes as long for a wrong secret as for the right one.
fn is_same(given: &str, expected: &str) -> bool {
    given.as_bytes().ct_eq(expected.as_bytes()).into()
}

/// Stands in for Scribe's host on a connection that the client believes to lead there.
async fn intercept(request: Request<Incoming>, shared: Arc<Shared>) {
    let Ok(upgraded) = hyper::upgrade::on(request).await else { return };
    let handshake = shared.tls.accept(TokioIo::new(upgraded));
    if let Ok(Ok(stream)) = timeout(HANDSHAKE_TIMEOUT, handshake).await {
        serve_scribe(stream, Arc::clone(&shared)).await;
    }
}

async fn serve_scribe(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    shared: Arc<Shared>,
) {
    let service = service_fn(move |request: Request<Incoming>| {
        let shared = Arc::clone(&shared);
        async move {
            let uri = request.uri().path_and_query().cloned().map(Uri::from);
            let response = match uri {
                Some(path) if is_scribe_path(path.path()) => {
                    forward(request, path, &shared.destination).await
                }
                _ => forward_to_real_host(request, SCRIBE_HOST, &shared.upstream).await,
            };
            Ok::<_, std::convert::Infallible>(response)
        }
    });
    http_server().serve_connection(TokioIo::new(stream), service).await.ok();
}

/// `/scribe_logs` or `/v21.0/scribe_logs`.
fn is_scribe_path(path: &str) -> bool {
    let Some(version) = path.strip_suffix("/scribe_logs") else { return false };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let is_version = |text: &str| {
        text.split_once('.').is_some_and(|(major, minor)| is_number(major) && is_number(minor))
    };
    version.is_empty() || version.strip_prefix("/v").is_some_and(is_version)
}

#[cfg(test)]
mod tests {
    use super::*;
    use perflab_model::{Clock, SystemClock};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[test]
    fn only_scribe_is_taken() {
        for path in ["/scribe_logs", "/v21.0/scribe_logs", "/v2.12/scribe_logs"] {
            assert!(is_scribe_path(path), "{path}");
        }
        for path in
            ["/", "/me", "/scribe_logs/", "/x/scribe_logs", "/v21/scribe_logs", "/scribe_logsx"]
        {
            assert!(!is_scribe_path(path), "{path}");
        }
    }

    #[test]
    fn the_secret_is_not_shown() {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
        let gateway = Gateway { address, secret: "plt_x".to_owned() };
        assert!(!format!("{gateway:?}").contains("plt_x"));
    }

    /// Asks for a tunnel; returns the connection and, if it comes soon, the start of the answer.
    async fn ask_for_tunnel(gateway: SocketAddr, target: u16) -> (TcpStream, Option<[u8; 12]>) {
        let mut stream = TcpStream::connect(gateway).await.unwrap();
        let authorization = STANDARD.encode(format!("{PROXY_USER}:s"));
        let request = format!(
            "CONNECT 127.0.0.1:{target} HTTP/1.1\r\nProxy-Authorization: Basic {authorization}\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut start = [0; 12];
        let answered = timeout(SOON, stream.read_exact(&mut start)).await;
        (stream, answered.ok().map(|_read| start))
    }

    const SOON: Duration = Duration::from_millis(500);

    #[tokio::test]
    async fn a_tunnel_keeps_its_place_until_it_ends() {
        let home = tempfile::tempdir().unwrap();
        let authority = Authority::of_home(home.path(), SystemClock.now()).unwrap();
        let tls = TlsAcceptor::from(Arc::new(authority.server_config(SCRIBE_HOST).unwrap()));
        let destination = Destination::Home(home.path().to_owned());
        let upstream = Upstream::default();
        let shared = Arc::new(Shared { secret: "s".to_owned(), destination, upstream, tls });
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let gateway = listener.local_addr().unwrap();
        tokio::spawn(accept(listener, shared, 1));
        let far = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let target = far.local_addr().unwrap().port();

        let (first, answer) = ask_for_tunnel(gateway, target).await;
        assert_eq!(answer.as_ref(), Some(b"HTTP/1.1 200"));
        let (far_end, _) = far.accept().await.unwrap();
        let (mut second, answer) = ask_for_tunnel(gateway, target).await;
        assert_eq!(answer, None, "there is one place, and it is taken");
        drop((first, far_end));
        let mut start = [0; 12];
        second.read_exact(&mut start).await.unwrap();
        assert_eq!(&start, b"HTTP/1.1 200");
    }

    #[test]
    fn a_proxy_password_is_asked_for() {
        let mut headers = HeaderMap::new();
        assert!(!is_authorized(&headers, "s"));
        let given = format!("Basic {}", STANDARD.encode("perflab:s"));
        headers.insert(PROXY_AUTHORIZATION, given.parse().unwrap());
        assert!(is_authorized(&headers, "s"));
        assert!(!is_authorized(&headers, "t"));
    }
}
