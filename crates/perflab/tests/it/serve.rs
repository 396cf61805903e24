use std::fs;
use std::process::Stdio;

use crate::support::{Issued, Lab, Signal, http, issue, send_signal, wait_until};

#[test]
fn it_prints_its_address_and_says_that_it_is_open() {
    let lab = Lab::new();
    let server = lab.serve();
    assert!(server.url.starts_with("http://127.0.0.1:"), "{}", server.url);
    let address = fs::read_to_string(lab.home().join("address")).unwrap();
    assert_eq!(address.trim(), server.url);
    let request = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    assert!(http(&format!("127.0.0.1:{}", server.port()), request).contains("\"status\":\"ok\""));
    let ran = server.end().ok();
    assert!(ran.stderr.contains("everything is open"), "{}", ran.stderr);
    assert!(ran.stderr.lines().all(|line| line.starts_with('{')), "a log in a pipe is JSON");
    assert!(!lab.home().join("address").exists());
}

#[test]
fn an_interrupted_server_finishes_and_the_next_one_has_it_all() {
    let lab = Lab::new();
    for (name, signal) in [("INT", Signal::INT), ("TERM", Signal::TERM)] {
        let server = lab.serve();
        lab.run(["log", "c", name]).ok().says("durable");
        send_signal(server.pid(), signal);
        let ran = server.wait().ok();
        assert!(ran.stderr.contains("ended"), "{}", ran.stderr);
    }
    assert_eq!(lab.messages("c"), ["INT", "TERM"]);
}

#[test]
fn a_killed_server_loses_nothing_acknowledged() {
    let lab = Lab::new();
    let mut sent = Vec::new();
    for round in 0..5 {
        let server = lab.serve();
        for n in 0..5 {
            sent.push(format!("{round}.{n}"));
            lab.run(["log", "c", sent.last().unwrap()]).ok().says("durable");
        }
        server.kill();
    }
    assert_eq!(lab.messages("c"), sent);
}

#[test]
fn a_held_home_names_its_holder() {
    let lab = Lab::new();
    let server = lab.serve();
    let pid = server.pid().to_string();
    lab.run(["serve", "--listen", "127.0.0.1:0"])
        .exits(3)
        .prints("")
        .says(&format!("in use by process {pid}"));
    // Stopped, it holds the home and does not answer.
    send_signal(server.pid(), Signal::STOP);
    fs::remove_file(lab.home().join("server.sock")).unwrap();
    lab.run(["categories"]).exits(3).says(&format!("in use by process {pid}"));
    send_signal(server.pid(), Signal::CONT);
}

#[test]
fn other_addresses_need_a_token() {
    let lab = Lab::new();
    lab.run(["serve", "--listen", "0.0.0.0:0"])
        .exits(3)
        .says("refusing to listen")
        .says("--insecure");
    lab.run(["token", "add", "--name", "ci", "--write", "*"]).ok();
    lab.serve_with(&["--listen", "0.0.0.0:0"]).end().ok();
}

#[test]
fn tls_is_spoken_with_the_given_certificate() {
    let lab = Lab::new();
    let Issued { certificate, key, trusted } = issue("localhost");
    let authority = lab.dir().join("authority.pem");
    fs::write(&authority, trusted).unwrap();
    fs::write(lab.dir().join("cert.pem"), certificate).unwrap();
    fs::write(lab.dir().join("key.pem"), key).unwrap();
    let server = lab.serve_with(&[
        "--listen",
        "127.0.0.1:0",
        "--tls-cert",
        "cert.pem",
        "--tls-key",
        "key.pem",
    ]);
    assert!(server.url.starts_with("https://"), "{}", server.url);
    let elsewhere = Lab::new();
    let url = format!("https://localhost:{}", server.port());
    let run = |trusted: bool| {
        let mut command = elsewhere.command();
        if trusted {
            command.env("SSL_CERT_FILE", &authority);
        }
        command.args(["--server", &url, "categories"]);
        crate::support::Ran::from(command.output().unwrap())
    };
    run(true).ok().says("no categories yet");
    run(false).exits(3).says("TLS handshake");
}

#[test]
fn limits_are_taken_from_the_command_line() {
    let lab = Lab::new();
    let _server = lab.serve_with(&["--listen", "127.0.0.1:0", "--max-message", "1K"]);
    lab.run(["log", "c", &"x".repeat(1025)]).exits(1).says("TOO_LARGE");
    lab.run(["log", "c", &"x".repeat(1024)]).ok();
}

#[test]
fn wrong_usage_is_told() {
    let lab = Lab::new();
    lab.run(["serve", "--listen", "7117"]).exits(2).says("as in 127.0.0.1:7117");
    lab.run(["serve", "--tls-cert", "x"]).exits(2).says("--tls-key");
    lab.run(["serve", "--max-body", "0"]).exits(2).says("at least 1");
    lab.run(["serve", "--listen", "127.0.0.1:0", "--tls-cert", "x", "--tls-key", "x"])
        .exits(3)
        .says("`x`");
    lab.run(["nonsense"]).exits(2).says("unrecognized subcommand");
    lab.run([""; 0]).exits(2).says("Usage: perflab");
    assert!(lab.run(["--version"]).ok().stdout.starts_with("perflab 0."));
}

#[test]
fn a_long_home_path_works_too() {
    let lab = Lab::new();
    let home = lab.dir().join("a".repeat(60)).join("b".repeat(60));
    let mut command = lab.command();
    command.args(["serve", "--listen", "127.0.0.1:0", "--home"]).arg(&home);
    let mut server = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_until("the server answers", || home.join("server.sock").exists());
    let mut command = lab.command();
    let ran: crate::support::Ran =
        command.arg("--home").arg(&home).args(["log", "c", "m"]).output().unwrap().into();
    ran.ok().says("1 message durable");
    server.kill().unwrap();
    server.wait().unwrap();
}
