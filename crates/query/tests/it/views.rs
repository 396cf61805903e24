//! Views against references that look at one row after the other.

use std::collections::BTreeMap;
use std::sync::Arc;

use perflab_query::algebra::{Aggregate, Condition, Dimension, Order, Question, Test, Top};
use perflab_query::views::{
    Bins, DistributionQuestion, Fold, Line, Load, NODES_MAX, Node, OTHER, Sides, Tree,
    TreeQuestion, distribution, graph, samples, series, tree,
};
use perflab_query::{Limits, Selection, Value, answer};
use perflab_store::segment::{Snapshot, Vocabularies};
use proptest::prelude::*;

use perflab_query::testing::{Cell, Row, row, segment_of};

/// A row with a stack.
pub(crate) fn stack_row(time: i64, weight: f64, frames: &[&str]) -> Row {
    let frames = frames.iter().map(|frame| (*frame).to_owned()).collect();
    Row { time, weight, cells: vec![("v".to_owned(), Cell::Vector(frames))] }
}

pub(crate) fn question(fold: Fold, nodes_max: usize) -> TreeQuestion {
    TreeQuestion { column: "v".to_owned(), fold, nodes_max }
}

fn from(start: i64, end: i64) -> Selection {
    Selection { range: Some((start, end)), any_of: Vec::new() }
}

fn has_b() -> Selection {
    let condition = Condition { column: "s".to_owned(), test: Test::Contains("b".to_owned()) };
    Selection { range: None, any_of: vec![vec![condition]] }
}

fn is_in(selection: &Selection, row: &Row) -> bool {
    let has_b = |cell: &Cell| matches!(cell, Cell::String(text) if text.contains('b'));
    selection.range.is_none_or(|(start, end)| (start..end).contains(&row.time))
        && (selection.any_of.is_empty() || row.cells_named("s").any(has_b))
}

fn stack(row: &Row) -> Option<Vec<String>> {
    let mut cells = row.cells_named("v");
    cells.find_map(|cell| if let Cell::Vector(items) = cell { Some(items.clone()) } else { None })
}

fn load(row: &Row) -> Load {
    let samples = row.cells_named("hits").find_map(Cell::number).unwrap_or(1.0);
    Load { weight: row.weight, samples }
}

/// Each row's stack with what it weighs on each side.
fn loads(rows: &[Row], a: &Selection, b: &Selection) -> Vec<(Option<Vec<String>>, Sides)> {
    let side = |selection, row| if is_in(selection, row) { load(row) } else { Load::default() };
    let sides = |row| Sides { a: side(a, row), b: side(b, row) };
    rows.iter()
        .filter(|row| is_in(a, row) || is_in(b, row))
        .map(|row| (stack(row), sides(row)))
        .collect()
}

fn path_of(fold: &Fold, stack: &[String]) -> Option<Vec<String>> {
    match fold {
        Fold::FromRoot => Some(stack.to_vec()),
        Fold::FromLeaf => Some(stack.iter().rev().cloned().collect()),
        Fold::Callees(frame) => {
            let place = stack.iter().position(|other| other == frame)?;
            Some(stack[place..].to_vec())
        }
        Fold::Callers(frame) => {
            let place = stack.iter().position(|other| other == frame)?;
            Some(stack[..=place].iter().rev().cloned().collect())
        }
    }
}

type Paths = BTreeMap<Vec<String>, (Sides, Sides)>;

fn reference(fold: &Fold, loads: &[(Option<Vec<String>>, Sides)]) -> Paths {
    let mut nodes = Paths::from([(Vec::new(), Default::default())]);
    for (stack, load) in loads {
        let Some(path) = stack.as_ref().and_then(|stack| path_of(fold, stack)) else { continue };
        for depth in 0..=path.len() {
            let (total, own) = nodes.entry(path[..depth].to_vec()).or_default();
            *total += *load;
            if depth == path.len() {
                *own += *load;
            }
        }
    }
    nodes
}

fn path(tree: &Tree, at: usize) -> Vec<String> {
    let node: &Node = &tree.nodes[at];
    let Some(parent) = node.parent else { return Vec::new() };
    let mut path = path(tree, parent);
    path.push(node.frame.clone());
    path
}

fn close(x: f64, y: f64) -> bool {
    (x - y).abs() <= 1e-9 * x.abs().max(y.abs())
}

fn are_close(x: Sides, y: Sides) -> bool {
    let loads = |x: Load, y: Load| close(x.weight, y.weight) && close(x.samples, y.samples);
    loads(x.a, y.a) && loads(x.b, y.b)
}

/// In two segments.
fn cut(rows: &[Row], at: usize) -> Snapshot {
    let (left, right) = rows.split_at(at.min(rows.len()));
    Snapshot::of([segment_of(left), segment_of(right)])
}

