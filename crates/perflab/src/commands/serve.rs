//! `perflab serve`: the server.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use perflab_server::{PORT, ServeError, ServerLimits, ServerSettings, TlsFiles, serve};
use perflab_store::{ColdUrl, Home, HomeSettings};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::cli::Globals;
use crate::client::{Owner, own};
use crate::commands::runtime;
use crate::failure::{Exit, Explain, Failure};
use crate::output;
use crate::quantity::{QuantityError, parse_size};
use crate::trace::{self, LogFormat};

/// Run the server of this home
#[derive(Debug, clap::Args)]
#[command(
    long_about = "Run the server of this home.\n\n\
        It prints its address once it takes connections, and runs until it is interrupted; then \
        it finishes what it has accepted. Its own log goes to stderr; PERFLAB_LOG=debug shows \
        more of it.",
    after_help = "\
Examples:
  perflab serve
  perflab serve --listen 0.0.0.0:7117 --tls-cert cert.pem --tls-key key.pem
  perflab serve --listen 127.0.0.1:0 --max-body 512M
  AWS_REGION=eu-north-1 perflab serve --cold s3://bucket/prefix"
)]
pub(crate) struct Args {
    /// The address and port to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value_t = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), PORT), value_parser = parse_listen)]
    listen: SocketAddr,
    /// The certificate chain, PEM
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Its private key, PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Listen on any address although no token protects it
    #[arg(long)]
    insecure: bool,
    /// A name besides localhost that clients call this server by
    #[arg(long, value_name = "NAME")]
    host_name: Option<String>,
    /// The largest body of a request, also after decompression [default: 128M]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    max_body: Option<usize>,
    /// The largest message [default: 1M; at most 16M]
    #[arg(long, value_name = "SIZE", value_parser = parse_message_bytes)]
    max_message: Option<usize>,
    /// The most bytes of requests in work at once [default: 256M]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    max_in_flight: Option<usize>,
    /// The most bytes that wait to be written to the log [default: 32M]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    max_queue: Option<usize>,
    /// The most connections at once
    #[arg(long, value_name = "N", default_value_t = ServerLimits::CONNECTIONS_MAX)]
    max_connections: usize,
    /// The most queries that are answered at once
    #[arg(long, value_name = "N", default_value_t = ServerLimits::QUERIES_MAX)]
    max_queries: usize,
    /// How many seconds a query may take
    #[arg(long, value_name = "N", default_value_t = ServerLimits::QUERY_SECONDS_MAX)]
    query_seconds: u64,
    /// How much memory a query may take for its groups [default: 2G]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    query_memory: Option<usize>,
    /// The most bytes of cold rows that are thawed at once [default: 16G]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    max_thawed: Option<usize>,
    /// Where cold rows are kept from now on: s3://BUCKET/PREFIX, by the AWS_ variables of this
    /// process, or file:///FOLDER; it is remembered, and stays while there are any [default: in the
    /// home]
    #[arg(long, value_name = "URL", env = "PERFLAB_COLD", hide_env_values = true)]
    cold: Option<ColdUrl>,
    /// How the server's log looks [default: text on a terminal, json otherwise]
    #[arg(long, value_enum)]
    log_format: Option<LogFormat>,
}

/// Why a limit is no limit.
#[derive(Debug, thiserror::Error)]
enum LimitError {
    #[error(transparent)]
    Quantity(#[from] QuantityError),
    #[error("`{text}` is more than {} bytes", perflab_log::RECORD_BYTES_MAX - 1)]
    Message { text: String },
    #[error("`{text}` is more than this machine can address")]
    Address { text: String },
}

fn parse_bytes(text: &str) -> Result<usize, LimitError> {
    usize::try_from(parse_size(text)?)
        .map_err(|_too_large| LimitError::Address { text: text.to_owned() })
}

/// A record of the log holds the message and a byte that says how to read it.
fn parse_message_bytes(text: &str) -> Result<usize, LimitError> {
    match parse_bytes(text)? {
        perflab_log::RECORD_BYTES_MAX => Ok(perflab_log::RECORD_BYTES_MAX - 1),
        bytes if bytes < perflab_log::RECORD_BYTES_MAX => Ok(bytes),
        _ => Err(LimitError::Message { text: text.to_owned() }),
    }
}

fn parse_listen(text: &str) -> Result<SocketAddr, String> {
    let numeric = match text.strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}"),
        None => text.to_owned(),
    };
    numeric.parse().map_err(|_malformed| {
        "give an address and a port, as in 127.0.0.1:7117 or [::1]:0".to_owned()
    })
}

