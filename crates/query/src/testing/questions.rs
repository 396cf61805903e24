//! Random questions about random rows.

use proptest::prelude::{Just, Strategy, prop, prop_oneof};

use super::rows::item;
use crate::algebra::{Aggregate, Comparison, Condition, Dimension, Question, Test};

fn column() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["i", "f", "s", "t", "v", "m", "none"]).prop_map(str::to_owned)
}

fn number_column() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["i", "f", "none"]).prop_map(str::to_owned)
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        item(),
        (-4_i64..5).prop_map(|n| n.to_string()),
        Just("2.0".to_owned()),
        Just("-0.5".to_owned())
    ]
}

fn comparison() -> impl Strategy<Value = Comparison> {
    prop::sample::select(vec![
        Comparison::Less,
        Comparison::LessOrEqual,
        Comparison::Greater,
        Comparison::GreaterOrEqual,
    ])
}

fn regex() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "^b", "a$", "^$", "a|é", "[0-9]"]).prop_map(str::to_owned)
}

fn test() -> impl Strategy<Value = Test> {
    let texts = || prop::collection::vec(text(), 0..3);
    prop_oneof![
        texts().prop_map(Test::In),
        texts().prop_map(Test::NotIn),
        regex().prop_map(Test::Regex),
        regex().prop_map(Test::NotRegex),
        item().prop_map(Test::Contains),
        item().prop_map(Test::Prefix),
        Just(Test::Null),
        Just(Test::NotNull),
        texts().prop_map(Test::Any),
        texts().prop_map(Test::All),
        texts().prop_map(Test::None),
        texts().prop_map(Test::Exact),
        regex().prop_map(Test::ItemRegex),
        texts().prop_map(Test::StartsWith),
    ]
}

fn condition() -> impl Strategy<Value = Condition> {
    let bound = prop_oneof![
        (-5_i64..6).prop_map(|n| n.to_string()),
        (-9.0..9.0).prop_map(|x: f64| format!("{x:?}"))
    ];
    let compare = (number_column(), comparison(), bound)
        .prop_map(|(column, comparison, bound)| (column, Test::Compare(comparison, bound)));
    let compare_text = (comparison(), item())
        .prop_map(|(comparison, bound)| ("s".to_owned(), Test::Compare(comparison, bound)));
    prop_oneof![3 => (column(), test()), 1 => compare, 1 => compare_text]
        .prop_map(|(column, test)| Condition { column, test })
}

fn dimension() -> impl Strategy<Value = Dimension> {
    let starts = prop::collection::btree_set(0_i64..100, 1..5)
        .prop_map(|starts| Dimension::Time(starts.into_iter().collect()));
    prop_oneof![4 => column().prop_map(Dimension::Column), 1 => starts]
}

fn aggregate() -> impl Strategy<Value = Aggregate> {
    prop_oneof![
        Just(Aggregate::Count),
        Just(Aggregate::Samples),
        number_column().prop_map(Aggregate::Sum),
        number_column().prop_map(Aggregate::Avg),
        number_column().prop_map(Aggregate::Min),
        number_column().prop_map(Aggregate::Max),
        number_column().prop_map(Aggregate::Stddev),
        column().prop_map(Aggregate::Distinct),
        prop::option::of(number_column()).prop_map(Aggregate::EffectiveSize),
        (0.0..=1.0, number_column()).prop_map(|(part, column)| Aggregate::Percentile(part, column)),
    ]
}

/// A question about such rows, without an order and with the total.
pub fn question() -> impl Strategy<Value = Question> {
    let range = prop::option::of((0_i64..100, 0_i64..60))
        .prop_map(|range| range.map(|(start, length)| (start, start + length)));
    let any_of = prop::collection::vec(prop::collection::vec(condition(), 0..3), 0..3);
    let group_by = prop::collection::vec(dimension(), 0..3);
    let aggregates = prop::collection::vec(aggregate(), 1..4);
    (range, any_of, group_by, aggregates).prop_map(|(range, any_of, group_by, aggregates)| {
        Question { range, any_of, group_by, aggregates, with_total: true, ..Question::default() }
    })
}
