//! Accepts connections, over TCP, TLS and the Unix socket, and serves each.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use rustix::net::sockopt;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use crate::access::Peer;
use crate::settings::ServerLimits;
use crate::unread::Unread;

const SOCKET: &str = "server.sock";
/// How long accepting pauses when the process has no descriptors left.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);
/// How long a peer may leave what was sent to it unread or unacknowledged.
const UNREAD_MS_MAX: u32 = 60_000;
/// How often a peer that is silent is asked whether it is still there.
const KEEPALIVE: Duration = Duration::from_secs(15);

/// The connections of one server, and how they end.
#[derive(Debug, Clone)]
pub(crate) struct Connections {
    serving: Serving,
    graceful: Arc<GracefulShutdown>,
}

/// What a single connection needs.
#[derive(Debug, Clone)]
struct Serving {
    router: Router,
    limits: ServerLimits,
    /// Cancelled when connections get no more time to finish.
    abort: CancellationToken,
}

impl Connections {
    pub(crate) fn new(router: Router, limits: ServerLimits) -> Self {
        let serving = Serving { router, limits, abort: CancellationToken::new() };
        Self { serving, graceful: Arc::new(GracefulShutdown::new()) }
    }

    /// Serves TCP connections until it is dropped.
    pub(crate) async fn accept_tcp(
        self,
        listener: TcpListener,
        tls: Option<TlsAcceptor>,
        on_loopback: bool,
    ) {
        let places = Arc::new(Semaphore::new(self.serving.limits.connections_max));
        loop {
            // First a place, then a connection: what is too much waits in the kernel's queue.
            let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
            match listener.accept().await {
                Ok((stream, _)) => self.start_tcp(stream, tls.clone(), on_loopback, place),
                Err(error) => pause_after(&error).await,
            }
        }
    }

    /// Serves the owner until it is dropped.
    pub(crate) async fn accept_unix(self, listener: UnixListener) {
        let places = Arc::new(Semaphore::new(self.serving.limits.connections_max));
        loop {
            let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
            match listener.accept().await {
                Ok((stream, _)) if is_owner(&stream) => {
                    let watcher = self.graceful.watcher();
                    let serving = self.serving.clone();
                    tokio::spawn(async move {
                        serving.serve(stream, Peer::Owner, watcher).await;
                        drop(place);
                    });
                }
                Ok(_) => tracing::warn!("a connection of another user was refused"),
                Err(error) => pause_after(&error).await,
            }
        }
    }

    fn start_tcp(
        &self,
        stream: TcpStream,
        tls: Option<TlsAcceptor>,
        on_loopback: bool,
        place: OwnedSemaphorePermit,
    ) {
        // A socket that refuses an option works all the same.
        if let Err(error) = prepare(&stream) {
            tracing::debug!(%error, "a socket's options could not all be set");
        }
        let peer = Peer::Tcp { on_loopback, is_tls: tls.is_some() };
        // Taken now: from here on the connection counts as accepted.
        let watcher = self.graceful.watcher();
        let serving = self.serving.clone();
        tokio::spawn(async move {
            match tls {
                None => serving.serve(stream, peer, watcher).await,
                Some(tls) => serving.serve_tls(stream, &tls, peer, watcher).await,
            }
            drop(place);
        });
    }

    /// Lets requests that were accepted finish, for as long as they are given.
    pub(crate) async fn finish(self) {
        let Self { serving: Serving { limits, abort, .. }, graceful } = self;
        // The accept loops, which had the others, have ended.
        let Some(graceful) = Arc::into_inner(graceful) else { return abort.cancel() };
        if timeout(limits.shutdown_timeout, graceful.shutdown()).await.is_err() {
            tracing::warn!("some requests took too long and were cut off");
        }
        abort.cancel();
    }
}

impl Serving {
    async fn serve_tls(self, stream: TcpStream, tls: &TlsAcceptor, peer: Peer, watcher: Watcher) {
        match timeout(self.limits.tls_handshake_timeout, tls.accept(stream)).await {
            Ok(Ok(stream)) => self.serve(stream, peer, watcher).await,
            Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
            Err(_elapsed) => tracing::debug!("a TLS handshake took too long"),
        }
    }

    async fn serve(
        self,
        stream: impl AsyncRead + AsyncWrite + Unpin + 'static,
        peer: Peer,
        watcher: Watcher,
    ) {
        let Self { router, limits, abort } = self;
        let service = service_fn(move |mut request: hyper::Request<hyper::body::Incoming>| {
            request.extensions_mut().insert(peer);
            let (head, body) = request.into_parts();
            let body = Body::new(Unread::new(&head.headers, body));
            router.clone().oneshot(hyper::Request::from_parts(head, body))
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.header_timeout)
            .serve_connection(TokioIo::new(stream), service);
        tokio::select! {
            served = watcher.watch(connection) => if let Err(error) = served {
                tracing::debug!(%error, "a connection ended early");
            },
            () = abort.cancelled() => {}
        }
    }
}

fn prepare(stream: &TcpStream) -> io::Result<()> {
    // Answers are written whole: waiting for more to send would only delay them.
    stream.set_nodelay(true)?;
    // A peer that has gone, or that reads nothing of its answer, would keep its place for ever.
    sockopt::set_tcp_user_timeout(stream, UNREAD_MS_MAX)?;
    sockopt::set_tcp_keepidle(stream, KEEPALIVE)?;
    sockopt::set_tcp_keepintvl(stream, KEEPALIVE)?;
    Ok(sockopt::set_socket_keepalive(stream, true)?)
}

/// Nobody but the user whose home this is, and root, whatever the socket's mode says.
fn is_owner(stream: &UnixStream) -> bool {
    let own = rustix::process::geteuid().as_raw();
    stream.peer_cred().is_ok_and(|peer| peer.uid() == own || peer.uid() == 0)
}

/// An error of one connection is its own; one of the process needs a moment to pass.
async fn pause_after(error: &io::Error) {
    let is_of_connection = matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset
    );
    if !is_of_connection {
        tracing::error!(%error, "no connection can be accepted at the moment");
        tokio::time::sleep(ACCEPT_RETRY).await;
    }
}

/// The home's Unix socket; removed when it is dropped.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
}

impl SocketFile {
    /// Replaces the socket that an earlier owner left: whoever calls this holds the home's lock.
    pub(crate) fn bind(home: &Path) -> io::Result<(UnixListener, Self)> {
        let path = home.join(SOCKET);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        // Through the folder's descriptor, since a socket's path has room for 107 bytes only.
        let folder = File::open(home)?;
        let short = format!("/proc/self/fd/{}/{SOCKET}", folder.as_raw_fd());
        let listener = UnixListener::bind(short)?;
        fs::set_permissions(&path, Permissions::from_mode(0o600))?;
        Ok((listener, Self { path }))
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        drop(fs::remove_file(&self.path));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_peer_that_stops_reading_is_given_up() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let _peer = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        prepare(&stream).unwrap();
        assert_eq!(sockopt::tcp_user_timeout(&stream).unwrap(), UNREAD_MS_MAX);
        assert!(sockopt::socket_keepalive(&stream).unwrap());
        assert_eq!(sockopt::tcp_keepidle(&stream).unwrap(), KEEPALIVE);
        assert!(stream.nodelay().unwrap());
    }
}
