//! The rows of an answer as they were asked for: rates, ratios, order, pivot.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use perflab_model::{Kind, Nanos};
use schemars::JsonSchema;
use serde::Serialize;

use super::{DocumentError, Plan};
use crate::algebra::{self, Dimension, Top};
use crate::compare::{Change, Compared};
use crate::time::Range;
use crate::{Answer, AnswerRow, Value};

/// The most columns that a pivot may have.
pub const PIVOT_COLUMNS_MAX: usize = 1000;

const NANOS_PER_SECOND: f64 = 1e9;

/// An answer as a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    pub columns: Vec<TableColumn>,
    /// One value per column.
    pub rows: Vec<Vec<Value>>,
    /// The metrics of all groups together that are not among the rows,
    pub other: Option<Vec<Metered>>,
    /// and of all groups together.
    pub total: Option<Vec<Metered>>,
}

/// A metric by the name of its column, and its value.
pub type Metered = (String, Value);

impl Table {
    pub(super) fn new(columns: Vec<TableColumn>, rows: Vec<Vec<Value>>) -> Self {
        Self { columns, rows, other: None, total: None }
    }
}

/// A column of an answer. No two have the same name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableColumn {
    pub name: String,
    pub kind: ColumnKind,
}

/// What the values of a column are, besides null.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ColumnKind {
    Int,
    Float,
    String,
    Set,
    Vector,
    Time,
    /// Of several of these, since rows were sent so.
    Mixed,
}

/// Why an answer can't be shown as it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    #[error(
        "the pivot has more than {PIVOT_COLUMNS_MAX} columns: ask for fewer groups with `top`, or \
         pivot by a column with fewer values"
    )]
    TooManyColumns,
}

impl TableColumn {
    pub(super) fn new(name: impl Into<String>, kind: ColumnKind) -> Self {
        Self { name: name.into(), kind }
    }
}

impl ColumnKind {
    pub(super) fn of(kinds: &[Kind]) -> Self {
        match kinds {
            [Kind::Int] => Self::Int,
            // Of a name that was sent with both, integers are shown as floats.
            [Kind::Float] | [Kind::Int, Kind::Float] | [Kind::Float, Kind::Int] => Self::Float,
            [Kind::String] => Self::String,
            [Kind::Set] => Self::Set,
            [Kind::Vector] => Self::Vector,
            _ => Self::Mixed,
        }
    }
}

/// How a metric comes from the values of the engine, by their places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown {
    Value(usize),
    PerSecond(usize),
    Ratio(usize, usize),
}

/// How many seconds a rate counts.
#[derive(Debug)]
pub(super) struct PerSecond {
    range: Range,
    /// The place of the time among the groups, and where its buckets start.
    buckets: Option<(usize, Vec<i64>)>,
}

impl PerSecond {
    pub(super) fn new(group_by: &[Dimension], range: Range) -> Self {
        let buckets = group_by.iter().enumerate().find_map(|(place, dimension)| match dimension {
            Dimension::Time(starts) => Some((place, starts.clone())),
            Dimension::Column(_) => None,
        });
        Self { range, buckets }
    }

    /// Those of the range or of the group's bucket, as far as it is in the range.
    fn seconds(&self, group: &[Value]) -> f64 {
        let (mut start, mut end) = (self.range.start.as_i64(), self.range.end.as_i64());
        if let Some((place, starts)) = &self.buckets
            && let Value::Time(bucket) = group[*place]
        {
            let next = starts.partition_point(|start| *start <= bucket);
            start = start.max(bucket);
            end = end.min(starts.get(next).copied().unwrap_or(i64::MAX));
        }
        #[expect(clippy::cast_precision_loss, reason = "a rate needs no more than 15 digits")]
        let nanos = end.saturating_sub(start) as f64;
        nanos / NANOS_PER_SECOND
    }
}

/// What decides the order of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    Metric(Shown, algebra::Order),
    /// By this group, then by the others in their order.
    Groups {
        first: usize,
        direction: algebra::Order,
    },
}

impl Sort {
    pub(super) fn groups() -> Self {
        Self::Groups { first: 0, direction: algebra::Order::Ascending }
    }
}

