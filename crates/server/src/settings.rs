//! How the server is run, and every limit it keeps to.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use perflab_wire::Limits;

/// The port that perflab listens on unless told otherwise.
pub const PORT: u16 = 7117;

/// How the server is run.
#[derive(Debug, Clone)]
pub struct ServerSettings {
    /// Where to listen; port 0: any free one.
    pub listen: SocketAddr,
    pub tls: Option<TlsFiles>,
    /// Listen on any address although no token protects it.
    pub insecure: bool,
    /// A name besides `localhost` that requests may call this server by.
    pub host_name: Option<String>,
    pub limits: ServerLimits,
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, PORT)),
            tls: None,
            insecure: false,
            host_name: None,
            limits: ServerLimits::default(),
        }
    }
}

/// The certificate chain and the private key, both PEM.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    pub cert: PathBuf,
    pub key: PathBuf,
}

/// What one request, one client or all of them together may take.
#[derive(Debug, Clone)]
pub struct ServerLimits {
    /// Of one request's entries.
    pub request: Limits,
    /// The largest body, as sent and as decompressed.
    pub body_bytes_max: usize,
    /// The most bytes of bodies that are read or worked on at once; beyond it new ones get 429.
    /// A single body is taken even if it is larger.
    pub in_flight_bytes_max: usize,
    /// The most TCP connections at once, and as many over the Unix socket; others wait.
    pub connections_max: usize,
    /// How long a client may take for a request's head, or stay idle between two requests.
    pub header_timeout: Duration,
    /// How long a client may pause within a body,
    pub body_pause_timeout: Duration,
    /// and take for all of it.
    pub body_timeout: Duration,
    pub tls_handshake_timeout: Duration,
    /// The most queries that are answered at once; others wait for their turn.
    pub queries_max: usize,
    /// How long a query may take, its waiting included,
    pub query_timeout: Duration,
    /// and how much memory for its groups.
    pub query_memory_bytes: usize,
    /// How long an export may take, however slowly it is read: as long it has one of the turns of
    /// queries.
    pub export_timeout: Duration,
    /// How long the end of the server waits for requests that were accepted.
    pub shutdown_timeout: Duration,
}

impl ServerLimits {
    pub const BODY_BYTES_MAX: usize = 128 << 20;
    pub const IN_FLIGHT_BYTES_MAX: usize = 256 << 20;
    pub const CONNECTIONS_MAX: usize = 1024;
    pub const QUERIES_MAX: usize = 4;
    pub const QUERY_SECONDS_MAX: u64 = 60;
    pub const EXPORT_SECONDS_MAX: u64 = 3600;
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            request: Limits::default(),
            body_bytes_max: Self::BODY_BYTES_MAX,
            in_flight_bytes_max: Self::IN_FLIGHT_BYTES_MAX,
            connections_max: Self::CONNECTIONS_MAX,
            header_timeout: Duration::from_secs(60),
            body_pause_timeout: Duration::from_secs(30),
            body_timeout: Duration::from_secs(600),
            tls_handshake_timeout: Duration::from_secs(10),
            queries_max: Self::QUERIES_MAX,
            query_timeout: Duration::from_secs(Self::QUERY_SECONDS_MAX),
            query_memory_bytes: perflab_query::MEMORY_BYTES_DEFAULT,
            export_timeout: Duration::from_secs(Self::EXPORT_SECONDS_MAX),
            shutdown_timeout: Duration::from_secs(30),
        }
    }
}
