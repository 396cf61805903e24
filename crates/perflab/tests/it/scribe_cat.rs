use std::ffi::OsStr;
use std::net::TcpListener;
use std::os::unix::ffi::OsStrExt;

use crate::support::{
    FakeServer, Lab, Ran, fake_home_server, run_with_input, spawn_piped, wait_until, write_line,
};

fn cat(lab: &Lab, arguments: &[&str]) -> Ran {
    lab.scribe_cat().args(arguments).output().unwrap().into()
}

#[test]
fn the_three_forms_deliver() {
    let lab = Lab::new();
    let server = lab.serve();
    cat(&lab, &["c", "an argument"]).ok().prints("");
    run_with_input(lab.scribe_cat().arg("c"), b"line 1\nline 2\n").ok().prints("");
    let host = format!("127.0.0.1:{}", server.port());
    run_with_input(lab.scribe_cat().args(["-h", &host, "c"]), b"all of\nthis\n").ok().prints("");
    server.kill();
    assert_eq!(lab.messages("c"), ["an argument", "line 1", "line 2", "all of\nthis\n"]);
}

#[test]
fn it_is_silent_when_all_is_well() {
    let lab = Lab::new();
    assert_eq!(cat(&lab, &["c", "spooled"]).ok().stderr, "");
    let _server = lab.serve();
    assert_eq!(cat(&lab, &["c", "sent"]).ok().stderr, "");
}

#[test]
fn without_a_server_it_is_spooled_and_read_later() {
    let lab = Lab::new();
    cat(&lab, &["c", "m1"]).ok();
    run_with_input(lab.scribe_cat().arg("c"), b"m2\nm3\n").ok();
    assert_eq!(lab.messages("c"), ["m1", "m2", "m3"]);
}

#[test]
fn refusals_are_one_with_the_reason() {
    let lab = Lab::new();
    let _server = lab.serve();
    cat(&lab, &["c", "{\"int\": 1, "]).exits(1).says("refused (ERROR)");
    cat(&lab, &["../c", "m"]).exits(1).says("would leave its directory");
    cat(&lab, &["c", &"x".repeat(100)]).ok();
    let not_text = OsStr::from_bytes(b"\xff");
    let ran: Ran = lab.scribe_cat().arg("c").arg(not_text).output().unwrap().into();
    ran.exits(1).says("UTF-8");
}

