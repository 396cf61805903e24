use std::collections::HashSet;
use std::fs;
use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use crate::support::{
    FakeServer, Lab, Ran, Relay, Relaying, Server, run_with_input, spawn_piped, wait_until,
};

fn numbered(count: usize) -> String {
    (0..count).map(|n| format!("message {n}\n")).collect()
}

#[track_caller]
fn assert_each_once(lab: &Lab, count: usize) {
    let messages = lab.messages("c");
    let distinct: HashSet<&String> = messages.iter().collect();
    assert_eq!((messages.len(), distinct.len()), (count, count));
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
fn what_waits_is_shown_in_every_format() {
    let lab = Lab::new();
    lab.run(["spool"]).ok().prints("").says("nothing waits to be sent");
    lab.run(["log", "c", "m"]).ok();
    lab.run(["--server", "http://127.0.0.1:1", "log", "c", "m"]).ok();
    let table = lab.run(["spool", "show"]).ok().stdout;
    assert!(table.contains("this home's") && table.contains("http://127.0.0.1:1"), "{table}");
    let document = lab.run(["spool", "--format", "json"]).ok().json();
    assert_eq!(document["format"], "perflab.spool/1");
    assert_eq!(document["files"][0]["messages"], 1);
    assert_eq!(document["files"][1]["server"], "http://127.0.0.1:1");
    let csv = lab.run(["spool", "show", "--format", "csv"]).ok().stdout;
    assert_eq!(csv.lines().count(), 3);
}

#[test]
fn a_server_that_starts_drains_it_once() {
    let lab = Lab::new();
    run_with_input(lab.command().args(["log", "c"]), numbered(500).as_bytes())
        .ok()
        .says("500 messages spooled");
    let server = lab.serve();
    wait_until("it is drained", || lab.run(["spool"]).ok().stderr.contains("nothing waits"));
    lab.run(["spool", "flush"]).ok().says("nothing waits to be sent");
    assert_each_once(&lab, 500);
    server.end().ok();
    assert_each_once(&lab, 500);
}

#[test]
fn without_a_server_flushing_brings_it_into_the_home() {
    let lab = Lab::new();
    lab.run(["log", "c", "m"]).ok();
    lab.run(["spool", "flush"]).ok().says("1 message sent");
    lab.run(["spool", "flush"]).ok().says("nothing waits to be sent");
    assert_eq!(lab.messages("c"), ["m"]);
}

#[test]
fn what_is_refused_while_flushing_is_counted_as_refused() {
    let lab = Lab::new();
    run_with_input(lab.command().args(["log", "c"]), b"good\n{\"int\":{\"n\":\"x\"}}\n").ok();
    lab.run(["spool", "flush"]).exits(1).says("1 message sent").says("1 message refused");
    assert_eq!(lab.messages("c"), ["good"]);
    // A running server alone knows what it refused.
    let _server = lab.serve();
    fs::rename(lab.home().join("server.sock"), lab.home().join("hidden")).unwrap();
    lab.run(["log", "c", "{"]).ok().says("1 message spooled");
    fs::rename(lab.home().join("hidden"), lab.home().join("server.sock")).unwrap();
    let flushed = lab.run(["spool", "flush"]).ok();
    assert!(!flushed.stderr.contains("1 message sent"), "{}", flushed.stderr);
}

/// A server that asks for a token, a home in which messages wait for it, and the token.
fn waiting_for_a_guarded_server() -> (Lab, Server, Lab, String) {
    let (near, far) = (Lab::new(), Lab::new());
    let listen = format!("127.0.0.1:{}", free_port());
    let url = format!("http://{listen}");
    near.run(["--server", &url, "log", "c", "m"]).ok().says("1 message spooled");
    let token = far.run(["token", "add", "--name", "c", "--write", "c"]).ok().stdout;
    let server = far.serve_with(&["--listen", &listen]);
    (far, server, near, token.trim().to_owned())
}

fn flush_with(near: &Lab, server: &str, token: &str) -> Ran {
    let mut command = near.command();
    command.env("PERFLAB_SERVER", server).env("PERFLAB_TOKEN", token).args(["spool", "flush"]);
    command.output().unwrap().into()
}

#[test]
fn a_token_that_may_not_write_leaves_everything_in_the_spool() {
    let (far, server, near, token) = waiting_for_a_guarded_server();
    let other = far.run(["token", "add", "--name", "d", "--write", "d"]).ok().stdout;
    for wrong in [other.trim(), "plt_wrong"] {
        flush_with(&near, &server.url, wrong).exits(1).says("PERFLAB_TOKEN");
        assert_eq!(near.run(["spool", "--format", "json"]).json()["files"][0]["messages"], 1);
    }
    flush_with(&near, &server.url, &token).ok().says("1 message sent");
    assert_eq!(far.messages("c"), ["m"]);
}

#[test]
fn a_token_is_shown_to_no_server_but_its_own() {
    let lab = Lab::new();
    let fake = FakeServer::answering("502 Bad Gateway", "");
    let host = format!("127.0.0.1:{}", fake.port);
    let mut cat = lab.scribe_cat();
    cat.env("PERFLAB_TOKEN", "plt_secret").args(["-h", &host, "c"]);
    run_with_input(&mut cat, b"m").ok();
    let mut flush = lab.command();
    flush.env("PERFLAB_TOKEN", "plt_secret").args(["spool", "flush"]);
    Ran::from(flush.output().unwrap()).exits(3);
    let requests = fake.requests.lock().unwrap();
    assert_eq!(requests.len(), 2);
    assert!(requests.iter().all(|request| !request.contains("plt_secret")), "{requests:?}");
}

#[test]
fn a_server_that_is_away_does_not_hold_up_the_others() {
    let (near, far) = (Lab::new(), Lab::new());
    let listen = format!("127.0.0.1:{}", free_port());
    // Sorted before and after the one that answers.
    for url in ["http://127.0.0.0:1", &format!("http://{listen}"), "http://localhost:1"] {
        near.run(["--server", url, "log", "c", "m"]).ok().says("1 message spooled");
    }
    near.run(["log", "c", "here"]).ok();
    let _server = far.serve_with(&["--listen", &listen]);
    near.run(["spool", "flush"])
        .exits(3)
        .says("failed to send what waits for http://127.0.0.0:1")
        .says("failed to send what waits for http://localhost:1")
        .says("2 messages sent");
    assert_eq!(far.messages("c"), ["m"]);
    assert_eq!(near.messages("c"), ["here"]);
}

/// Each round is killed a little later than the one before.
#[test]
fn a_server_killed_while_draining_stores_each_once() {
    let lab = Lab::new();
    run_with_input(lab.command().args(["log", "c"]), numbered(40_000).as_bytes()).ok();
    for round in 0..6 {
        let server = lab.serve();
        thread::sleep(Duration::from_millis(15 * round));
        server.kill();
    }
    let _server = lab.serve();
    lab.run(["spool", "flush"]).ok();
    assert_each_once(&lab, 40_000);
}

#[test]
fn a_server_elsewhere_killed_while_flushing_stores_each_once() {
    let (near, far) = (Lab::new(), Lab::new());
    let listen = format!("127.0.0.1:{}", free_port());
    let url = format!("http://{listen}");
    run_with_input(
        near.command().args(["--server", &url, "log", "c"]),
        numbered(40_000).as_bytes(),
    )
    .ok()
    .says("40000 messages spooled");
    near.run(["spool", "flush"]).exits(3).says("failed to send what waits for");
    for round in 0..6 {
        let server = far.serve_with(&["--listen", &listen]);
        let flush = spawn_piped(near.command().args(["spool", "flush"]));
        thread::sleep(Duration::from_millis(15 * round));
        server.kill();
        flush.wait_with_output().unwrap();
    }
    let _server = far.serve_with(&["--listen", &listen]);
    near.run(["spool", "flush"]).ok();
    near.run(["spool"]).ok().says("nothing waits");
    assert_each_once(&far, 40_000);
}

#[test]
fn answers_lost_while_flushing_store_each_once() {
    let (near, far) = (Lab::new(), Lab::new());
    let server = far.serve();
    let network = Relay::to(server.port());
    run_with_input(
        near.command().args(["--server", &network.url, "log", "c"]),
        numbered(5000).as_bytes(),
    )
    .ok()
    .says("5000 messages spooled");
    network.set(Relaying::Requests);
    for _ in 0..3 {
        near.run(["spool", "flush"]).exits(3).says("before the answer came");
    }
    assert!(!far.messages("c").is_empty(), "requests did arrive");
    network.set(Relaying::Everything);
    near.run(["spool", "flush"]).ok();
    assert_each_once(&far, 5000);
}

#[test]
fn an_answer_lost_to_a_keyed_message_stores_it_once() {
    let (near, far) = (Lab::new(), Lab::new());
    let server = far.serve();
    let network = Relay::to(server.port());
    network.set(Relaying::Requests);
    let send = |key: &[&str]| {
        let mut command = near.command();
        command.args(["--server", &network.url, "log", "c", "m"]).args(key);
        Ran::from(command.output().unwrap()).ok().says("1 message spooled")
    };
    send(&["--producer", "ci", "--sequence", "1"]);
    network.set(Relaying::Everything);
    near.run(["spool", "flush"]).ok();
    assert_eq!(far.messages("c"), ["m"]);
    network.set(Relaying::Requests);
    send(&[]).says("may have had them already");
}

#[test]
fn many_writers_at_once_lose_nothing() {
    let lab = Lab::new();
    let writers: Vec<_> = (0..20)
        .map(|n| spawn_piped(lab.scribe_cat().args(["c", &format!("message {n}")])))
        .collect();
    for writer in writers {
        assert!(writer.wait_with_output().unwrap().status.success());
    }
    assert_each_once(&lab, 20);
}

#[test]
fn a_running_server_drains_what_was_spooled_meanwhile() {
    let lab = Lab::new();
    let server = lab.serve();
    // As when the server was too busy to answer: the spool fills beside it.
    fs::rename(lab.home().join("server.sock"), lab.home().join("hidden")).unwrap();
    lab.run(["log", "c", "m"]).ok().says("1 message spooled");
    fs::rename(lab.home().join("hidden"), lab.home().join("server.sock")).unwrap();
    wait_until("the server has drained the spool", || lab.messages("c") == ["m"]);
    drop(server);
}
