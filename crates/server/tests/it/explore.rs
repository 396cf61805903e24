//! Asking about rows.

use std::time::Duration;

use perflab_server::ServerLimits;
use perflab_store::TableLimits;
use serde_json::{Value, json};

use crate::client::{Call, Reply};
use crate::rig::{Plan, Rig};

/// Three rows of the last hour, and one of long ago.
const ROWS: &str = r#"{"int":{"time":1699999000,"errors":1},"normal":{"job":"a"},"float":{"latency":1.5},"tags":{"labels":["x","y"]}}
{"int":{"time":1699999100,"errors":0},"normal":{"job":"b"},"float":{"latency":4.0}}
{"int":{"time":1699999200,"errors":1,"weight":2},"normal":{"job":"a"},"float":{"latency":2.5}}
{"int":{"time":1600000000},"normal":{"job":"old"}}"#;

fn rig() -> Rig {
    let rig = Rig::start();
    rig.log("perfpipe_builds", ROWS);
    rig
}

fn ask(rig: &Rig, query: &Value) -> Reply {
    rig.call(&Call::json("/api/query", query))
}

#[test]
fn a_query_is_answered_with_columns_rows_and_stats() {
    let rig = rig();
    let query = json!({
        "dataset": "builds", "since": "-1 hour", "group_by": ["job"],
        "aggregates": ["count", "max:latency", "sum:errors / count"],
    });
    let mut answer = ask(&rig, &query).json();
    assert!(answer["stats"]["elapsed_ns"].take().as_u64().unwrap() > 0);
    assert_eq!(
        answer,
        json!({
            "format": "perflab.answer/1",
            "columns": [
                {"name": "job", "kind": "string"},
                {"name": "count", "kind": "float"},
                {"name": "max:latency", "kind": "float"},
                {"name": "sum:errors / count", "kind": "float"},
            ],
            "rows": [
                {"job": "a", "count": 3.0, "max:latency": 2.5, "sum:errors / count": 1.0},
                {"job": "b", "count": 1.0, "max:latency": 4.0, "sum:errors / count": 0.0},
            ],
            "stats": {
                "rows_scanned": 3, "rows_recalled": 0, "elapsed_ns": null, "complete": true,
                "missing": [],
                "since": "2023-11-14T21:13:20+00:00", "until": "2023-11-14T22:13:20+00:00",
            },
        })
    );
}

#[test]
fn an_answer_says_how_much_of_it_was_remembered() {
    let mut plan = Plan::default();
    plan.home.tables = TableLimits { flush_rows: 4, ..TableLimits::DEFAULT };
    let rig = Rig::start_with(plan);
    rig.log("perfpipe_builds", ROWS);
    rig.home.tend();
    let stats = |further: Value| {
        let mut query = json!({"dataset": "builds", "since": "2020-01-01", "group_by": ["job"]});
        query.as_object_mut().unwrap().extend(further.as_object().unwrap().clone());
        let answer = ask(&rig, &query).json();
        let count = |field: &str| answer["stats"][field].as_u64().unwrap();
        (count("rows_scanned"), count("rows_recalled"))
    };
    let grouped = || stats(json!({}));
    assert_eq!([grouped(), grouped()], [(4, 0), (4, 4)]);
    let series = || stats(json!({"view": "series", "group_by": ["time:1w", "job"], "top": 1}));
    assert_eq!([series(), series()], [(4, 0), (4, 4)]);
    let failed = json!([[{"column": "errors", "op": "eq", "values": [1]}]]);
    let compared = || stats(json!({"compare": {"against": failed}}));
    assert_eq!([compared(), compared()], [(8, 0), (8, 8)]);
    let samples = || stats(json!({"view": "samples", "group_by": []}));
    assert_eq!([samples(), samples()], [(4, 0), (4, 0)], "nothing is remembered of raw rows");
}

