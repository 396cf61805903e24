//! Documents, from what they ask to the table that is shown.

use perflab_model::{Kind, Nanos};

use super::{
    ColumnKind, Columns, DOCUMENT_BYTES_MAX, Document, DocumentError, Plan, Table, TableColumn,
    Times,
};
use crate::algebra::{Aggregate, Condition, Dimension, Order, Test, Top};
use crate::{Answer, AnswerRow, Value};

const NOW: Nanos = Nanos(1_700_000_000_000_000_000);
const HOUR: i64 = 3_600_000_000_000;

fn columns() -> Columns {
    let named = [
        ("job", Kind::String),
        ("latency", Kind::Float),
        ("errors", Kind::Int),
        ("size", Kind::Int),
        ("size", Kind::Float),
        ("tags", Kind::Set),
        ("count", Kind::Int),
    ];
    named.into_iter().map(|(name, kind)| (name.to_owned(), kind)).collect()
}

fn try_plan(json: &str) -> Result<Plan, DocumentError> {
    let json = format!(r#"{{"dataset":"builds",{json}}}"#);
    let document = Document::from_json(json.as_bytes())?;
    Plan::new(&document, &columns(), &Times::new(&document, NOW)?)
}

fn plan(json: &str) -> Plan {
    try_plan(json).unwrap_or_else(|error| panic!("{json}: {error}"))
}

fn error(json: &str) -> String {
    let error = try_plan(json).unwrap_err();
    let source = std::error::Error::source(&error);
    source.map_or_else(|| error.to_string(), |source| format!("{error}: {source}"))
}

fn text(text: &str) -> Value {
    Value::String(text.to_owned())
}

fn finish(plan: &Plan, rows: &[(&[Value], &[Option<f64>])]) -> Table {
    let rows = rows
        .iter()
        .map(|(group, values)| AnswerRow { group: group.to_vec(), values: values.to_vec() });
    plan.finish(Answer { rows: rows.collect(), ..Answer::default() }).unwrap()
}

fn names(table: &Table) -> Vec<&str> {
    table.columns.iter().map(|column| column.name.as_str()).collect()
}

#[test]
fn a_document_becomes_a_question() {
    let plan = plan(
        r#""since":"-1 hour","any_of":[[{"column":"job","op":"eq","values":["a"]}]],
           "group_by":["job"],"aggregates":["count","p99:latency"],"top":5"#,
    );
    let question = &plan.question;
    assert_eq!(question.range, Some((NOW.0 - HOUR, NOW.0)));
    let condition = Condition { column: "job".to_owned(), test: Test::In(vec!["a".to_owned()]) };
    assert_eq!(question.any_of, [[condition]]);
    assert_eq!(question.group_by, [Dimension::Column("job".to_owned())]);
    let p99 = Aggregate::Percentile(0.99, "latency".to_owned());
    assert_eq!(question.aggregates, [Aggregate::Count, p99]);
    assert_eq!(question.top, Some(Top { count: 5, by: 0, order: Order::Descending }));
}

#[test]
fn names_that_are_not_there_have_a_neighbour() {
    assert_eq!(
        error(r#""aggregates":["avg:latecy"]"#),
        "there is no column `latecy` in dataset `builds`; did you mean `latency`?"
    );
    assert_eq!(
        error(r#""group_by":["jobb"]"#),
        "there is no column `jobb` in dataset `builds`; did you mean `job`?"
    );
    assert_eq!(
        error(r#""any_of":[[{"column":"zzz","op":"null"}]]"#),
        "there is no column `zzz` in dataset `builds`"
    );
    assert_eq!(
        error(r#""timezone":"Europe/Belrin""#),
        "there is no time zone `Europe/Belrin`; did you mean `Europe/Berlin`?"
    );
    assert!(error(r#""any_of":[[{"column":"time","op":"gt","values":[1]}]]"#).contains("`since`"));
}

#[test]
fn times_and_limits_that_make_no_sense_are_refused() {
    assert!(error(r#""since":"now","until":"-1 day""#).starts_with("the range is empty: "));
    assert!(error(r#""since":"noon""#).starts_with("the start of the range is not a time: "));
    assert!(error(r#""group_by":["time:1 parsec"]"#).starts_with("`time:1 parsec` is no bucket"));
    assert!(error(r#""since":"-1 year","group_by":["time:1s"]"#).contains("choose wider ones"));
    assert_eq!(
        error(r#""top":1000001"#),
        "1000001 rows of `top` are more than 1000000, which is the limit"
    );
    assert_eq!(error(r#""aggregates":["count","count"]"#), "`count` is asked for twice");
    assert_eq!(error(r#""group_by":["job","job"]"#), "`job` is asked for twice");
    assert_eq!(
        error(r#""any_of":[[{"column":"job","op":"gt","values":["a","b"]}]]"#),
        "`gt` of column `job` takes one value, not 2"
    );
    assert!(error(r#""order":{"by":"zzz"}"#).starts_with("`zzz` to order by is neither a group"));
    assert_eq!(error(r#""pivot":true"#), "a pivot needs something to group by");
}

#[test]
fn columns_say_what_they_hold_and_have_names_of_their_own() {
    let plan = plan(r#""group_by":["count","size","tags","time"],"aggregates":["count"]"#);
    let table = finish(&plan, &[]);
    let column = |name: &str, kind| TableColumn { name: name.to_owned(), kind };
    assert_eq!(
        table.columns,
        [
            column("count", ColumnKind::Int),
            column("size", ColumnKind::Float),
            column("tags", ColumnKind::Set),
            column("time", ColumnKind::Time),
            column("count (2)", ColumnKind::Float),
        ]
    );
}

#[test]
fn a_rate_is_per_second_of_the_range() {
    let plan = plan(r#""since":"-1 hour","aggregates":["rate","rate:errors"]"#);
    assert_eq!(plan.question.aggregates, [Aggregate::Count, Aggregate::Sum("errors".to_owned())]);
    let table = finish(&plan, &[(&[], &[Some(7200.0), None])]);
    assert_eq!(table.rows, [[Value::Float(2.0), Value::Null]]);
}

#[test]
fn a_rate_in_a_series_is_per_second_of_the_bucket_as_far_as_it_is_asked_for() {
    // From 21:43:20 to 22:13:20: the first bucket has 16:40 in the range, the second 13:20.
    let plan = plan(r#""since":"-30 minutes","group_by":["time:1h"],"aggregates":["rate"]"#);
    let Dimension::Time(starts) = &plan.question.group_by[0] else { panic!("no time") };
    let &[first, second] = &starts[..] else { panic!("{starts:?}") };
    let table = finish(
        &plan,
        &[(&[Value::Time(second)], &[Some(800.0)]), (&[Value::Time(first)], &[Some(1000.0)])],
    );
    assert_eq!(
        table.rows,
        [[Value::Time(first), Value::Float(1.0)], [Value::Time(second), Value::Float(1.0)]],
        "in the order of time"
    );
}

#[test]
fn a_ratio_with_nothing_below_has_no_value_and_comes_last() {
    let plan = plan(
        r#""group_by":["job"],"aggregates":["sum:errors / count"],
           "order":{"by":"sum:errors / count","descending":false}"#,
    );
    assert_eq!(plan.question.top, None, "the engine can't order by a ratio");
    let rows: [(&[Value], &[Option<f64>]); 3] = [
        (&[text("none")], &[Some(1.0), Some(0.0)]),
        (&[text("half")], &[Some(1.0), Some(2.0)]),
        (&[text("tenth")], &[Some(1.0), Some(10.0)]),
    ];
    let table = finish(&plan, &rows);
    assert_eq!(
        table.rows,
        [
            [text("tenth"), Value::Float(0.1)],
            [text("half"), Value::Float(0.5)],
            [text("none"), Value::Null],
        ]
    );
}

#[test]
fn a_series_is_over_time_whether_said_or_not() {
    let plan = plan(r#""view":"series","group_by":["job"]"#);
    assert!(matches!(&plan.question.group_by[..], [Dimension::Time(_), Dimension::Column(_)]));
    assert_eq!(names(&finish(&plan, &[])), ["time", "job", "count"]);
    let plan = self::plan(r#""view":"series","group_by":["job","time:1d"]"#);
    assert_eq!(names(&finish(&plan, &[])), ["job", "time", "count"]);
}

#[test]
fn rows_can_be_ordered_by_what_is_not_shown() {
    let plan = plan(r#""group_by":["job"],"aggregates":["count"],"order":{"by":"max:latency"}"#);
    let top = plan.question.top.unwrap();
    assert_eq!((top.by, plan.question.aggregates.len()), (1, 2));
    let rows: [(&[Value], &[Option<f64>]); 2] =
        [(&[text("a")], &[Some(9.0), Some(1.0)]), (&[text("b")], &[Some(1.0), Some(2.0)])];
    let table = finish(&plan, &rows);
    assert_eq!(table.rows, [[text("b"), Value::Float(1.0)], [text("a"), Value::Float(9.0)]]);
}

#[test]
fn equal_rows_are_in_the_order_of_their_groups() {
    let plan = plan(r#""group_by":["job"],"order":{"by":"count"}"#);
    let rows: [(&[Value], &[Option<f64>]); 3] = [
        (&[text("b")], &[Some(1.0)]),
        (&[Value::Null], &[Some(1.0)]),
        (&[text("a")], &[Some(1.0)]),
    ];
    let groups: Vec<_> = finish(&plan, &rows).rows.into_iter().map(|row| row[0].clone()).collect();
    assert_eq!(groups, [Value::Null, text("a"), text("b")]);
}

#[test]
fn rows_can_be_ordered_by_a_group() {
    let plan = plan(r#""group_by":["job"],"order":{"by":"job","descending":true},"top":1"#);
    assert_eq!(plan.question.top, None);
    let rows: [(&[Value], &[Option<f64>]); 2] =
        [(&[text("a")], &[Some(9.0)]), (&[text("b")], &[Some(1.0)])];
    assert_eq!(finish(&plan, &rows).rows, [[text("b"), Value::Float(1.0)]]);
}

#[test]
fn a_pivot_makes_columns_of_the_last_group() {
    let plan =
        plan(r#""group_by":["job","errors"],"aggregates":["count","max:latency"],"pivot":true"#);
    let rows: [(&[Value], &[Option<f64>]); 3] = [
        (&[text("a"), Value::Int(1)], &[Some(9.0), Some(0.5)]),
        (&[text("b"), Value::Int(2)], &[Some(8.0), None]),
        (&[text("a"), Value::Int(2)], &[Some(7.0), Some(0.25)]),
    ];
    let table = finish(&plan, &rows);
    assert_eq!(names(&table), ["job", "1 count", "1 max:latency", "2 count", "2 max:latency"]);
    let (one, float) = (Value::Null, Value::Float);
    assert_eq!(
        table.rows,
        [
            vec![text("a"), float(9.0), float(0.5), float(7.0), float(0.25)],
            vec![text("b"), one.clone(), one.clone(), float(8.0), one],
        ]
    );
}

#[test]
fn a_pivot_has_no_more_columns_than_anyone_can_look_at() {
    let plan = plan(r#""group_by":["errors"],"pivot":true,"top":10000"#);
    let rows = (0..=1000)
        .map(|number| AnswerRow { group: vec![Value::Int(number)], values: vec![Some(1.0)] });
    let answer = Answer { rows: rows.collect(), ..Answer::default() };
    assert!(plan.finish(answer).unwrap_err().to_string().contains("more than 1000 columns"));
}

fn form_error(json: &str) -> String {
    let error = Document::from_json(json.as_bytes()).unwrap_err();
    let source = std::error::Error::source(&error);
    source.map_or_else(|| error.to_string(), |source| format!("{error}: {source}"))
}

#[test]
fn only_the_dataset_must_be_said() {
    let read = Document::from_json(br#"{"dataset":"x"}"#).unwrap();
    assert_eq!(read, Document::new("x"));
    assert_eq!(
        serde_json::to_string(&read).unwrap(),
        r#"{"format":"perflab.query/1","dataset":"x","since":"-7 days","until":"now"}"#
    );
    assert!(form_error("{}").contains("missing field `dataset`"));
}

#[test]
fn the_example_is_read_and_written() {
    let json = r#"{"format":"perflab.query/1","dataset":"builds","since":"-7 days","until":"now","any_of":[[{"column":"status","op":"eq","values":["failed"]}]],"group_by":["job","time:1h"],"aggregates":["count","p99:latency"],"order":{"by":"count","descending":true},"top":100}"#;
    let document = Document::from_json(json.as_bytes()).unwrap();
    assert_eq!(serde_json::to_string(&document).unwrap(), json);
    assert_eq!(document.aggregates[1].to_string(), "p99:latency");
}

#[test]
fn a_field_that_is_not_there_has_a_neighbour() {
    assert_eq!(
        form_error(r#"{"dataset":"x","agregates":[]}"#),
        "there is no field `agregates` in the query; did you mean `aggregates`?"
    );
    assert_eq!(
        form_error(r#"{"dataset":"x","any_of":[[{"colum":"x"}]]}"#),
        "there is no field `colum` in a condition; did you mean `column`?"
    );
    assert_eq!(
        form_error(r#"{"dataset":"x","order":{"zzz":1}}"#),
        "there is no field `zzz` in the order"
    );
}

#[test]
fn what_is_wrong_with_a_document_is_said() {
    assert!(form_error("{").starts_with("the query is not JSON: "));
    assert!(form_error("[]").starts_with("the query is not of the form"));
    assert!(form_error(r#"{"dataset":"x","top":"many"}"#).contains("invalid type"));
    assert!(
        form_error(r#"{"format":"perflab.query/2","dataset":"x"}"#).contains("unknown variant")
    );
    assert!(
        form_error(r#"{"dataset":"x","aggregates":["cuont"]}"#).contains("did you mean `count`?")
    );
    assert_eq!(
        form_error(&" ".repeat(DOCUMENT_BYTES_MAX + 1)),
        "the query has 1048577 bytes, the limit is 1048576"
    );
}
