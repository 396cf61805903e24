//! Reading back.

use serde_json::{Value, json};

use crate::client::{Call, Reply};
use crate::rig::Rig;

fn tail(rig: &Rig, query: &str) -> Reply {
    rig.call(&Call::get(format!("/api/tail?{query}")))
}

fn offsets(lines: &[Value]) -> Vec<u64> {
    lines.iter().filter_map(|line| line["offset"].as_u64()).collect()
}

#[test]
fn reading_starts_and_ends_where_it_is_told() {
    let rig = Rig::start();
    rig.log("a", "a0\na1\na2");
    rig.log("b", "b3\nb4");
    rig.log("a", "a5");
    let all = tail(&rig, "category=a").lines();
    assert_eq!(offsets(&all), [0, 1, 2, 5]);
    assert_eq!(all[4], json!({"end": {"next_offset": 6, "complete": true}}));
    assert_eq!(
        all[0],
        json!({
            "offset": 0,
            "time": "2023-11-14T22:13:20Z",
            "category": "a",
            "message": "a0",
            "row": {"time": "2023-11-14T22:13:20Z", "weight": 1.0, "message": "a0"},
        })
    );
    assert_eq!(offsets(&tail(&rig, "category=a&category=b&from=2").lines()), [2, 3, 4, 5]);
    let limited = tail(&rig, "category=a&limit=2").lines();
    assert_eq!(offsets(&limited), [0, 1]);
    assert_eq!(limited[2]["end"]["next_offset"], 2);
    assert_eq!(offsets(&tail(&rig, "category=a&latest=2").lines()), [2, 5]);
    assert_eq!(offsets(&tail(&rig, "category=a&from=-1h").lines()), [0, 1, 2, 5]);
    assert!(offsets(&tail(&rig, "category=a&from=2024-01-01").lines()).is_empty());
    assert!(offsets(&tail(&rig, "category=nothing").lines()).is_empty());
}

#[test]
fn questions_that_make_no_sense_are_told_so() {
    let rig = Rig::start();
    for query in [
        "",
        "category=a&from=whenever",
        "category=a&limit=x",
        "category=..",
        "category=a&follow=1",
        "category=a&latest=5&from=1",
        "category=a&latest=5&limit=1",
        "category=a&latest=5&follow=true",
    ] {
        assert_eq!(tail(&rig, query).status, 400, "{query}");
    }
}

#[test]
fn the_latest_messages_stay_within_a_few_megabytes() {
    let rig = Rig::start();
    for n in 0..8 {
        rig.log("c", &format!("{n}{}", "x".repeat(1_000_000)));
    }
    let reply = tail(&rig, "category=c&latest=8");
    assert!(reply.body.len() < 5 << 20, "{}", reply.body.len());
    let mut lines = reply.lines();
    let end = lines.pop().unwrap();
    assert_eq!(end, json!({"end": {"next_offset": 8, "complete": true, "cut": true}}));
    assert_eq!(offsets(&lines), [6, 7]);
    let enough = tail(&rig, "category=c&latest=2").lines().pop().unwrap();
    assert_eq!(enough, json!({"end": {"next_offset": 8, "complete": true}}));
}

#[test]
fn following_shows_records_as_they_come() {
    let rig = Rig::start();
    rig.log("c", "before");
    let mut follower = rig.connect();
    follower.start(&Call::get("/api/tail?category=c&follow=true"));
    let mut next = || -> String {
        let line: Value = serde_json::from_slice(&follower.chunk()).unwrap();
        line["message"].as_str().unwrap().to_owned()
    };
    assert_eq!(next(), "before");
    for n in 0..10 {
        rig.log("other", "noise");
        rig.log("c", &format!("line {n}"));
        assert_eq!(next(), format!("line {n}"));
    }
}

#[test]
fn following_ends_at_its_limit() {
    let rig = Rig::start();
    rig.log("c", "a\nb\nc");
    let lines = tail(&rig, "category=c&follow=true&limit=2").lines();
    assert_eq!(offsets(&lines), [0, 1]);
    assert_eq!(lines[2]["end"]["next_offset"], 2);
}

#[test]
fn a_long_answer_comes_in_parts() {
    let rig = Rig::start();
    let lines: String =
        (0..5000).map(|n| format!("{{\"n\":{n},\"x\":\"{:0100}\"}}\n", 0)).collect();
    rig.log("c", &lines);
    let rows = rig.rows("c");
    assert_eq!(rows.len(), 5000);
    assert_eq!(rows[4999]["n"], 4999);
}

#[test]
fn two_kinds_under_one_name_are_both_shown() {
    let rig = Rig::start();
    rig.log("c", "{\"int\":{\"x\":1},\"normal\":{\"x\":\"one\"}}\n{\"float\":{\"y\":0.5}}");
    let rows = rig.rows("c");
    assert_eq!((&rows[0]["x"], &rows[0]["x:string"]), (&json!(1), &json!("one")));
    assert_eq!(rows[1]["y"], 0.5);
}

#[test]
fn damage_is_shown_where_it_is() {
    let rig = Rig::start();
    for n in 0..3 {
        rig.log("c", &format!("message number {n}"));
    }
    let dir = rig.stop();
    let log = dir.path().join("log");
    for file in std::fs::read_dir(&log).unwrap() {
        let path = file.unwrap().path();
        let mut bytes = std::fs::read(&path).unwrap();
        let needle = b"message number 1";
        if let Some(at) = bytes.windows(needle.len()).position(|window| window == needle) {
            bytes[at] ^= 1;
            std::fs::write(&path, bytes).unwrap();
        }
    }
    let rig = Rig::start_in(dir, crate::rig::Plan::default());
    let lines = tail(&rig, "category=c").lines();
    assert_eq!(offsets(&lines), [0, 2]);
    assert!(lines.iter().any(|line| line["damage"]["bytes"].as_u64().is_some()), "{lines:?}");
    assert_eq!(lines.last().unwrap()["end"]["complete"], false);
    let check = rig.call(&Call::post("/api/check", "")).json();
    assert_eq!(check["clean"], false);
    assert_eq!(check["records"], 2);
    assert_eq!(check["damage"].as_array().unwrap().len(), 1, "{check}");
}
