//! A file with the certificates that programs under `perflab with` trust: those they trusted
//! before, and the home's authority.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use crate::client::tls;

/// The variables by which programs are told of such a file.
pub(crate) const BUNDLE_VARS: [&str; 3] = ["REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "CURL_CA_BUNDLE"];
const PEM_LINE_BYTES: usize = 64;

/// Why there is no such file.
#[derive(Debug, thiserror::Error)]
#[error("failed to write the certificates to `{path}`")]
pub(crate) struct BundleError {
    path: PathBuf,
    #[source]
    error: io::Error,
}

/// A written bundle.
#[derive(Debug)]
pub(crate) struct Bundle {
    pub(crate) path: PathBuf,
    /// How many there were besides the home's authority.
    pub(crate) others: usize,
}

impl Bundle {
    /// Writes a bundle into `dir`.
    pub(crate) fn write(dir: &Path, authority: &CertificateDer<'_>) -> Result<Self, BundleError> {
        let mut certificates = tls::trusted();
        for file in BUNDLE_VARS.into_iter().filter_map(env::var_os) {
            certificates.extend(read_all(Path::new(&file)));
        }
        certificates.sort_unstable_by(|a, b| a.as_ref().cmp(b.as_ref()));
        certificates.dedup();
        let mut pem = to_pem(authority);
        for certificate in &certificates {
            pem.push_str(&to_pem(certificate));
        }
        let path = dir.join("certificates.pem");
        fs::write(&path, pem).map_err(|error| BundleError { path: path.clone(), error })?;
        Ok(Self { path, others: certificates.len() })
    }
}

/// What a variable names may be a folder, or gone: then it adds nothing.
fn read_all(file: &Path) -> Vec<CertificateDer<'static>> {
    let Ok(certificates) = CertificateDer::pem_file_iter(file) else { return Vec::new() };
    certificates.filter_map(Result::ok).collect()
}

fn to_pem(certificate: &CertificateDer<'_>) -> String {
    let encoded = STANDARD.encode(certificate);
    let mut pem = String::from("-----BEGIN CERTIFICATE-----\n");
    let mut rest = encoded.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(PEM_LINE_BYTES));
        pem.push_str(line);
        pem.push('\n');
        rest = after;
    }
    pem.push_str("-----END CERTIFICATE-----\n");
    pem
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        let dir = tempfile::tempdir().unwrap();
        let authority = CertificateDer::from(vec![7_u8; 500]);
        let bundle = Bundle::write(dir.path(), &authority).unwrap();
        let read = read_all(&bundle.path);
        assert_eq!(read[0], authority);
        assert_eq!(read.len(), bundle.others + 1);
        assert!(read_all(dir.path()).is_empty());
    }
}
