//! Asking about rows in SQL.

use std::time::Duration;

use arrow::array::AsArray;
use arrow::ipc::reader::StreamReader;
use perflab_server::ServerLimits;
use perflab_store::TableLimits;
use serde_json::json;

use crate::access::add_token;
use crate::client::{Call, Reply};
use crate::rig::{Plan, Rig};

const ROWS: &str = r#"{"int":{"time":1699999000,"errors":1},"normal":{"job":"a"},"float":{"latency":1.5},"tags":{"labels":["x","y"]}}
{"int":{"time":1699999100,"errors":0},"normal":{"job":"b"},"float":{"latency":4.0}}
{"int":{"time":1699999200,"errors":1,"weight":2},"normal":{"job":"a"},"float":{"latency":2.5}}"#;

/// Ten thousand million rows: more than are counted while a test waits.
const ENDLESS: &str = "WITH n AS (SELECT unnest(range(100000)) AS n) \
    SELECT sum(a.n * b.n % 7) FROM n a CROSS JOIN n b";

fn rig() -> Rig {
    rig_with(ServerLimits::default())
}

fn rig_with(limits: ServerLimits) -> Rig {
    let mut plan = Plan::default();
    plan.server.limits = limits;
    let rig = Rig::start_with(plan);
    rig.log("perfpipe_builds", ROWS);
    rig
}

fn ask(rig: &Rig, sql: &str) -> Reply {
    rig.call(&Call::json("/api/sql", &json!({ "sql": sql })))
}

#[track_caller]
fn check_refusal(rig: &Rig, sql: &str, status: u16, message: &str) {
    let reply = ask(rig, sql);
    assert_eq!((reply.status, reply.error().as_str()), (status, message), "{sql}");
}

#[test]
fn a_query_is_answered_with_columns_rows_and_stats() {
    let rig = rig();
    let sql = "SELECT job, sum(weight) AS n, max(latency), min(time), first_value(labels ORDER BY time) \
        AS labels, bool_or(errors > 0) AS failed FROM builds GROUP BY job ORDER BY job";
    let mut answer = ask(&rig, sql).json();
    assert!(answer["stats"]["elapsed_ns"].take().as_u64().unwrap() > 0);
    assert_eq!(
        answer,
        json!({
            "format": "perflab.answer/1",
            "columns": [
                {"name": "job", "kind": "string"},
                {"name": "n", "kind": "float"},
                {"name": "max(builds.latency)", "kind": "float"},
                {"name": "min(builds.time)", "kind": "time"},
                {"name": "labels", "kind": "vector"},
                {"name": "failed", "kind": "string"},
            ],
            "rows": [
                {
                    "job": "a", "n": 3.0, "max(builds.latency)": 2.5,
                    "min(builds.time)": "2023-11-14T21:56:40+00:00", "labels": ["x", "y"],
                    "failed": "true",
                },
                {
                    "job": "b", "n": 1.0, "max(builds.latency)": 4.0,
                    "min(builds.time)": "2023-11-14T21:58:20+00:00", "labels": null,
                    "failed": "false",
                },
            ],
            "stats": {
                "rows_scanned": 3, "rows_recalled": 0, "elapsed_ns": null, "complete": true,
                "missing": [],
            },
        })
    );
}

#[test]
fn a_query_comes_as_json_or_as_text() {
    let rig = rig();
    let text = |sql: &str| {
        rig.call(&Call::post("/api/sql", sql).header("Content-Type", "text/plain; charset=utf-8"))
    };
    let sql = "SELECT count(*) AS n FROM perfpipe_builds";
    assert_eq!(text(sql).json()["rows"], json!([{"n": 3}]));
    assert_eq!(ask(&rig, sql).json()["rows"], json!([{"n": 3}]));
    let refused = rig.call(&Call::post("/api/sql", sql));
    assert_eq!(refused.status, 400);
    let misspelt = rig.call(&Call::json("/api/sql", &json!({"sqll": sql})));
    assert!(misspelt.error().contains("unknown field `sqll`"), "{}", misspelt.error());
}

