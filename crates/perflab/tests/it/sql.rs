use crate::support::{Lab, run_with_input, spawn_piped, wait_until};

const ROWS: [&str; 3] = [
    r#"{"normal":{"job":"a","status":"ok"},"float":{"latency":1.5}}"#,
    r#"{"normal":{"job":"b","status":"failed"},"float":{"latency":4.0}}"#,
    r#"{"normal":{"job":"a","status":"failed"},"float":{"latency":2.5}}"#,
];

/// Ten thousand million rows: more than are counted while a test waits.
const ENDLESS: &str = "WITH n AS (SELECT unnest(range(100000)) AS n) \
    SELECT sum(a.n * b.n % 7) FROM n a CROSS JOIN n b";

fn lab() -> Lab {
    let lab = Lab::new();
    for row in ROWS {
        lab.run(["log", "perfpipe_builds", row]).ok();
    }
    lab
}

#[test]
fn a_table_is_printed_with_or_without_a_server() {
    let lab = lab();
    let sql = "SELECT job, count(*) AS n, max(latency) AS most FROM builds GROUP BY job ORDER BY n";
    let ask = || lab.run(["sql", sql]).ok().says("of 3 rows").stdout;
    let alone = ask();
    assert_eq!(alone, "job  n  most\nb    1     4\na    2   2.5\n");
    let _server = lab.serve();
    assert_eq!(ask(), alone);
}

#[test]
fn a_query_is_read_from_standard_input() {
    let lab = lab();
    let mut command = lab.command();
    command.args(["sql", "-", "--format", "csv"]);
    let sql = "SELECT job\nFROM builds -- all of them\nORDER BY latency";
    run_with_input(&mut command, sql.as_bytes()).ok().prints("job\na\na\nb\n");
}

#[test]
fn answers_come_in_all_formats() {
    let lab = lab();
    let ask = |format| lab.run(["sql", "SELECT 1 AS x, 'é' AS y", "--format", format]).ok();
    let document = ask("json").json();
    assert_eq!(document["format"], "perflab.answer/1");
    assert_eq!(document["rows"], serde_json::json!([{"x": 1, "y": "é"}]));
    assert_eq!(ask("csv").stdout, "x,y\n1,é\n");
    assert!(ask("arrow").stdout.contains('é'));
}

#[test]
fn mistakes_name_what_was_meant() {
    let lab = lab();
    let ask = |sql| lab.run(["sql", sql]).exits(1);
    ask("SELECT * FROM bulids").says("there is no dataset `bulids`; did you mean `builds`?");
    ask("SELECT latecy FROM builds").says("there is no column `latecy`; did you mean `latency`?");
    ask("DROP TABLE builds").says("the query does not only read");
    ask("SELEC 1").says("the query can't be read").says("hint: ");
    assert_eq!(lab.rows("perfpipe_builds").len(), 3);
}

#[test]
fn queries_keep_to_the_limits_of_the_server() {
    let lab = lab();
    let serve = |limit, value| lab.serve_with(&["--listen", "127.0.0.1:0", limit, value]);
    let server = serve("--query-seconds", "1");
    lab.run(["sql", ENDLESS]).exits(3).says("longer than the 1 s that it may take");
    drop(server);
    let _server = serve("--query-memory", "1M");
    let groups = "SELECT n, count(*) FROM (SELECT unnest(range(1000000)) AS n) GROUP BY n";
    lab.run(["sql", groups]).exits(1).says("more than the 1 MiB of memory that it may use");
    lab.run(["sql", "SELECT count(*) FROM builds"]).ok();
}

#[test]
fn the_work_stops_when_nobody_waits_for_it() {
    let lab = lab();
    let server = lab.serve_with(&["--listen", "127.0.0.1:0", "--max-queries", "1"]);
    let mut endless = spawn_piped(lab.command().args(["sql", ENDLESS]));
    wait_until("the query runs", || threads_named(server.pid(), "sql") > 0);
    endless.kill().unwrap();
    endless.wait().unwrap();
    wait_until("the query has stopped", || threads_named(server.pid(), "sql") == 0);
    lab.run(["sql", "SELECT count(*) FROM builds"]).ok();
}

fn threads_named(pid: u32, name: &str) -> usize {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    // A thread may end meanwhile.
    let names =
        threads.filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("comm")).ok());
    names.filter(|found| found.trim() == name).count()
}
