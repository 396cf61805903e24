//! Comparisons of stored measurements, from what is asked to verdicts.

use perflab_model::Nanos;
use perflab_query::document::{AskError, Comparison, Table, answer_comparison};
use perflab_query::{Limits, Value};
use perflab_store::segment::Snapshot;

use perflab_query::testing::{Cell, Row, segment_of};

const NOW: Nanos = Nanos(1_700_000_000_000_000_000);
const DAY: i64 = 86_400_000_000_000;

/// A run of a benchmark. Rates are the better the higher.
fn run(commit: &str, benchmark: &str, value: f64) -> Row {
    let text = |text: &str| Cell::String(text.to_owned());
    let mut cells = vec![
        ("benchmark".to_owned(), text(benchmark)),
        ("branch".to_owned(), text(if commit.starts_with("aa") { "main" } else { "fix" })),
        ("commit".to_owned(), text(commit)),
        ("host".to_owned(), text("h")),
        ("run_id".to_owned(), Cell::Int(if commit == "aa11" { 1 } else { 2 })),
        ("value".to_owned(), Cell::Float(value)),
    ];
    if benchmark == "rate" {
        cells.insert(1, ("better".to_owned(), text("higher")));
    }
    Row { time: NOW.0 - DAY, weight: 1.0, cells }
}

fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for noise in [0.0, 0.1, -0.1, 0.05] {
        for (benchmark, before, after) in [
            ("same", 100.0, 100.0),
            ("slow", 100.0, 120.0),
            ("fast", 100.0, 50.0),
            ("rate", 100.0, 80.0),
        ] {
            rows.push(run("aa11", benchmark, before + noise));
            rows.push(run("bb22", benchmark, after + noise));
        }
    }
    rows.push(run("bb22", "new", 1.0));
    rows.push(run("bb23", "other", 1.0));
    rows
}

fn ask(comparison: &Comparison) -> Result<Table, AskError> {
    let rows = rows();
    let snapshot = Snapshot::of([segment_of(&rows[..9]), segment_of(&rows[9..])]);
    let answered = answer_comparison(comparison, &snapshot, &[], NOW, &Limits::default())?;
    Ok(answered.table)
}

fn verdicts(comparison: &Comparison) -> Vec<(String, String)> {
    let table = ask(comparison).unwrap();
    let place = |name: &str| table.columns.iter().position(|column| column.name == name).unwrap();
    let text = |value: &Value| {
        let Value::String(text) = value else { panic!("{value:?}") };
        text.clone()
    };
    let (benchmark, verdict) = (place("benchmark"), place("verdict"));
    table.rows.iter().map(|row| (text(&row[benchmark]), text(&row[verdict]))).collect()
}

fn error(comparison: &Comparison) -> String {
    ask(comparison).unwrap_err().to_string()
}

fn owned(pairs: [(&str, &str); 5]) -> Vec<(String, String)> {
    pairs.map(|(name, verdict)| (name.to_owned(), verdict.to_owned())).into()
}

#[test]
fn commits_runs_and_conditions_are_judged_benchmark_by_benchmark() {
    let expected = owned([
        ("fast", "faster"),
        ("new", "unknown"),
        ("rate", "slower"),
        ("same", "same"),
        ("slow", "slower"),
    ]);
    let pairs = [
        ("aa11", "bb22"),
        ("aa", "bb22"),
        ("main", "commit=bb22"),
        ("1", "commit=bb22 && branch=fix"),
        ("run_id=1", "commit=bb22 && host=h || commit=zz"),
    ];
    for (before, after) in pairs {
        let found = verdicts(&Comparison::new(before, after));
        assert_eq!(found, expected, "{before} {after}");
    }
}

