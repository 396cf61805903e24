//! Two answers side by side, and verdicts.

use perflab_query::algebra::{Aggregate, Condition, Dimension, Order, Question, Test, Top};
use perflab_query::compare::{Against, Better, Change, Rule, Verdict, compare, judge, verdict};
use perflab_query::{Limits, Selection, Value, answer};
use perflab_store::segment::Snapshot;
use proptest::prelude::*;

use perflab_query::testing::{Cell, Row, row, segment_of};

fn measured(time: i64, weight: f64, group: &str, value: f64) -> Row {
    let cells = vec![
        ("group".to_owned(), Cell::String(group.to_owned())),
        ("value".to_owned(), Cell::Float(value)),
    ];
    Row { time, weight, cells }
}

fn is_close(x: f64, y: f64, error: f64) -> bool {
    (x - y).abs() <= error
}

/// The second example of Welch's test at <https://en.wikipedia.org/wiki/Welch%27s_t-test>, whose
/// table says t = −1.57, 9.9 degrees of freedom and P = 0.149.
#[test]
fn means_are_judged_as_published() {
    let a = [17.2, 20.9, 22.6, 18.1, 21.7, 21.4, 23.5, 24.2, 14.7, 21.8];
    let b = [
        21.5, 22.8, 21.0, 23.0, 21.6, 23.6, 22.5, 20.7, 23.4, 21.8, 20.7, 21.7, 21.5, 22.5, 23.6,
        21.5, 22.5, 23.5, 21.5, 21.8,
    ];
    for weight in [1.0, 10.0] {
        let rows = |values: &[f64], time: i64| -> Vec<Row> {
            values.iter().map(|&value| measured(time, weight, "g", value)).collect()
        };
        let snapshot = Snapshot::of([segment_of(&rows(&a, 15)), segment_of(&rows(&b, 5))]);
        let question = Question {
            range: Some((10, 20)),
            aggregates: vec![Aggregate::Avg("value".to_owned())],
            ..Question::default()
        };
        let against = Against::previous_period(&question).unwrap();
        let compared = compare(&question, &against, &snapshot, &Limits::default()).unwrap();
        let change = compared.rows[0].changes[0];
        assert!(is_close(change.a.unwrap(), 20.61, 1e-9));
        assert!(is_close(change.delta.unwrap(), 20.61 - 22.135, 1e-9));
        // Weights that are all the same change nothing: the rows are as many as they are.
        assert!(is_close(change.p.unwrap(), 0.149, 5e-4), "{:?}", change.p);
        let (low, high) = change.interval.unwrap();
        assert!(low < change.delta.unwrap() && change.delta.unwrap() < 0.0 && high > 0.0);
    }
}

/// 100 events against 140: z = 40 / √240 = 2.582, P = 0.0098. When each row stands for ten of
/// them, z = 40 / √2400 and the difference is nothing.
#[test]
fn counts_are_judged_with_their_weights() {
    for (weight, rows, p) in [(1.0, [100, 140], 0.009_823), (10.0, [10, 14], 0.414_216)] {
        let side = |count: usize, name: &str| -> Vec<Row> {
            (0..count).map(|_| measured(0, weight, name, 1.0)).collect()
        };
        let snapshot =
            Snapshot::of([segment_of(&side(rows[0], "a")), segment_of(&side(rows[1], "b"))]);
        let is = |name: &str| {
            vec![vec![Condition {
                column: "group".to_owned(),
                test: Test::In(vec![name.to_owned()]),
            }]]
        };
        let question =
            Question { any_of: is("a"), aggregates: vec![Aggregate::Count], ..Question::default() };
        let compared =
            compare(&question, &Against::Rows(is("b")), &snapshot, &Limits::default()).unwrap();
        let change = compared.rows[0].changes[0];
        assert_eq!((change.a, change.b, change.delta), (Some(100.0), Some(140.0), Some(-40.0)));
        assert!(is_close(change.relative.unwrap(), -40.0 / 140.0, 1e-12));
        assert!(is_close(change.p.unwrap(), p, 1e-6), "{:?}", change.p);
    }
}

