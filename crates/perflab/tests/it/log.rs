use std::fs;
use std::net::TcpListener;
use std::thread;

use crate::support::{FakeServer, Lab, run_with_input};

#[test]
fn a_message_is_durable_when_it_returns() {
    let lab = Lab::new();
    let server = lab.serve();
    lab.run(["log", "builds", "took 93 s"]).ok().prints("").says("1 message durable");
    server.kill();
    assert_eq!(lab.messages("builds"), ["took 93 s"]);
}

#[test]
fn each_line_of_the_input_is_a_message() {
    let lab = Lab::new();
    let _server = lab.serve();
    for arguments in [&["log", "lines"][..], &["log", "lines", "-"]] {
        run_with_input(lab.command().args(arguments), b"a\n\nb\r\nc")
            .ok()
            .says("3 messages durable");
    }
    assert_eq!(lab.messages("lines"), ["a", "b", "c", "a", "b", "c"]);
}

#[test]
fn a_large_input_arrives_whole_and_in_order() {
    let lab = Lab::new();
    let _server = lab.serve();
    let lines: Vec<String> = (0..50_000).map(|n| format!("line {n}")).collect();
    run_with_input(lab.command().args(["log", "lines"]), lines.join("\n").as_bytes())
        .ok()
        .says("50000 messages durable");
    assert_eq!(lab.messages("lines"), lines);
}

#[test]
fn refused_messages_are_told_by_line_and_the_others_kept() {
    let lab = Lab::new();
    let _server = lab.serve();
    let mut input = "{\"int\":{\"rounds\":\"x\"}}\ngood\n".to_owned();
    run_with_input(lab.command().args(["log", "c"]), input.as_bytes())
        .exits(1)
        .says("1 message durable")
        .says("error: line 1: refused (ERROR): column `rounds` in section `int` holds a string");
    input = "{\n".repeat(15);
    let ran = run_with_input(lab.command().args(["log", "c"]), input.as_bytes()).exits(1);
    assert_eq!(ran.stderr.matches("refused (ERROR)").count(), 10);
    assert!(ran.stderr.contains("error: 5 more refused"), "{}", ran.stderr);
    assert_eq!(lab.messages("c"), ["good"]);
    assert_eq!(lab.messages("perflab/rejected").len(), 16);
}

#[test]
fn a_key_makes_a_repeated_message_one() {
    let lab = Lab::new();
    let send = |lab: &Lab| {
        run_with_input(
            lab.command().args(["log", "c", "--producer", "ci-1", "--sequence", "5"]),
            b"a\nb\n",
        )
    };
    let server = lab.serve();
    send(&lab).ok().says("2 messages durable");
    send(&lab).ok().says("2 messages durable (2 of them had been sent before)");
    server.kill();
    // The spool keeps the key.
    send(&lab).ok().says("2 messages spooled");
    assert_eq!(lab.messages("c"), ["a", "b"]);
}

#[test]
fn without_a_server_it_is_spooled_and_said() {
    let lab = Lab::new();
    lab.run(["log", "c", "m"]).ok().prints("").says("no server answers: 1 message spooled");
    let home = lab.home();
    assert!(!home.join("log").exists(), "a writer never opens the home");
    assert_eq!(lab.messages("c"), ["m"]);
    run_with_input(lab.command().args(["log", "c"]), b"\xff\n")
        .exits(1)
        .says("not UTF-8 at byte 0");
}

#[test]
fn a_fast_category_is_said_to_be_fast() {
    let lab = Lab::new();
    let _server = lab.serve();
    lab.run(["category", "set", "c", "--guarantee", "fast"]).ok();
    lab.run(["log", "c", "m"]).ok().says("1 message acknowledged before being on disk");
}

#[test]
fn a_message_may_hold_anything_that_is_text() {
    let lab = Lab::new();
    let _server = lab.serve();
    for message in ["two\nlines", "ends in \r", "ends in space ", "ünïcödé", "-x"] {
        lab.run(["log", "c", "--", message]).ok();
    }
    assert_eq!(lab.messages("c"), ["two\nlines", "ends in \r", "ends in space ", "ünïcödé", "-x"]);
    lab.run(["log", "c", ""]).exits(1).says("empty");
}

