//! Whatever is wrong gets a clear answer, and what is right beside it is kept.

use std::io::Write;
use std::thread;

use serde_json::{Value, json};

use crate::client::Call;
use crate::rig::{Plan, Rig, entry, form_of};

const GOOD: &str = "{\"int\":{\"n\":1}}";

/// Sends the message between two good ones as a form; returns its code and reason.
#[track_caller]
fn between_good_ones(message: &str) -> (String, String) {
    let rig = Rig::start();
    let raw = |message: &str| json!({"category": "c", "message": message});
    let logs = json!([raw(GOOD), raw(message), raw(GOOD)]);
    let reply = rig.call(&Call::form("/scribe_logs", form_of("t", &logs)));
    assert_eq!(reply.status, 200);
    let codes = reply.codes();
    assert_eq!((&*codes[0], &*codes[2]), ("OK", "OK"));
    assert_eq!(rig.rows("c").len(), 2, "the good ones are kept");
    let rejected = rig.rejected();
    assert_eq!(rejected.len(), 1);
    assert_eq!(rejected[0]["reason"], reply.reason(1));
    assert_eq!(rejected[0]["index"], 1);
    assert_eq!(rejected[0]["source"], "scribe_logs form");
    (codes[1].clone(), reply.reason(1))
}

#[test]
fn messages_that_are_wrong_say_why() {
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(200), "]".repeat(200));
    let cases = [
        ("{\"int\":{\"n\":", "the message is not JSON"),
        (&*deep, "64"),
        ("{\"float\":{\"x\":NaN}}", "NaN"),
        ("{\"float\":{\"x\":-Infinity}}", "Infinity"),
        ("{\"int\":{\"n\":\"one\"}}", "column `n` in section `int` holds a string"),
        ("{\"int\":{\"n\":1},\"ints\":{\"m\":2}}", "unknown section `ints`"),
        ("{\"int\":{\"n\":99999999999999999999}}", "column `n`"),
        ("{\"int\":{\"time\":1700000000000}}", "milliseconds"),
        ("", "the message is empty"),
    ];
    for (message, expected) in cases {
        let (code, reason) = between_good_ones(message);
        assert_eq!(code, "ERROR", "{message}");
        assert!(reason.contains(expected), "{message}: {reason}");
    }
}

#[test]
fn a_message_over_the_limit_is_too_large() {
    let (code, reason) = between_good_ones(&"x".repeat((1 << 20) + 1));
    assert_eq!(code, "TOO_LARGE");
    assert!(reason.contains("1048577 bytes"), "{reason}");
}

#[test]
fn category_names_cannot_leave_their_folder() {
    let rig = Rig::start();
    let logs = json!([entry("../etc", &json!({"a": 1})), entry("ok", &json!({"a": 1}))]);
    let reply = rig.call(&Call::form("/scribe_logs", form_of("t", &logs)));
    assert_eq!(reply.codes(), ["ERROR", "OK"]);
    assert!(reply.reason(0).contains("`..`"), "{}", reply.reason(0));
    let rejected = &rig.rejected()[0];
    assert!(rejected["reason"].as_str().unwrap().contains("../etc"));
    let kept = rejected["message"].as_str().unwrap();
    assert_eq!(kept.parse::<Value>().unwrap(), logs[0], "the whole entry is kept as it was sent");
    let reply = rig.call(&Call::post("/api/log?category=../etc", GOOD));
    assert_eq!(reply.status, 400);
    assert!(reply.error().contains("`..`"), "{}", reply.error());
}

#[test]
fn nobody_writes_to_perflabs_own_categories() {
    let rig = Rig::start();
    for category in ["perflab/rejected", "perflab/x", "perfpipe_perflab/rejected"] {
        let logs = json!([entry(category, &json!({"a": 1}))]);
        let reply = rig.call(&Call::json("/scribe_logs", &json!({"logs": logs})));
        assert_eq!(reply.codes(), ["DENIED"], "{category}");
    }
    assert_eq!(rig.rejected().len(), 3);
}

#[test]
fn a_form_of_which_nothing_is_good_is_a_bad_request() {
    let rig = Rig::start();
    let logs =
        json!([entry("c", &json!({"int": {"a": []}})), entry("c", &json!({"int": {"a": "b"}}))]);
    let reply = rig.call(&Call::form("/scribe_logs", form_of("t", &logs)));
    assert_eq!(reply.status, 400);
    let reply = rig.call(&Call::json("/scribe_logs", &json!({"logs": logs})));
    assert_eq!(reply.status, 200, "clients that send JSON look at the codes");
}