#[test]
fn groups_of_one_side_are_kept_and_buckets_are_moved_along() {
    let rows = [
        measured(0, 1.0, "old", 5.0),
        measured(1, 2.0, "both", 5.0),
        measured(10, 4.0, "both", 7.0),
        measured(11, 8.0, "new", 5.0),
    ];
    let snapshot = Snapshot::of([segment_of(&rows)]);
    let mut question = Question {
        range: Some((10, 20)),
        group_by: vec![Dimension::Column("group".to_owned())],
        aggregates: vec![Aggregate::Count, Aggregate::Avg("value".to_owned())],
        ..Question::default()
    };
    let groups = |question: &Question| -> Vec<(String, [Option<f64>; 3])> {
        let compared =
            compare(question, &Against::Before(10), &snapshot, &Limits::default()).unwrap();
        assert_eq!(compared.rows_scanned, 4);
        let of = |change: &Change| [change.a, change.b, change.relative];
        let name = |group: &[Value]| format!("{:?}", group[0]);
        compared.rows.iter().map(|row| (name(&row.group), of(&row.changes[0]))).collect()
    };
    let both = || ("String(\"both\")".to_owned(), [Some(4.0), Some(2.0), Some(1.0)]);
    let new = || ("String(\"new\")".to_owned(), [Some(8.0), Some(0.0), None]);
    let old = || ("String(\"old\")".to_owned(), [Some(0.0), Some(1.0), Some(-1.0)]);
    assert_eq!(groups(&question), [both(), new(), old()]);
    question.top = Some(Top { count: 1, by: 0, order: Order::Descending });
    assert_eq!(groups(&question), [new(), both()], "the first of A, and the first of B");
    question.top = Some(Top { count: 9, by: 0, order: Order::Ascending });
    assert_eq!(groups(&question), [both(), new(), old()]);
    question.top = None;
    question.group_by = vec![Dimension::Time(vec![10, 11])];
    let times = groups(&question);
    assert_eq!(times[0], ("Time(10)".to_owned(), [Some(4.0), Some(1.0), Some(3.0)]));
    assert_eq!(times[1], ("Time(11)".to_owned(), [Some(8.0), Some(2.0), Some(3.0)]));
    question.group_by = Vec::new();
    let mean = compare(&question, &Against::Before(10), &Snapshot::default(), &Limits::default())
        .unwrap()
        .rows[0]
        .changes[1];
    assert_eq!(mean, Change::default());
    question.top = Some(Top { count: 9, by: 2, order: Order::Ascending });
    let refused =
        compare(&question, &Against::Before(10), &snapshot, &Limits::default()).unwrap_err();
    assert_eq!(refused.to_string(), "there is no aggregate 2 to order by");
}

proptest! {
    #[test]
    fn both_sides_are_what_they_are_alone(rows in prop::collection::vec(row(), 0..60), shift in 0_i64..50) {
        let snapshot = Snapshot::of([segment_of(&rows)]);
        let question = |start: i64| Question {
            range: Some((start, start + 50)),
            group_by: vec![Dimension::Column("s".to_owned())],
            aggregates: vec![
                Aggregate::Count, Aggregate::Avg("f".to_owned()), Aggregate::Max("i".to_owned()),
                Aggregate::Distinct("m".to_owned()),
            ],
            ..Question::default()
        };
        let compared = compare(&question(50), &Against::Before(shift), &snapshot, &Limits::default()).unwrap();
        let a = answer(&question(50), &snapshot, &Limits::default()).unwrap();
        let b = answer(&question(50 - shift), &snapshot, &Limits::default()).unwrap();
        let missing = [Some(0.0), None, None, Some(0.0)];
        for row in &compared.rows {
            for (side, of) in [(&a, (|c| c.a) as fn(&Change) -> Option<f64>), (&b, |c| c.b)] {
                let alone = side.rows.iter().find(|other| other.group == row.group);
                let alone = alone.map_or(missing.to_vec(), |row| row.values.clone());
                prop_assert_eq!(row.changes.iter().map(of).collect::<Vec<_>>(), alone);
            }
            for change in &row.changes {
                prop_assert!(change.p.is_none_or(|p| (0.0..=1.0).contains(&p)));
                if let (Some((low, high)), Some(delta)) = (change.interval, change.delta) {
                    prop_assert!(low <= delta && delta <= high);
                }
            }
        }
        let in_either = |group: &Vec<Value>| {
            a.rows.iter().chain(&b.rows).any(|row| row.group == *group)
        };
        prop_assert!(compared.rows.iter().all(|row| in_either(&row.group)));
        prop_assert!(compared.rows.len() >= a.rows.len().max(b.rows.len()));
    }

    #[test]
    fn a_verdict_does_not_depend_on_the_order_of_sides(
        before in prop::collection::vec(1.0..2.0, 0..12), after in prop::collection::vec(1.0..2.0, 0..12),
    ) {
        let (lower, higher) = (Rule::default(), Rule { better: Better::Higher, ..Rule::default() });
        let judged = verdict(&before, &after, &lower);
        let expected = match judged.verdict {
            Verdict::Slower => Verdict::Faster,
            Verdict::Faster => Verdict::Slower,
            Verdict::Same => Verdict::Same,
            Verdict::Unknown => Verdict::Unknown,
        };
        prop_assert_eq!(verdict(&before, &after, &higher).verdict, expected);
        prop_assert_eq!(verdict(&before, &after, &lower), judged, "the same every time");
        if let Some((low, high)) = judged.interval {
            prop_assert!(low <= high && before.len() >= 3 && after.len() >= 3);
        }
    }
}

