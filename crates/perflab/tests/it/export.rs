use std::fs;

use crate::support::{Lab, Ran, python};

const ROWS: [&str; 3] = [
    r#"{"int":{"time":1700000000,"size":3},"normal":{"job":"a"},"float":{"latency":1.5}}"#,
    r#"{"int":{"time":1750000000,"weight":2},"normal":{"job":"ä"},"tags":{"labels":["x","y"]}}"#,
    r#"{"int":{"time":1},"normvector":{"stack":["main","run"]}}"#,
];

fn lab() -> Lab {
    let lab = Lab::new();
    for row in ROWS {
        lab.run(["log", "builds", row]).ok();
    }
    lab
}

/// What a library finds in a file of the lab, ordered by time.
fn read(lab: &Lab, library: &str, file: &str) -> serde_json::Value {
    let script = fs::canonicalize("tests/it/scripts/read_parquet.py").unwrap();
    let mut command = std::process::Command::new(python());
    command.arg(script).args([library, file]).current_dir(lab.dir());
    Ran::from(command.output().unwrap()).ok().json()
}

#[test]
fn real_readers_find_all_rows_of_all_times_with_and_without_a_server() {
    let lab = lab();
    let file = lab.dir().join("all.parquet");
    let expected = serde_json::json!({
        "columns": ["time", "weight", "job", "labels", "latency", "size", "stack"],
        "rows": [
            [1_000_000_000, 1.0, null, null, null, null, ["main", "run"]],
            [1_700_000_000_000_000_000_i64, 1.0, "a", null, 1.5, 3, null],
            [1_750_000_000_000_000_000_i64, 2.0, "ä", ["x", "y"], null, null, null],
        ],
    });
    let check = || {
        lab.run(["export", "builds", "-o", file.to_str().unwrap()]).ok().says(" in `");
        for library in ["pyarrow", "duckdb", "polars"] {
            assert_eq!(read(&lab, library, "all.parquet"), expected, "{library}");
        }
        fs::remove_file(&file).unwrap();
    };
    check();
    let _server = lab.serve();
    check();
}

#[test]
fn conditions_times_and_columns_choose() {
    let lab = lab();
    let file = lab.dir().join("some.parquet");
    let path = file.to_str().unwrap();
    let export = |arguments: &[&str]| {
        lab.run(["export", "builds", "-o", path].iter().chain(arguments)).ok();
        read(&lab, "pyarrow", "some.parquet")["rows"].clone()
    };
    assert_eq!(
        export(&["--columns", "job", "--where", "job=a || size=3"]),
        serde_json::json!([[1_700_000_000_000_000_000_i64, 1.0, "a"]])
    );
    assert_eq!(export(&["--until", "1970-01-02", "--columns", "job"]).as_array().unwrap().len(), 1);
    assert_eq!(export(&["--where", "job=nobody"]), serde_json::json!([]));
}

#[test]
fn the_result_of_a_query_is_a_parquet_file_too() {
    let lab = lab();
    let query = ["query", "builds", "--since", "2000-01-01", "--until", "2200-01-01"];
    let more = ["--group-by", "job", "--order", "job", "--ascending", "--format", "parquet"];
    let mut command = lab.command();
    command.args(query).args(more);
    let output = command.output().unwrap();
    fs::write(lab.dir().join("groups.parquet"), output.stdout).unwrap();
    for library in ["pyarrow", "duckdb"] {
        let found = read(&lab, library, "groups.parquet");
        assert_eq!(found["columns"], serde_json::json!(["job", "count"]));
        assert_eq!(found["rows"], serde_json::json!([["a", 1.0], ["ä", 2.0]]), "{library}");
    }
}

#[test]
fn rows_of_sql_are_a_parquet_file_too() {
    let lab = lab();
    let ask = |sql: &str| {
        let output = lab.command().args(["sql", sql, "--format", "parquet"]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        fs::write(lab.dir().join("rows.parquet"), output.stdout).unwrap();
    };
    ask("SELECT a.time, a.job, a.labels, a.stack, a.size > 2 AS large, b.job FROM builds a \
         JOIN builds b ON a.time = b.time");
    for library in ["pyarrow", "duckdb"] {
        let expected = serde_json::json!({
            "columns": ["time", "job", "labels", "stack", "large", "job:2"],
            "rows": [
                [1_000_000_000, null, null, ["main", "run"], null, null],
                [1_700_000_000_000_000_000_i64, "a", null, null, true, "a"],
                [1_750_000_000_000_000_000_i64, "ä", ["x", "y"], null, null, "ä"],
            ],
        });
        assert_eq!(read(&lab, library, "rows.parquet"), expected, "{library}");
    }
    ask("SELECT unnest(range(300000)) AS n");
    let rows = read(&lab, "pyarrow", "rows.parquet")["rows"].clone();
    assert!(
        (0..300_000).map(|n| serde_json::json!([n])).eq(rows.as_array().unwrap().iter().cloned())
    );
    ask("SELECT job FROM builds WHERE job = 'nobody'");
    let none = serde_json::json!({"columns": ["job"], "rows": []});
    assert_eq!(read(&lab, "pyarrow", "rows.parquet"), none);
}

#[test]
fn a_file_that_could_not_be_written_is_not_there() {
    let lab = lab();
    let path = lab.dir().join("no.parquet");
    let export = |dataset: &str, path: &str| lab.run(["export", dataset, "-o", path]);
    export("bulids", path.to_str().unwrap()).exits(1).says("did you mean `builds`?");
    assert!(!path.exists());
    export("builds", "/nowhere/x.parquet").exits(3).says("failed to write `/nowhere/x.parquet`");
}
