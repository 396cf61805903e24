//! Random questions over random rows: the engine says what the reference says.

use std::sync::Arc;

use perflab_query::algebra::{
    Aggregate, Comparison, Condition, Dimension, Order, Question, Test, Top,
};
use perflab_query::testing::{Cell, Row, question, row, scale, segment_of, segment_with};
use perflab_query::{
    Answer, AnswerRow, Cache, Limits, QueryError, Thresholds, Value, answer, answer_by,
};
use perflab_store::segment::{Snapshot, Sparsity, Vocabularies};
use proptest::prelude::*;

use crate::reference;

/// So that few rows go all ways through the engine: with a place for each group, sorted into
/// ranges of groups, or hashed; in one round or several.
fn thresholds() -> impl Strategy<Value = Thresholds> {
    let table_bytes = prop_oneof![Just(0), Just(1000), Just(1 << 20)];
    let segment_groups = prop_oneof![Just(4), Just(1 << 18)];
    let groups_per_row = prop_oneof![Just(0), Just(1), Just(u64::MAX)];
    let round_bytes = prop_oneof![Just(1), Just(100), Just(1 << 20)];
    (table_bytes, segment_groups, groups_per_row, 0_u32..17, round_bytes).prop_map(
        |(table_bytes, segment_groups, groups_per_row, partition_bits, round_bytes)| Thresholds {
            table_bytes,
            segment_groups,
            groups_per_row,
            partition_bits,
            round_bytes,
        },
    )
}

/// A column is sparse as soon as it has a null for each value.
const SPARSE: Sparsity = Sparsity { rows_per_value: 2, rows_min: 0 };

/// Of the rows in their parts, of which every other is sparse; with few words in its vocabularies, so that columns are given up.
fn snapshot_of(parts: &[Vec<Row>], words: usize) -> Snapshot {
    Snapshot {
        vocabularies: Arc::new(Vocabularies::with_entries_max(words)),
        ..Snapshot::of(
            parts
                .iter()
                .zip([Sparsity::NONE, SPARSE].into_iter().cycle())
                .map(|(rows, sparsity)| segment_with(rows, sparsity)),
        )
    }
}

/// Sorted, so that two answers can be compared.
fn sorted(mut rows: Vec<AnswerRow>) -> Vec<AnswerRow> {
    rows.sort_by_key(|row| format!("{:?}", row.group));
    rows
}

fn is_close(aggregate: &Aggregate, found: Option<f64>, expected: Option<f64>, scale: f64) -> bool {
    match (found, expected) {
        (None, None) => true,
        (Some(found), Some(expected)) => {
            let tolerance = match aggregate {
                // Within a bucket of the sketch.
                Aggregate::Percentile(..) => expected.abs() * 0.008,
                Aggregate::Sum(_) | Aggregate::Avg(_) | Aggregate::Stddev(_) => scale * 1e-9,
                Aggregate::Count
                | Aggregate::Samples
                | Aggregate::Min(_)
                | Aggregate::Max(_)
                | Aggregate::Distinct(_)
                | Aggregate::EffectiveSize(_) => 0.0,
            };
            (found - expected).abs() <= tolerance.max(expected.abs() * 1e-9)
        }
        _ => false,
    }
}

/// Fails unless the values of two rows are the same, as far as they can be.
fn compare(
    question: &Question,
    found: &AnswerRow,
    expected: &[Option<f64>],
    scale: f64,
) -> Result<(), TestCaseError> {
    for ((aggregate, found), expected) in
        question.aggregates.iter().zip(&found.values).zip(expected)
    {
        let is_close = is_close(aggregate, *found, *expected, scale);
        prop_assert!(is_close, "{aggregate:?}: {found:?}, not {expected:?}");
    }
    Ok(())
}