#[test]
fn bodies_that_cannot_be_read_say_where() {
    let rig = Rig::start();
    let cases: [(Call, &str); 6] = [
        (Call::form("/scribe_logs", "logs=[{\"category\":\"c\""), "`logs` is not a JSON array"),
        (Call::form("/scribe_logs", "access_token=x"), "neither `logs` nor"),
        (Call::json("/scribe_logs", &json!({"logs": 5})), "`logs` holds a number"),
        (Call::json("/scribe_logs", &json!([])), "the body is not JSON"),
        (Call::json("/scribe_logs", &json!({"base64_bz2_logs": "!"})), "not base64"),
        (Call::post("/api/log", GOOD), "category"),
    ];
    for (call, expected) in cases {
        let reply = rig.call(&call);
        assert_eq!(reply.status, 400, "{call:?}");
        let text = String::from_utf8_lossy(&reply.body);
        assert!(text.contains(expected), "{call:?}: {text}");
    }
}

#[test]
fn bytes_that_are_no_text_are_refused_alone() {
    let rig = Rig::start();
    let body = [GOOD.as_bytes(), b"\n{\"normal\":{\"a\":\"\xff\"}}\n", GOOD.as_bytes()].concat();
    let reply = rig.call(&Call::post("/api/log?category=c", body));
    assert_eq!(reply.codes(), ["OK", "ERROR", "OK"]);
    assert!(reply.reason(1).contains("UTF-8"), "{}", reply.reason(1));
    let form =
        "logs=[{\"category\":\"c\",\"message\":\"%FF\"},{\"category\":\"c\",\"message\":\"ok\"}]";
    assert_eq!(rig.call(&Call::form("/scribe_logs", form)).codes(), ["ERROR", "OK"]);
}

#[test]
fn a_body_that_ends_early_is_not_taken() {
    let rig = Rig::start();
    let mut connection = rig.connect();
    let call = Call::post("/api/log?category=c", GOOD).header("Content-Length", "1000");
    connection.send(&call.encode("localhost"));
    let held = |rig: &Rig, bytes: usize| {
        let metrics = rig.call(&Call::get("/metrics")).body;
        String::from_utf8(metrics).unwrap().contains(&format!("perflab_in_flight_bytes {bytes}\n"))
    };
    while !held(&rig, 1000) {
        thread::yield_now();
    }
    drop(connection);
    while !held(&rig, 0) {
        thread::yield_now();
    }
    rig.log("c", GOOD);
    assert_eq!(rig.rows("c").len(), 1);
}

