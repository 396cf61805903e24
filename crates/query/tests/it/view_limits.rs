//! Every view stops when it is told to, and keeps to its memory.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use perflab_query::algebra::{Aggregate, Dimension, Question};
use perflab_query::compare::{Against, Rule, compare, judge};
use perflab_query::differs::differs;
use perflab_query::expression::{Expression, derived};
use perflab_query::views::{
    Bins, DistributionQuestion, Fold, TreeQuestion, distribution, graph, samples, series, tree,
};
use perflab_query::{Limits, QueryError, Selection, Stop};
use perflab_store::segment::Snapshot;

use perflab_query::testing::{Cell, Row, segment_of};

type View = fn(&Snapshot, &Limits) -> Result<(), QueryError>;

/// Each of them, with something to ask of the rows below.
const VIEWS: [(&str, View); 9] = [
    ("compare", |snapshot, limits| {
        let against = Against::Before(10);
        compare(&by_name(), &against, snapshot, limits).map(drop)
    }),
    ("judge", |snapshot, limits| {
        let (all, columns) = (Selection::default(), ["name".to_owned()]);
        judge(&columns, "value", &all, &all, &Rule::default(), snapshot, limits).map(drop)
    }),
    ("series", |snapshot, limits| series(&by_name(), &[0, 50], snapshot, limits).map(drop)),
    ("distribution", |snapshot, limits| {
        let (column, bins, starts) = ("value".to_owned(), Bins::Log, vec![0, 50]);
        let question = DistributionQuestion { column, bins, count: 10, starts };
        distribution(&question, &Selection::default(), None, snapshot, limits).map(drop)
    }),
    ("samples", |snapshot, limits| {
        samples(&Selection::default(), &[], 50, snapshot, limits).map(drop)
    }),
    ("tree", |snapshot, limits| {
        let (column, fold) = ("stack".to_owned(), Fold::FromRoot);
        let question = TreeQuestion { column, fold, nodes_max: 10 };
        tree(&question, &Selection::default(), None, snapshot, limits).map(drop)
    }),
    ("graph", |snapshot, limits| {
        graph("stack", 10, &Selection::default(), None, snapshot, limits).map(drop)
    }),
    ("differs", |snapshot, limits| {
        let (a, b) = (Selection::default(), Selection::default());
        differs(&a, &b, 10, snapshot, limits).map(drop)
    }),
    ("derived", |snapshot, limits| {
        let expression = Expression::parse("concat(name, value)").unwrap();
        derived(snapshot, None, &[("both".to_owned(), expression)], limits).map(drop)
    }),
];

fn by_name() -> Question {
    Question {
        range: Some((10, 100)),
        group_by: vec![Dimension::Column("name".to_owned())],
        aggregates: vec![Aggregate::Count],
        ..Question::default()
    }
}

fn snapshot() -> Snapshot {
    let row = |n: i64| {
        let cells = vec![
            ("name".to_owned(), Cell::String(format!("name {n}"))),
            ("stack".to_owned(), Cell::Vector(vec!["main".to_owned(), format!("f{n}")])),
            ("value".to_owned(), Cell::Float(n as f64)),
        ];
        Row { time: n, weight: 1.0, cells }
    };
    let rows: Vec<Row> = (0..100).map(row).collect();
    Snapshot::of([segment_of(&rows[..60]), segment_of(&rows[60..])])
}

#[test]
fn a_view_stops_when_it_is_told_to() {
    let snapshot = snapshot();
    for (name, view) in VIEWS {
        view(&snapshot, &Limits::default()).unwrap();
        let stops = [
            (Stop::Canceled, "the question was canceled"),
            (
                Stop::TimedOut(Duration::from_secs(3)),
                "the answer took longer than the 3 s that a question may take: ask about less time",
            ),
        ];
        for (stop, expected) in stops {
            let limits = Limits { stop: Box::new(move || Some(stop)), ..Limits::default() };
            assert_eq!(view(&snapshot, &limits).unwrap_err().to_string(), expected, "{name}");
        }
    }
}

/// However late it is told: every time that it asks, it heeds the answer.
#[test]
fn a_view_heeds_every_answer() {
    let snapshot = snapshot();
    for (name, view) in VIEWS {
        let asked = std::sync::Arc::new(AtomicUsize::new(0));
        let limits_after = |count: usize| {
            let asked = std::sync::Arc::clone(&asked);
            asked.store(0, Ordering::Relaxed);
            let is_late = move || asked.fetch_add(1, Ordering::Relaxed) >= count;
            let stop = Box::new(move || is_late().then_some(Stop::Canceled));
            Limits { stop, ..Limits::default() }
        };
        view(&snapshot, &limits_after(usize::MAX)).unwrap();
        let all = asked.load(Ordering::Relaxed);
        for count in (0..all).step_by(all.div_ceil(20)) {
            let found = view(&snapshot, &limits_after(count));
            assert!(matches!(found, Err(QueryError::Canceled)), "{name} after {count} of {all}");
        }
    }
}

#[test]
fn a_view_keeps_to_its_memory() {
    let snapshot = snapshot();
    for (name, view) in VIEWS {
        let limits = Limits { memory_bytes: 100, ..Limits::default() };
        let found = view(&snapshot, &limits);
        assert!(matches!(found, Err(QueryError::TooMuchMemory { limit: 100 })), "{name}");
    }
}
