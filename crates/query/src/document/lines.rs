//! A series of the first groups: those that are first over the whole time, each with all its
//! points, and one line for all others together.

use perflab_store::segment::Snapshot;

use super::run::{AskError, Found};
use super::table::compare_values;
use super::{ColumnKind, Document, DocumentError, Plan, Table, View};
use crate::algebra::{Condition, Dimension, Question, Test};
use crate::views::{Line, OTHER, series};
use crate::{AnswerRow, Limits, QueryError, Value, answer};

/// Whether a document asks for the first lines of a series.
pub(super) fn are_asked_for(document: &Document) -> bool {
    document.view == View::Series && document.top.is_some()
}

/// Finds the lines.
pub(super) fn find(
    document: &Document,
    plan: &Plan,
    snapshot: &Snapshot,
    limits: &Limits,
) -> Result<Found, AskError> {
    let Some((place, starts)) = plan.time() else { return Err(DocumentError::NoTime.into()) };
    let mut question = plan.question.clone();
    question.group_by.remove(place);
    (question.with_other, question.with_total) = (false, false);
    let found = series(&question, starts, snapshot, limits)?;
    let lines = Lines { plan, place, starts, question };
    let first = lines.first(found.lines);
    let mut rows: Vec<AnswerRow> = first.iter().flat_map(|line| lines.points(line)).collect();
    rows.sort_by(|x, y| compare_values(&x.group, &y.group));
    let mut table = Table::new(plan.layout.columns.clone(), Vec::new());
    if document.other {
        rows.extend(lines.other(&first, &mut table, snapshot, limits)?);
    }
    table.rows = rows.into_iter().map(|row| plan.layout.row(row)).collect();
    let mut table = plan.pivoted(table)?;
    if document.total {
        table.total = lines.total(snapshot, limits)?.map(|row| plan.metered(row));
    }
    Ok(Found::table(table, found.rows_scanned).recalled(found.rows_recalled))
}

struct Lines<'p> {
    plan: &'p Plan,
    /// Where time is among the groups.
    place: usize,
    starts: &'p [i64],
    /// The question about the whole time.
    question: Question,
}

impl Lines<'_> {
    /// A row of all groups, `time` among them.
    fn row(&self, group: &[Value], time: Value, values: Vec<Option<f64>>) -> AnswerRow {
        let mut group = group.to_vec();
        group.insert(self.place, time);
        AnswerRow { group, values }
    }

    /// The lines that are first, in the order that was asked for.
    fn first(&self, lines: Vec<Line>) -> Vec<Line> {
        let whole = |line: &Line| self.row(&line.group, Value::Null, line.whole.clone());
        let mut ranked = self.plan.layout.sorted(lines.iter().map(whole).collect());
        ranked.truncate(self.plan.layout.top);
        ranked.iter_mut().for_each(|row| drop(row.group.remove(self.place)));
        let is_first = |line: &Line| ranked.iter().any(|row| row.group == line.group);
        lines.into_iter().filter(is_first).collect()
    }

    /// The points of a line, where it has rows.
    fn points<'l>(&'l self, line: &'l Line) -> impl Iterator<Item = AnswerRow> + 'l {
        let points = self.starts.iter().zip(&line.points);
        let points = points.filter(|(_, values)| values.iter().any(Option::is_some));
        points.map(|(start, values)| self.row(&line.group, Value::Time(*start), values.clone()))
    }

    /// The points of all rows that are in none of these lines, from the rows themselves: percentiles
    /// and distinct values can't be had by subtraction. In a column that holds no texts, the name of
    /// the line makes it a mixed one.
    fn other(
        &self,
        lines: &[Line],
        table: &mut Table,
        snapshot: &Snapshot,
        limits: &Limits,
    ) -> Result<Vec<AnswerRow>, AskError> {
        let [Dimension::Column(column)] = &self.question.group_by[..] else {
            return Err(DocumentError::OtherLine.into());
        };
        let head = &mut table.columns[1 - self.place];
        match head.kind {
            ColumnKind::String => {}
            ColumnKind::Int | ColumnKind::Float => head.kind = ColumnKind::Mixed,
            ColumnKind::Set | ColumnKind::Vector | ColumnKind::Time | ColumnKind::Mixed => {
                return Err(DocumentError::OtherLine.into());
            }
        }
        let mut question = self.question.clone();
        question.group_by = vec![Dimension::Time(self.starts.to_vec())];
        question.top = None;
        if question.any_of.is_empty() {
            question.any_of.push(Vec::new());
        }
        let outside = outside(column, lines);
        question.any_of.iter_mut().for_each(|all| all.extend(outside.iter().cloned()));
        let name = [Value::String(OTHER.to_owned())];
        let rows = answer(&question, snapshot, limits)?.rows.into_iter();
        let mut rows: Vec<_> = rows
            .map(|mut row| self.row(&name, row.group.pop().unwrap_or(Value::Null), row.values))
            .collect();
        rows.sort_by(|x, y| compare_values(&x.group, &y.group));
        Ok(rows)
    }

    /// All groups over the whole time.
    fn total(&self, snapshot: &Snapshot, limits: &Limits) -> Result<Option<AnswerRow>, QueryError> {
        let mut question = self.question.clone();
        question.group_by.clear();
        question.top = None;
        let groups = vec![Value::Null; self.question.group_by.len()];
        let row = answer(&question, snapshot, limits)?.rows.pop();
        Ok(row.map(|row| self.row(&groups, Value::Null, row.values)))
    }
}

/// What rows meet that have none of the values of these lines. "Not in" holds for rows without a
/// value too.
fn outside(column: &str, lines: &[Line]) -> Vec<Condition> {
    let condition = |test| Condition { column: column.to_owned(), test };
    let values = || lines.iter().map(|line| &line.group[0]);
    let texts = values().filter(|value| **value != Value::Null).map(super::table::text_of);
    let mut conditions = vec![condition(Test::NotIn(texts.collect()))];
    if values().any(|value| *value == Value::Null) {
        conditions.push(condition(Test::NotNull));
    }
    conditions
}
