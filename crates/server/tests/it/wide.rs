//! A dataset of two thousand columns, of which each row has twenty.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use perflab_model::ManualClock;
use serde_json::{Value, json};

use crate::client::Call;
use crate::rig::{NOW, Plan, Rig};

const COLUMNS: usize = 2000;
const ROWS: usize = 4000;
const COLUMNS_PER_ROW: usize = 20;
/// Every so many rows, one has a column.
const EVERY: usize = COLUMNS / COLUMNS_PER_ROW;

/// The columns are ints, strings and floats in turn.
fn line(row: usize) -> String {
    let mut of_kind = [const { Vec::new() }; 3];
    for column in (0..COLUMNS_PER_ROW).map(|place| row % EVERY * COLUMNS_PER_ROW + place) {
        of_kind[column % 3].push(match column % 3 {
            0 => format!("\"c{column}\":{row}"),
            1 => format!("\"c{column}\":\"value {}\"", row / EVERY % 4),
            _ => format!("\"c{column}\":{}.5", row / EVERY),
        });
    }
    let [ints, strings, floats] = of_kind.map(|fields| fields.join(","));
    let time = 1_699_990_000 + row;
    format!(
        "{{\"int\":{{\"time\":{time},{ints}}},\"normal\":{{{strings}}},\"float\":{{{floats}}}}}\n"
    )
}

/// With all rows in one segment of a file.
fn rig() -> Rig {
    let clock = Arc::new(ManualClock::new(NOW));
    let rig = Rig::start_with(Plan { clock: Arc::clone(&clock) as _, ..Plan::default() });
    for start in (0..ROWS).step_by(1000) {
        rig.log("wide", &(start..start + 1000).map(line).collect::<String>());
    }
    clock.advance(Duration::from_mins(5));
    rig.home.tend();
    assert_eq!(rig.home.datasets().unwrap()[0].memory_rows, 0);
    rig
}

fn ask(rig: &Rig, query: &Value) -> Value {
    let mut query = query.clone();
    query["dataset"] = json!("wide");
    query["since"] = json!("-1 day");
    let reply = rig.call(&Call::json("/api/query", &query));
    assert_eq!(reply.status, 200, "{:?}", reply.json());
    reply.json()["rows"].clone()
}

fn ask_sql(rig: &Rig, sql: &str) -> Value {
    let reply = rig.call(&Call::json("/api/sql", &json!({ "sql": sql })));
    assert_eq!(reply.status, 200, "{:?}", reply.json());
    reply.json()["rows"].clone()
}

/// The bytes of all files of segments.
fn segment_bytes(rig: &Rig) -> u64 {
    let folders = fs::read_dir(rig.dir().join("segments")).unwrap();
    let files = folders.flat_map(|folder| fs::read_dir(folder.unwrap().path()).unwrap());
    files.map(|file| file.unwrap().metadata().unwrap().len()).sum()
}

#[test]
fn it_takes_space_for_what_its_rows_have() {
    let rig = rig();
    let bytes_per_row = segment_bytes(&rig) / ROWS as u64;
    // 12 for a value, and what describes a column: 16,000 if every column had a place in every row.
    assert!(bytes_per_row < 600, "{bytes_per_row}");
    let described = rig.call(&Call::get("/api/datasets/wide")).json();
    let columns = described["schema"].as_array().unwrap();
    assert_eq!((columns.len(), &described["rows"]), (COLUMNS, &json!(ROWS)));
}

#[test]
fn it_is_asked_like_any_other() {
    let rig = rig();
    let by_string = json!({"group_by": ["c1"], "aggregates": ["count", "max:c0"]});
    let of = |value: Value, count: usize, most: Value| json!({"c1": value, "count": count as f64, "max:c0": most});
    let expected = [
        of(Value::Null, ROWS - ROWS / EVERY, Value::Null),
        of(json!("value 0"), 10, json!(3600.0)),
        of(json!("value 1"), 10, json!(3700.0)),
        of(json!("value 2"), 10, json!(3800.0)),
        of(json!("value 3"), 10, json!(3900.0)),
    ];
    assert_eq!(ask(&rig, &by_string), json!(expected));
    let sql = "SELECT c1, count(*) AS n, max(c0) AS most FROM wide WHERE c1 >= 'value 2' \
               GROUP BY c1 ORDER BY c1";
    let of = |value, most: usize| json!({"c1": value, "n": 10, "most": most});
    assert_eq!(ask_sql(&rig, sql), json!([of("value 2", 3800), of("value 3", 3900)]));

    let percentile = json!({"aggregates": ["p50:c2", "min:c2", "max:c2"]});
    let found = ask(&rig, &percentile);
    assert!((found[0]["p50:c2"].as_f64().unwrap() - 19.5).abs() < 0.5, "{found}");
    assert_eq!((&found[0]["min:c2"], &found[0]["max:c2"]), (&json!(0.5), &json!(39.5)));
    let sql = "SELECT percentile(c2, 0.5) AS median, count(c2) AS n FROM wide";
    let found = ask_sql(&rig, sql);
    assert!((found[0]["median"].as_f64().unwrap() - 19.5).abs() < 0.5, "{found}");
    assert_eq!(found[0]["n"], 40);

    let filter = json!({"any_of": [[{"column": "c0", "op": "gt", "values": [1000]}]]});
    assert_eq!(ask(&rig, &filter), json!([{"count": 29.0}]));
    let sql = "SELECT count(*) AS n FROM wide WHERE c0 > 1000 OR c3 = 2000";
    assert_eq!(ask_sql(&rig, sql), json!([{"n": 29}]), "both in the same rows");
}

#[test]
fn what_differs_is_found_among_all_columns() {
    let rig = rig();
    let query = json!({
        "view": "differs", "top": 3,
        "any_of": [[{"column": "c0", "op": "not_null"}]],
        "compare": {"against": [[{"column": "c0", "op": "null"}]]},
    });
    let found = ask(&rig, &query);
    // What the rows that have `c0` have in common are the other columns of the same rows.
    let columns: Vec<&str> =
        found.as_array().unwrap().iter().map(|row| row["column"].as_str().unwrap()).collect();
    assert!(columns.iter().all(|column| column[1..].parse::<usize>().unwrap() < 20), "{found}");
}

#[test]
fn raw_rows_have_their_columns_only() {
    let rig = rig();
    let found = ask(&rig, &json!({"view": "samples", "top": 1}));
    let row = found[0].as_object().unwrap();
    let values = row.iter().filter(|(name, value)| name.starts_with('c') && !value.is_null());
    assert_eq!(values.count(), COLUMNS_PER_ROW, "{found}");
    assert_eq!(row["c1998"], json!(3999));
}
