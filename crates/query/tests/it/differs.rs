//! What differs between two selections.

use perflab_query::algebra::{Condition, Test};
use perflab_query::differs::{Finding, Is, differs};
use perflab_query::{Limits, Selection, Value};
use perflab_store::segment::Snapshot;
use proptest::prelude::*;

use perflab_query::testing::{Cell, Row, row, segment_of};

fn of(side: &str) -> Selection {
    let condition = Condition { column: "side".to_owned(), test: Test::In(vec![side.to_owned()]) };
    Selection { range: None, any_of: vec![vec![condition]] }
}

/// 200 rows a side. In A, half run on host `bad` and have tag `hot`, and are slow.
fn rows() -> Vec<Row> {
    let text = |text: &str| Cell::String(text.to_owned());
    let row = |n: i64, side: &str| {
        let is_bad = side == "a" && n % 2 == 0;
        let mut cells = vec![
            ("code".to_owned(), Cell::Int(if is_bad { 500 } else { 200 })),
            ("host".to_owned(), text(if is_bad { "bad" } else { "good" })),
            (
                "latency".to_owned(),
                Cell::Float((n % 100) as f64 + if is_bad { 500.0 } else { 0.0 }),
            ),
            ("noise".to_owned(), text(["x", "y", "z"][usize::try_from(n % 3).unwrap()])),
            ("side".to_owned(), text(side)),
        ];
        if is_bad {
            cells.push(("error".to_owned(), text("timeout")));
        }
        let tags =
            if is_bad { vec!["all".to_owned(), "hot".to_owned()] } else { vec!["all".to_owned()] };
        cells.push(("tags".to_owned(), Cell::Set(tags)));
        cells.sort_by(|x, y| x.0.cmp(&y.0));
        Row { time: n, weight: 2.0, cells }
    };
    (0..200).flat_map(|n| [row(n, "a"), row(n, "b")]).collect()
}

fn find<'f>(findings: &'f [Finding], column: &str) -> Option<&'f Finding> {
    findings.iter().find(|finding| finding.column == column)
}

#[test]
fn values_that_a_has_more_of_come_first() {
    let rows = rows();
    let snapshot = Snapshot::of([segment_of(&rows[..150]), segment_of(&rows[150..])]);
    let found = differs(&of("a"), &of("b"), 100, &snapshot, &Limits::default()).unwrap();
    let side = &found.findings[0];
    assert_eq!((side.column.as_str(), side.share_a, side.share_b), ("side", 1.0, 0.0));
    let expected = [
        ("host", Is::Value(Value::String("bad".to_owned()))),
        ("code", Is::Value(Value::Int(500))),
        ("error", Is::Value(Value::String("timeout".to_owned()))),
        ("tags", Is::Item("hot".to_owned())),
    ];
    for (column, is) in expected {
        let finding = find(&found.findings, column).unwrap();
        assert_eq!(finding.is, is);
        assert_eq!((finding.share_a, finding.share_b), (0.5, 0.0));
        assert!(finding.p <= finding.q && finding.q < 1e-20, "{finding:?}");
    }
    let latency = find(&found.findings, "latency").unwrap();
    let Is::Between(Some(from), None) = latency.is else { panic!("{latency:?}") };
    assert!((80.0..100.0).contains(&from) && latency.q < 1e-6, "{latency:?}");
    assert!(find(&found.findings, "noise").is_none_or(|noise| noise.q > 0.5));
    assert!(found.findings.is_sorted_by(|x, y| x.g >= y.g && x.q <= y.q));
    assert_eq!(
        differs(&of("a"), &of("b"), 2, &snapshot, &Limits::default()).unwrap().findings,
        found.findings[..2]
    );
}