fn compare_all(question: &Question, found: Answer, rows: &[Row]) -> Result<(), TestCaseError> {
    let expected = sorted(reference::answer(question, rows));
    let scale = scale(rows);
    let total = reference::together(question, rows, &|_| true);
    compare(question, found.total.as_ref().unwrap(), &total, scale)?;
    prop_assert_eq!(&found.other, &None);
    let in_range =
        |row: &&Row| question.range.is_none_or(|(start, end)| (start..end).contains(&row.time));
    prop_assert_eq!(found.rows_scanned, rows.iter().filter(in_range).count() as u64);
    let found = sorted(found.rows);
    prop_assert_eq!(
        found.iter().map(|row| &row.group).collect::<Vec<_>>(),
        expected.iter().map(|row| &row.group).collect::<Vec<_>>()
    );
    for (found, expected) in found.iter().zip(&expected) {
        compare(question, found, &expected.values, scale)?;
    }
    Ok(())
}

/// The first groups are first, and what is left is all the others.
fn compare_top(
    question: &Question,
    top: Top,
    found: &Answer,
    rows: &[Row],
) -> Result<(), TestCaseError> {
    let all = reference::answer(question, rows);
    let scale = scale(rows);
    prop_assert_eq!(found.rows.len(), all.len().min(top.count));
    for row in &found.rows {
        let expected = all.iter().find(|other| other.group == row.group);
        prop_assert!(expected.is_some(), "{:?} is no group", row.group);
        compare(question, row, &expected.unwrap().values, scale)?;
    }
    let rank = |row: &AnswerRow| {
        let sign = if top.order == Order::Descending { -1.0 } else { 1.0 };
        row.values[top.by].map_or(f64::INFINITY, |value| value * sign)
    };
    let mut ranks: Vec<f64> = all.iter().map(rank).collect();
    ranks.sort_by(f64::total_cmp);
    for (row, expected) in found.rows.iter().zip(ranks) {
        let row = AnswerRow { group: Vec::new(), values: vec![Some(rank(row))] };
        let by = &question.aggregates[top.by..=top.by];
        let question = Question { aggregates: by.to_vec(), ..Question::default() };
        if expected.is_finite() {
            compare(&question, &row, &[Some(expected)], scale)?;
        }
    }
    let is_shown = |group: &[Value]| found.rows.iter().any(|row| row.group == group);
    prop_assert_eq!(found.other.is_some(), found.rows.len() < all.len());
    if let Some(other) = &found.other {
        let expected = reference::together(question, rows, &|group| !is_shown(group));
        compare(question, other, &expected, scale)?;
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]
    #[test]
    fn the_engine_says_what_the_reference_says(
        parts in prop::collection::vec(prop::collection::vec(row(), 0..30), 0..4),
        question in question(),
        thresholds in thresholds(),
        words in prop_oneof![Just(1 << 20), 0_usize..6],
    ) {
        let snapshot = snapshot_of(&parts, words);
        let rows: Vec<Row> = parts.concat();
        // The second time with the numbers that the first one left.
        for _ in 0..2 {
            let found = answer_by(&question, &snapshot, &Limits::default(), &thresholds).unwrap();
            compare_all(&question, found, &rows)?;
        }
    }

    #[test]
    fn sparse_columns_answer_as_dense_ones(
        parts in prop::collection::vec(prop::collection::vec(row(), 0..60), 1..3),
        question in question(),
        thresholds in thresholds(),
    ) {
        let ask = |sparsity| {
            let snapshot = Snapshot::of(parts.iter().map(|rows| segment_with(rows, sparsity)));
            answer_by(&question, &snapshot, &Limits::default(), &thresholds).unwrap()
        };
        let (sparse, dense) = (sorted(ask(SPARSE).rows), sorted(ask(Sparsity::NONE).rows));
        prop_assert_eq!(sparse.len(), dense.len());
        for (sparse, dense) in sparse.iter().zip(&dense) {
            prop_assert_eq!(&sparse.group, &dense.group);
            compare(&question, sparse, &dense.values, scale(&parts.concat()))?;
        }
    }

    /// Some segments have answered before, others come later, and time goes on.
    #[test]
    fn what_segments_said_before_is_what_they_say(
        parts in prop::collection::vec(prop::collection::vec(row(), 0..30), 1..5),
        question in question(),
        (before, later) in (0_usize..5, 0_i64..20),
        thresholds in thresholds(),
        words in prop_oneof![3 => Just(1 << 20), 1 => 0_usize..6],
        bytes_max in prop_oneof![3 => Just(1 << 20), 1 => Just(2000)],
    ) {
        let limits =
            Limits { cache: Some(Arc::new(Cache::new(bytes_max))), ..Limits::default() };
        let whole = snapshot_of(&parts, words);
        let before = before.min(parts.len());
        let mut first = whole.clone();
        first.segments.truncate(before);
        let found = answer_by(&question, &first, &limits, &thresholds).unwrap();
        compare_all(&question, found, &parts[..before].concat())?;
        let shifted = Question {
            range: question.range.map(|(start, end)| (start + later, end + later)),
            ..question.clone()
        };
        for question in [&question, &shifted, &question] {
            let found = answer_by(question, &whole, &limits, &thresholds).unwrap();
            compare_all(question, found, &parts.concat())?;
        }
    }

    #[test]
    fn the_first_groups_and_the_others_are_all(
        parts in prop::collection::vec(prop::collection::vec(row(), 0..60), 0..4),
        question in question(),
        thresholds in thresholds(),
        (count, by, is_ascending) in (0_usize..6, 0_usize..3, any::<bool>()),
    ) {
        let by = by.min(question.aggregates.len() - 1);
        let order = if is_ascending { Order::Ascending } else { Order::Descending };
        let top = Top { count, by, order };
        let asked = Question { top: Some(top), with_other: true, ..question.clone() };
        let snapshot = snapshot_of(&parts, 1 << 20);
        let found = answer_by(&asked, &snapshot, &Limits::default(), &thresholds).unwrap();
        compare_top(&question, top, &found, &parts.concat())?;
    }

}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    /// Enough rows for several blocks and for runs of time.
    #[test]
    fn large_segments_are_as_small_ones(
        kinds in prop::collection::vec(row(), 1..20),
        (times, seed) in (1_i64..1000, any::<u64>()),
        question in question(),
        thresholds in thresholds(),
    ) {
        let rows: Vec<Row> = (0..10_000_u64)
            .map(|n| {
                let pick = (n ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
                let row = kinds[pick as usize % kinds.len()].clone();
                Row { time: n as i64 * times / 10_000, ..row }
            })
            .collect();
        let snapshot = Snapshot::of(rows.chunks(6000).map(segment_of));
        let found = answer_by(&question, &snapshot, &Limits::default(), &thresholds).unwrap();
        compare_all(&question, found, &rows)?;
    }
}

