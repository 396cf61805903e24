//! Programs that already exist, unchanged: each lands, with the right types and a code per entry.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::support::{Lab, Ran, Server, python, workspace};

pub(crate) fn script(name: &str) -> PathBuf {
    Path::new("tests/it/scripts").canonicalize().unwrap().join(name)
}

fn python_command(lab: &Lab, name: &str, endpoint: &str) -> Command {
    let mut command = Command::new(python());
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .current_dir(lab.dir())
        .arg(script(name))
        .arg(endpoint);
    command
}

#[track_caller]
fn run(command: &mut Command) -> Ran {
    command.output().unwrap().into()
}

#[track_caller]
fn assert_seed_row_landed(lab: &Lab) {
    let rows = lab.rows("pytorch_benchmarks");
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0]["time"], "2023-11-14T22:13:20Z");
    assert_eq!(rows[0]["rounds"], 7);
    assert_eq!(rows[0]["mean"], 0.25);
    assert_eq!(rows[0]["benchmark_name"], "a b+c&d=é%");
}

#[test]
fn the_form_of_requests() {
    let lab = Lab::new();
    let server = lab.serve();
    let endpoint = format!("{}/scribe_logs", server.url);
    let answer = run(&mut python_command(&lab, "requests_form.py", &endpoint)).ok().json();
    assert_eq!(answer["count"], 2);
    assert_eq!(answer["response_codes"], json!({ "0": "OK", "1": "ERROR" }));
    assert_seed_row_landed(&lab);
    assert_eq!(lab.rows("perflab/rejected")[0]["category"], "perfpipe_pytorch_benchmarks");
}

#[test]
fn the_form_of_requests_with_its_built_in_address() {
    let lab = Lab::new();
    let mut command = lab.command();
    command.args(["with", "--"]).arg(python()).arg(script("requests_form.py"));
    command.arg("https://graph.facebook.com/scribe_logs");
    let answer = run(&mut command).ok().json();
    assert_eq!(answer["response_codes"], json!({ "0": "OK", "1": "ERROR" }));
    assert_seed_row_landed(&lab);
}

#[test]
fn the_arrow_stream_of_the_documentation() {
    let lab = Lab::new();
    let server = lab.serve();
    let page = fs::read_to_string(workspace().join("docs/clients.md")).unwrap();
    let (_, after) = page.split_once("```python\n").unwrap();
    let (example, _) = after.split_once("```").unwrap();
    let example = example.replace("http://127.0.0.1:7117", &server.url);
    run(Command::new(python()).args(["-c", &example])).ok();
    let rows = lab.rows("runs");
    assert_eq!(rows.len(), 2);
    assert_eq!((&rows[1]["name"], &rows[1]["latency_ms"]), (&json!("b"), &json!(2.5)));
}

#[test]
fn the_form_of_gcm() {
    let lab = Lab::new();
    let server = lab.serve();
    let endpoint = format!("{}/v21.0/scribe_logs", server.url);
    run(&mut python_command(&lab, "gcm.py", &endpoint))
        .ok()
        .prints("['OK', 'ERROR', 'OK']\n['ERROR']\n");
    let rows = lab.rows("perfpipe_gcm");
    assert_eq!(rows.len(), 2, "what was OK was not sent again");
    assert_eq!((&rows[0]["gpus"], &rows[0]["node"]), (&json!(8), &json!("n1")));
    assert_eq!(rows[1]["power"], 1.5);
    assert_eq!(rows[1]["jobs"], json!(["a", "b"]));
    assert_eq!(rows[1]["path"], json!(["z", "a"]));
}

/// It runs git, and `with` or an endpoint leads it here.
fn run_structured(lab: &Lab, server: &Server) {
    let mut command = python_command(lab, "structured.py", "");
    command
        .env("SCRIBE_GRAPHQL_ENDPOINT", format!("{}/scribe_logs", server.url))
        .env("SCRIBE_GRAPHQL_ACCESS_TOKEN", "any")
        .env("SHA1", "0");
    run(&mut command).ok();
}

fn register_idl(lab: &Lab) {
    let source = fs::read_to_string(script("structured.py")).unwrap();
    let idl = source.split("\"\"\"").nth(3).unwrap();
    let file = lab.dir().join("perflab_test.thrift");
    fs::write(&file, idl).unwrap();
    lab.run(["thrift", "register", file.to_str().unwrap()]).ok().says("PerflabTest");
}

#[track_caller]
fn assert_named(rows: &[Value]) {
    assert_eq!(rows.len(), 3);
    for (number, row) in rows.iter().enumerate() {
        assert_eq!(row["model"], format!("m{number}"));
        assert_eq!(row["seconds"], number as f64 + 0.5);
        assert_eq!(row["graphs"], number);
        assert_eq!(row["cached"], if number > 0 { "true" } else { "false" });
        assert_eq!(row["stack"], json!(["main", "f"]));
        assert_eq!(row["weight"], 1.0);
    }
}