#[test]
fn answers_come_as_csv_and_as_arrow() {
    let rig = rig();
    let accept = |sql: &str, kind: &str| {
        rig.call(&Call::json("/api/sql", &json!({ "sql": sql })).header("Accept", kind))
    };
    let sql = "SELECT job, labels, latency FROM builds ORDER BY time";
    let csv = accept(sql, "text/csv");
    assert_eq!(csv.header("Content-Type"), Some("text/csv; charset=utf-8"));
    assert_eq!(
        String::from_utf8(csv.body).unwrap(),
        "job,labels,latency\na,\"[\"\"x\"\",\"\"y\"\"]\",1.5\nb,,4\na,,2.5\n"
    );
    let nothing = accept("SELECT job FROM builds WHERE job = 'c'", "text/csv");
    assert_eq!(nothing.body, b"job\n");
    let arrow = accept(sql, "application/vnd.apache.arrow.stream");
    let batches = StreamReader::try_new(arrow.body.as_slice(), None).unwrap();
    let batches: Vec<_> = batches.map(Result::unwrap).collect();
    let jobs = batches.iter().flat_map(|batch| batch.column(0).as_string::<i32>().iter());
    assert_eq!(jobs.flatten().collect::<Vec<_>>(), ["a", "b", "a"]);
}

#[test]
fn what_a_form_can_not_hold_is_refused() {
    let rig = rig();
    let ask = |sql: &str, format: &str| {
        rig.call(&Call::json(format!("/api/sql?format={format}"), &json!({ "sql": sql })))
    };
    let refused = ask("SELECT INTERVAL '1 month' AS x", "parquet");
    assert_eq!(refused.status, 400, "{}", String::from_utf8_lossy(&refused.body));
    assert!(refused.json()["error"]["hint"].as_str().unwrap().contains("CAST"));
    assert_eq!(ask("SELECT INTERVAL '1 month' AS x", "csv").status, 200);
    assert_eq!(ask("SELECT 1", "svg").status, 406);
}

#[test]
fn all_rows_come_as_a_stream_and_a_document_says_what_it_leaves_out() {
    let rig = rig();
    let sql = "SELECT unnest(range(150000)) AS n";
    let call = Call::json("/api/sql", &json!({ "sql": sql }));
    let csv = rig.call(&call.clone().header("Accept", "text/csv")).body;
    assert_eq!(csv.iter().filter(|byte| **byte == b'\n').count(), 150_001);
    assert!(csv.ends_with(b"\n149999\n"));
    let answer = rig.call(&call).json();
    assert_eq!(answer["rows"].as_array().unwrap().len(), 100_000);
    assert_eq!(answer["stats"]["complete"], false);
    assert_eq!(
        answer["stats"]["missing"],
        json!([
            "all rows after the first 100000: use LIMIT, or ask for CSV, Arrow or Parquet, which have \
             all"
        ])
    );
    let long = ask(&rig, "SELECT repeat('x', 1000) AS x, unnest(range(90000)) AS n").json();
    let rows = long["rows"].as_array().unwrap().len();
    assert!((30_000..35_000).contains(&rows), "{rows}");
    assert_eq!(long["stats"]["complete"], false);
}

#[test]
fn what_is_wrong_with_a_query_is_named_with_what_was_meant() {
    let rig = rig();
    let sql = "SELECT * FROM bulids";
    check_refusal(&rig, sql, 404, "there is no dataset `bulids`; did you mean `builds`?");
    let sql = "SELECT latecy FROM builds";
    check_refusal(&rig, sql, 400, "there is no column `latecy`; did you mean `latency`?");
    let reply = ask(&rig, "SELEC * FROM builds");
    assert_eq!(reply.status, 400);
    assert!(reply.error().starts_with("the query can't be read: "), "{}", reply.error());
    assert!(reply.json()["error"]["hint"].as_str().unwrap().contains("double quotes"));
    for sql in ["DROP TABLE builds", "CREATE TABLE t AS SELECT 1", "DELETE FROM builds"] {
        let message = "the query does not only read: SELECT, WITH, VALUES, EXPLAIN and DESCRIBE do";
        check_refusal(&rig, sql, 400, message);
    }
}

