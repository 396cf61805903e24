//! What operators look at.

use serde_json::{Value, json};

use crate::client::Call;
use crate::rig::{Plan, Rig};

fn category(rig: &Rig, name: &str) -> Value {
    let listed = rig.call(&Call::get("/api/categories")).json();
    let categories = listed["categories"].as_array().unwrap();
    categories.iter().find(|category| category["category"] == name).unwrap().clone()
}

#[test]
fn categories_are_listed_with_what_they_hold() {
    let rig = Rig::start();
    rig.log("perfpipe_x", "a\nb");
    let listed = category(&rig, "perfpipe_x");
    assert!(listed["bytes"].as_u64().unwrap() > 0);
    let mut expected = json!({
        "category": "perfpipe_x",
        "dataset": "x",
        "records": 2,
        "first_offset": 0,
        "last_offset": 1,
        "first_time": "2023-11-14T22:13:20Z",
        "last_time": "2023-11-14T22:13:20Z",
        "guarantee": "durable",
        "retain_seconds": null,
        "max_bytes": null,
    });
    expected["bytes"] = listed["bytes"].clone();
    assert_eq!(listed, expected);
}

#[test]
fn settings_change_one_at_a_time_and_stay() {
    let rig = Rig::start();
    let put = |rig: &Rig, body: &str| {
        rig.call(&Call::new("PUT", "/api/categories?category=c").body(body.as_bytes()))
    };
    put(&rig, "{\"retain_seconds\":60,\"max_bytes\":1000}");
    let changed = put(&rig, "{\"retain_seconds\":null}").json();
    assert_eq!((&changed["retain_seconds"], &changed["max_bytes"]), (&json!(null), &json!(1000)));
    for bad in ["{\"guarantee\":\"perhaps\"}", "{\"retain\":1}", "{\"schema\":{\"ints\":[]}}", "x"]
    {
        assert_eq!(put(&rig, bad).status, 400, "{bad}");
    }
    let own = Call::new("PUT", "/api/categories?category=perflab/rejected");
    assert_eq!(rig.call(&own.clone().body("{\"schema\":{}}")).status, 400);
    assert_eq!(rig.call(&own.body("{\"max_bytes\":5}")).json()["max_bytes"], 5);
    let dir = rig.stop();
    let rig = Rig::start_in(dir, Plan::default());
    assert_eq!(category(&rig, "c")["max_bytes"], 1000);
}

#[test]
fn of_two_changes_at_once_none_is_lost() {
    let rig = Rig::start();
    let put = |field: &str, value: u64| {
        let body = format!("{{\"{field}\":{value}}}");
        let reply = rig.call(&Call::new("PUT", "/api/categories?category=c").body(body));
        assert_eq!(reply.status, 200);
    };
    for value in 1..=50 {
        std::thread::scope(|scope| {
            scope.spawn(|| put("retain_seconds", value));
            scope.spawn(|| put("max_bytes", value));
        });
        let kept = category(&rig, "c");
        let expected = (&json!(value), &json!(value));
        assert_eq!((&kept["retain_seconds"], &kept["max_bytes"]), expected);
    }
}

#[test]
fn refused_entries_are_bounded_by_default_and_readable() {
    let rig = Rig::start();
    rig.call(&Call::post("/api/log?category=c", "{\"int\":{\"a\":\"b\"}}"));
    assert_eq!(category(&rig, "perflab/rejected")["max_bytes"], 64 << 20);
    let rejected = rig.rejected();
    assert_eq!(
        rejected[0],
        json!({
            "time": "2023-11-14T22:13:20Z",
            "weight": 1.0,
            "index": 0,
            "bytes": 17,
            "category": "c",
            "code": "ERROR",
            "reason": "column `a` in section `int` holds a string",
            "source": "api/log",
            "message": "{\"int\":{\"a\":\"b\"}}",
        })
    );
}

#[test]
fn a_clean_log_checks_clean() {
    let rig = Rig::start();
    rig.log("c", "a\nb");
    let report = rig.call(&Call::post("/api/check?quarantine=true", "")).json();
    assert_eq!(report["clean"], true);
    assert_eq!((&report["records"], &report["damage"]), (&json!(2), &json!([])));
}

#[test]
fn definitions_with_mistakes_say_where() {
    let rig = Rig::start();
    let reply = rig.call(&Call::post("/api/thrift?name=a.thrift", "struct ALogEntry {\n  1: oops"));
    assert_eq!(reply.status, 400);
    assert!(reply.error().contains("a.thrift"), "{}", reply.error());
    assert!(reply.error().contains("line 2"), "{}", reply.error());
}

#[test]
fn health_and_metrics_tell_what_happened() {
    let rig = Rig::start();
    rig.log("c", "a\nb");
    rig.call(&Call::post("/api/log?category=c", "{"));
    let health = rig.call(&Call::get("/healthz"));
    assert_eq!((health.status, &health.json()["status"]), (200, &json!("ok")));
    let metrics = rig.call(&Call::get("/metrics"));
    let text = String::from_utf8_lossy(&metrics.body);
    for line in [
        "perflab_entries_total{code=\"OK\"} 2",
        "perflab_entries_total{code=\"ERROR\"} 1",
        "perflab_requests_total{door=\"log\",status=\"200\"} 2",
        "perflab_request_seconds_count{door=\"log\"} 2",
        "perflab_rows_total 3",
        "perflab_log_records_total 3",
        "perflab_disk_full 0",
        "perflab_cold_failing 0",
        "perflab_in_flight_bytes 0",
        "# EOF",
    ] {
        assert!(text.contains(line), "no `{line}` in {text}");
    }
}

#[test]
fn the_page_needs_nothing_from_elsewhere() {
    let rig = Rig::start();
    let page = rig.call(&Call::get("/"));
    assert_eq!(page.status, 200);
    assert!(page.header("content-security-policy").unwrap().contains("default-src 'none'"));
    for path in ["/", "/page.css", "/page.js"] {
        let reply = rig.call(&Call::get(path));
        assert_eq!(reply.status, 200);
        let text = String::from_utf8_lossy(&reply.body);
        assert!(!text.contains("http://") && !text.contains("https://"), "{path}");
    }
}
