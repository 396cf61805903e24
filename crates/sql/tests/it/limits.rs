//! What queries may not do, and what they may cost.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use perflab_query::testing::Cell;
use perflab_sql::{Limits, SQL_BYTES_MAX, SQL_WORDS_MAX, SqlError};

use crate::rig::{Known, ask, dataset, error, limits, row, start, string};

fn few() -> Known {
    dataset("events", &[vec![row(1, &[("status", string("ok")), ("latency", Cell::Float(1.5))])]])
}

fn many() -> Known {
    let segment =
        |n: i64| (0..50_000).map(|at| row(at, &[("i", Cell::Int(n * 50_000 + at))])).collect();
    dataset("d", &[segment(0), segment(1)])
}

#[track_caller]
fn check_message(sql: &str, expected: &str) {
    assert_eq!(error(sql, &few(), limits()).to_string(), expected, "{sql}");
}

#[test]
fn queries_only_read() {
    for sql in [
        "CREATE TABLE t AS SELECT 1",
        "CREATE VIEW v AS SELECT 1",
        "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '/etc/passwd'",
        "DROP TABLE events",
        "INSERT INTO events SELECT * FROM events",
        "DELETE FROM events",
        "UPDATE events SET latency = 1",
        "COPY events TO 'stolen.csv'",
        "SET datafusion.execution.batch_size = 1",
        "RESET datafusion.execution.batch_size",
        "PREPARE p AS SELECT 1",
        "BEGIN",
        "EXPLAIN INSERT INTO events SELECT * FROM events",
    ] {
        let found = error(sql, &few(), limits());
        assert!(matches!(found, SqlError::NotReadOnly), "{sql}: {found:?}");
    }
    check_message("SELECT 1; SELECT 2", "2 statements: a query is one");
    check_message(" ", "0 statements: a query is one");
    // What is asked about is what is given.
    assert!(matches!(error("SELECT * FROM '/etc/passwd'", &few(), limits()), SqlError::Engine(_)));
}

#[test]
fn mistakes_are_named() {
    check_message(
        "SELECT * FROM ci.events",
        "there is no dataset `ci.events`: the name of a dataset has no parts",
    );
    check_message(
        "SELECT latencyy FROM events",
        "there is no column `latencyy`; did you mean `latency`?",
    );
    check_message(
        "SELECT Status FROM events GROUP BY Status",
        "there is no column `Status`; did you mean `status`?",
    );
    let long = format!("SELECT '{}'", "x".repeat(SQL_BYTES_MAX));
    let expected = format!("the query has {} bytes of text, more than {SQL_BYTES_MAX}", long.len());
    check_message(&long, &expected);
    let source = |sql| error(sql, &few(), limits()).source().unwrap().to_string();
    assert!(source("SELEC 1").contains("Expected"), "{}", source("SELEC 1"));
    let beyond = source("SELECT p(latency, 1.5) FROM events");
    assert!(beyond.contains("percentile 1.5 is not from 0 to 1"), "{beyond}");
}

#[test]
fn memory_has_a_limit() {
    let small = Limits { memory_bytes: 1 << 20, ..limits() };
    for sql in [
        "SELECT i, count(*) FROM d GROUP BY i",
        "SELECT * FROM d ORDER BY i",
        "SELECT a.i, b.i FROM d a JOIN d b ON a.i = b.i",
        "SELECT i, p(i, 0.5) FROM d GROUP BY i",
    ] {
        let found = error(sql, &many(), small);
        assert!(
            matches!(found, SqlError::Memory { bytes } if bytes == 1 << 20),
            "{sql}: {found:?}"
        );
    }
    assert_eq!(ask("SELECT count(*) FROM (SELECT i FROM d GROUP BY i)", &many()), ["100000"]);
}

const ENDLESS: &str = "SELECT sum(a.i * b.i % 7) FROM d a CROSS JOIN d b";

#[test]
fn time_has_a_limit() {
    let short = Limits { time: Duration::from_millis(300), ..limits() };
    let found = error(ENDLESS, &many(), short);
    assert_eq!(
        found.to_string(),
        "the query took longer than the 0.3 s that it may take: ask about less time, or for less"
    );
}

#[test]
fn the_work_stops_when_nobody_waits_for_it() {
    let held = Arc::new(());
    let rows = start(ENDLESS, &many(), limits(), Arc::clone(&held)).unwrap();
    assert_eq!(Arc::strong_count(&held), 2, "the query runs");
    drop(rows);
    // Long before its time is over.
    let mut waits = 0;
    while Arc::strong_count(&held) > 1 {
        waits += 1;
        assert!(waits < 3000, "the query runs on");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn deep_expressions_do_not_end_the_program() {
    let deep = |terms: usize| format!("SELECT 1{}", "+1".repeat(terms));
    let most = SQL_WORDS_MAX - 1;
    assert_eq!(ask(&deep(most), &few()), [SQL_WORDS_MAX.to_string()]);
    let expected = format!(
        "the query has {} names, words and signs, more than {SQL_WORDS_MAX}",
        SQL_WORDS_MAX + 1
    );
    check_message(&deep(most + 1), &expected);
    let nested = format!("SELECT {}1{}", "(".repeat(1000), ")".repeat(1000));
    assert!(matches!(error(&nested, &few(), limits()), SqlError::Unreadable(_)));
    let list = vec!["'no'"; 5000].join(", ");
    assert_eq!(ask(&format!("SELECT status IN ({list}) FROM events"), &few()), ["false"]);
}