#[test]
fn a_row_says_how_much_and_from_how_many_runs() {
    let table = ask(&Comparison {
        any_of: vec![vec![perflab_query::text::parse_condition("benchmark=slow").unwrap()]],
        ..Comparison::new("main", "bb22")
    })
    .unwrap();
    let names: Vec<_> = table.columns.iter().map(|column| column.name.as_str()).collect();
    let said =
        ["verdict", "before", "after", "percent", "low", "high", "runs_before", "runs_after"];
    assert_eq!(names, [&["benchmark"][..], &said].concat());
    let [
        Value::Float(before),
        Value::Float(after),
        Value::Float(percent),
        Value::Float(low),
        Value::Float(high),
        ..,
    ] = table.rows[0][2..]
    else {
        panic!("{:?}", table.rows)
    };
    assert!((before - 100.025).abs() < 1e-9 && (after - 120.025).abs() < 1e-9);
    assert!((percent - 19.995).abs() < 0.001 && low <= percent && percent <= high);
    assert_eq!(table.rows[0][7..], [Value::Int(4), Value::Int(4)]);
}

#[test]
fn thresholds_directions_and_columns_can_be_chosen() {
    let verdict = |comparison: Comparison| {
        let found = verdicts(&comparison);
        found.into_iter().find(|(benchmark, _)| benchmark == "slow").unwrap().1
    };
    let plain = Comparison::new("main", "bb22");
    assert_eq!(verdict(Comparison { threshold_percent: Some(25.0), ..plain.clone() }), "same");
    let better = Some(perflab_query::compare::Better::Higher);
    assert_eq!(verdict(Comparison { better, ..plain.clone() }), "faster");
    let series = vec!["benchmark".to_owned(), "host".to_owned()];
    assert_eq!(verdict(Comparison { series, ..plain }), "slower");
}

#[test]
fn what_can_not_be_compared_is_said() {
    let of = |before: &str, after: &str| error(&Comparison::new(before, after));
    assert!(of("cc", "main").starts_with(
        "no row of that time has `cc` as its commit, its branch, its run_id: write conditions"
    ));
    assert_eq!(of("main", "bb"), "`bb` is `commit=bb22` or `commit=bb23`: write one of these");
    assert!(of("main", "comit=bb22").ends_with("did you mean `commit`?"));
    assert!(of("main", "commit=").contains("a value is missing"));
    assert!(of("main", "commit=zz").starts_with("no row of that time has a number in `value`"));
    let plain = Comparison::new("main", "bb22");
    let early = Comparison { until: "-2 days".to_owned(), ..plain.clone() };
    assert!(error(&early).starts_with("no row of that time has `main` as its commit"));
    let text = Comparison { value: Some("host".to_owned()), ..plain.clone() };
    assert_eq!(error(&text), "column `host` holds strings, and this takes numbers");
    let nothing = Comparison { value: Some("valu".to_owned()), ..plain.clone() };
    assert!(error(&nothing).ends_with("did you mean `value`?"));
    let threshold = Comparison { threshold_percent: Some(-1.0), ..plain };
    assert_eq!(error(&threshold), "a threshold of -1 %: it is a number from 0 on");
}

#[test]
fn datasets_of_other_columns_need_to_be_told_which_are_meant() {
    let cells = |build: i64, took: f64| {
        let text = |text: &str| Cell::String(text.to_owned());
        let cells = vec![
            ("build".to_owned(), Cell::Int(build)),
            ("job".to_owned(), text("nn")),
            ("took".to_owned(), Cell::Float(took)),
        ];
        Row { time: NOW.0 - DAY, weight: 1.0, cells }
    };
    let rows: Vec<_> = (0..6).map(|n| cells(n / 3, 1.0 + (n / 3) as f64)).collect();
    let snapshot = Snapshot::of([segment_of(&rows)]);
    let ask = |comparison: &Comparison| {
        answer_comparison(comparison, &snapshot, &[], NOW, &Limits::default())
    };
    let mut comparison = Comparison::new("build=0", "build=1");
    assert!(ask(&comparison).unwrap_err().to_string().contains("apart with `series`"));
    comparison.series = vec!["job".to_owned()];
    assert!(ask(&comparison).unwrap_err().to_string().contains("numbers with `value`"));
    comparison.value = Some("took".to_owned());
    let table = ask(&comparison).unwrap().table;
    assert_eq!(table.rows[0][1], Value::String("slower".to_owned()));
    comparison.before = "0".to_owned();
    assert!(ask(&comparison).unwrap_err().to_string().starts_with("`0` can't be looked up"));
}
