//! What differs: which values are more common among the rows of A than among those of B.
//!
//! Every value of every column is one question: how often A has it and how often B has it, as a
//! table of two by two, judged by the G-test (Woolf, "The log likelihood ratio test (the G-test)",
//! 1957). Weighted rows say less than their weights do, so the table has shares of each side's
//! effective size ([`Aggregate::EffectiveSize`]). As many questions are asked at once, the
//! probabilities are adjusted for the share of false findings (Benjamini and Hochberg, 1995).
//!
//! A and B should have no rows in common; where they do, differences look smaller than they are.

use std::collections::{BTreeMap, BTreeSet};

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use perflab_model::Kind;
use perflab_store::segment::{Snapshot, Way};

use crate::algebra::{Aggregate, Condition, Dimension, Order, Question, Test, Top};
use crate::group::CellKey;
use crate::limits::Budget;
use crate::numbering::text_bytes;
use crate::selection::Selection;
use crate::statistics::{chi_squared_p, false_discovery};
use crate::views::{ListColumn, Scans, Sides, Stacks, bin_weights};
use crate::{Answer, Limits, QueryError, Value, answer};

/// The most columns that are looked at, in the order of their names.
pub const COLUMNS_MAX: usize = 4096;
/// The most values of one column: those that A has most of.
pub const VALUES_MAX: usize = 1000;
/// Integers with more values than this are looked at in ranges, as floats are.
pub const INTEGERS_MAX: usize = 50;
/// How many ranges numbers are cut into; each has about as many rows of B as the others.
pub const RANGES: usize = 10;

/// What A has more of than B, the most certain first.
#[derive(Debug, Clone, PartialEq)]
pub struct Differences {
    pub findings: Vec<Finding>,
    /// How many values were looked at, those that do not differ included.
    pub looked_at: usize,
    /// The columns beyond [`COLUMNS_MAX`], which were not looked at.
    pub columns_left_out: usize,
    /// On both sides together, however often.
    pub rows_scanned: u64,
    pub rows_recalled: u64,
}

/// A value that is more common in A.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    pub column: String,
    pub is: Is,
    /// The part of A's weight that has it, from 0 to 1.
    pub share_a: f64,
    /// The part of B's.
    pub share_b: f64,
    /// The statistic of the G-test, by which findings are sorted: the larger, the less likely.
    pub g: f64,
    /// How likely such a difference is when there is none, if this were the only question.
    pub p: f64,
    /// The same with all that was looked at: the share of false ones among the findings up to here.
    pub q: f64,
}

impl Finding {
    /// By how much of the whole it is more common in A: from 0 to 1.
    pub fn effect(&self) -> f64 {
        self.share_a - self.share_b
    }

    fn bytes(&self) -> usize {
        let text = match &self.is {
            Is::Value(value) => text_bytes(value),
            Is::Item(item) => item.len(),
            Is::Between(..) | Is::Missing => 0,
        };
        size_of::<Self>() + self.column.len() + text
    }
}

/// What rows have in common.
#[derive(Debug, Clone, PartialEq)]
pub enum Is {
    /// This value.
    Value(Value),
    /// A list with this item.
    Item(String),
    /// A number from the first to just before the second; no end where there is none.
    Between(Option<f64>, Option<f64>),
    /// No value.
    Missing,
}

/// Looks at all columns, and returns the first `count` of what A has more of.
pub fn differs(
    a: &Selection,
    b: &Selection,
    count: usize,
    snapshot: &Snapshot,
    limits: &Limits,
) -> Result<Differences, QueryError> {
    let sizes = (Size::of(a, snapshot, limits)?, Size::of(b, snapshot, limits)?);
    let rows_scanned = sizes.0.rows_scanned + sizes.1.rows_scanned;
    let rows_recalled = sizes.0.rows_recalled + sizes.1.rows_recalled;
    let search = Search { a, b, snapshot, limits, sizes };
    let budget = Budget::of(limits);
    let mut columns: BTreeMap<&str, BTreeSet<Kind>> = BTreeMap::new();
    for column in snapshot.segments.iter().flat_map(|segment| segment.columns()) {
        columns.entry(column.name()).or_default().insert(column.kind());
    }
    let mut seen = Vec::new();
    for (name, kinds) in columns.iter().take(COLUMNS_MAX) {
        let before = seen.len();
        search.column(name, kinds, &mut seen)?;
        budget.take(seen[before..].iter().map(Finding::bytes).sum())?;
    }
    let looked_at = seen.len();
    let columns_left_out = columns.len().saturating_sub(COLUMNS_MAX);
    let findings = ranked(seen, count);
    Ok(Differences { findings, looked_at, columns_left_out, rows_scanned, rows_recalled })
}