#[test]
fn who_may_not_read_a_dataset_may_not_ask_about_it() {
    let rig = rig();
    rig.log("secret", r#"{"int":{"x":1}}"#);
    let token = add_token(&rig, &json!({"name": "reader", "read": ["builds"]}));
    let call = |sql: &str| Call::json("/api/sql", &json!({ "sql": sql })).token(&token);
    assert_eq!(rig.call(&call("SELECT count(*) FROM builds")).status, 200);
    let sql = "SELECT count(*) FROM builds WHERE job IN (SELECT x FROM secret)";
    assert_eq!(rig.call(&call(sql)).status, 403);
}

/// A byte of a column changes on the disk while the server runs: nobody gets a wrong answer or none.
#[test]
fn a_query_that_meets_damage_has_it_mended() {
    let sql = "SELECT max(latency) AS most FROM builds";
    for kind in ["application/json", "text/csv"] {
        let mut plan = Plan::default();
        plan.home.tables = TableLimits { flush_rows: 3, ..TableLimits::DEFAULT };
        let rig = Rig::start_with(plan);
        rig.log("perfpipe_builds", ROWS);
        rig.home.tend();
        rig.damage_segment(&4.0_f64.to_le_bytes());
        let call = Call::json("/api/sql", &json!({ "sql": sql })).header("Accept", kind);
        let first = rig.call(&call);
        let text = String::from_utf8_lossy(&first.body);
        assert_eq!(first.status, 200, "{text}");
        assert!(text.contains("4") || first.header("perflab-missing").is_some(), "{text}");
        rig.home.tend();
        let answer = ask(&rig, sql).json();
        assert_eq!(
            (&answer["rows"], &answer["stats"]["complete"]),
            (&json!([{"most": 4.0}]), &json!(true))
        );
    }
}

#[test]
fn memory_has_a_limit() {
    let rig = rig_with(ServerLimits { query_memory_bytes: 1 << 20, ..ServerLimits::default() });
    let message = "the query needs more than the 1 MiB of memory that it may use: ask about less \
        time, fewer groups or fewer columns, or sort less";
    let sql = "SELECT n, count(*) FROM (SELECT unnest(range(1000000)) AS n) GROUP BY n";
    check_refusal(&rig, sql, 400, message);
    assert_eq!(ask(&rig, "SELECT count(*) FROM builds").status, 200);
}

#[test]
fn time_has_a_limit() {
    let query_timeout = Duration::from_millis(500);
    let rig = rig_with(ServerLimits { query_timeout, ..ServerLimits::default() });
    let message =
        "the query took longer than the 0.5 s that it may take: ask about less time, or for less";
    check_refusal(&rig, ENDLESS, 503, message);
    let csv = Call::json("/api/sql", &json!({ "sql": ENDLESS })).header("Accept", "text/csv");
    assert_eq!(rig.call(&csv).status, 503);
}

#[test]
fn the_work_stops_when_the_client_goes_away() {
    let rig = rig_with(ServerLimits { queries_max: 1, ..ServerLimits::default() });
    let mut connection = rig.connect();
    connection.send(&Call::json("/api/sql", &json!({ "sql": ENDLESS })).encode("localhost"));
    // Time enough to have its turn.
    std::thread::sleep(Duration::from_millis(500));
    let mut waiting = rig.connect();
    waiting.send(&Call::json("/api/sql", &json!({ "sql": "SELECT 1" })).encode("localhost"));
    std::thread::sleep(Duration::from_millis(500));
    assert!(waiting.is_silent(), "there is one turn, and the first has it");
    drop(connection);
    // Long before the time of the first one is over.
    assert_eq!(waiting.reply().status, 200);
}