/// With few numbers for strings and lists, so that the dataset may have too many of them; and with
/// some of them given by a question about one of the segments.
fn numbered(snapshot: Snapshot, entries_max: usize) -> Snapshot {
    let vocabularies = Arc::new(Vocabularies::with_entries_max(entries_max));
    let all = Snapshot { vocabularies, ..snapshot };
    let first = Snapshot { segments: all.segments[..1].to_vec(), ..all.clone() };
    for fold in [Fold::FromRoot, Fold::FromLeaf] {
        let question = question(fold, NODES_MAX);
        tree(&question, &Selection::default(), None, &first, &Limits::default()).unwrap();
    }
    all
}

fn entries_max() -> impl Strategy<Value = usize> {
    prop_oneof![Just(0), 1_usize..12, Just(1 << 20)]
}

fn fold() -> impl Strategy<Value = Fold> {
    prop_oneof![
        Just(Fold::FromRoot),
        Just(Fold::FromLeaf),
        Just(Fold::Callees("a".to_owned())),
        Just(Fold::Callers("a".to_owned())),
    ]
}

proptest! {
    #[test]
    fn a_tree_has_every_prefix_with_its_rows(
        rows in prop::collection::vec(row(), 0..60), at in 0_usize..60, fold in fold(), start in 0_i64..100, entries_max in entries_max(),
    ) {
        let (a, b) = (from(start, 100), has_b());
        let snapshot = numbered(cut(&rows, at), entries_max);
        let tree = tree(&question(fold.clone(), NODES_MAX), &a, Some(&b), &snapshot, &Limits::default()).unwrap();
        let loads = loads(&rows, &a, &b);
        let expected = reference(&fold, &loads);
        prop_assert_eq!(tree.nodes.len(), expected.len());
        for (at, node) in tree.nodes.iter().enumerate() {
            let (total, own) = expected[&path(&tree, at)];
            prop_assert!(are_close(node.total, total) && are_close(node.own, own));
            prop_assert!(node.parent.is_none_or(|parent| parent < at && tree.nodes[parent].depth + 1 == node.depth));
        }
        let mut without = Sides::default();
        loads.iter().filter(|(stack, _)| stack.is_none()).for_each(|(_, load)| without += *load);
        prop_assert!(are_close(tree.without, without));
    }

    #[test]
    fn what_is_too_small_to_be_shown_is_in_other(
        rows in prop::collection::vec(row(), 0..60), nodes_max in 0_usize..12,
    ) {
        let (all, snapshot) = (Selection::default(), Snapshot::of([segment_of(&rows)]));
        let tree = |nodes_max| tree(&question(Fold::FromRoot, nodes_max), &all, None, &snapshot, &Limits::default()).unwrap();
        let (whole, cut) = (tree(NODES_MAX), tree(nodes_max));
        prop_assert_eq!(cut.nodes[0].total, whole.nodes[0].total);
        prop_assert!(cut.nodes.iter().filter(|node| !node.is_other).count() <= nodes_max.max(1));
        let shown = |at: &usize| !cut.nodes[*at].is_other;
        for at in (0..cut.nodes.len()).filter(shown) {
            let below = cut.nodes.iter().filter(|node| node.parent == Some(at));
            let sum: f64 = below.map(|node| node.total.a.weight).sum();
            let node = &cut.nodes[at];
            prop_assert!(close(node.total.a.weight, node.own.a.weight + sum));
        }
        let total: f64 = cut.nodes.iter().map(|node| node.own.a.weight).sum();
        prop_assert!(close(total, whole.nodes[0].total.a.weight));
    }

    #[test]
    fn what_is_shown_does_not_depend_on_the_order_of_segments_or_on_numbers(
        rows in prop::collection::vec(row(), 0..60), at in 0_usize..60, fold in fold(),
        nodes_max in 0_usize..12, entries_max in entries_max(),
    ) {
        // Whole weights, whose sums are the same in every order.
        let rows: Vec<Row> = rows.into_iter().map(|row| Row { weight: row.weight.round(), ..row }).collect();
        let snapshot = cut(&rows, at);
        let mut turned = numbered(snapshot.clone(), entries_max);
        turned.segments.reverse();
        // Some lists are only those of rows that are not asked for.
        let (question, some) = (question(fold, nodes_max), from(30, 100));
        let shown = |snapshot| tree(&question, &some, None, snapshot, &Limits::default()).unwrap();
        prop_assert_eq!(shown(&snapshot), shown(&turned));
    }

    #[test]
    fn a_graph_counts_each_list_once(rows in prop::collection::vec(row(), 0..60), at in 0_usize..60, entries_max in entries_max()) {
        let (a, b) = (from(20, 100), has_b());
        let graph = graph("v", 1000, &a, Some(&b), &numbered(cut(&rows, at), entries_max), &Limits::default()).unwrap();
        let (mut nodes, mut edges) = (BTreeMap::<String, Sides>::new(), BTreeMap::<_, Sides>::new());
        for (stack, load) in loads(&rows, &a, &b) {
            let Some(stack) = stack else { continue };
            let frames: std::collections::BTreeSet<_> = stack.iter().cloned().collect();
            frames.into_iter().for_each(|frame| *nodes.entry(frame).or_default() += load);
            let pairs: std::collections::BTreeSet<_> = stack.windows(2).map(<[_]>::to_vec).collect();
            pairs.into_iter().for_each(|pair| *edges.entry(pair).or_default() += load);
        }
        prop_assert_eq!(graph.nodes.len(), nodes.len());
        prop_assert_eq!(graph.edges.len(), edges.len());
        for node in &graph.nodes {
            prop_assert!(are_close(node.total, nodes[&node.frame]));
        }
        for edge in &graph.edges {
            let name = |at: usize| graph.nodes[at].frame.clone();
            prop_assert!(are_close(edge.total, edges[&vec![name(edge.parent), name(edge.child)]]));
        }
    }

    #[test]
    fn samples_are_the_newest_rows(
        rows in prop::collection::vec(row(), 0..60), at in 0_usize..60, count in 0_usize..20, start in 0_i64..100,
    ) {
        let selection = Selection { range: Some((start, start + 40)), ..has_b() };
        let columns = ["m".to_owned(), "none".to_owned()];
        let found = samples(&selection, &columns, count, &cut(&rows, at), &Limits::default()).unwrap();
        let value = |row: &Row| row.cells_named("m").next().map_or(Value::Null, Cell::value);
        let describe = |time: i64, weight: f64, value: &Value| format!("{time:04} {weight} {value:?}");
        let mut expected: Vec<&Row> = rows.iter().filter(|row| is_in(&selection, row)).collect();
        expected.sort_by_key(|row| std::cmp::Reverse(row.time));
        let times: Vec<i64> = expected.iter().take(count).map(|row| row.time).collect();
        prop_assert_eq!(found.rows.iter().map(|row| row.time).collect::<Vec<_>>(), times);
        let all: Vec<String> = expected.iter().map(|row| describe(row.time, row.weight, &value(row))).collect();
        for row in &found.rows {
            prop_assert_eq!(row.values.len(), 2);
            prop_assert!(all.contains(&describe(row.time, row.weight, &row.values[0])));
            prop_assert_eq!(&row.values[1], &Value::Null);
        }
    }

    #[test]
    fn a_distribution_has_every_number_in_its_bin(
        rows in prop::collection::vec(row(), 0..60),
        at in 0_usize..60,
        count in 1_usize..9,
        is_log in any::<bool>(),
        column in prop::sample::select(vec!["f", "i", "none"]),
    ) {
        let bins = if is_log { Bins::Log } else { Bins::Linear };
        let question = DistributionQuestion { column: column.to_owned(), bins, count, starts: vec![10, 50] };
        let (a, b) = (from(20, 100), has_b());
        let found = distribution(&question, &a, Some(&b), &cut(&rows, at), &Limits::default()).unwrap();
        prop_assert!(found.borders.is_sorted() && found.a.len() + usize::from(!found.borders.is_empty()) == found.borders.len());
        for (selection, bins, heat) in [(&a, &found.a, &found.heat_a), (&b, &found.b.unwrap(), &found.heat_b.unwrap())] {
            let mut expected = vec![0.0; bins.len()];
            let mut expected_heat = [expected.clone(), expected.clone()];
            for row in rows.iter().filter(|row| is_in(selection, row)) {
                let Some(number) = row.cells_named(column).find_map(Cell::number) else { continue };
                let last = bins.len() - 1;
                let bin = (0..last).find(|bin| number < found.borders[bin + 1]).unwrap_or(last);
                prop_assert!(found.borders[bin] <= number && number <= found.borders[bin + 1]);
                expected[bin] += row.weight;
                if row.time >= 10 {
                    expected_heat[usize::from(row.time >= 50)][bin] += row.weight;
                }
            }
            for (found, expected) in [(bins, &expected), (&heat[0], &expected_heat[0]), (&heat[1], &expected_heat[1])] {
                prop_assert!(found.iter().zip(expected).all(|(x, y)| close(*x, *y)), "{found:?} {expected:?}");
            }
        }
    }

    #[test]
    fn a_series_is_an_answer_per_bucket(rows in prop::collection::vec(row(), 0..60), at in 0_usize..60, count in 0_usize..4) {
        let (starts, snapshot) = (vec![0, 30, 60], cut(&rows, at));
        let question = Question {
            group_by: vec![Dimension::Column("s".to_owned())],
            aggregates: vec![Aggregate::Count, Aggregate::Max("f".to_owned())],
            top: Some(Top { count, by: 0, order: Order::Descending }),
            ..Question::default()
        };
        let found = series(&question, &starts, &snapshot, &Limits::default()).unwrap();
        let groups = answer(&question, &snapshot, &Limits::default()).unwrap().rows.len();
        prop_assert_eq!(found.lines.len(), groups);
        let is_before = |x: &Line, y: &Line| {
            x.whole[0] > y.whole[0] || (x.whole[0] == y.whole[0] && x.group < y.group)
        };
        prop_assert!(found.lines.is_sorted_by(is_before));
        for line in &found.lines {
            for (bucket, range) in [(0, 30), (30, 60), (60, 1000)].into_iter().enumerate() {
                let question = Question { range: Some(range), top: None, ..question.clone() };
                let answer = answer(&question, &snapshot, &Limits::default()).unwrap();
                let row = answer.rows.into_iter().find(|row| row.group == line.group);
                let (expected, found) = (row.map(|row| row.values), &line.points[bucket]);
                let expected = expected.unwrap_or(vec![None, None]);
                prop_assert!(found.iter().zip(&expected).all(|(x, y)| x.is_some() == y.is_some()));
                prop_assert!(found.iter().flatten().zip(expected.iter().flatten()).all(|(x, y)| close(*x, *y)));
            }
        }
    }
}

