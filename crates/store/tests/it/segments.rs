//! Segments are open formats, hot and cold: other libraries read them as they are.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use perflab_model::{Batch, ListKind, Nanos, Schema, SchemaState};
use perflab_store::segment::{Built, Cooled, Segment, Source, build, cool};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A column of each kind, each with nulls, a name of two kinds, and 300 strings.
fn sample() -> Built {
    let mut batch = Batch::new(Arc::new(SchemaState::new(Schema::default())));
    for n in 0..600_i64 {
        let mut row = batch.begin_row();
        if n % 3 > 0 {
            row.int("int", n * 1000 - 500).unwrap();
            row.float("float", n as f64 / 8.0).unwrap();
            row.string("string", &format!("s{:03}", n % 300)).unwrap();
            row.strings("tags", ListKind::Set, ["b", "a"]).unwrap();
        }
        if n % 2 == 0 {
            row.int("both", n).unwrap();
            row.strings("stack", ListKind::Vector, ["main", "é", "main"]).unwrap();
        } else {
            row.string("both", "(null)").unwrap();
        }
        row.commit(Nanos(1_700_000_000_000_000_000 + n), (1 + n % 2) as f64).unwrap();
    }
    build(&[Source::Batch(&batch)]).unwrap()
}

fn expected_row(n: i64, weight: &Value) -> Value {
    let when_there = |value: Value| if n % 3 > 0 { value } else { Value::Null };
    let is_even = n % 2 == 0;
    json!({
        "time": 1_700_000_000_000_000_000 + n,
        "weight": weight,
        "both": is_even.then_some(n),
        "both:string": (!is_even).then_some("(null)"),
        "float": when_there(json!(n as f64 / 8.0)),
        "int": when_there(json!(n * 1000 - 500)),
        "stack": is_even.then_some(0),
        "string": when_there(json!(format!("s{:03}", n % 300))),
        "tags": when_there(json!(1)),
    })
}

/// What libraries find in the files of a segment, by a script that prints it.
fn found(script: &str, files: &[&[u8]]) -> Value {
    let folder = TempDir::new().unwrap();
    let mut paths: Vec<PathBuf> = Vec::new();
    for (name, bytes) in ["rows", "lists", "sparse"].iter().zip(files) {
        paths.push(folder.path().join(name));
        fs::write(paths.last().unwrap(), bytes).unwrap();
    }
    let python = Path::new("../../.venv/bin/python");
    assert!(python.exists(), "run `make setup`");
    let script = Path::new("tests/it/scripts").join(script);
    let ran = Command::new(python).arg(script).args(&paths).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    serde_json::from_slice(&ran.stdout).unwrap()
}

/// `weights` are those of even and odd rows.
fn assert_rows(library: &str, rows: &Value, weights: &[Value; 2]) {
    let rows = rows.as_array().unwrap();
    assert_eq!(rows.len(), 600, "{library}");
    for (n, (row, weight)) in (0..).zip(rows.iter().zip(weights.iter().cycle())) {
        assert_eq!(*row, expected_row(n, weight), "{library}, row {n}");
    }
}

#[test]
fn pyarrow_and_polars_read_hot_ones() {
    let built = sample();
    let found = found("read_segment.py", &[&built.rows, &built.lists.unwrap()]);
    for library in ["pyarrow", "polars"] {
        assert_rows(library, &found[library]["rows"], &[json!(1), json!(2)]);
        let lists = json!([{ "items": ["main", "é", "main"] }, { "items": ["a", "b"] }]);
        assert_eq!(found[library]["lists"], lists, "{library}");
    }
}

#[test]
fn pyarrow_and_polars_read_sparse_columns() {
    let mut batch = Batch::new(Arc::new(SchemaState::new(Schema::default())));
    for n in 0..300_i64 {
        let mut row = batch.begin_row();
        if n % 100 == 99 {
            row.int("i", n).unwrap();
            row.float("f", n as f64 / 8.0).unwrap();
            row.string("s", if n > 100 { "é" } else { "b" }).unwrap();
            row.string("t", "c").unwrap();
            row.strings("v", ListKind::Vector, ["main"]).unwrap();
        }
        row.commit(Nanos(n), 1.0).unwrap();
    }
    let built = build(&[Source::Batch(&batch)]).unwrap();
    let (lists, sparse) = (built.lists.unwrap(), built.sparse.unwrap());
    let found = found("read_segment.py", &[&built.rows, &lists, &sparse]);
    let column = |name: &str, kind: &str, values: Value| {
        let mut column = json!({
            "name": name, "kind": kind, "rows": [99, 199, 299],
            "ints": [], "floats": [], "codes": [], "strings": [],
        });
        column.as_object_mut().unwrap().extend(values.as_object().unwrap().clone());
        column
    };
    let expected = json!([
        column("f", "float", json!({"floats": [12.375, 24.875, 37.375]})),
        column("i", "int", json!({"ints": [99, 199, 299]})),
        column("s", "string", json!({"codes": [0, 1, 1], "strings": ["b", "é"]})),
        column("t", "string", json!({"codes": [0, 0, 0], "strings": ["c"]})),
        column("v", "vector", json!({"codes": [0, 0, 0]})),
    ]);
    for library in ["pyarrow", "polars"] {
        assert_eq!(found[library]["sparse"], expected, "{library}");
        assert_eq!(found[library]["rows"][7], json!({"time": 7, "weight": 1}), "{library}");
    }
}

#[test]
fn pyarrow_polars_and_duckdb_read_cold_ones() {
    let built = sample();
    let segment = Segment::open(&built).unwrap();
    let Cooled { rows, lists } = cool(&segment).unwrap();
    let found = found("read_cold.py", &[&rows, &lists.unwrap()]);
    for library in ["pyarrow", "polars", "duckdb"] {
        assert_rows(library, &found[library]["rows"], &[json!(1.0), json!(2.0)]);
        let lists = json!([
            { "id": 0, "items": ["main", "é", "main"] },
            { "id": 1, "items": ["a", "b"] },
        ]);
        assert_eq!(found[library]["lists"], lists, "{library}");
    }
    let ordered = json!({ "sorted_by": "time", "page_index": true, "time_range": true });
    assert_eq!(found["metadata"], ordered, "so that readers can skip what they don't need");
    assert_eq!(found["stacks"], json!([[["a", "b"], 400], [["main", "é", "main"], 300]]));
}
