//! The OpenAPI document, checked by those who know OpenAPI and against what the server does.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::access::add_token;
use crate::client::{Call, Reply};
use crate::rig::{Rig, entry, form_of};

const JSON: &str = "application/json";

const ROWS: &str = r#"{"int":{"time":1699999000,"errors":1},"normal":{"job":"a","commit":"x1"},"float":{"latency":1.5},"tags":{"labels":["x","y"]},"normvector":{"stack":["main","read"]}}
{"int":{"time":1699999100,"errors":0},"normal":{"job":"b","commit":"x2"},"float":{"latency":4.0},"normvector":{"stack":["main","write"]}}
{"int":{"time":1699999200,"errors":1,"weight":2},"normal":{"job":"a","commit":"x2"},"float":{"latency":2.5}}"#;

fn document(rig: &Rig) -> Value {
    let reply = rig.call(&Call::get("/api/openapi.json"));
    assert_eq!((reply.status, reply.header("Content-Type")), (200, Some(JSON)));
    reply.json()
}

/// What the script finds wrong with requests and answers: null where they fit.
fn problems(document: &Value, requests: &[Value], answers: &[Value]) -> Value {
    let python = Path::new("../../.venv/bin/python");
    assert!(python.exists(), "run `make setup`");
    let mut script = Command::new(python)
        .arg("tests/it/scripts/check_openapi.py")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let asked = json!({"document": document, "requests": requests, "answers": answers});
    script.stdin.take().unwrap().write_all(asked.to_string().as_bytes()).unwrap();
    let ran = script.wait_with_output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    serde_json::from_slice(&ran.stdout).unwrap()
}

/// Answers to be checked, by where the document describes them.
#[derive(Default)]
struct Answers(Vec<Value>);

impl Answers {
    /// `path` is the one in the document.
    #[track_caller]
    fn add(&mut self, method: &str, path: &str, status: u16, reply: &Reply) {
        assert_eq!(reply.status, status, "{path}: {}", String::from_utf8_lossy(&reply.body));
        let media_type = reply.header("Content-Type").unwrap();
        let bodies = if media_type == JSON { vec![reply.json()] } else { reply.lines() };
        let of = |body| {
            let status = status.to_string();
            json!({
                "method": method, "path": path, "status": status, "media_type": media_type,
                "body": body,
            })
        };
        self.0.extend(bodies.into_iter().map(of));
    }

    #[track_caller]
    fn check(&self, document: &Value) {
        let found = problems(document, &[], &self.0);
        for (answer, problem) in self.0.iter().zip(found["answers"].as_array().unwrap()) {
            assert!(problem.is_null(), "{problem}: {answer}");
        }
    }
}

fn rig() -> Rig {
    let rig = Rig::start();
    rig.log("perfpipe_builds", ROWS);
    rig
}

/// A query for each view, and for each thing that changes the form of its answer.
fn queries() -> Vec<Value> {
    let about = |further: Value| {
        let mut query = json!({"dataset": "builds", "since": "-1 hour"});
        query.as_object_mut().unwrap().extend(further.as_object().unwrap().clone());
        query
    };
    [
        json!({"group_by": ["job", "labels"], "aggregates": ["count", "p99:latency", "avg:errors"]}),
        json!({"group_by": ["job"], "top": 1, "other": true, "total": true}),
        json!({"group_by": ["job", "commit"], "pivot": true, "order": {"by": "job"}}),
        json!({"group_by": ["job"], "compare": {"ago": "1 hour"}}),
        json!({"view": "series", "group_by": ["time:10m", "job"]}),
        json!({"view": "distribution", "view_column": "latency"}),
        json!({"view": "samples", "columns": ["job", "labels", "stack"]}),
        json!({"view": "tree", "view_column": "stack", "fold": {"callers": "read"}}),
        json!({"view": "graph", "view_column": "stack"}),
        json!({
            "view": "differs",
            "any_of": [[{"column": "job", "op": "eq", "values": ["a"]}]],
            "compare": {"against": [[{"column": "errors", "op": "lt", "values": [1]}]]},
        }),
        json!({
            "derived": [{"name": "ms", "expression": "latency * 1000"}],
            "group_by": ["bucket(latency, 2)"], "aggregates": ["max:ms"], "timezone": "Europe/Berlin",
        }),
    ]
    .into_iter()
    .map(about)
    .collect()
}

