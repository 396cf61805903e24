//! Whom to trust: the system's certificates, or those of SSL_CERT_FILE.

use std::io;
use std::sync::Arc;

use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Why no TLS connection could be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TlsError {
    #[error("no trusted certificates were found on this machine, so no server can be verified")]
    NoRoots,
    #[error("`{0}` is no name that a certificate can hold")]
    Name(String),
    #[error("the TLS settings are wrong")]
    Settings(#[source] rustls::Error),
    #[error("the TLS handshake with `{host}` failed")]
    Handshake {
        host: String,
        #[source]
        error: io::Error,
    },
}

/// The certificates that this machine trusts.
pub(crate) fn trusted() -> Vec<CertificateDer<'static>> {
    // Unreadable ones among them are left out: the others still serve.
    rustls_native_certs::load_native_certs().certs
}

/// Speaks TLS over `stream` to the server of that name.
pub(crate) async fn connect<S: AsyncRead + AsyncWrite + Unpin>(
    host: &str,
    stream: S,
) -> Result<TlsStream<S>, TlsError> {
    let name = ServerName::try_from(host.to_owned())
        .map_err(|_invalid| TlsError::Name(host.to_owned()))?;
    let connector = TlsConnector::from(Arc::new(client_config()?));
    connector
        .connect(name, stream)
        .await
        .map_err(|error| TlsError::Handshake { host: host.to_owned(), error })
}

fn client_config() -> Result<ClientConfig, TlsError> {
    let mut roots = RootCertStore::empty();
    let (added, _unreadable) = roots.add_parsable_certificates(trusted());
    if added == 0 {
        return Err(TlsError::NoRoots);
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Settings)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}
