//! What tables look like, and what is left unread.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use perflab_model::Kind;
use perflab_query::testing::{Cell, Row};
use perflab_sql::{Dataset, Source, SqlError};
use perflab_store::segment::Snapshot;
use perflab_store::{Reach, SnapshotError};

use crate::rig::{Known, ask, dataset, error, limits, row, rows_scanned, start, string};

fn names(items: &[&str]) -> Vec<String> {
    items.iter().map(|&item| item.to_owned()).collect()
}

fn mixed() -> Known {
    let first = vec![
        row(1, &[("Name", string("é")), ("x", Cell::Int(3)), ("y", string("why"))]),
        row(2, &[("tags", Cell::Set(names(&["a", "b"]))), ("x", Cell::Float(2.5))]),
    ];
    let second = vec![
        row(3, &[("stack", Cell::Vector(names(&["main", "main"]))), ("x", string("three"))]),
        row(4, &[("tags", Cell::Set(names(&[]))), ("y", Cell::Int(4))]),
    ];
    dataset("ci/bench-1", &[first, second])
}

#[test]
fn every_kind_is_a_column() {
    let sql = r#"SELECT * FROM "ci/bench-1" ORDER BY time"#;
    assert_eq!(
        ask(sql, &mixed()),
        [
            "1970-01-01T00:00:00.000000001Z|1.0|é|||3.0||3||||why",
            "1970-01-01T00:00:00.000000002Z|1.0|||[a, b]|2.5|2.5|||||",
            "1970-01-01T00:00:00.000000003Z|1.0||[main, main]|||||three|||",
            "1970-01-01T00:00:00.000000004Z|1.0|||[]|||||4|4|",
        ]
    );
}