#[test]
fn answers_of_every_view_are_as_the_document_says() {
    let rig = rig();
    let mut answers = Answers::default();
    for query in queries() {
        answers.add("post", "/api/query", 200, &rig.call(&Call::json("/api/query", &query)));
    }
    let tree = json!({"dataset": "builds", "view": "tree", "view_column": "stack"});
    for format in ["json", "speedscope", "firefox"] {
        let path = format!("/api/query?format={format}");
        answers.add("post", "/api/query", 200, &rig.call(&Call::json(path, &tree)));
    }
    let comparison = json!({
        "dataset": "builds", "before": "commit=x1", "after": "x2", "value": "latency",
        "series": ["job"],
    });
    answers.add("post", "/api/compare", 200, &rig.call(&Call::json("/api/compare", &comparison)));
    let sql = json!({"sql": "SELECT *, 1 / 0.0 AS infinite FROM builds"});
    answers.add("post", "/api/sql", 200, &rig.call(&Call::json("/api/sql", &sql)));
    answers.check(&document(&rig));
}

#[test]
fn answers_of_all_else_are_as_the_document_says() {
    let rig = rig();
    let mut answers = Answers::default();
    let mut get = |path: &str, described: &str| {
        answers.add("get", described, 200, &rig.call(&Call::get(path)));
    };
    get("/api/datasets", "/api/datasets");
    get("/api/datasets/builds", "/api/datasets/{name}");
    get("/api/columns/values?dataset=builds&column=job&limit=1", "/api/columns/values");
    get("/api/tail?category=builds", "/api/tail");
    get("/api/categories", "/api/categories");
    get("/api/tokens", "/api/tokens");
    get("/healthz", "/healthz");
    get("/api/openapi.json", "/api/openapi.json");
    let idl = "struct NamedLogEntry { 1: string name }";
    let registered = rig.call(&Call::post("/api/thrift?name=n", idl));
    answers.add("post", "/api/thrift", 200, &registered);
    answers.add("get", "/api/thrift", 200, &rig.call(&Call::get("/api/thrift")));
    answers.add("post", "/api/check", 200, &rig.call(&Call::new("POST", "/api/check")));
    let link = json!({"query": {"dataset": "builds"}});
    answers.add("post", "/api/links", 200, &rig.call(&Call::json("/api/links", &link)));
    let put = |path: &str, body: &Value| rig.call(&Call::new("PUT", path).body(body.to_string()));
    let kept = json!({"guarantee": "fast", "retain_seconds": 9, "max_bytes": null});
    answers.add("put", "/api/categories", 200, &put("/api/categories?category=builds", &kept));
    let kept = json!({"hot_seconds": 60, "schema": null});
    answers.add("put", "/api/datasets/{name}", 200, &put("/api/datasets/builds", &kept));
    let log =
        Call::post("/api/log?category=builds", "{\"int\":{\"x\":1}}\n{\"int\":{\"time\":\"?\"}}")
            .header("X-Perflab-Producer", "p")
            .header("X-Perflab-Sequence", "1");
    for _once_and_again in 0..2 {
        answers.add("post", "/api/log", 200, &rig.call(&log));
    }
    let form = form_of("", &json!([entry("builds", &json!({"int": {"x": 1}})), 7]));
    let form = rig.call(&Call::form("/v21.0/scribe_logs", form));
    answers.add("post", "/{version}/scribe_logs", 200, &form);
    answers.check(&document(&rig));
}

#[test]
fn refusals_are_as_the_document_says() {
    let rig = rig();
    let mut answers = Answers::default();
    let query = |query: Value| Call::json("/api/query", &query);
    let mut refused = |method: &str, path: &str, status: u16, call: &Call| {
        answers.add(method, path, status, &rig.call(call));
    };
    refused("post", "/api/query", 400, &query(json!({"dataset": "builds", "group_by": ["jbo"]})));
    refused("post", "/api/query", 404, &query(json!({"dataset": "bulids"})));
    let png = query(json!({"dataset": "builds"})).header("Accept", "image/png");
    refused("post", "/api/query", 406, &png);
    refused("post", "/api/links", 413, &Call::post("/api/links", " ".repeat((1 << 20) + 1)));
    refused("post", "/api/sql", 400, &Call::json("/api/sql", &json!({"sql": "SELECT FROM"})));
    refused("get", "/l/{id}", 404, &Call::get("/l/nothing"));
    refused("get", "/healthz", 403, &Call::get("/healthz").header("Host", "elsewhere.example"));
    refused("delete", "/api/tokens", 404, &Call::new("DELETE", "/api/tokens?name=nobody"));
    let nothing_taken = Call::form("/scribe_logs", form_of("", &json!([7])));
    refused("post", "/scribe_logs", 400, &nothing_taken);
    refused("post", "/scribe_logs", 400, &Call::form("/scribe_logs", "x=1"));
    let encoded = Call::post("/api/log?category=builds", "x").header("Content-Encoding", "br");
    refused("post", "/api/log", 415, &encoded);
    add_token(&rig, &json!({"name": "reader", "read": ["builds"]}));
    answers.add("get", "/api/datasets", 401, &rig.call(&Call::get("/api/datasets")));
    answers.check(&document(&rig));
}

