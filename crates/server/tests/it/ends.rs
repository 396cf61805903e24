//! Starting and ending.

use std::net::{IpAddr, Ipv4Addr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::thread;

use perflab_log::{Group, Spool};
use perflab_model::ManualClock;
use perflab_server::{ServeError, ServerSettings, TlsFiles, serve};
use perflab_store::{Home, HomeError, HomeSettings};
use rustls::pki_types::ServerName;
use serde_json::json;

use crate::client::{Call, Connection};
use crate::disk::MoodyDisk;
use crate::rig::{NOW, Plan, Rig};

#[test]
fn the_end_finishes_what_was_accepted() {
    let disk = MoodyDisk::default();
    let mut plan = Plan::default();
    plan.home.disk = Arc::new(disk.clone());
    let mut rig = Rig::start_with(plan);
    rig.log("c", "first");
    let mut idle = rig.connect();
    assert_eq!(idle.call(&Call::get("/healthz")).status, 200);
    disk.hold_syncs(true);
    let mut connection = Connection::open(rig.address);
    let accepted =
        thread::spawn(move || connection.call(&Call::post("/api/log?category=c", "last")));
    disk.wait_for_held_sync();
    rig.ask_to_stop();
    assert!(idle.is_closed(), "idle connections end at once");
    disk.hold_syncs(false);
    assert_eq!(accepted.join().unwrap().codes(), ["OK"]);
    let address = rig.address;
    let dir = rig.stop();
    assert!(TcpStream::connect(address).is_err());
    assert!(!dir.path().join("server.sock").exists());
    assert!(!dir.path().join("address").exists());
    let rig = Rig::start_in(dir, Plan::default());
    assert_eq!(rig.messages("c"), ["first", "last"]);
}

#[test]
fn followers_do_not_hold_up_the_end() {
    let rig = Rig::start();
    let mut follower = rig.connect();
    rig.log("c", "x");
    follower.start(&Call::get("/api/tail?category=c&follow=true"));
    assert!(!follower.chunk().is_empty());
    rig.stop();
    assert!(follower.chunk().is_empty(), "the answer ends in order");
}

#[test]
fn the_home_says_where_its_server_is() {
    let rig = Rig::start();
    let address = std::fs::read_to_string(rig.dir().join("address")).unwrap();
    assert_eq!(address, format!("http://{}", rig.address));
    assert_eq!(rig.bound.url, address);
}

#[test]
fn a_second_server_learns_who_has_the_home() {
    let rig = Rig::start();
    let clock = Arc::new(ManualClock::new(NOW));
    let error = Home::open(rig.dir(), HomeSettings::default(), clock).unwrap_err();
    assert!(matches!(error, HomeError::Held { pid: Some(pid), .. } if pid == std::process::id()));
    assert!(error.to_string().contains(&format!("process {}", std::process::id())));
}

#[test]
fn a_folder_with_a_long_name_has_a_socket_too() {
    let dir = tempfile::Builder::new().prefix(&"long".repeat(40)).tempdir().unwrap();
    let rig = Rig::start_in(dir, Plan::default());
    assert!(rig.dir().join("server.sock").exists());
}

#[tokio::test]
async fn no_other_machine_reaches_a_server_without_tokens() {
    let dir = tempfile::tempdir().unwrap();
    let serve_on_all = |insecure: bool| {
        let clock = Arc::new(ManualClock::new(NOW));
        let home = Home::open(dir.path(), HomeSettings::default(), clock).unwrap();
        let mut settings = ServerSettings { insecure, ..ServerSettings::default() };
        settings.listen = (IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0).into();
        serve(home, settings, |_| {}, async {})
    };
    let refused = serve_on_all(false).await;
    assert!(matches!(refused, Err(ServeError::Exposed { .. })), "{refused:?}");
    serve_on_all(true).await.unwrap();
}

#[test]
fn what_was_spooled_is_drained_once_a_server_runs() {
    let dir = tempfile::tempdir().unwrap();
    spool(dir.path(), &["one", "two"]);
    let rig = Rig::start_in(dir, Plan::default());
    let mut follower = rig.connect();
    follower.start(&Call::get("/api/tail?category=c&follow=true&limit=3"));
    spool(rig.dir(), &["three"]);
    let reply: Vec<u8> =
        std::iter::from_fn(|| Some(follower.chunk()).filter(|c| !c.is_empty())).flatten().collect();
    let text = String::from_utf8(reply).unwrap();
    for message in ["one", "two", "three"] {
        assert_eq!(
            text.matches(&format!("\"message\":\"{message}\",\"row\"")).count(),
            1,
            "{text}"
        );
    }
}

fn spool(home: &Path, messages: &[&str]) {
    let spool = Spool::new(home.join("spool"), 1 << 20);
    for message in messages {
        let mut group = Group::new("c", NOW.as_i64()).unwrap();
        group.push(0, &[&[1], message.as_bytes()]).unwrap();
        spool.append(&group).unwrap();
    }
}

#[test]
fn tls_is_offered_with_the_given_certificate() {
    let files = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (cert, key) = (files.path().join("cert.pem"), files.path().join("key.pem"));
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let mut plan = Plan::default();
    plan.server.tls = Some(TlsFiles { cert, key });
    let rig = Rig::start_with(plan);
    assert!(rig.bound.url.starts_with("https://"));

    let mut roots = rustls::RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let client = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
    let stream = TcpStream::connect(rig.address).unwrap();
    let mut connection =
        Connection::over(rustls::StreamOwned::new(client, stream), "localhost".to_owned());
    let call = Call::post("/api/log?category=c", "x").header("Origin", "https://localhost");
    assert_eq!(connection.call(&call).codes(), ["OK"]);
    let health = connection.call(&Call::get("/healthz"));
    assert_eq!(health.json()["status"], json!("ok"));
}

#[tokio::test]
async fn a_bad_certificate_is_told_at_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let nothing = dir.path().join("nothing.pem");
    let clock = Arc::new(ManualClock::new(NOW));
    let home = Home::open(dir.path(), HomeSettings::default(), clock).unwrap();
    let tls = Some(TlsFiles { cert: nothing.clone(), key: nothing });
    let mut settings = ServerSettings { tls, ..ServerSettings::default() };
    settings.listen.set_port(0);
    let error = serve(home, settings, |_| {}, async {}).await.unwrap_err();
    assert!(error.to_string().contains("nothing.pem"), "{error}");
}
