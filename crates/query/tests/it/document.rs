//! A document, answered from rows.

use perflab_model::Nanos;
use perflab_query::document::{
    AskError, ColumnKind, Document, Table, answer_document, times_touched,
};
use perflab_query::text::parse_condition;
use perflab_query::{Limits, Value};
use perflab_store::segment::Snapshot;

use perflab_query::testing::{Cell, Row, segment_of};

const NOW: Nanos = Nanos(1_700_000_000_000_000_000);
const MINUTE: i64 = 60_000_000_000;

fn row(minutes_ago: i64, weight: f64, job: &str, latency: f64) -> Row {
    let cells = vec![
        ("job".to_owned(), Cell::String(job.to_owned())),
        ("latency".to_owned(), Cell::Float(latency)),
        ("stack".to_owned(), Cell::Vector(vec!["main".to_owned(), job.to_owned()])),
    ];
    Row { time: NOW.0 - minutes_ago * MINUTE, weight, cells }
}

fn ask(document: &Document) -> Result<Table, AskError> {
    let rows = [row(50, 2.0, "a", 1.0), row(20, 1.0, "b", 4.0), row(10, 1.0, "a", 2.0)];
    let snapshot = Snapshot::of([segment_of(&rows)]);
    let answered = answer_document(document, &snapshot, &[], NOW, &Limits::default())?;
    Ok(answered.table)
}

fn table(document: &Document) -> (Vec<String>, Vec<Vec<Value>>) {
    let table = ask(document).unwrap();
    (table.columns.into_iter().map(|column| column.name).collect(), table.rows)
}

fn document(json: &str) -> Document {
    Document::from_json(json.as_bytes()).unwrap()
}

