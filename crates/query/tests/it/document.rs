//! A document, answered from rows.

use perflab_model::{Kind, Nanos};
use perflab_query::document::{Columns, Document, Plan};
use perflab_query::text::parse_condition;
use perflab_query::{Limits, Value, answer};
use perflab_store::segment::Snapshot;

use crate::data::{Cell, Row, segment_of};

const NOW: Nanos = Nanos(1_700_000_000_000_000_000);
const MINUTE: i64 = 60_000_000_000;

fn row(minutes_ago: i64, weight: f64, job: &str, latency: f64) -> Row {
    let cells = vec![
        ("job".to_owned(), Cell::String(job.to_owned())),
        ("latency".to_owned(), Cell::Float(latency)),
    ];
    Row { time: NOW.0 - minutes_ago * MINUTE, weight, cells }
}

fn table(document: &Document) -> (Vec<String>, Vec<Vec<Value>>) {
    let rows = [row(50, 2.0, "a", 1.0), row(20, 1.0, "b", 4.0), row(10, 1.0, "a", 2.0)];
    let snapshot = Snapshot::of([segment_of(&rows)]);
    let columns = [("job".to_owned(), Kind::String), ("latency".to_owned(), Kind::Float)];
    let columns = columns.into_iter().collect::<Columns>();
    let plan = Plan::new(document, &columns, NOW).unwrap();
    let table =
        plan.finish(answer(&plan.question, &snapshot, &Limits::default()).unwrap()).unwrap();
    (table.columns.into_iter().map(|column| column.name).collect(), table.rows)
}

fn document(json: &str) -> Document {
    Document::from_json(json.as_bytes()).unwrap()
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