/// What is done with the engine's answer.
#[derive(Debug)]
pub(super) struct Layout {
    /// Of the groups, then of the metrics.
    pub(super) columns: Vec<TableColumn>,
    pub(super) shown: Vec<Shown>,
    pub(super) per_second: PerSecond,
    pub(super) sort: Sort,
    pub(super) top: usize,
    pub(super) pivot: bool,
}

impl Layout {
    /// What the engine can choose the first groups by, which spares everyone the others.
    pub(super) fn engine_top(&self) -> Option<Top> {
        let Sort::Metric(shown, order) = self.sort else { return None };
        let by = match shown {
            Shown::Value(place) => place,
            // All groups count the same seconds.
            Shown::PerSecond(place) if self.per_second.buckets.is_none() => place,
            Shown::PerSecond(_) | Shown::Ratio(..) => return None,
        };
        Some(Top { count: self.top, by, order })
    }

    fn value(&self, shown: Shown, row: &AnswerRow) -> Option<f64> {
        let value = match shown {
            Shown::Value(place) => row.values[place]?,
            Shown::PerSecond(place) => row.values[place]? / self.per_second.seconds(&row.group),
            Shown::Ratio(above, below) => row.values[above]? / row.values[below]?,
        };
        // Nothing divided by nothing has no value, nor has anything divided by nothing.
        value.is_finite().then_some(value)
    }

    /// Rows in order. Equal ones are in the order of their groups, so that the same question has
    /// the same answer.
    pub(super) fn sorted(&self, mut rows: Vec<AnswerRow>) -> Vec<AnswerRow> {
        let (first, direction) = match self.sort {
            Sort::Groups { first, direction } => (first, direction),
            Sort::Metric(shown, order) => return self.sorted_by_metric(rows, shown, order),
        };
        rows.sort_by(|a, b| {
            let decided = compare_values(&a.group[first..=first], &b.group[first..=first]);
            let decided = match direction {
                algebra::Order::Ascending => decided,
                algebra::Order::Descending => decided.reverse(),
            };
            decided.then_with(|| compare_values(&a.group, &b.group))
        });
        rows
    }

    /// Rows without a value come last.
    fn sorted_by_metric(
        &self,
        rows: Vec<AnswerRow>,
        shown: Shown,
        order: algebra::Order,
    ) -> Vec<AnswerRow> {
        let key = |row: &AnswerRow| match (self.value(shown, row), order) {
            (None, _) => f64::INFINITY,
            (Some(value), algebra::Order::Ascending) => value,
            (Some(value), algebra::Order::Descending) => -value,
        };
        let mut keyed: Vec<_> = rows.into_iter().map(|row| (key(&row), row)).collect();
        keyed.sort_by(|(a, row_a), (b, row_b)| {
            a.total_cmp(b).then_with(|| compare_values(&row_a.group, &row_b.group))
        });
        keyed.into_iter().map(|(_, row)| row).collect()
    }

    pub(super) fn row(&self, row: AnswerRow) -> Vec<Value> {
        let metrics = self.shown.iter().map(|&shown| self.value(shown, &row));
        let metrics: Vec<_> =
            metrics.map(|value| value.map_or(Value::Null, Value::Float)).collect();
        row.group.into_iter().chain(metrics).collect()
    }
}

/// Values of groups, to find a row by.
#[derive(Debug, PartialEq)]
struct Group(Vec<Value>);

impl Ord for Group {
    fn cmp(&self, other: &Self) -> Ordering {
        compare_values(&self.0, &other.0)
    }
}

impl PartialOrd for Group {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Eq for Group {}

pub(super) fn compare_values(a: &[Value], b: &[Value]) -> Ordering {
    // No group is NaN.
    a.partial_cmp(b).unwrap_or(Ordering::Equal)
}

impl Plan {
    /// The answer as it was asked for.
    pub fn finish(&self, answer: Answer) -> Result<Table, TableError> {
        let layout = &self.layout;
        let mut rows = layout.sorted(answer.rows);
        rows.truncate(layout.top);
        let rows = rows.into_iter().map(|row| layout.row(row)).collect();
        let mut table = self.pivoted(Table::new(layout.columns.clone(), rows))?;
        table.other = answer.other.map(|row| self.metered(row));
        table.total = answer.total.map(|row| self.metered(row));
        Ok(table)
    }

    /// The table with its last group as columns, if that was asked for.
    pub(super) fn pivoted(&self, table: Table) -> Result<Table, TableError> {
        if self.layout.pivot { pivoted(&table, self.question.group_by.len()) } else { Ok(table) }
    }