#[test]
fn names_keep_their_letters() {
    let described = ask(r#"DESCRIBE "ci/bench-1""#, &mixed());
    assert_eq!(
        described,
        [
            "time|Timestamp(ns, \"UTC\")|NO",
            "weight|Float64|NO",
            "Name|Utf8View|YES",
            "stack|List(Utf8View)|YES",
            "tags|List(Utf8View)|YES",
            "x|Float64|YES",
            "x:float|Float64|YES",
            "x:int|Int64|YES",
            "x:string|Utf8View|YES",
            "y|Int64|YES",
            "y:int|Int64|YES",
            "y:string|Utf8View|YES",
        ]
    );
    assert_eq!(ask(r#"SELECT Name FROM "ci/bench-1" WHERE Name >= 'a'"#, &mixed()), ["é"]);
    let plain = dataset("events", &[vec![row(1, &[])]]);
    assert_eq!(ask("SELECT count(*) FROM events", &plain), ["1"]);
}

#[test]
fn a_name_that_was_sent_comes_before_one_that_is_made() {
    let cells = [("x", Cell::Int(1)), ("x", string("one")), ("x:string", Cell::Float(0.5))];
    let known = dataset("d", &[vec![row(1, &cells)]]);
    assert_eq!(ask(r#"SELECT "x:string", "x:int" FROM d"#, &known), ["0.5|1"]);
}

#[test]
fn a_column_of_rows_that_are_gone_is_null() {
    let mut known = dataset("d", &[vec![row(1, &[("x", Cell::Int(1))])]]);
    let columns = &mut known.get_mut("d").unwrap().columns;
    columns.push(("old".to_owned(), Kind::String));
    assert_eq!(ask("SELECT x, old FROM d", &known), ["1|"]);
}

/// Rows of no time, of which it says what was asked for.
#[derive(Debug, Default)]
struct Asked(Mutex<Vec<Reach>>);

impl Source for Asked {
    fn snapshot(&self, reach: Reach) -> Result<Snapshot, SnapshotError> {
        self.0.lock().unwrap().push(reach);
        Ok(Snapshot { missing: vec!["some".to_owned()], ..Snapshot::default() })
    }
}

#[test]
fn only_rows_of_the_time_are_asked_for() {
    let asked = Arc::new(Asked::default());
    let dataset = Dataset { columns: Vec::new(), source: Arc::clone(&asked) as _ };
    let known = HashMap::from([("d".to_owned(), dataset)]);
    let sql = "SELECT weight FROM d WHERE time >= to_timestamp_nanos(5) AND time < \
        to_timestamp_nanos(7) UNION ALL SELECT weight FROM d";
    let rows = start(sql, &known, limits(), ()).unwrap();
    assert_eq!(rows.progress().missing(), ["some", "some"]);
    let reaches = asked.0.lock().unwrap();
    assert_eq!(reaches.len(), 2);
    assert!(reaches.contains(&Reach::Times(5, 7)), "{reaches:?}");
    assert!(reaches.contains(&Reach::Times(i64::MIN, i64::MAX)), "{reaches:?}");
}

/// Rows that can't be had.
#[derive(Debug)]
struct Unknown;

impl Source for Unknown {
    fn snapshot(&self, _reach: Reach) -> Result<Snapshot, SnapshotError> {
        Err(SnapshotError::Unknown { dataset: "d".to_owned() })
    }
}

#[test]
fn why_there_are_no_rows_is_said() {
    let dataset = Dataset { columns: Vec::new(), source: Arc::new(Unknown) };
    let known = HashMap::from([("d".to_owned(), dataset)]);
    let found =
        error("SELECT count(d.weight) FROM d JOIN d e ON d.time = e.time", &known, limits());
    assert!(matches!(found, SqlError::Snapshot(_)), "{found:?}");
    assert_eq!(found.to_string(), "there is no dataset `d`");
}

/// Four segments of a thousand rows, each of its own thousand nanoseconds.
fn four() -> Known {
    let segment = |n: i64| {
        let cells = |at: i64| {
            [
                ("i", Cell::Int(n * 1000 + at)),
                ("f", Cell::Float((n * 1000 + at) as f64 / 2.0)),
                ("s", string(&format!("segment {n}"))),
            ]
        };
        (0..1000).map(|at| row(n * 1000 + at, &cells(at))).collect::<Vec<Row>>()
    };
    dataset("d", &[segment(0), segment(1), segment(2), segment(3)])
}

#[track_caller]
fn check_scan(condition: &str, expected: &str, scanned: u64) {
    let sql = format!("SELECT count(*), min(i), max(i) FROM d WHERE {condition}");
    assert_eq!(ask(&sql, &four()), [expected]);
    assert_eq!(rows_scanned(&sql, &four()), scanned);
}

#[test]
fn a_range_of_times_reads_its_rows_alone() {
    check_scan(
        "time >= to_timestamp_nanos(990) AND time < to_timestamp_nanos(1010)",
        "20|990|1009",
        20,
    );
    check_scan("time = '1970-01-01T00:00:00.000000007Z'", "1|7|7", 1);
    check_scan("to_timestamp_nanos(3998) < time", "1|3999|3999", 1);
    check_scan("time BETWEEN to_timestamp_nanos(5) AND to_timestamp_nanos(6)", "2|5|6", 2);
    check_scan("time > now()", "0||", 0);
    check_scan("time <= to_timestamp_nanos(1) OR i = 3000", "3|0|3000", 4000);
}

#[test]
fn segments_without_the_value_are_left_unread() {
    check_scan("i >= 3500", "500|3500|3999", 1000);
    check_scan("i IN (5, 2005)", "2|5|2005", 2000);
    check_scan("f < 0", "0||", 0);
    check_scan("s = 'segment 2'", "1000|2000|2999", 1000);
    check_scan("s IN ('segment 2', 'nothing')", "1000|2000|2999", 1000);
    check_scan("s <> 'segment 2' AND i > 900 AND i < 1100", "199|901|1099", 2000);
    check_scan("s = 'nothing'", "0||", 0);
}

#[test]
fn a_limit_ends_the_reading() {
    let rows = (0..100_000).map(|time| row(time, &[])).collect();
    let known = dataset("d", &[rows]);
    let sql = "SELECT time FROM d LIMIT 3";
    assert_eq!(ask(sql, &known).len(), 3);
    assert!(rows_scanned(sql, &known) <= 4 * 8192);
}

#[test]
fn long_texts_come_whole() {
    let text = |n: i64| format!("{n:05} {}", "long ".repeat(50));
    let rows: Vec<Row> = (0..20_000)
        .map(|n| {
            let stack = Cell::Vector(vec![text(n), "main".to_owned()]);
            row(n, &[("s", string(&text(n))), ("v", stack)])
        })
        .collect();
    let known = dataset("d", &[rows]);
    let sql = "SELECT s, v[1], v[2] FROM d WHERE time >= to_timestamp_nanos(19998) ORDER BY s";
    let line = |n| format!("{0}|{0}|main", text(n));
    assert_eq!(ask(sql, &known), [line(19_998), line(19_999)]);
}

#[test]
fn percentiles_are_of_the_sketch() {
    let rows = (0..1000).map(|n| Row {
        time: n,
        weight: if n < 500 { 3.0 } else { 1.0 },
        cells: vec![("i".to_owned(), Cell::Int(n)), ("g".to_owned(), Cell::Int(n % 2))],
    });
    let known = dataset("d", &[rows.collect()]);
    let near = |sql: &str, expected: &[f64]| {
        let found: Vec<f64> = ask(sql, &known)
            .iter()
            .flat_map(|line| line.split('|'))
            .map(|n| n.parse().unwrap())
            .collect();
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() <= expected * 0.008 + 1.0, "{found}, not {expected}");
        }
    };
    near("SELECT p(i, 0.5), percentile(i, 0.9), percentile(i, 1) FROM d", &[500.0, 900.0, 999.0]);
    near("SELECT percentile(i, 0.5, weight) FROM d", &[333.0]);
    near("SELECT approx_percentile_cont(i, 0.25) FROM d", &[250.0]);
    near("SELECT approx_percentile_cont(0.25) WITHIN GROUP (ORDER BY i DESC) FROM d", &[750.0]);
    near("SELECT p(i, 0.5) FILTER (WHERE i < 100) FROM d GROUP BY g", &[49.0, 49.0]);
    assert_eq!(ask("SELECT p(i, 0.5) FROM d WHERE i > 5000", &known), [""]);
    assert_eq!(ask("SELECT p(NULL, 0.5) FROM d", &known), [""]);
}