/// Where a schema says no, the server does; and what it takes is what the schema allows.
#[test]
fn what_breaks_a_schema_is_refused() {
    let rig = rig();
    let request = |path: &str, body: &Value| {
        let (method, media_type) = ("post", JSON);
        json!({"method": method, "path": path, "media_type": media_type, "body": body})
    };
    let good: Vec<_> = queries().iter().map(|query| request("/api/query", query)).collect();
    let bad = [
        ("/api/query", json!({})),
        ("/api/query", json!({"dataset": 7})),
        ("/api/query", json!({"dataset": "builds", "tpo": 1})),
        ("/api/query", json!({"dataset": "builds", "top": 1_000_001})),
        ("/api/query", json!({"dataset": "builds", "view": "pie"})),
        ("/api/query", json!({"dataset": "builds", "format": "perflab.query/0"})),
        ("/api/query", json!({"dataset": "builds", "compare": {"before": "1 week"}})),
        ("/api/query", json!({"dataset": "builds", "any_of": [[{"column": "job", "op": "is"}]]})),
        (
            "/api/query",
            json!({"dataset": "builds", "any_of": [[{"column": "job", "op": "eq", "values": [null]}]]}),
        ),
        ("/api/compare", json!({"before": "x1"})),
        ("/api/compare", json!({"before": "x1", "after": "x2", "better": "more"})),
        ("/api/sql", json!({"query": "SELECT 1"})),
        ("/api/links", json!({"url": "https://example.com", "to": 1})),
        ("/api/tokens", json!({"name": "n", "write": "*"})),
    ];
    let requests = bad.iter().map(|(path, body)| request(path, body));
    let requests: Vec<_> = good.iter().cloned().chain(requests).collect();
    let found = problems(&document(&rig), &requests, &[]);
    let (fit, broken) = found["requests"].as_array().unwrap().split_at(good.len());
    for (request, problem) in good.iter().zip(fit) {
        assert!(problem.is_null(), "{problem}: {request}");
        assert_eq!(rig.call(&Call::json("/api/query", &request["body"])).status, 200, "{request}");
    }
    for ((path, body), problem) in bad.iter().zip(broken) {
        assert!(problem.is_string(), "the schema of {path} allows {body}");
        assert_eq!(rig.call(&Call::json(*path, body)).status, 400, "{path} {body}");
    }
}

/// `null` takes a limit away, so it must not look like what leaving it out means.
#[test]
fn what_is_not_mentioned_is_not_null() {
    let document = document(&rig());
    for schema in ["CategoryChanges", "DatasetChanges"] {
        let schema = &document["components"]["schemas"][schema];
        let limit = schema["properties"]["max_bytes"].as_object().unwrap();
        assert_eq!(limit["type"], json!(["integer", "null"]));
        assert!(!limit.contains_key("default") && schema.get("required").is_none(), "{schema}");
    }
}

/// The path and query of an operation, with something for all that must be there.
fn address(path: &str, operation: &Value) -> String {
    let path = path.replace("{version}", "v1.0").replace(['{', '}'], "");
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    let needed = parameters.filter(|one| one["in"] == "query" && one["required"] == true);
    let query: Vec<_> = needed.map(|one| format!("{}=x", one["name"].as_str().unwrap())).collect();
    format!("{path}?{}", query.join("&"))
}

#[test]
fn all_that_is_described_is_there_and_asks_for_a_token_where_it_says_so() {
    let rig = rig();
    add_token(&rig, &json!({"name": "someone", "read": ["*"]}));
    let mut open = Vec::new();
    let document = document(&rig);
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let method = match method.as_str() {
                "get" => "GET",
                "post" => "POST",
                "put" => "PUT",
                "delete" => "DELETE",
                other => panic!("{path} has {other}"),
            };
            let call = Call::new(method, address(path, operation))
                .header("Content-Type", "application/x-www-form-urlencoded")
                .body(if method == "POST" { "logs=[]" } else { "" });
            let reply = rig.call(&call);
            assert_ne!(reply.status, 405, "{method} {path}");
            if operation["security"] == json!([]) {
                assert_ne!(reply.status, 401, "{method} {path}");
                let is_there = reply.status != 404 || reply.error() == "there is no such link";
                assert!(is_there, "{method} {path}: {}", String::from_utf8_lossy(&reply.body));
                open.push(path.as_str());
            } else {
                let answer = String::from_utf8_lossy(&reply.body);
                assert_eq!(reply.status, 401, "{method} {path}: {answer}");
            }
        }
    }
    let anyone =
        ["/api/openapi.json", "/healthz", "/intern/scuba/query", "/intern/scuba/query/", "/l/{id}"];
    assert_eq!(open, anyone);
}
