//! Answers documents, whatever they ask for.

use jiff::tz::TimeZone;
use perflab_model::{Kind, Nanos};
use perflab_store::segment::Snapshot;

use super::plan::Times;
use super::{
    Columns, Compare, ComparisonError, Document, DocumentError, Filter, Fold, Grouping, Plan, TOP,
    Table, TableError, View,
};
use super::{lines, shapes};
use crate::algebra::Condition;
use crate::compare::{Against, Compared, compare};
use crate::differs::differs;
use crate::expression::{Expression, derived};
use crate::time::{self, Range};
use crate::views::{
    self, Bins, DistributionQuestion, NODES_MAX, Tree, TreeQuestion, distribution, graph, samples,
    tree,
};
use crate::{Answer, Limits, QueryError, Selection, answer};

/// How many bins a distribution has unless `top` says otherwise.
const BINS: usize = 50;
/// How many frames a graph has unless `top` says otherwise.
const FRAMES: usize = 500;

/// The answer to a document.
#[derive(Debug)]
pub struct Answered {
    pub table: Table,
    /// The tree that the table shows, where the view is one, and which way it was merged.
    pub tree: Option<(Tree, views::Fold)>,
    pub range: Range,
    pub zone: TimeZone,
    /// How many rows were looked at.
    pub rows_scanned: u64,
    /// Of these, the rows whose segments had answered the same question before.
    pub rows_recalled: u64,
}