pub(crate) fn run(args: Args, globals: &Globals) -> Result<Exit, Failure> {
    let settings = globals.settings()?;
    trace::start(args.log_format);
    runtime()?.block_on(async {
        let end = end_on_signal()?;
        let home = take_home(&settings.home, &home_settings(&args)).await?;
        let bound = |bound: &perflab_server::Bound| {
            // Nobody has to read it.
            output::data(&format!("{}\n", bound.url)).ok();
        };
        serve(home, server_settings(args), bound, end.cancelled_owned()).await.map_err(explain)?;
        Ok(Exit::Done)
    })
}

async fn take_home(dir: &std::path::Path, settings: &HomeSettings) -> Result<Arc<Home>, Failure> {
    match own(dir, settings).await? {
        Owner::ThisProcess(home) => Ok(home),
        Owner::Server { held, .. } => {
            Err(held).hint("it is a server and answers; give this one another --home")
        }
    }
}

fn home_settings(args: &Args) -> HomeSettings {
    let mut settings = HomeSettings { cold: args.cold.clone(), ..HomeSettings::default() };
    if let Some(bytes) = args.max_thawed {
        settings.thawed_bytes_max = bytes as u64;
    }
    if let Some(bytes) = args.max_queue {
        settings.log.queue_bytes_max = bytes;
    }
    settings
}

fn server_settings(args: Args) -> ServerSettings {
    let mut limits = ServerLimits {
        connections_max: args.max_connections,
        queries_max: args.max_queries,
        query_timeout: Duration::from_secs(args.query_seconds),
        ..ServerLimits::default()
    };
    if let Some(bytes) = args.max_body {
        limits.body_bytes_max = bytes;
        limits.request.decompressed_bytes_max = bytes;
    }
    if let Some(bytes) = args.max_message {
        limits.request.message_bytes_max = bytes;
    }
    if let Some(bytes) = args.query_memory {
        limits.query_memory_bytes = bytes;
    }
    if let Some(bytes) = args.max_in_flight {
        limits.in_flight_bytes_max = bytes;
    }
    ServerSettings {
        listen: args.listen,
        tls: args.tls_cert.zip(args.tls_key).map(|(cert, key)| TlsFiles { cert, key }),
        insecure: args.insecure,
        host_name: args.host_name,
        limits,
    }
}

fn explain(error: ServeError) -> Failure {
    let hint = match &error {
        ServeError::Exposed { .. } => {
            Some("make a token first (`perflab token add`), or say --insecure")
        }
        ServeError::Listen { .. } => Some("choose another address with --listen"),
        ServeError::Socket { .. } | ServeError::Tls(_) => None,
    };
    let failure = Failure::from(error);
    match hint {
        Some(hint) => failure.with_hint(hint),
        None => failure,
    }
}

/// Cancelled when the process is asked to end.
fn end_on_signal() -> Result<CancellationToken, Failure> {
    let end = CancellationToken::new();
    for kind in [SignalKind::interrupt(), SignalKind::terminate()] {
        let mut coming = signal(kind)?;
        let end = end.clone();
        tokio::spawn(async move {
            coming.recv().await;
            end.cancel();
        });
    }
    Ok(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_limits_are_checked() {
        assert_eq!(parse_listen("localhost:80"), parse_listen("127.0.0.1:80"));
        assert!(parse_listen("7117").unwrap_err().contains("as in 127.0.0.1:7117"));
        assert_eq!(parse_message_bytes("16M").unwrap(), (16 << 20) - 1);
        assert!(parse_message_bytes("17M").unwrap_err().to_string().contains("16777215"));
        assert!(parse_bytes("many").is_err());
    }
}