#[test]
fn the_times_that_a_document_compares_with_are_touched_too() {
    let touched = |compare: &str| {
        let json = format!(r#"{{"dataset":"d","since":"-30 minutes"{compare}}}"#);
        times_touched(&document(&json), NOW).unwrap()
    };
    let since = |minutes: i64| (NOW.0 - minutes * MINUTE, NOW.0);
    assert_eq!(touched(""), since(30));
    assert_eq!(touched(r#","compare":"previous""#), since(60));
    assert_eq!(touched(r#","compare":{"ago":"1 day"}"#), since(24 * 60 + 30));
}

#[test]
fn a_document_is_answered_as_a_table() {
    let (names, rows) = table(&document(
        r#"{"dataset":"d","since":"-1 hour","group_by":["job"],
            "aggregates":["count","max:latency","sum:latency / count"]}"#,
    ));
    assert_eq!(names, ["job", "count", "max:latency", "sum:latency / count"]);
    let text = |text: &str| Value::String(text.to_owned());
    let float = Value::Float;
    assert_eq!(
        rows,
        [
            [text("a"), float(3.0), float(2.0), float(4.0 / 3.0)],
            [text("b"), float(1.0), float(4.0), float(4.0)],
        ]
    );
}

#[test]
fn conditions_as_people_type_them_choose_rows() {
    let count = |condition: &str| {
        let mut document = document(r#"{"dataset":"d","since":"-1 hour"}"#);
        document.any_of = vec![vec![parse_condition(condition).unwrap()]];
        table(&document).1[0][0].clone()
    };
    assert_eq!(count("job=a"), Value::Float(3.0));
    assert_eq!(count("job != a"), Value::Float(1.0));
    assert_eq!(count("latency >= 2"), Value::Float(2.0));
    assert_eq!(count("job ~ ^[bc]"), Value::Float(1.0));
    assert_eq!(count("job icontains A"), Value::Float(3.0));
    assert_eq!(count("job is null"), Value::Float(0.0));
}

#[test]
fn a_pivot_of_a_series_has_a_line_per_bucket() {
    let (names, rows) = table(&document(
        r#"{"dataset":"d","since":"-1 hour","group_by":["time:1h","job"],"pivot":true}"#,
    ));
    assert_eq!(names, ["time", "a", "b"]);
    // It is 22:13:20.
    let hour = |hour: i64| Value::Time(NOW.0 - 800_000_000_000 - (22 - hour) * 60 * MINUTE);
    assert_eq!(
        rows,
        [
            [hour(21), Value::Float(2.0), Value::Float(1.0)],
            [hour(22), Value::Float(1.0), Value::Null],
        ]
    );
}

#[test]
fn columns_can_be_computed_and_numbers_grouped_in_buckets() {
    let (names, rows) = table(&document(
        r#"{"dataset":"d","since":"-1 hour","derived":[{"name":"ms","expression":"latency * 1000"}],
            "group_by":["bucket(latency, 2)"],"aggregates":["max:ms"]}"#,
    ));
    assert_eq!(names, ["bucket(latency, 2)", "max:ms"]);
    let float = Value::Float;
    assert_eq!(
        rows,
        [[float(4.0), float(4000.0)], [float(2.0), float(2000.0)], [float(0.0), float(1000.0)],]
    );
    let wrong =
        document(r#"{"dataset":"d","derived":[{"name":"ms","expression":"latecy * 1000"}]}"#);
    assert!(ask(&wrong).unwrap_err().to_string().ends_with("did you mean `latency`?"));
}

#[test]
fn what_is_not_shown_is_there_together() {
    let asked = |more: &str| {
        let json = format!(
            r#"{{"dataset":"d","since":"-1 hour","group_by":["job"],"top":1,"other":true,"total":true{more}}}"#
        );
        ask(&document(&json))
    };
    let table = asked("").unwrap();
    assert_eq!(table.rows.len(), 1);
    assert_eq!(table.other, Some(vec![("count".to_owned(), Value::Float(1.0))]));
    assert_eq!(table.total, Some(vec![("count".to_owned(), Value::Float(4.0))]));
    let by_group = asked(r#","order":{"by":"job"}"#).unwrap_err();
    assert!(by_group.to_string().starts_with("`other` needs an order"));
}

#[test]
fn two_times_and_two_sets_of_rows_are_compared() {
    let compared = |compare: &str| {
        let json = format!(
            r#"{{"dataset":"d","since":"-30 minutes","group_by":["job"],"compare":{compare}}}"#
        );
        table(&document(&json))
    };
    for before in [r#""previous""#, r#"{"ago":"30 minutes"}"#] {
        let (names, rows) = compared(before);
        assert_eq!(names[..5], ["job", "count", "count:b", "count:delta", "count:percent"]);
        assert_eq!(
            rows[0][..5],
            [
                Value::String("a".to_owned()),
                Value::Float(1.0),
                Value::Float(2.0),
                Value::Float(-1.0),
                Value::Float(-50.0),
            ]
        );
    }
    let (_, rows) = compared(r#"{"against":[[{"column":"job","op":"eq","values":["b"]}]]}"#);
    let a = rows.iter().find(|row| row[0] == Value::String("a".to_owned())).unwrap();
    assert_eq!(a[1..3], [Value::Float(1.0), Value::Float(0.0)]);
    let wrong = document(r#"{"dataset":"d","aggregates":["rate"],"compare":"previous"}"#);
    assert!(ask(&wrong).unwrap_err().to_string().contains("not of rates and ratios"));
    let wrong = document(r#"{"dataset":"d","compare":{"ago":"a while"}}"#);
    assert!(ask(&wrong).unwrap_err().to_string().contains("no time to go back by"));
}

#[test]
fn the_other_views_are_tables_too() {
    let viewed =
        |more: &str| table(&document(&format!(r#"{{"dataset":"d","since":"-1 hour",{more}}}"#)));
    let text = |text: &str| Value::String(text.to_owned());
    let float = Value::Float;
    let (names, rows) = viewed(r#""view":"samples","columns":["job"],"top":2"#);
    assert_eq!(names, ["time", "weight", "job"]);
    assert_eq!(rows[0], [Value::Time(NOW.0 - 10 * MINUTE), float(1.0), text("a")]);
    assert_eq!(rows.len(), 2);
    let (names, rows) = viewed(r#""view":"distribution","view_column":"latency","top":3"#);
    assert_eq!(names, ["from", "to", "count"]);
    assert_eq!(
        rows,
        [
            [float(1.0), float(2.0), float(2.0)],
            [float(2.0), float(3.0), float(1.0)],
            [float(3.0), float(4.0), float(1.0)],
        ]
    );
    let (names, rows) =
        viewed(r#""view":"distribution","view_column":"latency","top":1,"group_by":["time:1h"]"#);
    assert_eq!(names, ["time", "from", "to", "count"]);
    assert_eq!(rows.len(), 2, "one for each bucket");
    let (names, rows) = viewed(r#""view":"tree","view_column":"stack""#);
    assert_eq!(names[..5], ["node", "parent", "depth", "frame", "weight"]);
    assert_eq!(
        rows[1][..5],
        [Value::Int(1), Value::Int(0), Value::Int(1), text("main"), float(4.0)]
    );
    assert_eq!(rows[2][3..5], [text("a"), float(3.0)]);
    let (_, rows) = viewed(r#""view":"tree","view_column":"stack","fold":"leaf""#);
    assert_eq!(rows[1][3..5], [text("a"), float(3.0)]);
    let (names, rows) = viewed(r#""view":"graph","view_column":"stack","compare":"previous""#);
    assert_eq!(names[..3], ["parent", "frame", "weight"]);
    assert_eq!(rows[0][..3], [Value::Null, text("main"), float(4.0)]);
    assert_eq!(rows[3][..3], [text("main"), text("a"), float(3.0)]);
    let wrong = document(r#"{"dataset":"d","view":"tree"}"#);
    assert!(ask(&wrong).unwrap_err().to_string().contains("a column of vectors"));
}

#[test]
fn a_tree_can_be_of_what_leads_to_a_frame_or_what_it_leads_to() {
    let frames = |fold: &str| {
        let json = format!(
            r#"{{"dataset":"d","since":"-1 hour","view":"tree","view_column":"stack","fold":{fold}}}"#
        );
        let (_, rows) = table(&document(&json));
        rows.into_iter().map(|row| row[3].clone()).collect::<Vec<_>>()
    };
    let text = |text: &str| Value::String(text.to_owned());
    assert_eq!(frames(r#"{"callers":"b"}"#), [text(""), text("b"), text("main")]);
    assert_eq!(frames(r#"{"callees":"main"}"#), [text(""), text("main"), text("a"), text("b")]);
}

#[test]
fn what_differs_is_said_as_conditions() {
    let json = r#"{"dataset":"d","since":"-1 hour","view":"differs","top":3,
        "any_of":[[{"column":"job","op":"eq","values":["a"]}]],
        "compare":{"against":[[{"column":"job","op":"eq","values":["b"]}]]}}"#;
    let (names, rows) = table(&document(json));
    assert_eq!(names, ["column", "condition", "percent", "percent:b", "p", "q"]);
    let text = |text: &str| Value::String(text.to_owned());
    let job = rows.iter().find(|row| row[0] == text("job")).unwrap();
    assert_eq!(job[1..4], [text("job=a"), Value::Float(100.0), Value::Float(0.0)]);
    assert!(rows.iter().any(|row| row[1] == text("stack any a")), "{rows:?}");
    let alone = document(r#"{"dataset":"d","view":"differs"}"#);
    assert!(ask(&alone).unwrap_err().to_string().contains("give `compare`"));
}

/// Two buckets of an hour with weights: a 2 and 1, b 1 in the first, c 1 in the second.
fn lines(more: &str) -> Result<Table, AskError> {
    let rows = [
        row(50, 2.0, "a", 1.0),
        row(40, 1.0, "b", 4.0),
        row(10, 1.0, "a", 2.0),
        row(9, 1.0, "c", 8.0),
    ];
    let snapshot = Snapshot::of([segment_of(&rows[..2]), segment_of(&rows[2..])]);
    let json = format!(
        r#"{{"dataset":"d","since":"-1 hour","view":"series","group_by":["time:1h","job"],{more}}}"#
    );
    let answered = answer_document(&document(&json), &snapshot, &[], NOW, &Limits::default())?;
    Ok(answered.table)
}

#[test]
fn a_series_can_be_of_the_first_lines_and_one_of_all_others() {
    let text = |text: &str| Value::String(text.to_owned());
    let float = Value::Float;
    let hour = |hour: i64| Value::Time(NOW.0 - 800_000_000_000 - (22 - hour) * 60 * MINUTE);
    let table = lines(
        r#""top":1,"other":true,"total":true,"aggregates":["count","max:latency","distinct:job"]"#,
    )
    .unwrap();
    assert_eq!(
        table.rows,
        [
            [hour(21), text("a"), float(2.0), float(1.0), float(1.0)],
            [hour(22), text("a"), float(1.0), float(2.0), float(1.0)],
            [hour(21), text("(other)"), float(1.0), float(4.0), float(1.0)],
            [hour(22), text("(other)"), float(1.0), float(8.0), float(1.0)],
        ]
    );
    assert_eq!(table.total.unwrap()[0], ("count".to_owned(), float(5.0)));
    let by = |order: &str| {
        let table = lines(&format!(r#""top":1,"order":{{"by":"{order}"}}"#)).unwrap();
        table.rows.into_iter().map(|row| row[1].clone()).collect::<Vec<_>>()
    };
    assert_eq!(by("max:latency"), [text("c")]);
    assert_eq!(by("sum:latency / count"), [text("c")]);
    assert_eq!(by("rate"), [text("a"), text("a")]);
    let pivot = lines(r#""top":1,"other":true,"pivot":true"#).unwrap();
    let names: Vec<_> = pivot.columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names, ["time", "a", "(other)"]);
}

#[test]
fn lines_of_numbers_and_of_several_columns_are_told_apart() {
    let rows = [row(50, 2.0, "a", 1.0), row(40, 1.0, "b", 4.0)];
    let snapshot = Snapshot::of([segment_of(&rows)]);
    let ask = |group_by: &str| {
        let json = format!(
            r#"{{"dataset":"d","since":"-1 hour","view":"series","group_by":{group_by},
                "top":1,"other":true}}"#
        );
        answer_document(&document(&json), &snapshot, &[], NOW, &Limits::default())
    };
    let table = ask(r#"["bucket(latency, 2)"]"#).unwrap().table;
    let groups: Vec<_> = table.rows.iter().map(|row| row[1].clone()).collect();
    assert_eq!(groups, [Value::Float(0.0), Value::String("(other)".to_owned())]);
    assert_eq!(table.columns[1].kind, ColumnKind::Mixed);
    let several = ask(r#"["job","latency"]"#).unwrap_err().to_string();
    assert!(several.starts_with("the line of all others needs a series by one column"));
    let json = r#"{"dataset":"d","view":"series","top":1,"compare":"previous"}"#;
    let compared =
        answer_document(&document(json), &snapshot, &[], NOW, &Limits::default()).unwrap_err();
    assert!(compared.to_string().contains("not of the first lines of a series"));
}