#[test]
fn siblings_come_by_size_then_name_and_other_is_marked() {
    let rows = [
        stack_row(0, 2.0, &["main", "small"]),
        stack_row(1, 3.0, &["main", "b"]),
        stack_row(2, 3.0, &["main", "a", "a"]),
        stack_row(3, 1.0, &["main", "tiny"]),
    ];
    let snapshot = Snapshot::of([segment_of(&rows)]);
    let tree = tree(
        &question(Fold::FromRoot, 5),
        &Selection::default(),
        None,
        &snapshot,
        &Limits::default(),
    )
    .unwrap();
    let names: Vec<_> =
        tree.nodes.iter().map(|node| (node.frame.as_str(), node.total.a.weight)).collect();
    let expected = [("", 9.0), ("main", 9.0), (OTHER, 3.0), ("a", 3.0), ("a", 3.0), ("b", 3.0)];
    assert_eq!(names, expected);
    assert!(tree.nodes[2].is_other && tree.nodes[2].own.a.samples == 2.0);
}

#[test]
fn samples_look_no_further_than_they_must() {
    let segment = |start: i64| {
        let rows: Vec<Row> = (start..start + 10).map(|n| stack_row(n, 1.0, &["main"])).collect();
        segment_of(&rows)
    };
    let snapshot = Snapshot::of((0..20).map(|n| segment(n * 10)));
    let found = samples(&Selection::default(), &[], 3, &snapshot, &Limits::default()).unwrap();
    assert_eq!(found.rows.iter().map(|row| row.time).collect::<Vec<_>>(), [199, 198, 197]);
    assert_eq!(found.rows_scanned, 80, "of the last eight segments");
}

