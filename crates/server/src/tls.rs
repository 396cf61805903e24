//! The certificate that the server shows.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls_pki_types::pem::{self, PemObject};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use crate::settings::TlsFiles;

/// Why TLS can't be offered.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("failed to read the certificates in `{path}`")]
    Certificates {
        path: PathBuf,
        #[source]
        error: pem::Error,
    },
    #[error("there is no certificate in `{path}`")]
    NoCertificate { path: PathBuf },
    #[error("failed to read the private key in `{path}`")]
    Key {
        path: PathBuf,
        #[source]
        error: pem::Error,
    },
    #[error("the certificate and the private key can't be used")]
    Unusable(#[source] rustls::Error),
}

pub(crate) fn acceptor(files: &TlsFiles) -> Result<TlsAcceptor, TlsError> {
    let certificates = certificates(&files.cert)?;
    let key = PrivateKeyDer::from_pem_file(&files.key)
        .map_err(|error| TlsError::Key { path: files.key.clone(), error })?;
    // Named, not the process default: which one that is depends on what else is linked in.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Unusable)?
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .map_err(TlsError::Unusable)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let failed = |error| TlsError::Certificates { path: path.to_owned(), error };
    let certificates: Vec<_> = CertificateDer::pem_file_iter(path)
        .map_err(failed)?
        .collect::<Result<_, _>>()
        .map_err(failed)?;
    if certificates.is_empty() {
        return Err(TlsError::NoCertificate { path: path.to_owned() });
    }
    Ok(certificates)
}
