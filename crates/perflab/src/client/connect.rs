//! Connections to a server: its Unix socket, TCP, or TLS over TCP.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

use super::ServerUrl;
use super::tls::{self, TlsError};

/// A server that is there takes a connection at once; a host that is not may never answer.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// The longest path that the kernel takes for a Unix socket, with its closing zero.
const SOCKET_PATH_BYTES_MAX: usize = 108;

pub(crate) const SOCKET_NAME: &str = "server.sock";

/// Anything that carries bytes both ways.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    #[error("failed to connect")]
    Io(#[from] io::Error),
    #[error("no connection within {} s", CONNECT_TIMEOUT.as_secs())]
    Timeout,
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// Connects to the server that runs on a home.
pub(crate) async fn to_home(home: &Path) -> Result<Box<dyn Stream>, ConnectError> {
    Ok(Box::new(within(connect_socket(home)).await?))
}

/// Connects to a server by its address.
pub(crate) async fn to_server(server: &ServerUrl) -> Result<Box<dyn Stream>, ConnectError> {
    let stream = to_host(&server.host, server.port).await?;
    if server.is_tls {
        let handshake = async { Ok(tls::connect(&server.host, stream).await?) };
        Ok(Box::new(within(handshake).await?))
    } else {
        Ok(Box::new(stream))
    }
}

/// Connects to a port of a host.
pub(crate) async fn to_host(host: &str, port: u16) -> Result<TcpStream, ConnectError> {
    within(async {
        let stream = TcpStream::connect((host, port)).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    })
    .await
}

async fn within<T>(
    connecting: impl Future<Output = Result<T, ConnectError>>,
) -> Result<T, ConnectError> {
    timeout(CONNECT_TIMEOUT, connecting).await.map_err(|_elapsed| ConnectError::Timeout)?
}

async fn connect_socket(home: &Path) -> Result<UnixStream, ConnectError> {
    let path = SocketPath::of(home)?;
    Ok(UnixStream::connect(&path.path).await?)
}

/// Connects to the server that runs on a home, without a runtime.
pub(super) fn to_home_blocking(home: &Path) -> io::Result<net::UnixStream> {
    let path = SocketPath::of(home)?;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // For a Unix socket this is also how long connecting may take.
    set_socket_timeout(&socket, Timeout::Send, Some(CONNECT_TIMEOUT))?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(&path.path)?)?;
    Ok(net::UnixStream::from(socket))
}

/// How the kernel is told where a home's socket is.
struct SocketPath {
    path: PathBuf,
    /// A path that is too long goes through its folder, which must stay open.
    _folder: Option<File>,
}

impl SocketPath {
    fn of(home: &Path) -> io::Result<Self> {
        let path = home.join(SOCKET_NAME);
        if path.as_os_str().len() < SOCKET_PATH_BYTES_MAX {
            return Ok(Self { path, _folder: None });
        }
        let folder = File::open(home)?;
        let path = format!("/proc/self/fd/{}/{SOCKET_NAME}", folder.as_raw_fd()).into();
        Ok(Self { path, _folder: Some(folder) })
    }
}