#[test]
fn try_later_is_84() {
    let lab = Lab::new();
    let answers = [
        ("429 Too Many Requests", r#"{"error":{"message":"too busy"}}"#),
        ("503 Service Unavailable", r#"{"error":{"message":"the disk is full"}}"#),
        ("200 OK", r#"{"count":1,"response_codes":{"0":"TRY_LATER"}}"#),
    ];
    for (status, body) in answers {
        let fake = FakeServer::answering(status, body);
        let host = format!("127.0.0.1:{}", fake.port);
        run_with_input(lab.scribe_cat().args(["-h", &host, "c"]), b"m").exits(84).says("try later");
        assert_eq!(fake.requests.lock().unwrap().len(), 1, "one try: {status}");
    }
    lab.run(["spool"]).ok().says("nothing waits");
}

#[test]
fn a_broken_answer_is_spooled() {
    let lab = Lab::new();
    let fake = FakeServer::answering("502 Bad Gateway", "<html>");
    let host = format!("127.0.0.1:{}", fake.port);
    run_with_input(lab.scribe_cat().args(["-h", &host, "c"]), b"m")
        .ok()
        .says("the server may have it already");
    let document = lab.run(["spool", "--format", "json"]).ok().json();
    assert_eq!(document["files"][0]["server"], format!("http://{host}"));
}

#[test]
fn lines_are_delivered_as_they_come() {
    let lab = Lab::new();
    let _server = lab.serve();
    let mut child = spawn_piped(lab.scribe_cat().arg("c"));
    let mut stdin = child.stdin.take().unwrap();
    for n in 1..=3 {
        write_line(&mut stdin, &format!("line {n}"));
        wait_until("the line is there", || lab.messages("c").len() == n);
    }
    drop(stdin);
    assert!(child.wait_with_output().unwrap().status.success());
}

#[test]
fn a_server_that_goes_away_between_lines_loses_none() {
    let lab = Lab::new();
    let server = lab.serve();
    let mut child = spawn_piped(lab.scribe_cat().arg("c"));
    let mut stdin = child.stdin.take().unwrap();
    write_line(&mut stdin, "before");
    wait_until("the line is there", || lab.messages("c") == ["before"]);
    server.kill();
    write_line(&mut stdin, "after");
    drop(stdin);
    assert!(child.wait_with_output().unwrap().status.success());
    assert_eq!(lab.messages("c"), ["before", "after"]);
}

#[test]
fn the_backlog_of_a_server_elsewhere_follows_its_next_message() {
    let lab = Lab::new();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let host = format!("127.0.0.1:{port}");
    for n in 0..3 {
        let message = format!("waiting {n}");
        run_with_input(lab.scribe_cat().args(["-h", &host, "c"]), message.as_bytes()).ok();
    }
    let elsewhere = Lab::new();
    let _server = elsewhere.serve_with(&["--listen", &host]);
    wait_until("the backlog is sent", || {
        run_with_input(lab.scribe_cat().args(["-h", &host, "next"]), b"now").ok();
        lab.run(["spool"]).ok().stderr.contains("nothing waits")
    });
    assert_eq!(elsewhere.messages("c"), ["waiting 0", "waiting 1", "waiting 2"]);
}

#[test]
fn the_server_of_the_environment_is_used_with_its_token() {
    let (lab, elsewhere) = (Lab::new(), Lab::new());
    let server = elsewhere.serve();
    let token = elsewhere.run(["token", "add", "--name", "ci", "--write", "*"]).ok().stdout;
    let send = |token: &str| {
        let mut command = lab.scribe_cat();
        command.env("PERFLAB_SERVER", &server.url).env("PERFLAB_TOKEN", token).args(["c", "m"]);
        Ran::from(command.output().unwrap())
    };
    send(token.trim()).ok();
    let refused = send("plt_wrong").exits(1).says("DENIED");
    assert!(!refused.stderr.contains("plt_wrong"));
    assert_eq!(elsewhere.messages("c"), ["m"]);
}

#[test]
fn wrong_usage_is_told() {
    let lab = Lab::new();
    cat(&lab, &[]).exits(2).says("usage: scribe_cat");
    cat(&lab, &["c", "m", "n"]).exits(2).says("quote a message");
    assert!(cat(&lab, &["--help"]).ok().stdout.contains("usage: scribe_cat"));
}

#[test]
fn one_message_on_the_homes_socket_ends_as_any_other() {
    let lab = Lab::new();
    let cases = [
        ("200 OK", r#"{"count":1,"response_codes":{"0":"OK"}}"#, 0, 0),
        ("200 OK", r#"{"count":1,"response_codes":{"0":"TRY_LATER"}}"#, 84, 0),
        ("429 Too Many Requests", r#"{"error":{"message":"too busy"}}"#, 84, 0),
        ("200 OK", r#"{"count":1,"response_codes":{"0":"DENIED"}}"#, 1, 0),
        ("403 Forbidden", r#"{"error":{"message":"not yours"}}"#, 1, 0),
        // Nobody knows whether it was stored: kept here.
        ("502 Bad Gateway", "<html>", 0, 1),
    ];
    for (status, body, code, spooled) in cases {
        fake_home_server(&lab.home(), status, body);
        cat(&lab, &["c", "m"]).exits(code);
        let spool = lab.run(["spool", "--format", "json"]).ok().json();
        assert_eq!(spool["files"].as_array().unwrap().len(), spooled, "{status} {body}");
    }
}
