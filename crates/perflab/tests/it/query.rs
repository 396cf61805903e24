use serde_json::Value;

use crate::support::Lab;

const ROWS: [&str; 3] = [
    r#"{"normal":{"job":"a","status":"ok"},"float":{"latency":1.5}}"#,
    r#"{"normal":{"job":"b","status":"failed"},"float":{"latency":4.0}}"#,
    r#"{"normal":{"job":"a","status":"failed"},"float":{"latency":2.5}}"#,
];

/// What XML is to a real parser: how many nodes with titles a picture has.
const COUNT_TITLES: &str = "
import sys
from xml.etree import ElementTree
picture = ElementTree.parse(sys.stdin)
print(len(picture.findall('.//{http://www.w3.org/2000/svg}title')))
";

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
    let ask = || {
        lab.run(["query", "builds", "--group-by", "job", "--agg", "count,max:latency"])
            .ok()
            .says("of 3 rows from ")
            .stdout
    };
    let alone = ask();
    assert_eq!(
        alone,
        "job  count  max:latency\na        2          2.5\nb        1            4\n"
    );
    let _server = lab.serve();
    assert_eq!(ask(), alone);
}

#[test]
fn json_is_the_document_of_the_server() {
    let lab = lab();
    let document = lab.run(["query", "builds", "--format", "json"]).ok().json();
    assert_eq!(document["format"], "perflab.answer/1");
    assert_eq!(document["rows"][0]["count"], 3.0);
    assert_eq!(document["stats"]["rows_scanned"], 3);
}

#[test]
fn conditions_order_and_top_choose_rows() {
    let lab = lab();
    let csv = |arguments: &[&str]| {
        let fixed = ["query", "builds", "--format", "csv", "--group-by", "job"];
        lab.run(fixed.iter().chain(arguments)).ok().stdout
    };
    assert_eq!(csv(&["--where", "status=failed", "--where", "latency>3"]), "job,count\nb,1\n");
    assert_eq!(csv(&["--where", "job in a,b", "--top", "1"]), "job,count\na,2\n");
    assert_eq!(csv(&["--order", "max:latency"]), "job,count\nb,1\na,2\n");
    assert_eq!(csv(&["--order", "max:latency", "--ascending"]), "job,count\na,2\nb,1\n");
    assert_eq!(csv(&["--agg", "p100:latency"]), "job,p100:latency\nb,4\na,2.5\n");
    assert_eq!(csv(&["--until", "-1 day"]), "job,count\n");
}

#[test]
fn a_pivot_makes_columns() {
    let lab = lab();
    let arguments = ["query", "builds", "--group-by", "job,status", "--pivot", "--format", "csv"];
    assert_eq!(lab.run(arguments).ok().stdout, "job,failed,ok\na,1,1\nb,1,\n");
}

#[test]
fn a_series_has_a_row_per_bucket() {
    let lab = lab();
    let arguments =
        ["query", "builds", "--view", "series", "--since", "-1 day", "--format", "json"];
    let document = lab.run(arguments).ok().json();
    assert_eq!(document["columns"][0]["kind"], "time");
    let counts =
        document["rows"].as_array().unwrap().iter().filter_map(|row| row["count"].as_f64());
    assert!((counts.sum::<f64>() - 3.0).abs() < f64::EPSILON);
}

#[test]
fn views_comparisons_and_computed_columns_are_answered() {
    let lab = lab();
    let csv = |arguments: &[&str]| {
        let fixed = ["query", "builds", "--format", "csv"];
        lab.run(fixed.iter().chain(arguments)).ok().stdout
    };
    assert_eq!(csv(&["--derive", "ms=latency*1000", "--agg", "max:ms"]), "max:ms\n4000\n");
    assert_eq!(
        csv(&["--group-by", "bucket(latency, 2)"]),
        "\"bucket(latency, 2)\",count\n0,1\n2,1\n4,1\n"
    );
    let compared = csv(&["--where", "job=a", "--against", "job=b"]);
    assert!(compared.contains("\n2,1,1,100,"), "{compared}");
    let bins = csv(&["--view", "distribution", "--column", "latency", "--top", "1"]);
    assert_eq!(bins, "from,to,count\n1.5,4,3\n");
    let samples = csv(&["--view", "samples", "--columns", "job", "--top", "1"]);
    assert!(samples.ends_with(",1,a\n"), "{samples}");
    let others = ["query", "builds", "--group-by", "job", "--top", "1", "--other", "--total"];
    lab.run(others).ok().says("all others: count 1").says("all groups: count 3");
}

#[test]
fn conditions_can_be_joined() {
    let lab = lab();
    let count = |conditions: &[&str]| {
        let mut arguments = vec!["query", "builds", "--format", "csv"];
        conditions.iter().for_each(|condition| arguments.extend(["--where", condition]));
        lab.run(arguments).ok().stdout
    };
    assert_eq!(count(&["job=b || status=ok"]), "count\n2\n");
    assert_eq!(count(&["job=b || status=ok && latency>2"]), "count\n1\n");
    assert_eq!(count(&["job=b || status=ok", "latency<2 || latency>3"]), "count\n2\n");
}