#[test]
fn whoever_is_refused_early_still_gets_to_read_the_answer() {
    let rig = Rig::start();
    let body = vec![b'x'; 20_000_000];
    let cases: [(&'static str, &str, u16); 6] = [
        ("POST", "/nothing", 404),
        ("POST", "/metrics", 405),
        ("POST", "/v1/scribe_logs", 404),
        ("POST", "/api/log", 400),
        ("POST", "/api/log?category=..", 400),
        ("PUT", "/api/categories", 400),
    ];
    for (method, path, status) in cases {
        assert_eq!(rig.call(&Call::new(method, path).body(body.clone())).status, status, "{path}");
    }
    let call = Call::post("/api/log?category=c", body.clone());
    assert_eq!(rig.call(&call.clone().header("Host", "evil.example")).status, 403);
    assert_eq!(rig.call(&call.clone().header("Origin", "http://evil.example")).status, 403);
    assert_eq!(rig.call(&call.clone().header("X-Perflab-Sequence", "x")).status, 400);
    assert_eq!(rig.call(&call.clone().header("Content-Encoding", "br")).status, 415);
    rig.call(&Call::json("/api/tokens", &json!({"name": "t", "write": ["*"]})));
    assert_eq!(rig.call(&call).status, 401);
    assert_eq!(rig.call(&Call::new("PUT", "/api/categories?category=c").body(body)).status, 401);
}

#[test]
fn a_client_that_asks_first_is_answered_before_it_sends() {
    let rig = Rig::start();
    let mut connection = rig.connect();
    let call = Call::post("/nothing", "")
        .header("Expect", "100-continue")
        .header("Content-Length", "1000000");
    connection.send(&call.encode("localhost"));
    assert_eq!(connection.reply().status, 404);
}

#[test]
fn queries_that_do_not_fit_are_refused_like_anything_else() {
    let rig = Rig::start();
    for (method, path) in [
        ("POST", "/api/log"),
        ("PUT", "/api/categories"),
        ("POST", "/api/check?quarantine=perhaps"),
        ("POST", "/api/thrift"),
        ("DELETE", "/api/tokens"),
    ] {
        let reply = rig.call(&Call::new(method, path));
        assert_eq!(reply.status, 400, "{path}");
        assert!(!reply.error().is_empty(), "{path}");
    }
}

#[test]
fn a_gigabyte_is_refused_before_it_is_read() {
    let rig = Rig::start();
    let mut connection = rig.connect();
    let head = Call::post("/api/log?category=c", "").header("Content-Length", "1073741824");
    connection.send(&head.encode("localhost"));
    let reply = connection.reply();
    assert_eq!(reply.status, 413);
    assert!(reply.error().contains("134217728 bytes"), "{}", reply.error());
}

#[test]
fn a_client_that_sends_too_much_still_gets_to_read_the_answer() {
    let mut plan = Plan::default();
    plan.server.limits.body_bytes_max = 100_000;
    let rig = Rig::start_with(plan);
    let declared = rig.call(&Call::post("/api/log?category=c", vec![b'x'; 20_000_000]));
    assert_eq!(declared.status, 413);

    let mut connection = rig.connect();
    let head = Call::post("/api/log?category=c", "").header("Transfer-Encoding", "chunked");
    connection.send(&head.encode("localhost"));
    let chunk = [b"10000\r\n".as_slice(), &vec![b'x'; 0x10000], b"\r\n"].concat();
    for _ in 0..100 {
        assert!(connection.try_send(&chunk), "the server reads on");
    }
    connection.send(b"0\r\n\r\n");
    assert_eq!(connection.reply().status, 413);
}

#[test]
fn compressed_bombs_are_refused() {
    let mut plan = Plan::default();
    plan.server.limits.body_bytes_max = 1 << 20;
    plan.server.limits.request.decompressed_bytes_max = 1 << 20;
    let rig = Rig::start_with(plan);
    let zeros = vec![b'0'; 64 << 20];
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    gzip.write_all(&zeros).unwrap();
    let bombs =
        [("gzip", gzip.finish().unwrap()), ("zstd", zstd::encode_all(&zeros[..], 3).unwrap())];
    for (encoding, bomb) in bombs {
        assert!(bomb.len() < 100_000);
        let call = Call::post("/api/log?category=c", bomb).header("Content-Encoding", encoding);
        assert_eq!(rig.call(&call).status, 413, "{encoding}");
    }
    for encoding in ["gzip", "zstd"] {
        let call = Call::post("/api/log?category=c", GOOD).header("Content-Encoding", encoding);
        let reply = rig.call(&call);
        assert_eq!(reply.status, 400);
        assert!(reply.error().contains("can't be decompressed"), "{}", reply.error());
    }
    let call = Call::post("/api/log?category=c", GOOD).header("Content-Encoding", "br");
    assert_eq!(rig.call(&call).status, 415);
}

#[test]
fn a_truncated_compressed_body_is_not_taken() {
    let rig = Rig::start();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(GOOD.repeat(100).as_bytes()).unwrap();
    let mut body = gzip.finish().unwrap();
    body.truncate(body.len() - 12);
    let call = Call::post("/api/log?category=c", body).header("Content-Encoding", "gzip");
    assert_eq!(rig.call(&call).status, 400);
    assert!(rig.rows("c").is_empty());
}

#[test]
fn a_declared_schema_refuses_what_it_does_not_name() {
    let rig = Rig::start();
    let schema = json!({"schema": {"int": ["time", "rounds"], "normal": ["name"], "null": "None"}});
    let put = Call::new("PUT", "/api/categories?category=perfpipe_b").body(schema.to_string());
    assert_eq!(rig.call(&put).json()["schema"], schema["schema"]);
    let logs = json!([
        entry("perfpipe_b", &json!({"int": {"rounds": 1}, "normal": {"name": "None"}})),
        entry("perfpipe_b", &json!({"int": {"rouns": 1}})),
        entry("b", &json!({"int": {"rouns": 1}})),
    ]);
    let reply = rig.call(&Call::json("/scribe_logs", &json!({"logs": logs})));
    assert_eq!(reply.codes(), ["OK", "ERROR", "ERROR"]);
    assert!(reply.reason(1).contains("be intentional about adding new fields"));
    assert_eq!(rig.rows("b")[0].get("name"), None, "its null is null");
    let undo = Call::new("PUT", "/api/categories?category=b").body("{\"schema\":null}");
    assert_eq!(rig.call(&undo).json().get("schema"), None::<&Value>);
    rig.log("b", "{\"int\":{\"rouns\":1}}");
}

#[test]
fn the_number_of_columns_is_limited() {
    let mut plan = Plan::default();
    plan.home.columns_max = 3;
    let rig = Rig::start_with(plan);
    rig.log("c", "{\"a\":1,\"b\":2,\"c\":3}");
    let reply = rig.call(&Call::post("/api/log?category=c", "{\"d\":1}\n{\"a\":9}"));
    assert_eq!(reply.codes(), ["ERROR", "OK"]);
    assert!(reply.reason(0).contains("the limit is 3"), "{}", reply.reason(0));
}

#[test]
fn too_many_entries_are_told_to_come_in_parts() {
    let mut plan = Plan::default();
    plan.server.limits.request.entries_max = 2;
    let rig = Rig::start_with(plan);
    let reply = rig.call(&Call::post("/api/log?category=c", "a\nb\nc\n"));
    assert_eq!(reply.status, 413);
    assert!(reply.error().contains("more than 2 entries"), "{}", reply.error());
}

#[test]
fn paths_and_methods_that_do_not_exist_are_told_so() {
    let rig = Rig::start();
    assert_eq!(rig.call(&Call::get("/nothing")).status, 404);
    let reply = rig.call(&Call::get("/scribe_logs"));
    assert_eq!(reply.status, 405);
    assert!(reply.error().contains("method"), "{}", reply.error());
}