/// Sorted, with `q` of all of them, but only those that A has more of.
fn ranked(mut seen: Vec<Finding>, count: usize) -> Vec<Finding> {
    // What was put in comes by column and value, and stays so where nothing else decides.
    seen.sort_by(|x, y| y.g.total_cmp(&x.g).then(y.effect().total_cmp(&x.effect())));
    let q = false_discovery(&seen.iter().map(|finding| finding.p).collect::<Vec<_>>());
    seen.iter_mut().zip(q).for_each(|(finding, q)| finding.q = q);
    seen.retain(|finding| finding.effect() > 0.0);
    seen.truncate(count);
    seen
}

/// How much a side has.
#[derive(Debug, Clone, Copy)]
struct Size {
    weight: f64,
    /// How many rows of the same weight would say as much.
    rows: f64,
    rows_scanned: u64,
    rows_recalled: u64,
}

impl Size {
    fn of(selection: &Selection, snapshot: &Snapshot, limits: &Limits) -> Result<Self, QueryError> {
        let asked = vec![Aggregate::Count, Aggregate::EffectiveSize(None)];
        let answer = answer(&selection.question(Vec::new(), asked), snapshot, limits)?;
        let value = |at: usize| answer.rows.first().and_then(|row| row.values[at]).unwrap_or(0.0);
        let Answer { rows_scanned, rows_recalled, .. } = answer;
        Ok(Self { weight: value(0), rows: value(1), rows_scanned, rows_recalled })
    }

    fn share(self, weight: f64) -> f64 {
        if self.weight > 0.0 { (weight / self.weight).clamp(0.0, 1.0) } else { 0.0 }
    }
}

struct Search<'s> {
    a: &'s Selection,
    b: &'s Selection,
    snapshot: &'s Snapshot,
    limits: &'s Limits,
    sizes: (Size, Size),
}

impl Search<'_> {
    fn column(
        &self,
        name: &str,
        kinds: &BTreeSet<Kind>,
        seen: &mut Vec<Finding>,
    ) -> Result<(), QueryError> {
        let mut add = |is: Is, a: f64, b: f64| seen.push(self.finding(name, is, a, b));
        let (a, b) = (self.with_value(self.a, name)?, self.with_value(self.b, name)?);
        add(Is::Missing, self.sizes.0.weight - a, self.sizes.1.weight - b);
        if kinds.contains(&Kind::Int) || kinds.contains(&Kind::String) {
            let values = self.values(name)?;
            let is_int = |value: &Value| matches!(value, Value::Int(_));
            let are_many = values.iter().filter(|(value, ..)| is_int(value)).count() > INTEGERS_MAX;
            if are_many && !kinds.contains(&Kind::Float) {
                self.ranges(name, &mut add)?;
            }
            let shown = values.into_iter().filter(|(value, ..)| !(are_many && is_int(value)));
            shown.for_each(|(value, a, b)| add(Is::Value(value), a, b));
        }
        if kinds.contains(&Kind::Float) {
            self.ranges(name, &mut add)?;
        }
        for kind in [Kind::Set, Kind::Vector].into_iter().filter(|kind| kinds.contains(kind)) {
            self.items((name, kind), &mut add)?;
        }
        Ok(())
    }

    /// The weight of rows that have a value.
    fn with_value(&self, selection: &Selection, name: &str) -> Result<f64, QueryError> {
        let condition = Condition { column: name.to_owned(), test: Test::NotNull };
        let question = narrowed(selection.question(Vec::new(), vec![Aggregate::Count]), &condition);
        let answer = answer(&question, self.snapshot, self.limits)?;
        Ok(answer.rows.first().and_then(|row| row.values[0]).unwrap_or(0.0))
    }

    /// The strings and integers that A has most of, with their weights in A and B.
    fn values(&self, name: &str) -> Result<Vec<(Value, f64, f64)>, QueryError> {
        let by = vec![Dimension::Column(name.to_owned())];
        let top = Top { count: VALUES_MAX, by: 0, order: Order::Descending };
        let mut question = self.a.question(by.clone(), vec![Aggregate::Count]);
        question.top = Some(top);
        let mut in_a = counts(&question, self.snapshot, self.limits)?;
        in_a.sort_by(|(x, _), (y, _)| x.partial_cmp(y).unwrap_or(std::cmp::Ordering::Equal));
        let texts = in_a.iter().filter_map(|(value, _)| text(value)).collect();
        let condition = Condition { column: name.to_owned(), test: Test::In(texts) };
        let question = narrowed(self.b.question(by, vec![Aggregate::Count]), &condition);
        let in_b = counts(&question, self.snapshot, self.limits)?;
        let in_b: HashMap<CellKey, f64, RandomState> =
            in_b.into_iter().map(|(value, b)| (CellKey::of(&value), b)).collect();
        let both = |(value, a): (Value, f64)| {
            let b = in_b.get(&CellKey::of(&value)).copied().unwrap_or(0.0);
            (value, a, b)
        };
        Ok(in_a.into_iter().filter(|(value, _)| text(value).is_some()).map(both).collect())
    }

    /// Numbers in ranges that have about the same weight in B, or in A where B has none.
    fn ranges(&self, name: &str, add: &mut impl FnMut(Is, f64, f64)) -> Result<(), QueryError> {
        let mut borders = self.quantiles(self.b, name)?;
        if borders.is_empty() {
            borders = self.quantiles(self.a, name)?;
        }
        let a = bin_weights(name, &borders, self.a, self.snapshot, self.limits)?;
        let b = bin_weights(name, &borders, self.b, self.snapshot, self.limits)?;
        for (n, (a, b)) in a.into_iter().zip(b).enumerate() {
            let from = (n > 0).then(|| borders[n]);
            let end = (n + 2 < borders.len()).then(|| borders[n + 1]);
            add(Is::Between(from, end), a, b);
        }
        Ok(())
    }

    /// Different from each other and ascending; none when there are no numbers.
    #[expect(clippy::cast_precision_loss, reason = "ranges are few")]
    fn quantiles(&self, selection: &Selection, name: &str) -> Result<Vec<f64>, QueryError> {
        let quantile = |n: usize| Aggregate::Percentile(n as f64 / RANGES as f64, name.to_owned());
        let asked = (0..=RANGES).map(quantile).collect();
        let answer = answer(&selection.question(Vec::new(), asked), self.snapshot, self.limits)?;
        let values = answer.rows.into_iter().flat_map(|row| row.values).flatten();
        let mut borders: Vec<f64> = values.collect();
        borders.dedup();
        // Around a single number: what is below it, and what begins with it.
        if let [only] = borders[..] {
            borders = vec![only, only, only];
        }
        Ok(borders)
    }

    /// The items of lists that A has most of.
    fn items(
        &self,
        (name, kind): (&str, Kind),
        add: &mut impl FnMut(Is, f64, f64),
    ) -> Result<(), QueryError> {
        let budget = Budget::of(self.limits);
        let scans = Scans::new(self.a, Some(self.b), self.snapshot, &budget)?;
        let column = ListColumn { name, kind, way: Way::Forward };
        let stacks = Stacks::new(column, &scans, self.snapshot)?;
        let names = stacks.names();
        budget.take(names.count() * size_of::<(&str, Sides)>())?;
        let mut loads = vec![Sides::default(); names.count()];
        stacks.each(|list, load| {
            budget.check()?;
            let items: BTreeSet<u32> = list.iter().copied().collect();
            items.into_iter().for_each(|item| loads[item as usize] += load);
            Ok(())
        })?;
        let in_a = (0_u32..).zip(loads).filter(|(_, load)| load.a.weight > 0.0);
        let mut items: Vec<(&str, Sides)> =
            in_a.map(|(item, load)| (names.get(item), load)).collect();
        items.sort_by(|(x, m), (y, n)| n.a.weight.total_cmp(&m.a.weight).then(x.cmp(y)));
        for (item, load) in items.into_iter().take(VALUES_MAX) {
            add(Is::Item(item.to_owned()), load.a.weight, load.b.weight);
        }
        Ok(())
    }

    fn finding(&self, name: &str, is: Is, a: f64, b: f64) -> Finding {
        let (size_a, size_b) = self.sizes;
        let (share_a, share_b) = (size_a.share(a), size_b.share(b));
        let g = g_statistic((share_a, size_a.rows), (share_b, size_b.rows));
        let p = chi_squared_p(g, 1.0);
        Finding { column: name.to_owned(), is, share_a, share_b, g, p, q: p }
    }
}

