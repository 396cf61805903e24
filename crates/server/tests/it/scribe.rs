//! Each form in which Scribe's clients send.

use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use crate::client::Call;
use crate::rig::{Rig, entry, form_of};

/// What `requests` sends for PyTorch's uploader, and what fbscribelogger puts into a message.
const FORM: &str = include_str!("../../../wire/tests/fixtures/bodies/requests_form.txt");
const STRUCTURED: &str = include_str!("../../../wire/tests/fixtures/structured/compile_time.b64");
const IDL: &str = include_str!("../../../wire/tests/fixtures/structured/compile_time.thrift");

#[test]
fn the_uploaders_form_lands_with_its_types() {
    let rig = Rig::start();
    let reply = rig.call(&Call::form("/scribe_logs", FORM.trim_end()));
    assert_eq!(reply.status, 200);
    assert_eq!(reply.json(), json!({"count": 2, "response_codes": {"0": "OK", "1": "OK"}}));
    let rows = rig.rows("perfpipe_pytorch_benchmarks");
    assert_eq!(
        rows[0],
        json!({
            "time": "2023-11-14T22:13:20Z",
            "weight": 1.0,
            "rounds": 5,
            "benchmark_name": "test_lstm[aten] é",
            "pytorch_git_dirty": "None",
            "mean": rows[0]["mean"],
        })
    );
    let tail = rig.call(&Call::get("/api/tail?category=pytorch_benchmarks"));
    let text = String::from_utf8(tail.body).unwrap();
    assert!(text.contains("\"mean\":0.012345678901234567}"), "every digit is kept: {text}");
    assert_eq!(rows[1]["benchmark_name"], "100% \"quoted\" \\ back");
    assert_eq!(rig.rows("pytorch_benchmarks"), rows, "both names find it");
}

#[test]
fn the_versioned_json_form_answers_in_order_with_a_code_each() {
    let rig = Rig::start();
    let logs = json!([
        entry("gcm", &json!({"int": {"gpus": 8}})),
        entry("gcm", &json!({"int": {"gpus": "eight"}})),
        entry("gcm", &json!({"float": {"load": 0.5}, "tags": {"t": ["b", "a", "b"]}})),
    ]);
    let body = json!({"access_token": "1|x", "logs": logs.to_string()});
    let reply = rig.call(&Call::json("/v21.0/scribe_logs", &body));
    assert_eq!(reply.status, 200);
    assert_eq!(reply.codes(), ["OK", "ERROR", "OK"]);
    assert_eq!(reply.reason(1), "column `gpus` in section `int` holds a string");
    let rows = rig.rows("gcm");
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[1]["t"], json!(["a", "b"]));
    assert_eq!(rig.call(&Call::json("/latest/scribe_logs", &body)).status, 404);
}

#[test]
fn structured_messages_get_their_names_once_they_are_registered() {
    let rig = Rig::start();
    let logs = json!({"logs": [{"category": "UNUSED", "message": STRUCTURED.trim_end()}]});
    let path = "/scribe_logs?structured=true&access_token=0%7Cx";
    assert_eq!(rig.call(&Call::json(path, &logs)).codes(), ["OK"]);
    let category = "TorchBenchmarkCompileTime";
    let before = rig.tail(category).remove(0);
    assert_eq!(before["row"]["f28"], 12.5, "{before}");
    assert_eq!(before.get("message"), None);

    let reply = rig.call(&Call::post("/api/thrift?name=compile_time.thrift", IDL));
    assert_eq!(reply.json(), json!({"targets": [category]}));
    let after = rig.rows(category).remove(0);
    assert_eq!(after["compile_time"], 12.5);
    assert_eq!(after["weight"], 2.0);
    assert_eq!(after["github_ref_protected"], "true");

    let listed = rig.call(&Call::get("/api/thrift")).json();
    assert_eq!(listed["idls"][0]["name"], "compile_time.thrift");
    assert_eq!(listed["idls"][0]["targets"], json!([category]));

    let dir = rig.stop();
    let rig = Rig::start_in(dir, crate::rig::Plan::default());
    assert_eq!(rig.rows(category).remove(0), after, "definitions outlive a restart");
}

#[test]
fn flat_objects_and_entries_without_line_escape_are_taken() {
    let rig = Rig::start();
    let message = json!({"job": "build", "seconds": 1.5, "ok": true, "n": 3}).to_string();
    let logs = json!([{"category": "ci", "message": message}, {"category": "ci", "message": "hi"}]);
    assert_eq!(rig.call(&Call::form("/scribe_logs", form_of("t", &logs))).codes(), ["OK", "OK"]);
    let rows = rig.rows("ci");
    assert_eq!(rows[0]["n"], 3);
    assert_eq!(rows[0]["ok"], "true");
    assert_eq!(rows[1]["message"], "hi");
}

#[test]
fn compressed_logs_are_taken() {
    let rig = Rig::start();
    let logs = json!([entry("bz", &json!({"int": {"n": 1}}))]).to_string();
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::best());
    encoder.write_all(logs.as_bytes()).unwrap();
    let body = json!({"base64_bz2_logs": STANDARD.encode(encoder.finish().unwrap())});
    assert_eq!(rig.call(&Call::json("/scribe_logs", &body)).codes(), ["OK"]);
    assert_eq!(rig.rows("bz")[0]["n"], 1);
}

#[test]
fn lines_are_taken_plain_and_compressed() {
    let rig = Rig::start();
    let lines = "{\"int\":{\"n\":1}}\r\n\n{\"int\":{\"n\":2}}";
    rig.log("plain", lines);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(lines.as_bytes()).unwrap();
    let gzip = Call::post("/api/log?category=gzip", gzip.finish().unwrap());
    assert_eq!(rig.call(&gzip.header("Content-Encoding", "gzip")).codes(), ["OK", "OK"]);
    let zstd = zstd::encode_all(lines.as_bytes(), 3).unwrap();
    let zstd = Call::post("/api/log?category=zstd", zstd).header("Content-Encoding", "zstd");
    assert_eq!(rig.call(&zstd).codes(), ["OK", "OK"]);
    for category in ["plain", "gzip", "zstd"] {
        assert_eq!(rig.messages(category), ["{\"int\":{\"n\":1}}", "{\"int\":{\"n\":2}}"]);
    }
}

#[test]
fn a_large_body_goes_another_way_to_the_same_end() {
    let rig = Rig::start();
    let line = format!("{{\"normal\":{{\"text\":\"{}\"}}}}\n", "x".repeat(1000));
    let reply = rig.call(&Call::post("/api/log?category=large", line.repeat(3000)));
    assert_eq!(reply.codes().len(), 3000);
    let categories = rig.call(&Call::get("/api/categories")).json();
    assert_eq!(categories["categories"][0]["records"], 3000);
}

#[test]
fn an_empty_request_is_fine() {
    let rig = Rig::start();
    let reply = rig.call(&Call::form("/scribe_logs", "logs=[]"));
    assert_eq!(reply.status, 200);
    assert_eq!(reply.json(), json!({"count": 0, "response_codes": {}}));
}

#[test]
fn many_requests_share_a_connection() {
    let rig = Rig::start();
    let mut connection = rig.connect();
    for n in 0..20 {
        let body = format!("{{\"int\":{{\"n\":{n}}}}}");
        assert_eq!(connection.call(&Call::post("/api/log?category=c", body)).codes(), ["OK"]);
    }
    assert_eq!(rig.rows("c").len(), 20);
}
