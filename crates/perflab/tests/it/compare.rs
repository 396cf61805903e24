use crate::support::Lab;

/// Runs of two benchmarks at two commits: `matmul` takes twice as long at the second, `relu` as
/// long as before, and `new` is not there at the first.
fn lab() -> Lab {
    let lab = Lab::new();
    let run = |commit: &str, branch: &str, benchmark: &str, value: f64| {
        let row = serde_json::json!({
            "normal": {"commit": commit, "branch": branch, "benchmark": benchmark},
            "float": {"value": value},
        });
        row.to_string()
    };
    let mut lines = Vec::new();
    for noise in [0.0, 0.01, 0.02] {
        lines.push(run("1f3a9c", "main", "matmul", 10.0 + noise));
        lines.push(run("1f3a9c", "main", "relu", 1.0 + noise / 10.0));
        lines.push(run("77b0de", "fix", "matmul", 20.0 + noise));
        lines.push(run("77b0de", "fix", "relu", 1.0 + noise / 10.0));
    }
    lines.push(run("77b0de", "fix", "new", 1.0));
    let mut log = lab.command();
    log.args(["log", "benchmarks"]);
    crate::support::run_with_input(&mut log, lines.join("\n").as_bytes()).ok();
    lab
}

#[test]
fn benchmarks_are_judged_and_what_is_unknown_is_said() {
    let lab = lab();
    let csv = lab.run(["compare", "main", "fix", "--format", "csv"]).ok().stdout;
    let lines: Vec<_> = csv.lines().collect();
    assert_eq!(lines[0], "benchmark,verdict,before,after,percent,low,high,runs_before,runs_after");
    assert!(lines[1].starts_with("matmul,slower,10.01,20.01,99.9"), "{csv}");
    assert!(lines[1].ends_with(",3,3"), "{csv}");
    assert_eq!(lines[2], "new,unknown,,1,,,,0,1");
    assert!(lines[3].starts_with("relu,same,1.001,1.001,0,"), "{csv}");
    lab.run(["compare", "1f3a", "commit=77b0de"])
        .ok()
        .says("1 slower, 0 faster, 1 same, 1 unknown");
}

#[test]
fn json_is_the_document_of_the_server() {
    let lab = lab();
    let alone = lab.run(["compare", "main", "fix", "--format", "json"]).ok().json();
    assert_eq!(alone["format"], "perflab.answer/1");
    let _server = lab.serve();
    let served = lab.run(["compare", "main", "fix", "--format", "json"]).ok().json();
    assert_eq!(served["rows"], alone["rows"]);
}

#[test]
fn a_gate_fails_on_what_is_slower_only() {
    let lab = lab();
    let compare = |arguments: &[&str]| lab.run(["compare"].iter().chain(arguments));
    compare(&["main", "fix", "--fail-on", "slower"]).exits(1).says("1 slower");
    compare(&["fix", "main", "--fail-on", "slower"]).ok().says("1 faster");
    let only = ["main", "fix", "--fail-on", "slower", "--where"];
    compare(&[&only[..], &["benchmark!=matmul"]].concat()).ok().says("1 unknown");
    compare(&[&only[..], &["benchmark=new || benchmark=matmul"]].concat()).exits(1);
    compare(&["main", "fix", "--fail-on", "slower", "--threshold", "150"]).ok();
    compare(&["main", "fix", "--fail-on", "slower", "--better", "higher"]).ok().says("1 faster");
}

#[test]
fn what_can_not_be_compared_is_no_verdict() {
    let lab = lab();
    let compare = |arguments: &[&str]| lab.run(["compare"].iter().chain(arguments));
    compare(&["main", "nowhere"]).exits(2).says("`nowhere` as its commit, its branch");
    compare(&["main", "fix", "--value", "valeu"]).exits(2).says("did you mean `value`?");
    compare(&["main", "fix", "--dataset", "bencmarks"]).exits(2).says("did you mean `benchmarks`?");
    compare(&["main", "commit="]).exits(2).says("a value is missing");
    compare(&["main", "fix", "--until", "-1 day"]).exits(2).says("choose other times");
}