    /// The metrics of a row by their names.
    pub(super) fn metered(&self, row: AnswerRow) -> Vec<Metered> {
        let groups = self.question.group_by.len();
        let names = self.layout.columns[groups..].iter().map(|column| column.name.clone());
        names.zip(self.layout.row(row).split_off(groups)).collect()
    }

    /// Two answers side by side, as they were asked for: each metric of A and B, their difference
    /// in itself and in percent of B, its interval, and how likely it is where there is none.
    pub fn finish_compared(&self, compared: Compared) -> Result<Table, DocumentError> {
        let groups = self.question.group_by.len();
        let (grouped, metrics) = self.layout.columns.split_at(groups);
        let mut columns = grouped.to_vec();
        for metric in metrics {
            for part in ["", ":b", ":delta", ":percent", ":low", ":high", ":p"] {
                let name = unused(&columns, format!("{}{part}", metric.name));
                columns.push(TableColumn::new(name, ColumnKind::Float));
            }
        }
        let mut rows = Vec::new();
        for row in compared.rows.into_iter().take(self.layout.top) {
            let mut values = row.group;
            for shown in &self.layout.shown {
                let Shown::Value(place) = *shown else {
                    return Err(DocumentError::CompareOf("rates and ratios"));
                };
                values.extend(changed(&row.changes[place]));
            }
            rows.push(values);
        }
        Ok(Table::new(columns, rows))
    }
}

fn changed(change: &Change) -> impl Iterator<Item = Value> {
    let (low, high) = (change.interval.map(|(low, _)| low), change.interval.map(|(_, high)| high));
    let percent = change.relative.map(|part| part * 100.0);
    let numbers = [change.a, change.b, change.delta, percent, low, high, change.p];
    numbers.into_iter().map(|number| number.map_or(Value::Null, Value::Float))
}

/// The values of the last of the groups become columns, each as often as there are metrics. Rows
/// and columns are in the order in which they come.
fn pivoted(table: &Table, groups: usize) -> Result<Table, TableError> {
    let kept = groups - 1;
    let metrics = &table.columns[groups..];
    let mut heads: BTreeMap<Group, usize> = BTreeMap::new();
    let mut columns = table.columns[..kept].to_vec();
    let mut places: BTreeMap<Group, usize> = BTreeMap::new();
    let mut rows: Vec<Vec<Value>> = Vec::new();
    for row in &table.rows {
        let (group, values) = row.split_at(groups);
        let (group, head) = group.split_at(kept);
        let start = *heads.entry(Group(head.to_vec())).or_insert_with(|| {
            let start = columns.len();
            add_columns(&mut columns, &head[0], metrics);
            start
        });
        if columns.len() > PIVOT_COLUMNS_MAX {
            return Err(TableError::TooManyColumns);
        }
        let place = *places.entry(Group(group.to_vec())).or_insert_with(|| {
            rows.push(group.to_vec());
            rows.len() - 1
        });
        rows[place].resize(columns.len(), Value::Null);
        rows[place][start..start + metrics.len()].clone_from_slice(values);
    }
    rows.iter_mut().for_each(|row| row.resize(columns.len(), Value::Null));
    Ok(Table::new(columns, rows))
}

fn add_columns(columns: &mut Vec<TableColumn>, head: &Value, metrics: &[TableColumn]) {
    let head = text_of(head);
    for metric in metrics {
        let name = match metrics {
            [_] => head.clone(),
            _ => format!("{head} {}", metric.name),
        };
        columns.push(TableColumn::new(unused(columns, name), metric.kind));
    }
}

/// A value as text, as at the head of a column.
pub(super) fn text_of(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Int(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::String(text) => text.clone(),
        Value::List(items) => items.join(", "),
        Value::Time(nanos) => Nanos(*nanos).to_string(),
    }
}

/// A name that no column has yet: a metric can be named like a group, and `1` the number and `1`
/// the text are two columns.
pub(super) fn unused(columns: &[TableColumn], name: String) -> String {
    let is_taken = |name: &String| columns.iter().any(|column| column.name == *name);
    let numbered = (2..).map(|number| format!("{name} ({number})"));
    let mut names = std::iter::once(name.clone()).chain(numbered);
    names.find(|name| !is_taken(name)).unwrap_or(name)
}
