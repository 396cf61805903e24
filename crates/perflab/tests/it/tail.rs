use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::support::Lab;

fn filled() -> Lab {
    let lab = Lab::new();
    for message in ["one", "{\"n\": 2}", "t\u{7}hree"] {
        lab.run(["log", "perfpipe_c", message]).ok();
    }
    lab
}

#[test]
fn a_person_reads_lines() {
    let lab = filled();
    let ran = lab.run(["tail", "c"]).ok();
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(lines.len(), 3);
    assert!(lines[0].starts_with("       0  20") && lines[0].ends_with("Z  one"), "{}", lines[0]);
    assert!(lines[2].ends_with("t\\u{7}hree"), "control characters are shown, not obeyed");
}

#[test]
fn a_program_reads_json_lines_or_csv() {
    let lab = filled();
    let lines = lab.run(["tail", "perfpipe_c", "--format", "json"]).ok().json_lines();
    assert_eq!(lines.len(), 3);
    assert_eq!(lines[1]["offset"], 1);
    assert_eq!(lines[1]["category"], "perfpipe_c");
    assert_eq!(lines[1]["message"], "{\"n\": 2}");
    assert_eq!(lines[1]["row"]["n"], 2);
    let csv = lab.run(["tail", "c", "--format", "csv"]).ok().stdout;
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines[0], "offset,time,category,message");
    assert!(lines[2].ends_with(",perfpipe_c,\"{\"\"n\"\": 2}\""), "{}", lines[2]);
}

#[test]
fn it_begins_and_stops_where_it_is_told() {
    let lab = filled();
    let offsets = |arguments: &[&str]| {
        let mut all = vec!["tail", "c", "--format", "json"];
        all.extend(arguments);
        let lines = lab.run(all).ok().json_lines();
        lines.iter().map(|line| line["offset"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(offsets(&["--from", "1"]), [1, 2]);
    assert_eq!(offsets(&["--from", "1", "--limit", "1"]), [1]);
    assert_eq!(offsets(&["--from", "-1h"]), [0, 1, 2]);
    assert_eq!(offsets(&["--from", "2100-01-01T00:00:00Z"]), [0_u64; 0]);
    lab.run(["tail", "c", "--from", "yesterdayish"]).exits(1).says("yesterdayish");
}

#[test]
fn following_shows_what_comes() {
    let lab = filled();
    let _server = lab.serve();
    let mut child = lab
        .command()
        .args(["tail", "c", "--follow", "--format", "json", "--from", "2"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().contains("\"offset\":2"));
    lab.run(["log", "c", "fresh"]).ok();
    assert!(lines.next().unwrap().unwrap().contains("fresh"));
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn following_needs_a_server() {
    let lab = filled();
    lab.run(["tail", "c", "--follow"]).exits(3).says("no server runs").says("perflab serve");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let lab = Lab::new();
    let lines = "x".repeat(1000) + "\n";
    crate::support::run_with_input(lab.command().args(["log", "c"]), lines.repeat(1000).as_bytes())
        .ok();
    let mut child = lab
        .command()
        .args(["tail", "c"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let ran: crate::support::Ran = child.wait_with_output().unwrap().into();
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
}

#[test]
fn an_unknown_category_is_just_empty() {
    Lab::new().run(["tail", "nothing"]).ok().prints("");
}
