//! The certificate authority of a home, which vouches for one host on this machine only.
//!
//! It is known to programs under `perflab with` and to nobody else. Its file is named after the
//! year in which it ends, so that whether it still holds is seen without reading it.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use perflab_model::Nanos;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, date_time_ymd,
};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};

/// How long an authority is used; whole years.
const AUTHORITY_YEARS: i16 = 10;
/// A run may last over the end of the year.
const CERTIFICATE_YEARS: i16 = 2;

/// Why there is no authority, or no certificate of it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AuthorityError {
    #[error("failed to use the folder `{dir}` of the certificate authority")]
    Io {
        dir: PathBuf,
        #[source]
        error: io::Error,
    },
    #[error("the certificate authority `{path}` can't be read")]
    Read {
        path: PathBuf,
        #[source]
        error: rustls::pki_types::pem::Error,
    },
    #[error("failed to make a certificate")]
    Make(#[from] rcgen::Error),
    #[error("failed to use a certificate")]
    Use(#[from] rustls::Error),
}

/// A home's authority.
pub(crate) struct Authority {
    certificate: CertificateDer<'static>,
    key: KeyPair,
    /// This year.
    year: i16,
    end_year: i16,
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authority").field("end_year", &self.end_year).finish_non_exhaustive()
    }
}

impl Authority {
    /// The home's authority, made if there is none that still holds for a year.
    pub(crate) fn of_home(home: &Path, now: Nanos) -> Result<Self, AuthorityError> {
        let dir = home.join("ca");
        let year = year_of(now);
        let failed = |error| AuthorityError::Io { dir: dir.clone(), error };
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir).map_err(failed)?;
        for end_year in (year + 2..=year + AUTHORITY_YEARS).rev() {
            let path = path_of(&dir, end_year);
            if path.exists() {
                return Self::read(&path, year, end_year);
            }
        }
        let end_year = year + AUTHORITY_YEARS;
        let path = path_of(&dir, end_year);
        write_new(&dir, &path, &make(year, end_year)?).map_err(failed)?;
        Self::read(&path, year, end_year)
    }

    fn read(path: &Path, year: i16, end_year: i16) -> Result<Self, AuthorityError> {
        let failed = |error| AuthorityError::Read { path: path.to_owned(), error };
        let certificate = CertificateDer::from_pem_file(path).map_err(failed)?;
        let key = PrivatePkcs8KeyDer::from_pem_file(path).map_err(failed)?;
        let key = KeyPair::try_from(&key)?;
        Ok(Self { certificate, key, year, end_year })
    }

    pub(crate) fn certificate(&self) -> &CertificateDer<'static> {
        &self.certificate
    }

    /// A TLS server that is believed to be `host` by those who trust this authority.
    pub(crate) fn server_config(&self, host: &str) -> Result<ServerConfig, AuthorityError> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new([host.to_owned()])?;
        params.distinguished_name = named(host);
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        set_years(&mut params, self.year, self.year + CERTIFICATE_YEARS);
        let issuer_params = authority_params(self.end_year - AUTHORITY_YEARS, self.end_year);
        let issuer = Issuer::from_params(&issuer_params, &self.key);
        let certificate = params.signed_by(&key, &issuer)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key.into())?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(config)
    }
}

fn path_of(dir: &Path, end_year: i16) -> PathBuf {
    dir.join(format!("authority-until-{end_year}.pem"))
}

fn year_of(now: Nanos) -> i16 {
    let time = jiff::Timestamp::from_nanosecond(i128::from(now.as_i64())).unwrap_or_default();
    time.to_zoned(jiff::tz::TimeZone::UTC).year()
}

fn make(year: i16, end_year: i16) -> Result<String, AuthorityError> {
    let key = KeyPair::generate()?;
    let certificate = authority_params(year, end_year).self_signed(&key)?;
    Ok(format!("{}{}", key.serialize_pem(), certificate.pem()))
}