/// Why a document has no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    #[error(transparent)]
    Document(#[from] DocumentError),
    #[error(transparent)]
    Comparison(#[from] ComparisonError),
    #[error(transparent)]
    Query(#[from] QueryError),
    #[error(transparent)]
    Table(#[from] TableError),
}

/// Answers a document from the rows of its dataset. `recorded` are columns that the dataset has
/// besides those of the rows at hand; `now` is what times count from.
pub fn answer_document(
    document: &Document,
    snapshot: &Snapshot,
    recorded: &[(String, Kind)],
    now: Nanos,
    limits: &Limits,
) -> Result<Answered, AskError> {
    let times = Times::new(document, now)?;
    let asking = Asking { document, times, limits };
    let snapshot = asking.with_computed(snapshot, recorded)?;
    let columns = asking.columns(&snapshot, recorded);
    let plan = Plan::new(document, &columns, &asking.times)?;
    let Found { table, tree, rows_scanned, rows_recalled } =
        asking.find(&plan, &columns, &snapshot)?;
    let Times { range, zone } = asking.times;
    Ok(Answered { table, tree, range, zone, rows_scanned, rows_recalled })
}

/// The times that a document's answer is made of, from the first to just before the second: those
/// of its own rows and of those that it compares them with.
pub fn times_touched(document: &Document, now: Nanos) -> Result<(i64, i64), DocumentError> {
    touched(document, &Times::new(document, now)?)
}

fn touched(document: &Document, times: &Times) -> Result<(i64, i64), DocumentError> {
    let Range { start, end } = times.range;
    let shift = shift(document, times)?.unwrap_or(0);
    Ok((start.as_i64().saturating_sub(shift), end.as_i64()))
}

/// How many nanoseconds before A the time of B is; `None` where it is the same.
fn shift(document: &Document, times: &Times) -> Result<Option<i64>, DocumentError> {
    let Range { start, end } = times.range;
    match &document.compare {
        None | Some(Compare::Against(_)) => Ok(None),
        Some(Compare::Previous) => Ok(Some(end.as_i64().saturating_sub(start.as_i64()))),
        Some(Compare::Ago(length)) => {
            let wrong = |error| DocumentError::Ago { length: length.clone(), error };
            let text = format!("{start} {length} ago");
            let earlier = time::parse(&text, start, &times.zone).map_err(wrong)?;
            Ok(Some(start.as_i64().saturating_sub(earlier.as_i64())))
        }
    }
}

/// What was found, as a table.
pub(super) struct Found {
    table: Table,
    tree: Option<(Tree, views::Fold)>,
    rows_scanned: u64,
    rows_recalled: u64,
}

impl Found {
    pub(super) fn table(table: Table, rows_scanned: u64) -> Self {
        Self { table, tree: None, rows_scanned, rows_recalled: 0 }
    }

    pub(super) fn recalled(self, rows_recalled: u64) -> Self {
        Self { rows_recalled, ..self }
    }
}

pub(super) struct Asking<'a> {
    pub(super) document: &'a Document,
    pub(super) times: Times,
    pub(super) limits: &'a Limits,
}

impl Asking<'_> {
    /// The rows with the columns that are computed for this document.
    pub(super) fn with_computed(
        &self,
        snapshot: &Snapshot,
        recorded: &[(String, Kind)],
    ) -> Result<Snapshot, AskError> {
        let expressions = self.expressions()?;
        if expressions.is_empty() {
            return Ok(snapshot.clone());
        }
        let stored = stored_columns(snapshot, recorded);
        for (_, expression) in &expressions {
            for column in expression.columns() {
                stored.kinds(&self.document.dataset, column)?;
            }
        }
        let touched = touched(self.document, &self.times)?;
        Ok(derived(snapshot, Some(touched), &expressions, self.limits)?)
    }

    fn expressions(&self) -> Result<Vec<(String, Expression)>, AskError> {
        let mut expressions = Vec::new();
        let failed = |column: &str| {
            let column = column.to_owned();
            move |error| QueryError::Expression { column, error }
        };
        for one in &self.document.derived {
            let expression = Expression::parse(&one.expression).map_err(failed(&one.name))?;
            expressions.push((one.name.clone(), expression));
        }
        for grouping in &self.document.group_by {
            if let Grouping::Bucket { column, width } = grouping {
                let text = format!("bucket(\"{}\", {width})", column.replace('"', "\"\""));
                let name = grouping.to_string();
                let expression = Expression::parse(&text).map_err(failed(&name))?;
                expressions.push((name, expression));
            }
        }
        Ok(expressions)
    }

    /// All columns, those that are computed too.
    pub(super) fn columns(&self, snapshot: &Snapshot, recorded: &[(String, Kind)]) -> Columns {
        let mut columns = stored_columns(snapshot, recorded);
        // Where there are no rows nothing was computed, and nothing is missing either.
        for one in &self.document.derived {
            columns.add_unless_there(&one.name, Kind::Float);
        }
        columns
    }

    fn find(&self, plan: &Plan, columns: &Columns, snapshot: &Snapshot) -> Result<Found, AskError> {
        let a = Selection { range: plan.question.range, any_of: plan.question.any_of.clone() };
        let b = self.b(&a, columns)?;
        let top = self.document.top;
        match self.document.view {
            View::Table | View::Series => self.groups(plan, columns, snapshot),
            View::Samples if b.is_some() => Err(DocumentError::CompareOf("raw rows").into()),
            View::Samples => {
                for column in &self.document.columns {
                    columns.kinds(&self.document.dataset, column)?;
                }
                let count = top.unwrap_or(TOP);
                let found = samples(&a, &self.document.columns, count, snapshot, self.limits)?;
                Ok(Found::table(shapes::of_samples(&found, columns), found.rows_scanned))
            }
            View::Distribution => {
                let question = DistributionQuestion {
                    column: self.view_column(columns)?,
                    bins: Bins::Linear,
                    count: top.unwrap_or(BINS),
                    starts: plan.time().map_or_else(Vec::new, |(_, starts)| starts.to_vec()),
                };
                let found = distribution(&question, &a, b.as_ref(), snapshot, self.limits)?;
                let table = shapes::of_distribution(&found, &question.starts);
                Ok(Found::table(table, found.rows_scanned))
            }
            View::Tree => {
                let fold: views::Fold = self.document.fold.clone().into();
                let question = TreeQuestion {
                    column: self.view_column(columns)?,
                    fold: fold.clone(),
                    nodes_max: top.unwrap_or(NODES_MAX),
                };
                let tree = tree(&question, &a, b.as_ref(), snapshot, self.limits)?;
                let (table, rows_scanned) = (shapes::of_tree(&tree), tree.rows_scanned);
                Ok(Found { tree: Some((tree, fold)), ..Found::table(table, rows_scanned) })
            }
            View::Graph => {
                let column = self.view_column(columns)?;
                let frames = top.unwrap_or(FRAMES);
                let found = graph(&column, frames, &a, b.as_ref(), snapshot, self.limits)?;
                Ok(Found::table(shapes::of_graph(&found, b.is_some()), found.rows_scanned))
            }
            View::Differs => {
                let b = b.ok_or(DocumentError::NothingToDifferFrom)?;
                let found = differs(&a, &b, top.unwrap_or(TOP), snapshot, self.limits)?;
                let table = shapes::of_differences(&found);
                Ok(Found::table(table, found.rows_scanned).recalled(found.rows_recalled))
            }
        }
    }

    fn groups(
        &self,
        plan: &Plan,
        columns: &Columns,
        snapshot: &Snapshot,
    ) -> Result<Found, AskError> {
        if let Some(against) = self.against(columns)? {
            if lines::are_asked_for(self.document) {
                return Err(DocumentError::CompareOf("the first lines of a series").into());
            }
            let compared = compare(&plan.question, &against, snapshot, self.limits)?;
            let Compared { rows_scanned, rows_recalled, .. } = compared;
            let table = plan.finish_compared(compared)?;
            return Ok(Found::table(table, rows_scanned).recalled(rows_recalled));
        }
        if lines::are_asked_for(self.document) {
            return lines::find(self.document, plan, snapshot, self.limits);
        }
        let answer = answer(&plan.question, snapshot, self.limits)?;
        let Answer { rows_scanned, rows_recalled, .. } = answer;
        Ok(Found::table(plan.finish(answer)?, rows_scanned).recalled(rows_recalled))
    }

    fn view_column(&self, columns: &Columns) -> Result<String, DocumentError> {
        let view = self.document.view;
        let column =
            self.document.view_column.as_ref().ok_or(DocumentError::NoViewColumn { view })?;
        columns.kinds(&self.document.dataset, column)?;
        Ok(column.clone())
    }

    fn against(&self, columns: &Columns) -> Result<Option<Against>, DocumentError> {
        match &self.document.compare {
            None => Ok(None),
            Some(Compare::Against(any_of)) => {
                Ok(Some(Against::Rows(self.conditions(any_of, columns)?)))
            }
            Some(Compare::Previous | Compare::Ago(_)) => {
                Ok(shift(self.document, &self.times)?.map(Against::Before))
            }
        }
    }

    /// The rows that those of A are compared with.
    fn b(&self, a: &Selection, columns: &Columns) -> Result<Option<Selection>, DocumentError> {
        Ok(self.against(columns)?.map(|against| match against {
            Against::Rows(any_of) => Selection { any_of, ..a.clone() },
            Against::Before(shift) => {
                let earlier = |time: i64| time.saturating_sub(shift);
                let range = a.range.map(|(start, end)| (earlier(start), earlier(end)));
                Selection { range, ..a.clone() }
            }
        }))
    }

    fn conditions(
        &self,
        any_of: &[Vec<Filter>],
        columns: &Columns,
    ) -> Result<Vec<Vec<Condition>>, DocumentError> {
        super::plan::conditions(any_of, &self.document.dataset, columns)
    }
}

impl From<Fold> for views::Fold {
    fn from(fold: Fold) -> Self {
        match fold {
            Fold::Root => Self::FromRoot,
            Fold::Leaf => Self::FromLeaf,
            Fold::Callers(frame) => Self::Callers(frame),
            Fold::Callees(frame) => Self::Callees(frame),
        }
    }
}

/// The columns of the rows at hand and of those that went before.
pub(super) fn stored_columns(snapshot: &Snapshot, recorded: &[(String, Kind)]) -> Columns {
    let columns = snapshot.segments.iter().flat_map(|segment| segment.columns());
    let present = columns.map(|column| (column.name().to_owned(), column.kind()));
    present.chain(recorded.iter().cloned()).collect()
}
