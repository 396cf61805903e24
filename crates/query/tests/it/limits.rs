//! Questions that would cost too much are refused, and say what was too much.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use perflab_query::algebra::{Aggregate, Dimension, Order, Question, Top};
use perflab_query::{Limits, Stop, Thresholds, answer, answer_by};
use perflab_store::segment::Snapshot;

use perflab_query::testing::{Cell, Row, segment_of};

/// As many groups as rows.
fn snapshot(rows: i64) -> Snapshot {
    let row = |n: i64| Row {
        time: n,
        weight: 1.0 + (n % 7) as f64,
        cells: vec![
            ("i".to_owned(), Cell::Int(n * 1_000_000)),
            ("s".to_owned(), Cell::String(n.to_string())),
        ],
    };
    let rows: Vec<Row> = (0..rows).map(row).collect();
    Snapshot::of(rows.chunks(4000).map(segment_of))
}

fn by(columns: &[&str]) -> Question {
    Question {
        group_by: columns.iter().map(|name| Dimension::Column((*name).to_owned())).collect(),
        aggregates: vec![Aggregate::Count],
        ..Question::default()
    }
}

fn sparse() -> Thresholds {
    Thresholds { table_bytes: 0, partition_bits: 4, ..Thresholds::default() }
}

#[test]
fn a_question_stops_when_it_is_told_to() {
    let snapshot = snapshot(20_000);
    for (stop, text) in [
        (Stop::Canceled, "the question was canceled"),
        (
            Stop::TimedOut(Duration::from_millis(1500)),
            "the answer took longer than the 1.5 s that a question may take: ask about less time",
        ),
    ] {
        for thresholds in [Thresholds::default(), sparse()] {
            let asked = AtomicUsize::new(0);
            let limits = Limits {
                stop: Box::new(move || {
                    (asked.fetch_add(1, Ordering::Relaxed) >= 3).then_some(stop)
                }),
                ..Limits::default()
            };
            let error = answer_by(&by(&["s"]), &snapshot, &limits, &thresholds).unwrap_err();
            assert_eq!(error.to_string(), text);
        }
    }
}

#[test]
fn an_answer_with_too_many_groups_is_refused_but_not_their_first() {
    let snapshot = snapshot(2000);
    let limits = Limits { groups: 1000, ..Limits::default() };
    for thresholds in [Thresholds::default(), sparse()] {
        let mut question = by(&["s", "i"]);
        let error = answer_by(&question, &snapshot, &limits, &thresholds).unwrap_err();
        let text = "more than 1000 groups: ask for the first of them, or group by fewer columns";
        assert_eq!(error.to_string(), text);
        question.top = Some(Top { count: 3, by: 0, order: Order::Descending });
        question.with_other = true;
        let answer = answer_by(&question, &snapshot, &limits, &thresholds).unwrap();
        let counts: Vec<_> = answer.rows.iter().map(|row| row.values[0].unwrap()).collect();
        assert_eq!(counts, [7.0, 7.0, 7.0]);
        let total: i64 = (0..2000).map(|n| 1 + n % 7).sum();
        assert_eq!(answer.other.unwrap().values, [Some(total as f64 - 21.0)]);
    }
}

#[test]
fn memory_has_an_end() {
    let snapshot = snapshot(20_000);
    let limits = Limits { memory_bytes: 1 << 20, ..Limits::default() };
    let text = "the answer needs more than the 1 MiB of memory that a question may use: ask about \
                less time, or group by fewer columns";
    for columns in [&["i"][..], &["s", "i"]] {
        let error = answer(&by(columns), &snapshot, &limits).unwrap_err();
        assert_eq!(error.to_string(), text);
    }
    let few = Limits { memory_bytes: 4 << 20, ..Limits::default() };
    assert_eq!(answer(&by(&["s"]), &snapshot, &few).unwrap().rows.len(), 20_000);
}

#[test]
fn what_is_made_of_sparse_columns_is_memory_of_the_question() {
    let row = |n: i64| {
        let cell = ("f".to_owned(), Cell::Float(n as f64));
        Row { time: n, weight: 1.0, cells: if n % 100 == 0 { vec![cell] } else { Vec::new() } }
    };
    let rows: Vec<Row> = (0..20_000).map(row).collect();
    let snapshot = Snapshot::of(rows.chunks(4000).map(segment_of));
    let sum = Question { aggregates: vec![Aggregate::Sum("f".to_owned())], ..Question::default() };
    let ask = |memory_bytes| {
        let limits = Limits { memory_bytes, ..Limits::default() };
        answer(&sum, &snapshot, &limits).map(|answer| answer.rows[0].values[0])
    };
    assert!(ask(20_000 * 8).unwrap_err().to_string().contains("memory that a question may use"));
    assert_eq!(ask(1 << 20).unwrap(), Some((0..200).map(|n| f64::from(n) * 100.0).sum()));
}

#[test]
fn possible_groups_have_an_end() {
    let snapshot = snapshot(300);
    let question = by(&["i"; 8]);
    let error = answer(&question, &snapshot, &Limits::default()).unwrap_err();
    assert_eq!(error.to_string(), "more than 2^64 groups are possible: group by fewer columns");
}