#[test]
fn the_real_fbscribelogger_with_its_idl() {
    let lab = Lab::new();
    let server = lab.serve();
    register_idl(&lab);
    run_structured(&lab, &server);
    assert_named(&lab.rows("PerflabTest"));
}

#[test]
fn the_real_fbscribelogger_before_its_idl_is_known() {
    let lab = Lab::new();
    let server = lab.serve();
    run_structured(&lab, &server);
    let rows = lab.rows("PerflabTest");
    assert_eq!(rows.len(), 3);
    assert_eq!((&rows[1]["f4"], &rows[1]["f6"]), (&json!("m1"), &json!(1.5)));
    assert_eq!((&rows[1]["f7"], &rows[1]["f12"]), (&json!(1), &json!(["main", "f"])));
    register_idl(&lab);
    assert_named(&lab.rows("PerflabTest"));
}

#[test]
fn the_real_fbscribelogger_under_with() {
    let lab = Lab::new();
    register_idl(&lab);
    let mut command = lab.command();
    command.env("SHA1", "0").args(["with", "--"]).arg(python()).arg(script("structured.py"));
    run(&mut command).ok();
    assert_named(&lab.rows("PerflabTest"));
}

/// The uploader's own source, where this machine has it.
fn seed_uploader(lab: &Lab) -> Option<PathBuf> {
    let seeds = workspace().join("../shared/seeds");
    let mut files = fs::read_dir(&seeds).into_iter().flatten().flatten();
    let seed = files.find(|file| file.file_name().to_string_lossy().starts_with("000_"))?;
    let text = fs::read_to_string(seed.path()).unwrap();
    let source = text.split("```python\n").nth(1).unwrap().split("\n```").next().unwrap();
    let path = lab.dir().join("upload_scribe.py");
    fs::write(&path, source).unwrap();
    Some(path)
}

/// A real pytest-benchmark file whose benchmarks have the parameters that the uploader reads.
fn measured(lab: &Lab) {
    let suite = "import pytest\n\
                 @pytest.mark.parametrize('fuser', ['legacy'])\n\
                 @pytest.mark.parametrize('executor', ['profiling', 'simple'])\n\
                 @pytest.mark.parametrize('net_name', ['lstm'])\n\
                 @pytest.mark.benchmark(group='fastrnns')\n\
                 def test_forward(benchmark, net_name, executor, fuser):\n\
                 \x20   benchmark.pedantic(sum, args=([1, 2, 3],), rounds=5)\n";
    fs::write(lab.dir().join("test_nets.py"), suite).unwrap();
    let mut command = Command::new(python());
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .current_dir(lab.dir())
        .args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "test_nets.py"])
        .arg("--benchmark-json=bench.json");
    run(&mut command).ok();
}

#[track_caller]
fn assert_measurements_landed(lab: &Lab) {
    let rows = lab.rows("perfpipe_pytorch_benchmarks");
    assert_eq!(rows.len(), 2);
    for row in &rows {
        assert_eq!(row["benchmark_name"], "test_forward[lstm]");
        assert_eq!(row["benchmark_group"], "fastrnns");
        assert_eq!(row["rounds"], 5);
        assert!(row["mean"].as_f64().unwrap() > 0.0, "{row}");
        assert_eq!(row["pytorch_version"], "None");
    }
    let executors: Vec<_> = rows.iter().map(|row| &row["benchmark_executor"]).collect();
    assert_eq!(executors, ["profiling", "simple"]);
}

#[test]
fn the_uploader_of_seed_000_unchanged() {
    let lab = Lab::new();
    let Some(uploader) = seed_uploader(&lab) else {
        eprintln!("skipped: the seed documents are not beside this checkout");
        return;
    };
    measured(&lab);
    let upload = |variables: &[(&str, &str)]| {
        let mut command = lab.command();
        command.envs(variables.iter().copied());
        command.args(["with", "--"]).arg(python()).arg(&uploader);
        run(command.args(["--pytest-bench-json", "bench.json"])).ok()
    };
    let ran = upload(&[]);
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(answer["response_codes"], json!({ "0": "OK", "1": "OK" }));
    assert_measurements_landed(&lab);
}

#[test]
fn the_uploader_of_seed_000_by_scribe_cat() {
    let lab = Lab::new();
    let Some(uploader) = seed_uploader(&lab) else {
        eprintln!("skipped: the seed documents are not beside this checkout");
        return;
    };
    measured(&lab);
    let mut command = lab.command();
    command.env("SCRIBE_INTERN", "1").args(["with", "--"]).arg(python()).arg(&uploader);
    run(command.args(["--pytest-bench-json", "bench.json"])).ok();
    assert_measurements_landed(&lab);
}
