//! Segments are an open format: other libraries read them as they are.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use perflab_model::{Batch, ListKind, Nanos, Schema, SchemaState};
use perflab_store::segment::{Built, Source, build};
use serde_json::{Value, json};

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

fn expected_row(n: i64) -> Value {
    let when_there = |value: Value| if n % 3 > 0 { value } else { Value::Null };
    let is_even = n % 2 == 0;
    json!({
        "time": 1_700_000_000_000_000_000 + n,
        "weight": 1 + n % 2,
        "both": is_even.then_some(n),
        "both:string": (!is_even).then_some("(null)"),
        "float": when_there(json!(n as f64 / 8.0)),
        "int": when_there(json!(n * 1000 - 500)),
        "stack": is_even.then_some(0),
        "string": when_there(json!(format!("s{:03}", n % 300))),
        "tags": when_there(json!(1)),
    })
}

#[test]
fn pyarrow_and_polars_read_them() {
    let built = sample();
    let folder = tempfile::tempdir().unwrap();
    let (rows, lists) = (folder.path().join("rows.arrow"), folder.path().join("lists.arrow"));
    fs::write(&rows, &built.rows[..]).unwrap();
    fs::write(&lists, &built.lists.unwrap()[..]).unwrap();
    let python = Path::new("../../.venv/bin/python");
    assert!(python.exists(), "run `make setup`");
    let ran = Command::new(python)
        .arg("tests/it/scripts/read_segment.py")
        .args([&rows, &lists])
        .output()
        .unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let found: Value = serde_json::from_slice(&ran.stdout).unwrap();
    for library in ["pyarrow", "polars"] {
        let rows = found[library]["rows"].as_array().unwrap();
        assert_eq!(rows.len(), 600, "{library}");
        for (n, row) in (0..).zip(rows) {
            assert_eq!(*row, expected_row(n), "{library}, row {n}");
        }
        let lists = json!([{ "items": ["main", "é", "main"] }, { "items": ["a", "b"] }]);
        assert_eq!(found[library]["lists"], lists, "{library}");
    }
}