#[test]
fn a_row_is_there_as_soon_as_it_is_acknowledged_under_both_names() {
    let rig = rig();
    for dataset in ["builds", "perfpipe_builds"] {
        let count = || {
            let answer = ask(&rig, &json!({"dataset": dataset, "since": "-1 hour"})).json();
            answer["rows"][0]["count"].as_f64().unwrap()
        };
        let before = count();
        rig.log("perfpipe_builds", r#"{"int":{"time":1699999300},"normal":{"job":"c"}}"#);
        assert!((count() - before - 1.0).abs() < f64::EPSILON);
    }
}

#[test]
fn answers_come_as_csv_and_as_arrow() {
    let rig = rig();
    let query = json!({"dataset": "builds", "since": "-1 hour", "group_by": ["job", "labels"]});
    let accept = |kind: &str| rig.call(&Call::json("/api/query", &query).header("Accept", kind));
    let csv = accept("text/csv");
    assert_eq!(csv.header("Content-Type"), Some("text/csv; charset=utf-8"));
    assert_eq!(
        String::from_utf8(csv.body).unwrap(),
        "job,labels,count\na,,2\na,\"[\"\"x\"\",\"\"y\"\"]\",1\nb,,1\n"
    );
    let arrow = accept("application/vnd.apache.arrow.stream, */*;q=0.1");
    let mut reader =
        arrow::ipc::reader::StreamReader::try_new(arrow.body.as_slice(), None).unwrap();
    let batch = reader.next().unwrap().unwrap();
    assert_eq!((batch.num_rows(), batch.num_columns()), (3, 3));
    assert_eq!(batch.schema().field(2).name(), "count");
    let parquet = accept("application/vnd.apache.parquet").body;
    assert!(parquet.starts_with(b"PAR1") && parquet.ends_with(b"PAR1"));
    let refused = accept("image/png");
    assert_eq!(refused.status, 406);
    assert_eq!(refused.error(), "there are no answers as `image/png`");
}

#[test]
fn what_is_wrong_with_a_query_is_named_with_what_was_meant() {
    let rig = rig();
    let error = |query: Value| {
        let reply = ask(&rig, &query);
        (reply.status, reply.error())
    };
    assert_eq!(
        error(json!({"dataset": "builds", "aggregates": ["avg:latecy"]})),
        (400, "there is no column `latecy` in dataset `builds`; did you mean `latency`?".into())
    );
    assert_eq!(
        error(json!({"dataset": "bulids"})),
        (404, "there is no dataset `bulids`; did you mean `builds`?".into())
    );
    assert_eq!(
        error(json!({"dataset": "builds", "agregates": []})),
        (400, "there is no field `agregates` in the query; did you mean `aggregates`?".into())
    );
    let (status, message) = error(json!({"dataset": "builds", "since": "now", "until": "-1 day"}));
    assert_eq!(status, 400);
    assert!(message.starts_with("the range is empty"), "{message}");
    let (status, message) = error(json!({
        "dataset": "builds", "any_of": [[{"column": "job", "op": "regex", "values": ["("]}]],
    }));
    assert_eq!(status, 400);
    assert!(message.contains("the regular expression for column `job` can't be used"), "{message}");
}

#[test]
fn a_query_waits_no_longer_for_its_turn_than_it_may_take() {
    let mut plan = Plan::default();
    // No query ever has its turn.
    let query_timeout = Duration::from_millis(10);
    plan.server.limits = ServerLimits { queries_max: 0, query_timeout, ..ServerLimits::default() };
    let rig = Rig::start_with(plan);
    rig.log("builds", ROWS);
    let reply = ask(&rig, &json!({"dataset": "builds"}));
    assert_eq!(reply.status, 429);
    assert!(reply.header("Retry-After").is_some());
}

#[test]
fn a_query_that_takes_too_long_is_told_its_limit() {
    let mut plan = Plan::default();
    let query_timeout = Duration::from_nanos(1);
    plan.server.limits = ServerLimits { query_timeout, ..ServerLimits::default() };
    let rig = Rig::start_with(plan);
    rig.log("builds", ROWS);
    let reply = ask(&rig, &json!({"dataset": "builds", "since": "-1 hour"}));
    assert_eq!(reply.status, 503);
    let message = reply.error();
    assert!(
        message.contains("longer than the 0.000000001 s that a question may take"),
        "{message}"
    );
    assert_eq!(queries(&rig, "timed_out"), 1);
}

/// How many queries have ended so.
fn queries(rig: &Rig, end: &str) -> u64 {
    let metrics = String::from_utf8(rig.call(&Call::get("/metrics")).body).unwrap();
    let line = format!("perflab_queries_total{{end=\"{end}\"}} ");
    let found = metrics.lines().find_map(|found| found.strip_prefix(&line));
    found.map_or(0, |count| count.parse().unwrap())
}

#[test]
fn a_query_ends_when_nobody_waits_for_its_answer() {
    /// So that the query takes seconds, far longer than it takes to see that a client has gone.
    const MANY_ROWS: usize = 50_000;
    const EXPRESSIONS: usize = 40;
    const LOOKS_MAX: usize = 6000;
    let rig = Rig::start();
    let row = |n: usize| {
        format!(r#"{{"int":{{"time":1699999000}},"normal":{{"name":"{n}{}"}}}}"#, "x".repeat(100))
    };
    rig.log("slow", &(0..MANY_ROWS).map(row).collect::<Vec<_>>().join("\n"));
    let derived = |n: usize| {
        let expression = format!("regex_extract(name, '^([0-9]+)x*{n}?$', 1)");
        json!({"name": format!("d{n}"), "expression": expression})
    };
    let derived: Vec<_> = (0..EXPRESSIONS).map(derived).collect();
    let query = json!({"dataset": "slow", "since": "-1 hour", "derived": derived});
    let call = Call::json("/api/query", &query);
    let mut connection = rig.connect();
    connection.send(&call.encode(&rig.address.to_string()));
    // Long enough for it to begin: another one has been answered since.
    assert_eq!(ask(&rig, &json!({"dataset": "slow"})).status, 200);
    drop(connection);
    let mut looks = 0..LOOKS_MAX;
    while queries(&rig, "canceled") == 0 {
        assert!(looks.next().is_some(), "it is still at work");
        assert_eq!(queries(&rig, "answered"), 1, "only the other one");
        assert_eq!(queries(&rig, "refused"), 0);
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn datasets_say_what_is_in_them() {
    let rig = rig();
    rig.log("deep/name", "x");
    let listed = rig.call(&Call::get("/api/datasets")).json();
    assert_eq!(
        listed["datasets"][0],
        json!({
            "dataset": "builds", "rows": 4, "bytes": 0, "segments": 0, "memory_rows": 4, "columns": 4,
            "first_time": "2020-09-13T12:26:40Z", "last_time": "2023-11-14T22:00:00Z",
        })
    );
    assert_eq!(listed["datasets"][1]["dataset"], "deep/name");
    let described = rig.call(&Call::get("/api/datasets/builds")).json();
    assert_eq!(
        described["schema"],
        json!([
            {"name": "errors", "kind": "int"},
            {"name": "job", "kind": "string"},
            {"name": "labels", "kind": "set"},
            {"name": "latency", "kind": "float"},
        ])
    );
    assert_eq!(rig.call(&Call::get("/api/datasets/deep/name")).json()["rows"], 1);
    assert_eq!(rig.call(&Call::get("/api/datasets/nothing")).status, 404);
}

#[test]
fn how_long_rows_are_kept_can_be_set() {
    let rig = rig();
    let put = |body: &str| rig.call(&Call::new("PUT", "/api/datasets/builds").body(body));
    let described = put(r#"{"retain_seconds": 3600, "max_bytes": 1000000}"#).json();
    assert_eq!(
        (&described["retain_seconds"], &described["max_bytes"]),
        (&json!(3600), &json!(1000000))
    );
    let described = put(r#"{"retain_seconds": null, "schema": {"normal": ["job"]}}"#).json();
    assert_eq!(
        (&described["retain_seconds"], &described["max_bytes"]),
        (&json!(null), &json!(1000000))
    );
    assert_eq!(described["declared"], json!({"normal": ["job"]}));
    assert_eq!(described["hot_seconds"], 30 * 24 * 3600);
    assert_eq!(put(r#"{"hot_seconds": 60}"#).json()["hot_seconds"], 60);
    let described = put(r#"{"hot_seconds": null}"#).json();
    assert_eq!(
        (&described["hot_seconds"], &described["max_bytes"]),
        (&json!(null), &json!(1000000))
    );
    assert_eq!(put(r#"{"retain": 1}"#).status, 400);
    let token = rig.call(&Call::json("/api/tokens", &json!({"name": "r", "read": ["*"]})));
    let token = token.json()["token"].as_str().unwrap().to_owned();
    let call = Call::new("PUT", "/api/datasets/builds").body("{}").token(&token);
    assert_eq!(rig.call(&call).status, 403);
    assert_eq!(rig.call(&Call::get("/api/datasets/builds").token(&token)).status, 200);
}

/// A server whose segments become cold with four rows, and four rows of long ago.
fn cold_rig(thawed_bytes_max: u64) -> Rig {
    let mut plan = Plan::default();
    plan.home.tables = TableLimits { flush_rows: 4, segment_rows: 4, ..TableLimits::DEFAULT };
    plan.home.thawed_bytes_max = thawed_bytes_max;
    let rig = Rig::start_with(plan);
    rig.log("builds", &"{\"time\":1600000000,\"job\":\"old\"}\n".repeat(4));
    rig.home.tend();
    assert!(rig.dir().join("cold").exists());
    rig
}

#[test]
fn questions_about_cold_rows_are_answered() {
    let query = |since: &str| json!({"dataset": "builds", "since": since, "until": "2021-01-01", "group_by": ["job"]});
    let rig = cold_rig(1 << 30);
    let answer = ask(&rig, &query("2020-10-01")).json();
    assert_eq!((&answer["rows"], &answer["stats"]["complete"]), (&json!([]), &json!(true)));
    let values = rig.call(&Call::get("/api/columns/values?dataset=builds&column=job")).json();
    assert_eq!(values["missing"], json!(["4 rows are cold"]));
    assert!(!rig.dir().join("thawed").exists(), "not touched, not thawed");
    let answer = ask(&rig, &query("2020-09-01")).json();
    assert_eq!(answer["rows"], json!([{"job": "old", "count": 4.0}]));
    assert_eq!(answer["stats"]["complete"], true);
    let rig = cold_rig(1);
    let refused = ask(&rig, &query("2020-09-01"));
    assert_eq!(refused.status, 400);
    let why = String::from_utf8_lossy(&refused.body).into_owned();
    assert!(why.contains("MiB of cold rows of dataset `builds`"), "{why}");
}

/// A byte of a column changes on the disk while the server runs: nobody gets a wrong answer or none.
#[test]
fn a_query_that_meets_damage_has_it_mended() {
    let mut plan = Plan::default();
    plan.home.tables = TableLimits { flush_rows: 4, ..TableLimits::DEFAULT };
    let rig = Rig::start_with(plan);
    rig.log("perfpipe_builds", ROWS);
    rig.home.tend();
    rig.damage_segment(&4.0_f64.to_le_bytes());
    let query = json!({"dataset": "builds", "since": "-1 hour", "aggregates": ["max:latency"]});
    let first = ask(&rig, &query);
    assert_eq!(first.status, 200, "{}", String::from_utf8_lossy(&first.body));
    let first = first.json();
    let is_right = |answer: &Value| answer["rows"][0]["max:latency"] == json!(4.0);
    assert!(is_right(&first) || first["stats"]["complete"] == json!(false), "{first}");
    rig.home.tend();
    let answer = ask(&rig, &query).json();
    assert!(is_right(&answer) && answer["stats"]["complete"] == json!(true), "{answer}");
}

#[test]
fn other_views_and_what_is_not_shown_are_answered_too() {
    let rig = rig();
    let query = json!({
        "dataset": "builds", "since": "-1 hour", "group_by": ["job"], "top": 1,
        "other": true, "total": true,
    });
    let answer = ask(&rig, &query).json();
    assert_eq!(answer["other"], json!({"count": 1.0}));
    assert_eq!(answer["total"], json!({"count": 4.0}));
    let samples = json!({"dataset": "builds", "since": "-1 hour", "view": "samples"});
    let answer = ask(&rig, &samples).json();
    assert_eq!(answer["rows"][0]["time"], "2023-11-14T22:00:00+00:00");
    assert_eq!(answer["rows"][0]["job"], "a");
}

#[test]
fn stored_measurements_are_compared() {
    let rig = Rig::start();
    let run = |commit: &str, value: f64| {
        let row = json!({
            "int": {"time": 1699999000}, "float": {"value": value},
            "normal": {"commit": commit, "benchmark": "matmul"},
        });
        rig.log("benchmarks", &row.to_string());
    };
    for noise in [0.0, 0.1, 0.2] {
        run("1f3a9c", 10.0 + noise);
        run("77b0de", 20.0 + noise);
    }
    let compare = |body: &Value| rig.call(&Call::json("/api/compare", body));
    let answer = compare(&json!({"before": "1f3a", "after": "commit=77b0de"})).json();
    assert_eq!(answer["format"], "perflab.answer/1");
    assert_eq!(answer["rows"][0]["verdict"], "slower");
    assert_eq!(answer["rows"][0]["runs_after"], 3);
    assert_eq!(answer["stats"]["rows_scanned"], 12);
    let wrong = compare(&json!({"before": "1f3a", "after": "77b0", "treshold_percent": 1}));
    assert_eq!(
        (wrong.status, wrong.error()),
        (
            400,
            "there is no field `treshold_percent` in the comparison; did you mean \
             `threshold_percent`?"
                .into()
        )
    );
    assert_eq!(compare(&json!({"before": "1f3a", "after": "zz"})).status, 400);
}

#[test]
fn trees_come_as_files_of_other_tools() {
    let rig = Rig::start();
    rig.log(
        "profiles",
        r#"{"int":{"time":1699999000},"normvector":{"stack":["main","a<b>"]}}
{"int":{"time":1699999000},"normvector":{"stack":["main"]}}"#,
    );
    let ask = |format: &str, more: Value| {
        let mut query = json!({
            "dataset": "profiles", "since": "-1 hour", "view": "tree", "view_column": "stack",
        });
        query.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        rig.call(&Call::json(format!("/api/query?format={format}"), &query))
    };
    let folded = ask("folded", json!({}));
    assert_eq!(folded.header("Content-Type"), Some("text/plain; charset=utf-8"));
    assert_eq!(String::from_utf8(folded.body).unwrap(), "main 1\nmain;a<b> 1\n");
    let speedscope = ask("speedscope", json!({})).json();
    assert_eq!(speedscope["shared"]["frames"][0], json!({"name": "main"}));
    assert_eq!(ask("firefox", json!({})).json()["meta"]["product"], "profiles");
    assert!(ask("pprof", json!({})).body.starts_with(&[0x1f, 0x8b]));
    let svg = ask("svg", json!({"fold": {"callers": "a<b>"}, "compare": "previous"}));
    assert_eq!(svg.header("Content-Type"), Some("image/svg+xml"));
    assert!(String::from_utf8(svg.body).unwrap().contains("a&lt;b&gt;"));
    assert!(ask("pprof", json!({"fold": "leaf"})).error().contains("begin at the root"));
    assert!(ask("svg", json!({"view": "table"})).error().contains("ask for the view `tree`"));
    assert_eq!(ask("png", json!({})).error(), "there are no answers as `png`");
}

#[test]
fn what_can_not_be_exported_is_said_before_the_file_begins() {
    let rig = rig();
    let export = |body: &Value| rig.call(&Call::json("/api/export", body));
    let whole = export(&json!({"dataset": "builds", "since": "2000-01-01"}));
    assert_eq!(whole.header("Content-Type"), Some("application/vnd.apache.parquet"));
    assert!(whole.body.starts_with(b"PAR1") && whole.body.ends_with(b"PAR1"));
    let error = |body: &Value| (export(body).status, export(body).error());
    assert_eq!(
        error(&json!({"dataset": "builds", "columns": ["jbo"]})),
        (400, "there is no column `jbo` in dataset `builds`; did you mean `job`?".into())
    );
    let (status, message) = error(&json!({"dataset": "builds", "group_by": ["job"]}));
    assert_eq!(status, 400);
    assert!(message.starts_with("an export is of raw rows"), "{message}");
    assert_eq!(export(&json!({"dataset": "bulids"})).status, 404);
}

#[test]
fn an_export_that_takes_too_long_is_told_its_limit() {
    let mut plan = Plan::default();
    let export_timeout = Duration::from_nanos(1);
    plan.server.limits = ServerLimits { export_timeout, ..ServerLimits::default() };
    let rig = Rig::start_with(plan);
    rig.log("builds", ROWS);
    let reply = rig.call(&Call::json("/api/export", &json!({"dataset": "builds"})));
    assert_eq!(reply.status, 503);
    assert!(reply.error().contains("longer than the 0.000000001 s"), "{}", reply.error());
    // Its turn is over.
    assert_eq!(ask(&rig, &json!({"dataset": "builds"})).status, 200);
}

#[test]
fn values_are_found_by_their_beginning() {
    let rig = rig();
    let values = |query: &str| rig.call(&Call::get(format!("/api/columns/values?{query}")));
    assert_eq!(
        values("dataset=builds&column=job").json(),
        json!({"values": ["a", "b", "old"], "missing": []})
    );
    assert_eq!(
        values("dataset=builds&column=job&prefix=o").json(),
        json!({"values": ["old"], "missing": []})
    );
    assert_eq!(
        values("dataset=builds&column=job&limit=1").json(),
        json!({"values": ["a"], "missing": []})
    );
    assert_eq!(
        values("dataset=builds&column=labels&prefix=y").json(),
        json!({"values": ["y"], "missing": []})
    );
    assert!(values("dataset=builds&column=jib").error().ends_with("did you mean `job`?"));
    assert_eq!(values("dataset=builds&column=job&limit=1001").status, 400);
}

#[test]
fn tokens_see_what_they_may_read() {
    let rig = rig();
    rig.log("secret", "x");
    let token = rig.call(&Call::json("/api/tokens", &json!({"name": "r", "read": ["*builds"]})));
    let token = token.json()["token"].as_str().unwrap().to_owned();
    let query = |dataset: &str| {
        let call = Call::json("/api/query", &json!({"dataset": dataset}));
        rig.call(&call.token(&token))
    };
    assert_eq!(query("builds").status, 200);
    assert_eq!(query("secret").status, 403);
    assert_eq!(rig.call(&Call::json("/api/query", &json!({"dataset": "builds"}))).status, 401);
    let listed = rig.call(&Call::get("/api/datasets").token(&token)).json();
    assert_eq!(listed["datasets"].as_array().unwrap().len(), 1);
}

#[test]
fn links_are_short_the_same_each_time_and_lead_to_what_they_were_made_of() {
    let rig = rig();
    let link = |body: &Value| rig.call(&Call::json("/api/links", body));
    let query = json!({"dataset": "builds", "group_by": ["job"]});
    let first = link(&json!({"query": query})).json();
    assert_eq!(link(&json!({"query": query})).json(), first);
    let url = first["url"].as_str().unwrap();
    let path = url.strip_prefix(&format!("http://{}", rig.address)).unwrap();
    assert!(path.len() < 16, "{path}");
    let reply = rig.call(&Call::get(path));
    assert_eq!(reply.status, 303);
    assert_eq!(reply.header("Location"), first["target"].as_str());
    assert!(reply.header("Location").unwrap().starts_with("/explore?query=%7B"));
    let other = link(&json!({"url": "https://example.com/x?y=1"})).json();
    assert_eq!(other["target"], "https://example.com/x?y=1");
    assert_eq!(rig.call(&Call::get("/l/nothing")).status, 404);
    for wrong in [
        json!({}),
        json!({"url": "javascript:alert(1)"}),
        json!({"url": "https://a b"}),
        json!({"url": "https://a", "query": query}),
        json!({"query": {"dataset": "builds", "tpo": 1}}),
    ] {
        assert_eq!(link(&wrong).status, 400, "{wrong}");
    }
    let dir = rig.stop();
    let again = Rig::start_in(dir, Plan::default());
    assert_eq!(again.call(&Call::get(path)).status, 303, "kept over a restart");
}

#[test]
fn scubas_links_open_the_same_query_and_can_be_shortened() {
    let rig = rig();
    let drillstate = json!({"start": "-1 hour", "dimensions": ["job"], "top": "5", "pool": "p"});
    let query = format!("dataset=builds&drillstate={drillstate}&view=Table");
    let encoded = query.replace('"', "%22").replace(' ', "%20");
    let reply = rig.call(&Call::get(format!("/intern/scuba/query/?{encoded}")));
    assert_eq!(reply.status, 303);
    let location = reply.header("Location").unwrap();
    let document = form_urlencoded::parse(location.split_once('?').unwrap().1.as_bytes());
    let document: Value = serde_json::from_str(&document.last().unwrap().1).unwrap();
    let mut answer = ask(&rig, &document).json();
    assert_eq!(answer["rows"][0].take(), json!({"job": "a", "count": 3.0}));
    let url = format!("https://www.internalfb.com/intern/scuba/query/?{query}");
    let short = rig.call(&Call::json("/api/links", &json!({"url": url}))).json();
    assert_eq!(short["target"], location);
    let bad = rig.call(&Call::get("/intern/scuba/query/?drillstate=%7B"));
    assert_eq!(bad.status, 400);
}

#[test]
fn the_page_of_a_query_is_served() {
    let rig = rig();
    let page = rig.call(&Call::get("/explore?query=%7B%7D"));
    assert_eq!(page.status, 200);
    assert!(page.header("Content-Security-Policy").is_some());
    assert_eq!(rig.call(&Call::get("/explore.js")).status, 200);
}