#[test]
fn what_differs_is_said_as_conditions() {
    let lab = lab();
    let arguments = ["query", "builds", "--where", "status=failed", "--view", "differs"];
    lab.run(arguments).exits(1).says("what differs needs something to differ from");
    let against = ["--against", "status=ok", "--format", "csv"];
    let csv = lab.run(arguments.iter().chain(&against)).ok().stdout;
    assert!(csv.contains("\nstatus,status=failed,100,0,"), "{csv}");
}

#[test]
fn the_first_lines_of_a_series_come_with_one_of_all_others() {
    let lab = lab();
    let arguments = ["query", "builds", "--view", "series", "--group-by", "time:1d,job"];
    let more = ["--since", "-1 day", "--top", "1", "--other", "--format", "csv"];
    let csv = lab.run(arguments.iter().chain(&more)).ok().stdout;
    assert!(csv.contains(",a,2\n") && csv.contains(",(other),1\n"), "{csv}");
}

#[test]
fn trees_are_folded_and_exported() {
    let lab = Lab::new();
    let sample = |frames: &str| format!(r#"{{"normvector":{{"stack":[{frames}]}}}}"#);
    for frames in [r#""main","read","poll""#, r#""main","write""#, r#""main","write","poll""#] {
        lab.run(["log", "profiles", &sample(frames)]).ok();
    }
    let tree = |arguments: &[&str]| {
        let fixed = ["query", "profiles", "--view", "tree", "--column", "stack", "--format"];
        lab.run(fixed.iter().chain(arguments))
    };
    let folded = "main;read;poll 1\nmain;write 1\nmain;write;poll 1\n";
    assert_eq!(tree(&["folded"]).ok().stdout, folded);
    assert_eq!(
        tree(&["folded", "--fold", "callees", "--frame", "write"]).ok().stdout,
        "write 1\nwrite;poll 1\n"
    );
    let callers = tree(&["csv", "--fold", "callers", "--frame", "poll"]).ok().stdout;
    assert!(callers.contains(",poll,2,2,"), "{callers}");
    assert!(tree(&["csv", "--fold", "leaf"]).ok().stdout.contains(",poll,2,2,"));
    let diff = tree(&["folded", "--where", "stack any read", "--against", "stack any write"]);
    assert!(diff.ok().stdout.contains("main;write 1 0\n"));
    let svg = tree(&["svg"]).ok().stdout;
    let mut parser = std::process::Command::new(crate::support::python());
    parser.args(["-c", COUNT_TITLES]);
    let nodes = crate::support::run_with_input(&mut parser, svg.as_bytes()).ok().stdout;
    assert_eq!(nodes, "6\n", "all, main, read, poll, write, poll");
    tree(&["pprof", "--fold", "leaf"]).exits(1).says("begin at the root");
    tree(&["csv", "--fold", "callers"]).exits(2).says("--frame <FRAME>");
}

#[test]
fn a_query_that_takes_too_long_could_not_be_done() {
    let lab = lab();
    // Takes the rows out of the spool, so that there is something to look at.
    lab.run(["query", "builds"]).ok();
    let _server = lab.serve_with(&["--query-seconds", "0"]);
    lab.run(["query", "builds"]).exits(3).says("longer than the 0 s that a question may take");
}

#[test]
fn mistakes_name_what_was_meant() {
    let lab = lab();
    let query = |arguments: &[&str]| lab.run(["query"].iter().chain(arguments));
    query(&["builds", "--agg", "avg:latecy"]).exits(1).says("did you mean `latency`?");
    query(&["bulids"]).exits(1).says("did you mean `builds`?");
    query(&["builds", "--where", "status failed"]).exits(2).says("an operator belongs here");
    query(&["builds", "--agg", "cuont"]).exits(2).says("did you mean `count`?");
    query(&["builds", "--since", "now", "--until", "-1 day"]).exits(1).says("the range is empty");
    query(&["builds", "--timezone", "Europe/Belrin"]).exits(1).says("`Europe/Berlin`");
}

#[test]
fn no_rows_are_told_from_no_answer() {
    let lab = lab();
    lab.run(["query", "builds", "--until", "-1 day"]).ok().says("no rows from ");
}

#[test]
fn a_url_leads_to_the_same_query() {
    let lab = lab();
    let server = lab.serve();
    let link = lab.run(["query", "builds", "--group-by", "job", "--url"]).ok().stdout;
    assert!(link.contains("/l/"), "{link}");
    drop(server);
    let short = |url: &str| {
        let mut command = lab.drop_in("fburl");
        command.arg(url);
        crate::support::Ran::from(command.output().unwrap())
    };
    let drillstate: Value = serde_json::json!({"dimensions": ["job"], "start": "-30 days"});
    let url = format!(
        "https://www.internalfb.com/intern/scuba/query/?dataset=builds&drillstate={drillstate}&view=Table"
    );
    let first = short(&url).ok().stdout;
    assert!(first.starts_with("http://127.0.0.1:7117/l/"), "{first}");
    assert_eq!(short(&url).ok().stdout, first);
    short("https://example.com/").ok();
    short("nonsense").exits(1).says("is not a web address");
}
