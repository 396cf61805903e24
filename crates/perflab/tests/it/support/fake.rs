//! Servers that answer as a test wants, in threads that end with the test's process.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// A server that gives the same answer to every request.
pub(crate) struct FakeServer {
    pub(crate) port: u16,
    pub(crate) requests: Arc<Mutex<Vec<String>>>,
}

impl FakeServer {
    pub(crate) fn answering(status: &'static str, body: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::default();
        let seen = Arc::clone(&requests);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                answer(stream, status, body, &seen);
            }
        });
        Self { port, requests }
    }
}

/// A server on the home's own socket that gives the same answer to every request.
pub(crate) fn fake_home_server(home: &Path, status: &'static str, body: &'static str) {
    let socket = home.join("server.sock");
    std::fs::create_dir_all(home).unwrap();
    std::fs::remove_file(&socket).ok();
    let listener = UnixListener::bind(socket).unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            answer(stream, status, body, &Mutex::default());
        }
    });
}

fn answer(stream: impl Read + Write, status: &str, body: &str, seen: &Mutex<Vec<String>>) {
    let mut stream = BufReader::new(stream);
    let head = read_head(&mut stream);
    if head.is_empty() {
        return;
    }
    let length = head
        .lines()
        .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut sent = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut sent).unwrap();
    seen.lock().unwrap().push(format!("{head}{}", String::from_utf8_lossy(&sent)));
    let length = body.len();
    let answer =
        format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}");
    stream.get_mut().write_all(answer.as_bytes()).unwrap();
    stream.get_mut().flush().unwrap();
}

fn read_head(stream: &mut impl BufRead) -> String {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).unwrap_or(0) == 0 {
            break;
        }
    }
    head
}

/// A proxy that takes every tunnel to one port of this machine; returns its own port and where
/// the tunnels were meant to go.
pub(crate) fn tunnels_to(port: u16) -> (u16, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let own_port = listener.local_addr().unwrap().port();
    let heads: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = Arc::clone(&heads);
    thread::spawn(move || {
        for near in listener.incoming().flatten() {
            let seen = Arc::clone(&seen);
            thread::spawn(move || tunnel(&near, port, &seen));
        }
    });
    (own_port, heads)
}

fn tunnel(near: &TcpStream, port: u16, seen: &Mutex<Vec<String>>) {
    let mut reader = BufReader::new(near.try_clone().unwrap());
    seen.lock().unwrap().push(read_head(&mut reader));
    let far = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let mut back = (far.try_clone().unwrap(), near.try_clone().unwrap());
    let mut answering = near;
    answering.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
    thread::spawn(move || std::io::copy(&mut back.0, &mut back.1).ok());
    std::io::copy(&mut reader, &mut &far).ok();
}

/// A certificate for a host, its key, and the authority to trust for it; all PEM.
pub(crate) struct Issued {
    pub(crate) certificate: String,
    pub(crate) key: String,
    pub(crate) trusted: String,
}

pub(crate) fn issue(host: &str) -> Issued {
    let authority_key = KeyPair::generate().unwrap();
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let trusted = authority.self_signed(&authority_key).unwrap().pem();
    let issuer = Issuer::new(authority, authority_key);
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new([host.to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &issuer).unwrap().pem();
    Issued { certificate, key: key.serialize_pem(), trusted }
}

/// A TLS server that claims to be `host`; returns its port and the certificate to trust.
pub(crate) fn fake_host(host: &str, body: &'static str) -> (u16, String) {
    let Issued { certificate, key, trusted } = issue(host);
    let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            let stream = StreamOwned::new(connection, stream);
            answer(stream, "200 OK", body, &Mutex::default());
        }
    });
    (port, trusted)
}

/// What becomes of connections through a [`Relay`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Relaying {
    /// They are closed at once.
    Nothing,
    /// Requests arrive, their answers are lost.
    Requests,
    Everything,
}

/// A network between a client and a server that fails as a test wants.
pub(crate) struct Relay {
    pub(crate) url: String,
    relaying: Arc<Mutex<Relaying>>,
}

impl Relay {
    pub(crate) fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let relaying = Arc::new(Mutex::new(Relaying::Nothing));
        let mode = Arc::clone(&relaying);
        thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let mode = *mode.lock().unwrap();
                thread::spawn(move || relay(&near, port, mode));
            }
        });
        Self { url, relaying }
    }

    pub(crate) fn set(&self, relaying: Relaying) {
        *self.relaying.lock().unwrap() = relaying;
    }
}

fn relay(near: &TcpStream, port: u16, mode: Relaying) {
    if mode == Relaying::Nothing {
        return;
    }
    let far = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let (mut requests, mut to_server) = (near.try_clone().unwrap(), far.try_clone().unwrap());
    thread::spawn(move || std::io::copy(&mut requests, &mut to_server).ok());
    let mut answers = far;
    if mode == Relaying::Everything {
        std::io::copy(&mut answers, &mut { near }).ok();
        return;
    }
    // The first byte of an answer: the request was done.
    answers.read_exact(&mut [0]).ok();
    near.shutdown(std::net::Shutdown::Both).ok();
}