#[test]
fn views_of_nothing_are_empty_and_of_other_kinds_refused() {
    let (all, none) = (Selection::default(), Snapshot::default());
    let found = tree(&question(Fold::FromRoot, 9), &all, None, &none, &Limits::default()).unwrap();
    assert_eq!((found.nodes.len(), found.rows_scanned), (1, 0));
    assert!(graph("v", 9, &all, None, &none, &Limits::default()).unwrap().nodes.is_empty());
    assert!(samples(&all, &[], 9, &none, &Limits::default()).unwrap().rows.is_empty());
    let rows = [stack_row(0, 1.0, &["main"])];
    let snapshot = Snapshot::of([segment_of(&rows)]);
    assert_eq!(samples(&all, &[], 9, &snapshot, &Limits::default()).unwrap().columns, ["v"]);
    let too_many = samples(&all, &[], 100_001, &snapshot, &Limits::default()).unwrap_err();
    assert_eq!(too_many.to_string(), "100001 raw rows are more than the 100000 that can be shown");
    let row = Row { time: 0, weight: 1.0, cells: vec![("v".to_owned(), Cell::Int(1))] };
    let refused =
        graph("v", 9, &all, None, &Snapshot::of([segment_of(&[row])]), &Limits::default())
            .unwrap_err();
    assert_eq!(refused.to_string(), "column `v` holds numbers, and this takes vectors");
    let bins = DistributionQuestion {
        column: "v".to_owned(),
        bins: Bins::Linear,
        count: 0,
        starts: Vec::new(),
    };
    let refused = distribution(&bins, &all, None, &snapshot, &Limits::default()).unwrap_err();
    assert_eq!(refused.to_string(), "0 bins: a distribution has from 1 to 1000");
}