/// The same for the certificate itself and for those that it signs.
fn authority_params(year: i16, end_year: i16) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = named("perflab with (this machine only)");
    // It signs servers, no further authorities.
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    set_years(&mut params, year, end_year);
    params
}

/// From the beginning of the year before: clocks differ.
fn set_years(params: &mut CertificateParams, year: i16, end_year: i16) {
    params.not_before = date_time_ymd(i32::from(year) - 1, 1, 1);
    params.not_after = date_time_ymd(i32::from(end_year), 1, 1);
}

fn named(name: &str) -> DistinguishedName {
    let mut full_name = DistinguishedName::new();
    full_name.push(DnType::CommonName, name);
    full_name
}

/// Another process may be doing the same: the first one wins.
fn write_new(dir: &Path, path: &Path, content: &str) -> io::Result<()> {
    let mut file = tempfile::NamedTempFile::new_in(dir)?;
    file.write_all(content.as_bytes())?;
    file.as_file().sync_all()?;
    match file.persist_noclobber(path) {
        Err(error) if error.error.kind() != io::ErrorKind::AlreadyExists => Err(error.error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use perflab_model::{Clock, SystemClock};
    use rustls::pki_types::ServerName;
    use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConnection};
    use std::os::unix::fs::PermissionsExt;

    fn at(year: i64) -> Nanos {
        Nanos::from_seconds((year - 1970) * 31_556_952 + 15_000_000).unwrap()
    }

    #[test]
    fn it_is_made_once_and_kept_private() {
        let home = tempfile::tempdir().unwrap();
        let first = Authority::of_home(home.path(), at(2026)).unwrap();
        let second = Authority::of_home(home.path(), at(2034)).unwrap();
        assert_eq!(first.certificate(), second.certificate());
        let dir = home.path().join("ca");
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&dir), 0o700);
        assert_eq!(mode(&path_of(&dir, 2036)), 0o600);
    }

    #[test]
    fn a_new_one_comes_before_the_old_one_ends() {
        let home = tempfile::tempdir().unwrap();
        let first = Authority::of_home(home.path(), at(2026)).unwrap();
        let later = Authority::of_home(home.path(), at(2035)).unwrap();
        assert_ne!(first.certificate(), later.certificate());
    }

    /// Whether a client that trusts only this certificate believes the server to be `host`.
    fn is_believed(trusted: &CertificateDer<'static>, server: ServerConfig, host: &str) -> bool {
        let mut roots = RootCertStore::empty();
        roots.add(trusted.clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let client = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::try_from(host.to_owned()).unwrap();
        let mut client = ClientConnection::new(Arc::new(client), name).unwrap();
        let mut server = ServerConnection::new(Arc::new(server)).unwrap();
        while client.is_handshaking() || server.is_handshaking() {
            let (mut to_server, mut to_client) = (Vec::new(), Vec::new());
            client.write_tls(&mut to_server).unwrap();
            server.read_tls(&mut to_server.as_slice()).unwrap();
            server.process_new_packets().unwrap();
            server.write_tls(&mut to_client).unwrap();
            client.read_tls(&mut to_client.as_slice()).unwrap();
            if client.process_new_packets().is_err() {
                return false;
            }
        }
        true
    }

    #[test]
    fn its_certificates_are_trusted_by_those_who_trust_it() {
        let (home, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let now = SystemClock.now();
        let ours = Authority::of_home(home.path(), now).unwrap();
        let others = Authority::of_home(other.path(), now).unwrap();
        let server = || ours.server_config("a.example").unwrap();
        assert!(is_believed(ours.certificate(), server(), "a.example"));
        assert!(!is_believed(ours.certificate(), server(), "b.example"));
        assert!(!is_believed(others.certificate(), server(), "a.example"));
        // Made by a later process from what the file holds.
        let again = Authority::of_home(home.path(), now).unwrap();
        let server = again.server_config("a.example").unwrap();
        assert!(is_believed(ours.certificate(), server, "a.example"));
    }
}