#[test]
fn try_later_is_a_failure() {
    let lab = Lab::new();
    let body =
        r#"{"count":1,"response_codes":{"0":"TRY_LATER"},"errors":{"0":"the queue is full"}}"#;
    let fake = FakeServer::answering("429 Too Many Requests", body);
    let server = format!("http://127.0.0.1:{}", fake.port);
    lab.run(["--server", &server, "log", "c", "m"])
        .exits(3)
        .says("1 message not sent, try later: the queue is full");
    assert!(fake.requests.lock().unwrap().len() > 1, "it was tried again");
}

#[test]
fn an_input_that_is_not_sent_whole_names_the_line() {
    let lab = Lab::new();
    let fake = FakeServer::answering("429 Too Many Requests", "{}");
    let server = format!("http://127.0.0.1:{}", fake.port);
    let mut log = lab.command();
    log.args(["log", "c"]);
    let writers = [log, {
        let mut cat = lab.scribe_cat();
        cat.arg("c");
        cat
    }]
    .map(|mut writer| {
        writer.env("PERFLAB_SERVER", &server);
        thread::spawn(move || run_with_input(&mut writer, b"\nx\ny\n"))
    });
    for (writer, code) in writers.into_iter().zip([3, 84]) {
        let ran = writer.join().unwrap().exits(code);
        ran.says("try later").says("stopped at line 2: nothing from there on is certain");
    }
}

#[test]
fn what_a_server_may_take_is_spooled_and_nothing_else() {
    let lab = Lab::new();
    let (large, too_large) = (vec![b'x'; 2 << 20], vec![b'x'; 16 << 20]);
    run_with_input(lab.command().args(["log", "c"]), &large).ok().says("1 message spooled");
    run_with_input(lab.command().args(["log", "c"]), &too_large).exits(1).says("TOO_LARGE");
    for empty in ["", " \n"] {
        lab.run(["log", "c", empty]).exits(1).says("the message is empty");
    }
    assert_eq!(lab.run(["spool", "--format", "json"]).json()["files"][0]["messages"], 1);
}

#[test]
fn a_token_in_an_address_is_not_repeated() {
    let lab = Lab::new();
    let ran = lab.run(["--server", "http://me:plt_x@host", "log", "c", "m"]).exits(2);
    assert!(!ran.stderr.contains("plt_x"), "{}", ran.stderr);
    ran.says("PERFLAB_TOKEN");
}

#[test]
fn a_refused_token_is_a_no() {
    let lab = Lab::new();
    let server = lab.serve();
    lab.run(["token", "add", "--name", "ci", "--write", "allowed_*"]).ok();
    lab.run(["--server", &server.url, "log", "allowed_x", "m"]).exits(1).says("DENIED");
    let with_token = |token: &str, category: &str| {
        let mut command = lab.command();
        command.env("PERFLAB_TOKEN", token).args(["--server", &server.url, "log", category, "m"]);
        crate::support::Ran::from(command.output().unwrap())
    };
    with_token("plt_wrong", "allowed_x").exits(1).says("unknown or has expired");
    let token = lab.run(["token", "add", "--name", "ci2", "--write", "allowed_*"]).ok().stdout;
    with_token(token.trim(), "allowed_x").ok().says("1 message durable");
    let denied = with_token(token.trim(), "other").exits(1).says("DENIED");
    assert!(!denied.stderr.contains("plt_"), "{}", denied.stderr);
}

#[test]
fn wrong_usage_is_told() {
    let lab = Lab::new();
    lab.run(["log", "../etc", "m"]).exits(2).says("would leave its directory");
    lab.run(["log"]).exits(2).says("<CATEGORY>");
    lab.run(["log", "c", "m", "--producer", "p"]).exits(2).says("--sequence");
    lab.run(["--server", "ftp://x", "log", "c", "m"]).exits(2).says("neither http nor https");
}

#[test]
fn what_waits_for_a_server_elsewhere_follows_the_next_message() {
    let lab = Lab::new();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let server = format!("http://127.0.0.1:{port}");
    lab.run(["--server", &server, "log", "c", "first"]).ok().says("1 message spooled");
    let spools: Vec<_> = fs::read_dir(lab.home().join("spool-remote")).unwrap().collect();
    let folder = spools[0].as_ref().unwrap().path();
    assert_eq!(fs::read_to_string(folder.join("server")).unwrap().trim(), server);
    let elsewhere = Lab::new();
    let _server = elsewhere.serve_with(&["--listen", &format!("127.0.0.1:{port}")]);
    lab.run(["--server", &server, "log", "c", "second"]).ok().says("1 message durable");
    assert_eq!(elsewhere.messages("c"), ["second", "first"]);
    lab.run(["spool"]).ok().says("nothing waits");
}
