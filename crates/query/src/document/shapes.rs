//! The views as tables: one row for each raw row, bin, node, or edge.

use super::{ColumnKind, Columns, Filter, Operator, Table, TableColumn};
use crate::Value;
use crate::differs::{Differences, Finding, Is};
use crate::views::{Distribution, Graph, Load, Samples, Sides, Tree};

fn column(name: &str, kind: ColumnKind) -> TableColumn {
    TableColumn::new(name, kind)
}

fn float(name: &str) -> TableColumn {
    column(name, ColumnKind::Float)
}

fn text(text: &str) -> Value {
    Value::String(text.to_owned())
}

fn place(place: usize) -> Value {
    i64::try_from(place).map_or(Value::Null, Value::Int)
}

/// Raw rows: their time, their weight, and their columns.
pub(super) fn of_samples(samples: &Samples, columns: &Columns) -> Table {
    let mut heads = vec![column("time", ColumnKind::Time), float("weight")];
    for name in &samples.columns {
        heads.push(column(&super::table::unused(&heads, name.clone()), columns.kind_of(name)));
    }
    let rows = samples.rows.iter().map(|row| {
        let own = [Value::Time(row.time), Value::Float(row.weight)];
        own.into_iter().chain(row.values.iter().cloned()).collect()
    });
    Table::new(heads, rows.collect())
}

/// Bins with the weight in them; with buckets of time, those of each bucket that are not empty.
pub(super) fn of_distribution(found: &Distribution, starts: &[i64]) -> Table {
    let bins = || found.borders.windows(2).enumerate();
    let ends = |bin: &[f64]| [Value::Float(bin[0]), Value::Float(bin[1])];
    let mut columns = vec![float("from"), float("to"), float("count")];
    if found.b.is_some() {
        columns.push(float("count:b"));
    }
    let mut rows = Vec::new();
    if starts.is_empty() {
        for (place, bin) in bins() {
            let counts = [Some(found.a[place]), found.b.as_ref().map(|b| b[place])];
            rows.push(
                ends(bin)
                    .into_iter()
                    .chain(counts.into_iter().flatten().map(Value::Float))
                    .collect(),
            );
        }
        return Table::new(columns, rows);
    }
    columns.insert(0, column("time", ColumnKind::Time));
    for (bucket, &start) in starts.iter().enumerate() {
        for (place, bin) in bins() {
            let b = found.heat_b.as_ref().map(|heat| heat[bucket][place]);
            let counts = [Some(found.heat_a[bucket][place]), b];
            if counts.iter().flatten().any(|count| *count != 0.0) {
                let counts = counts.into_iter().flatten().map(Value::Float);
                rows.push(
                    [Value::Time(start)].into_iter().chain(ends(bin)).chain(counts).collect(),
                );
            }
        }
    }
    Table::new(columns, rows)
}

/// What is said of a node or an edge: of all through it, and of what ends there.
fn load_columns(is_diff: bool) -> Vec<TableColumn> {
    let mut columns: Vec<_> = ["weight", "samples", "own_weight", "own_samples"].map(float).into();
    if is_diff {
        columns.extend(["weight:b", "samples:b", "own_weight:b", "own_samples:b"].map(float));
    }
    columns
}

fn loads(total: &Sides, own: Option<&Sides>, is_diff: bool) -> impl Iterator<Item = Value> {
    let numbers = |load: &Load| [Value::Float(load.weight), Value::Float(load.samples)];
    let nothing = [Value::Null, Value::Null];
    let of = |side: fn(&Sides) -> &Load| {
        [numbers(side(total)), own.map_or(nothing.clone(), |own| numbers(side(own)))].concat()
    };
    let a = of(|sides| &sides.a);
    let b = if is_diff { of(|sides| &sides.b) } else { Vec::new() };
    a.into_iter().chain(b)
}

/// Nodes in the order of the tree, each by its place with that of its parent; the first is the
/// root, which has everything in it.
pub(super) fn of_tree(tree: &Tree) -> Table {
    let mut columns = vec![
        column("node", ColumnKind::Int),
        column("parent", ColumnKind::Int),
        column("depth", ColumnKind::Int),
        column("frame", ColumnKind::String),
    ];
    columns.extend(load_columns(tree.is_diff));
    let rows = tree.nodes.iter().enumerate().map(|(number, node)| {
        let parent = node.parent.map_or(Value::Null, place);
        let named = [place(number), parent, place(node.depth), text(&node.frame)];
        named.into_iter().chain(loads(&node.total, Some(&node.own), tree.is_diff)).collect()
    });
    Table::new(columns, rows.collect())
}

/// Frames, which have no parent, then edges, which have nothing of their own.
pub(super) fn of_graph(graph: &Graph, is_diff: bool) -> Table {
    let mut columns =
        vec![column("parent", ColumnKind::String), column("frame", ColumnKind::String)];
    columns.extend(load_columns(is_diff));
    let frames = graph.nodes.iter().map(|node| {
        let named = [Value::Null, text(&node.frame)];
        named.into_iter().chain(loads(&node.total, Some(&node.own), is_diff)).collect()
    });
    let frame = |place: usize| text(&graph.nodes[place].frame);
    let edges = graph.edges.iter().map(|edge| {
        let named = [frame(edge.parent), frame(edge.child)];
        named.into_iter().chain(loads(&edge.total, None, is_diff)).collect()
    });
    Table::new(columns, frames.chain(edges).collect())
}

/// What A has more of, each as a condition that chooses such rows, with how many percent of A and
/// of B meet it, and how likely that is by chance: alone, and as one of all that were looked at.
pub(super) fn of_differences(found: &Differences) -> Table {
    let mut columns =
        vec![column("column", ColumnKind::String), column("condition", ColumnKind::String)];
    columns.extend(["percent", "percent:b", "p", "q"].map(float));
    let rows = found.findings.iter().map(|finding| {
        let named = [text(&finding.column), text(&condition(finding))];
        let numbers = [100.0 * finding.share_a, 100.0 * finding.share_b, finding.p, finding.q];
        named.into_iter().chain(numbers.map(Value::Float)).collect()
    });
    Table::new(columns, rows.collect())
}

fn condition(finding: &Finding) -> String {
    let column = || finding.column.clone();
    let is = |op, value: String| Filter { column: column(), op, values: vec![value] }.to_string();
    let is_there = |op| Filter { column: column(), op, values: Vec::new() }.to_string();
    match &finding.is {
        Is::Value(value) => is(Operator::Eq, super::table::text_of(value)),
        Is::Item(item) => is(Operator::Any, item.clone()),
        Is::Between(None, None) => is_there(Operator::NotNull),
        Is::Between(Some(from), None) => is(Operator::Gte, from.to_string()),
        Is::Between(None, Some(end)) => is(Operator::Lt, end.to_string()),
        Is::Between(Some(from), Some(end)) => {
            let (from, end) = (from.to_string(), end.to_string());
            format!("{} && {}", is(Operator::Gte, from), is(Operator::Lt, end))
        }
        Is::Missing => is_there(Operator::Null),
    }
}