/// Twice the sum of observed × ln(observed / expected) over the four cells: those that have the
/// value and those that don't, in A and in B.
fn g_statistic(a: (f64, f64), b: (f64, f64)) -> f64 {
    let all = a.1 + b.1;
    let having = a.0 * a.1 + b.0 * b.1;
    let cell = |observed: f64, expected: f64| {
        if observed > 0.0 { observed * (observed / expected).ln() } else { 0.0 }
    };
    let side = |(share, rows): (f64, f64)| {
        let expected = rows * having / all;
        cell(share * rows, expected) + cell((1.0 - share) * rows, rows - expected)
    };
    if all > 0.0 { (2.0 * (side(a) + side(b))).max(0.0) } else { 0.0 }
}

fn counts(
    question: &Question,
    snapshot: &Snapshot,
    limits: &Limits,
) -> Result<Vec<(Value, f64)>, QueryError> {
    let rows = answer(question, snapshot, limits)?.rows.into_iter();
    let count = |mut row: crate::AnswerRow| Some((row.group.pop()?, row.values[0]?));
    Ok(rows.filter_map(count).collect())
}

/// As a condition has it.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::Int(value) => Some(value.to_string()),
        Value::String(value) => Some(value.clone()),
        Value::Null | Value::Float(_) | Value::List(_) | Value::Time(_) => None,
    }
}

/// The same question about rows that meet one more condition.
fn narrowed(mut question: Question, condition: &Condition) -> Question {
    if question.any_of.is_empty() {
        question.any_of.push(Vec::new());
    }
    question.any_of.iter_mut().for_each(|all| all.push(condition.clone()));
    question
}