fn ask(column: &str, test: Test, aggregate: Aggregate) -> Result<f64, QueryError> {
    let rows = vec![
        Row {
            time: 0,
            weight: 2.0,
            cells: vec![
                ("n".to_owned(), Cell::Int(5)),
                ("s".to_owned(), Cell::String("x".to_owned())),
            ],
        },
        Row { time: 1, weight: 1.0, cells: Vec::new() },
    ];
    let snapshot = Snapshot::of([segment_of(&rows)]);
    let condition = Condition { column: column.to_owned(), test };
    let question = Question {
        any_of: vec![vec![condition]],
        aggregates: vec![aggregate],
        ..Question::default()
    };
    Ok(answer(&question, &snapshot, &Limits::default())?.rows[0].values[0].unwrap_or(f64::NAN))
}

#[test]
fn mistakes_are_named() {
    let error = |column, test| ask(column, test, Aggregate::Count).unwrap_err().to_string();
    assert_eq!(
        error("n", Test::Compare(Comparison::Less, "abc".to_owned())),
        "`abc` is no number, and column `n` holds numbers"
    );
    assert_eq!(
        error("s", Test::Regex("(".to_owned())),
        "the regular expression for column `s` can't be used"
    );
    let huge = Test::Regex("(a{1000}){1000}".to_owned());
    assert_eq!(error("s", huge), "the regular expression for column `s` can't be used");
    let wrong = ask("n", Test::NotNull, Aggregate::Avg("s".to_owned())).unwrap_err();
    assert_eq!(wrong.to_string(), "column `s` holds strings, and this takes numbers");
    let beyond = ask("n", Test::NotNull, Aggregate::Percentile(1.5, "n".to_owned())).unwrap_err();
    assert_eq!(beyond.to_string(), "percentile 150 is not from 0 to 100");
}

