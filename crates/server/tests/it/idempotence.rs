//! What is sent twice is stored once.

use serde_json::json;

use crate::client::Call;
use crate::rig::{NOW, Plan, Rig, entry};

fn keyed(lines: &str, producer: &str, first: &str) -> Call {
    Call::post("/api/log?category=c", lines)
        .header("X-Perflab-Producer", producer)
        .header("X-Perflab-Sequence", first)
}

#[test]
fn a_repeated_request_is_acknowledged_and_not_stored_again() {
    let rig = Rig::start();
    assert_eq!(rig.call(&keyed("a\n\nb", "p", "5")).codes(), ["OK", "OK"]);
    let again = rig.call(&keyed("a\nb\nc", "p", "5"));
    assert_eq!(again.codes(), ["OK", "OK", "OK"]);
    assert_eq!(again.json()["duplicates"], json!([0, 1]));
    assert_eq!(rig.call(&keyed("a", "q", "5")).json().get("duplicates"), None);
    let dir = rig.stop();
    let rig = Rig::start_in(dir, Plan::default());
    assert_eq!(rig.call(&keyed("b", "p", "6")).json()["duplicates"], json!([0]), "after a restart");
    assert_eq!(rig.messages("c"), ["a", "b", "c", "a"]);
}

#[test]
fn listed_sequences_and_other_categories_work_too() {
    let rig = Rig::start();
    let logs = json!([entry("a", &json!({"n": 1})), entry("b", &json!({"n": 2}))]);
    let call = Call::json("/scribe_logs", &json!({"logs": logs}))
        .header("X-Perflab-Producer", "p")
        .header("X-Perflab-Sequences", "9, 4");
    assert_eq!(rig.call(&call).codes(), ["OK", "OK"]);
    assert_eq!(rig.call(&call).json()["duplicates"], json!([0, 1]));
    assert_eq!((rig.rows("a").len(), rig.rows("b").len()), (1, 1));
}

#[test]
fn a_key_older_than_the_window_is_refused_with_that_reason() {
    let mut plan = Plan::default();
    plan.home.log.window.keys = 3;
    let rig = Rig::start_with(plan);
    for (line, sequence) in [("a", "2"), ("b", "12"), ("c", "22"), ("d", "32"), ("e", "42")] {
        assert_eq!(rig.call(&keyed(line, "p", sequence)).codes(), ["OK"]);
    }
    let reply = rig.call(&keyed("f", "p", "7"));
    assert_eq!(reply.codes(), ["ERROR"]);
    assert_eq!(
        reply.reason(0),
        "sequence 7 of producer `p` is older than the deduplication window: everything up to 12 \
         is forgotten; it may be stored already"
    );
    let mut rejected = rig.connect();
    rejected.start(&Call::get("/api/tail?category=perflab/rejected&follow=true"));
    let line: serde_json::Value = serde_json::from_slice(&rejected.chunk()).unwrap();
    assert_eq!(line["row"]["message"], "f");
    assert_eq!(line["row"]["reason"], reply.reason(0));
}

#[test]
fn headers_that_do_not_fit_are_refused() {
    let rig = Rig::start();
    let post = || Call::post("/api/log?category=c", "a\nb");
    let cases = [
        post().header("X-Perflab-Producer", "p"),
        post().header("X-Perflab-Sequence", "1"),
        post().header("X-Perflab-Producer", "p").header("X-Perflab-Sequence", "one"),
        post().header("X-Perflab-Producer", "p").header("X-Perflab-Sequences", "1"),
        post().header("X-Perflab-Producer", "p").header("X-Perflab-Sequences", "1,2,3"),
        post().header("X-Perflab-Producer", "").header("X-Perflab-Sequence", "1"),
        post().header("X-Perflab-Producer", "p".repeat(256)).header("X-Perflab-Sequence", "1"),
        post().header("X-Perflab-Producer", "p").header("X-Perflab-Sequence", u64::MAX.to_string()),
        post().header("X-Perflab-Arrival", "yesterday"),
        post().header("X-Perflab-Arrival", "-1"),
        post().header("X-Perflab-Arrival", i64::MIN.to_string()),
    ];
    for call in &cases {
        assert_eq!(rig.call(call).status, 400, "{call:?}");
    }
    assert_eq!(rig.home.log().end(), 0);
}

#[test]
fn the_arrival_of_spooled_messages_is_kept_unless_it_is_in_the_future() {
    let rig = Rig::start();
    let post = |arrival: i64| {
        let call = Call::post("/api/log?category=c", "x");
        rig.call(&call.header("X-Perflab-Arrival", arrival.to_string()))
    };
    post(1_600_000_000_000_000_000);
    post(NOW.as_i64() + 1_000_000_000);
    post(0);
    post(i64::MAX);
    let times: Vec<_> = rig.tail("c").iter().map(|line| line["time"].clone()).collect();
    assert_eq!(
        times,
        [
            "2020-09-13T12:26:40Z",
            "2023-11-14T22:13:20Z",
            "1970-01-01T00:00:00Z",
            "2023-11-14T22:13:20Z"
        ]
    );
}

#[test]
fn many_keys_older_than_the_window_are_each_kept_with_their_message() {
    const LINES: usize = 3000;
    let mut plan = Plan::default();
    plan.home.log.window.keys = 1;
    let rig = Rig::start_with(plan);
    for sequence in ["10000", "20000"] {
        assert_eq!(rig.call(&keyed("x", "p", sequence)).codes(), ["OK"]);
    }
    let lines: String =
        (0..LINES).map(|n| format!("line {n} of a body of some length\n")).collect();
    let reply = rig.call(&keyed(&lines, "p", "1"));
    assert_eq!(reply.codes(), vec!["ERROR"; LINES]);
    let mut rejected = rig.connect();
    let limit = LINES.to_string();
    let path = format!("/api/tail?category=perflab/rejected&follow=true&limit={limit}");
    let rows = rejected.call(&Call::get(path)).lines();
    for (n, line) in rows[..LINES].iter().enumerate() {
        assert_eq!(line["row"]["index"], n);
        assert_eq!(line["row"]["message"], format!("line {n} of a body of some length"));
    }
}
