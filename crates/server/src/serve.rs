//! Runs the server from its first connection to its orderly end.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use perflab_store::Home;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::background;
use crate::listen::{Connections, SocketFile};
use crate::settings::ServerSettings;
use crate::state::Server;
use crate::tls::{self, TlsError};

/// Where clients on this machine find the running server.
const ADDRESS_FILE: &str = "address";

/// Why the server could not run.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error(
        "refusing to listen on {address}: it can be reached from other machines and there is no \
         token"
    )]
    Exposed { address: SocketAddr },
    #[error("failed to listen on {address}")]
    Listen {
        address: SocketAddr,
        #[source]
        error: io::Error,
    },
    #[error("failed to listen on the socket in `{dir}`")]
    Socket {
        dir: PathBuf,
        #[source]
        error: io::Error,
    },
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// The server accepts connections now.
#[derive(Debug, Clone)]
pub struct Bound {
    pub address: SocketAddr,
    /// Its base URL.
    pub url: String,
    /// Nobody needs a token.
    pub is_open: bool,
}

/// Serves the home until `shutdown` is ready, then finishes what was accepted and closes the
/// home. `bound` is called once connections are accepted.
pub async fn serve(
    home: Arc<Home>,
    settings: ServerSettings,
    bound: impl FnOnce(&Bound),
    shutdown: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let served = run(&home, settings, bound, shutdown).await;
    let closing = tokio::task::spawn_blocking(move || home.close());
    if closing.await.is_err() {
        tracing::error!("closing the home failed");
    }
    served
}

async fn run(
    home: &Arc<Home>,
    settings: ServerSettings,
    bound: impl FnOnce(&Bound),
    shutdown: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    check_exposure(home, &settings)?;
    let tls = settings.tls.as_ref().map(tls::acceptor).transpose()?;
    let listen_failed = |error| ServeError::Listen { address: settings.listen, error };
    let listener = TcpListener::bind(settings.listen).await.map_err(listen_failed)?;
    let address = listener.local_addr().map_err(listen_failed)?;
    let (socket, socket_file) = SocketFile::bind(home.dir())
        .map_err(|error| ServeError::Socket { dir: home.dir().to_owned(), error })?;
    let is_open = home.tokens().nobody_needs_one();
    let started = Bound { address, url: url_of(address, &settings), is_open };
    let address_file = AddressFile::write(home.dir(), &started.url);
    // The port that was taken where any would do: links name it.
    let settings = ServerSettings { listen: address, ..settings };
    let server = Server::new(Arc::clone(home), settings);
    let connections = Connections::new(crate::routes(&server), server.settings.limits.clone());
    let mut tasks = JoinSet::new();
    let on_loopback = address.ip().is_loopback();
    tasks.spawn(connections.clone().accept_tcp(listener, tls, on_loopback));
    tasks.spawn(connections.clone().accept_unix(socket));
    tasks.spawn(background::run(Arc::clone(home)));
    tell_start(&started, on_loopback);
    bound(&started);
    shutdown.await;
    tracing::info!("ending: finishing what was accepted");
    tasks.shutdown().await;
    server.ending.cancel();
    connections.finish().await;
    drop((address_file, socket_file));
    tracing::info!("ended");
    Ok(())
}

fn check_exposure(home: &Home, settings: &ServerSettings) -> Result<(), ServeError> {
    let address = settings.listen;
    let is_reachable = !address.ip().is_loopback();
    if is_reachable && home.tokens().is_empty() && !settings.insecure {
        return Err(ServeError::Exposed { address });
    }
    Ok(())
}

fn tell_start(started: &Bound, on_loopback: bool) {
    let url = &started.url;
    match (started.is_open, on_loopback) {
        (false, _) => tracing::info!(url, "listening"),
        (true, true) => tracing::warn!(
            url,
            "listening; there are no tokens, so everything is open to everyone on this machine"
        ),
        (true, false) => tracing::warn!(
            url,
            "listening; insecure: there are no tokens, so everything is open to everyone who can \
             reach this address"
        ),
    }
}

/// An unspecified address is no place to connect to; the loopback one reaches it.
pub(crate) fn url_of(address: SocketAddr, settings: &ServerSettings) -> String {
    let scheme = if settings.tls.is_some() { "https" } else { "http" };
    let port = address.port();
    match (&settings.host_name, address) {
        (Some(name), _) => format!("{scheme}://{name}:{port}"),
        (None, SocketAddr::V4(v4)) if v4.ip().is_unspecified() => {
            format!("{scheme}://127.0.0.1:{port}")
        }
        (None, SocketAddr::V6(v6)) if v6.ip().is_unspecified() => {
            format!("{scheme}://[::1]:{port}")
        }
        (None, address) => format!("{scheme}://{address}"),
    }
}

/// The file that says where the server is; removed when it is dropped. Only a convenience, so
/// that it can't be written is no reason not to serve.
#[derive(Debug)]
struct AddressFile {
    path: PathBuf,
}

impl AddressFile {
    fn write(home: &Path, url: &str) -> Self {
        let path = home.join(ADDRESS_FILE);
        let temporary = path.with_extension("tmp");
        let written = fs::write(&temporary, url).and_then(|()| fs::rename(&temporary, &path));
        if let Err(error) = written {
            tracing::warn!(path = %path.display(), %error, "the address can't be written");
        }
        Self { path }
    }
}

impl Drop for AddressFile {
    fn drop(&mut self) {
        drop(fs::remove_file(&self.path));
    }
}