#[test]
fn the_ends_of_the_integers_are_no_trap() {
    let count = |comparison, bound: &str| {
        ask("n", Test::Compare(comparison, bound.to_owned()), Aggregate::Count).unwrap()
    };
    assert_eq!(count(Comparison::Less, "1e300"), 2.0);
    assert_eq!(count(Comparison::Greater, "-inf"), 2.0);
    assert_eq!(count(Comparison::Greater, "9223372036854775807"), 0.0);
    assert_eq!(count(Comparison::Less, "-9223372036854775808"), 0.0);
    assert_eq!(count(Comparison::GreaterOrEqual, "5"), 2.0);
    assert_eq!(count(Comparison::GreaterOrEqual, "5.000001"), 0.0);
}

#[test]
fn only_segments_that_came_since_are_looked_at() {
    let rows = |from: i64| -> Vec<Row> {
        let cells = |n: i64| {
            vec![
                ("s".to_owned(), Cell::String(format!("s{}", n % 7))),
                ("f".to_owned(), Cell::Float(n as f64)),
            ]
        };
        (from..from + 10).map(|n| Row { time: n, weight: 1.0, cells: cells(n) }).collect()
    };
    let whole = Snapshot::of([0, 10, 20, 30].map(|from| segment_of(&rows(from))));
    let mut first = whole.clone();
    first.segments.truncate(3);
    let limits = Limits { cache: Some(Arc::new(Cache::new(1 << 20))), ..Limits::default() };
    let question = |range, starts| Question {
        range: Some(range),
        group_by: vec![Dimension::Time(starts), Dimension::Column("s".to_owned())],
        aggregates: vec![
            Aggregate::Percentile(0.5, "f".to_owned()),
            Aggregate::Distinct("s".to_owned()),
        ],
        ..Question::default()
    };
    let recalled = |question: &Question, snapshot: &Snapshot| {
        answer(question, snapshot, &limits).unwrap().rows_recalled
    };
    let asked = question((0, 30), vec![0, 5, 10, 20]);
    assert_eq!(recalled(&asked, &first), 0);
    assert_eq!(recalled(&asked, &first), 30);
    // Of the first segment only half is asked for now.
    assert_eq!(recalled(&question((5, 40), vec![5, 10, 20, 30]), &whole), 20);
    // The first segment is cut into other buckets.
    assert_eq!(recalled(&question((0, 40), vec![0, 10, 20, 30]), &whole), 30);
    // Conditions make it another question.
    let filter = vec![vec![Condition { column: "s".to_owned(), test: Test::NotNull }]];
    assert_eq!(recalled(&Question { any_of: filter, ..asked.clone() }, &first), 0);
    // Order and top are decided when all groups are known.
    let top = Some(Top { count: 1, by: 0, order: Order::Ascending });
    assert_eq!(recalled(&Question { top, ..asked }, &first), 30);
}

#[test]
fn the_first_groups_come_in_order() {
    let rows: Vec<Row> = (0..40)
        .map(|n| Row {
            time: n,
            weight: 1.0 + (n % 4) as f64,
            cells: vec![("i".to_owned(), Cell::Int(n % 8))],
        })
        .collect();
    let snapshot = Snapshot::of([segment_of(&rows[..13]), segment_of(&rows[13..])]);
    let ask = |count, order| {
        let question = Question {
            group_by: vec![Dimension::Column("i".to_owned())],
            aggregates: vec![Aggregate::Count, Aggregate::Max("none".to_owned())],
            top: Some(Top { count, by: 0, order }),
            ..Question::default()
        };
        let rows = answer(&question, &snapshot, &Limits::default()).unwrap().rows;
        rows.iter().map(|row| row.values[0].unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(ask(3, Order::Descending), [20.0, 20.0, 15.0]);
    assert_eq!(ask(2, Order::Ascending), [5.0, 5.0]);
    assert_eq!(ask(100, Order::Ascending).len(), 8);
    assert!(ask(0, Order::Ascending).is_empty());
}