#[test]
fn verdicts_follow_the_rule() {
    let of = |before: &[f64], after: &[f64]| verdict(before, after, &Rule::default());
    let runs = [100.0, 100.5, 99.8, 100.2, 99.9];
    let times = |factor: f64| runs.map(|run| run * factor);
    assert_eq!(of(&runs, &times(1.1)).verdict, Verdict::Slower);
    assert_eq!(of(&runs, &times(0.9)).verdict, Verdict::Faster);
    assert_eq!(of(&runs, &runs).verdict, Verdict::Same);
    assert_eq!(of(&runs, &times(1.005)).verdict, Verdict::Same);
    assert_eq!(of(&runs, &times(1.02)).verdict, Verdict::Unknown, "at the threshold");
    assert_eq!(of(&runs, &[80.0, 100.0, 125.0]).verdict, Verdict::Unknown, "too noisy");
    assert_eq!(of(&runs[..2], &times(2.0)).verdict, Verdict::Unknown, "too few runs");
    let nothing = of(&[], &[]);
    assert_eq!((nothing.verdict, nothing.before, nothing.change), (Verdict::Unknown, None, None));
    let from_zero = of(&[0.0, 1.0, 1.0], &runs);
    assert_eq!((from_zero.verdict, from_zero.change), (Verdict::Unknown, None));
    let judged = of(&[1.0, 2.0, 3.0, 4.0], &[5.0, 5.0, 5.0]);
    assert_eq!((judged.before, judged.after, judged.change), (Some(2.5), Some(5.0), Some(1.0)));
    assert_eq!((judged.runs_before, judged.runs_after), (4, 3));
}

#[test]
fn stored_measurements_are_judged_by_series() {
    let mut rows = Vec::new();
    for (time, factor) in [(0, 1.0), (10, 1.2)] {
        for run in [100.0, 101.0, 99.0, 100.0] {
            rows.push(measured(time, 1.0, "slow", run * factor));
            rows.push(measured(time, 1.0, "same", run));
        }
    }
    rows.push(measured(10, 1.0, "new", 1.0));
    let snapshot = Snapshot::of([segment_of(&rows[..7]), segment_of(&rows[7..])]);
    let side = |start| Selection { range: Some((start, start + 10)), any_of: Vec::new() };
    let columns = ["group".to_owned()];
    let judged = judge(
        &columns,
        "value",
        &side(0),
        &side(10),
        &Rule::default(),
        &snapshot,
        &Limits::default(),
    )
    .unwrap();
    assert_eq!(judged.rows_scanned, 17);
    let judged = judged.series;
    let found: Vec<_> = judged
        .iter()
        .map(|judged| (format!("{:?}", judged.series[0]), judged.judgement.verdict))
        .collect();
    let expected = [("new", Verdict::Unknown), ("same", Verdict::Same), ("slow", Verdict::Slower)];
    assert_eq!(found, expected.map(|(name, verdict)| (format!("String({name:?})"), verdict)));
    assert!(is_close(judged[2].judgement.change.unwrap(), 0.2, 1e-9));
}