/// G of the table 50, 150 / 0, 200 is 2 (50 ln 2 + 150 ln (150 / 175) + 200 ln (200 / 175)), by
/// hand 76.481.
#[test]
fn g_is_that_of_the_table() {
    let text = |text: &str| Cell::String(text.to_owned());
    let row = |n: usize| Row {
        time: 0,
        weight: 1.0,
        cells: vec![
            ("host".to_owned(), text(if n < 50 { "bad" } else { "good" })),
            ("side".to_owned(), text(if n < 200 { "a" } else { "b" })),
        ],
    };
    let rows: Vec<Row> = (0..400).map(row).collect();
    let found =
        differs(&of("a"), &of("b"), 9, &Snapshot::of([segment_of(&rows)]), &Limits::default())
            .unwrap();
    let expected = 2.0
        * (50.0 * 2_f64.ln() + 150.0 * (150.0_f64 / 175.0).ln() + 200.0 * (200.0_f64 / 175.0).ln());
    let host = find(&found.findings, "host").unwrap();
    assert!((host.g - expected).abs() < 1e-9, "{} {expected}", host.g);
}

#[test]
fn nothing_differs_from_nothing() {
    let found = differs(&of("a"), &of("b"), 9, &Snapshot::default(), &Limits::default()).unwrap();
    assert!(found.findings.is_empty() && found.looked_at == 0);
    let snapshot = Snapshot::of([segment_of(&rows())]);
    let same = differs(&of("a"), &of("a"), 9, &snapshot, &Limits::default()).unwrap();
    assert!(same.findings.is_empty(), "{same:?}");
    let none = differs(&of("none"), &of("b"), 9, &snapshot, &Limits::default()).unwrap();
    assert!(none.findings.iter().all(|finding| finding.p > 0.99));
    let weightless: Vec<Row> = rows().into_iter().map(|row| Row { weight: 0.0, ..row }).collect();
    let snapshot = Snapshot::of([segment_of(&weightless)]);
    assert!(
        differs(&of("a"), &of("b"), 9, &snapshot, &Limits::default()).unwrap().findings.is_empty()
    );
}

proptest! {
    #[test]
    fn shares_are_those_of_the_rows(rows in prop::collection::vec(row(), 0..60), cut in 0_i64..100) {
        let a = Selection { range: Some((0, cut)), any_of: Vec::new() };
        let b = Selection { range: Some((cut, 100)), any_of: Vec::new() };
        let found = differs(&a, &b, 10_000, &Snapshot::of([segment_of(&rows)]), &Limits::default()).unwrap();
        let share = |is_a: bool, has: &dyn Fn(&Row) -> bool| {
            let side = || rows.iter().filter(|row| (row.time < cut) == is_a);
            let whole: f64 = side().map(|row| row.weight).sum();
            let part: f64 = side().filter(|row| has(row)).map(|row| row.weight).sum();
            if whole > 0.0 { part / whole } else { 0.0 }
        };
        for finding in &found.findings {
            let cells = |row: &Row| row.cells_named(&finding.column).cloned().collect::<Vec<_>>();
            let has = |row: &Row| match &finding.is {
                Is::Value(value) => cells(row).first().is_some_and(|cell| cell.value() == *value),
                Is::Missing => cells(row).is_empty(),
                Is::Item(item) => cells(row).iter().any(|cell| match cell {
                    Cell::Set(items) | Cell::Vector(items) => items.contains(item),
                    Cell::Int(_) | Cell::Float(_) | Cell::String(_) => false,
                }),
                Is::Between(from, end) => cells(row).iter().find_map(Cell::number).is_some_and(|x| {
                    from.is_none_or(|from| from <= x) && end.is_none_or(|end| x < end)
                }),
            };
            // An item of a name that is a set here and a vector there is looked at as both.
            if !(finding.column == "m" && matches!(finding.is, Is::Item(_))) {
                prop_assert!((finding.share_a - share(true, &has)).abs() < 1e-9, "{finding:?}");
                prop_assert!((finding.share_b - share(false, &has)).abs() < 1e-9, "{finding:?}");
            }
            prop_assert!(finding.effect() > 0.0 && finding.p <= finding.q + 1e-12);
        }
    }
}
