//! Answering a question: what it is about is prepared once, then rows are looked at segment by
//! segment, in one of two ways: with a place for every possible group (`dense`), or, when there
//! are too many, with the rows sorted by group first (`sparse`).

use std::sync::atomic::{AtomicUsize, Ordering};

use perflab_store::segment::Snapshot;
use rayon::prelude::*;

use crate::algebra::Question;
use crate::limits::{Budget, Limits, Thresholds};
use crate::prepare::Plan;
use crate::table::Strides;
use crate::{QueryError, Value, dense, sparse};

/// What a question is answered with.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// In the order that was asked for.
    pub rows: Vec<AnswerRow>,
    /// All groups that are not among the rows, as one whose values are null; when it was asked
    /// for and there are any.
    pub other: Option<AnswerRow>,
    /// All groups, as one whose values are null; when it was asked for.
    pub total: Option<AnswerRow>,
    /// How many rows were looked at: those of the time that was asked for.
    pub rows_scanned: u64,
    /// Of these, the rows of segments that had answered the same question before.
    pub rows_recalled: u64,
}

/// One group.
#[derive(Debug, Clone, PartialEq)]
pub struct AnswerRow {
    pub group: Vec<Value>,
    /// One per aggregate; `None` when the group has no value to compute it from.
    pub values: Vec<Option<f64>>,
}

/// Answers a question from the rows of a dataset.
pub fn answer(
    question: &Question,
    snapshot: &Snapshot,
    limits: &Limits,
) -> Result<Answer, QueryError> {
    answer_by(question, snapshot, limits, &Thresholds::default())
}

/// Answers a question, with other thresholds between the ways of doing so.
pub fn answer_by(
    question: &Question,
    snapshot: &Snapshot,
    limits: &Limits,
    thresholds: &Thresholds,
) -> Result<Answer, QueryError> {
    let budget = Budget::new(limits, thresholds);
    let plan = Plan::new(question, snapshot, &budget, budget.cache())?;
    let strides = plan.strides()?;
    if let Some((table, layout)) = dense::table(&plan, &strides, &budget)? {
        return table.finish(&plan, &layout, &strides, &budget);
    }
    if plan.found.is_empty() {
        return sparse_answer(&plan, &strides, &budget);
    }
    // What segments said before can't be sorted: all of them are asked anew, and there may be more
    // values by now.
    let plan = Plan::new(question, snapshot, &budget, None)?;
    sparse_answer(&plan, &plan.strides()?, &budget)
}

fn sparse_answer(
    plan: &Plan<'_>,
    strides: &Strides,
    budget: &Budget<'_>,
) -> Result<Answer, QueryError> {
    let (table, layout) = sparse::table(plan, strides, budget)?;
    table.finish(plan, &layout, strides, budget)
}

/// Does pieces of work on all threads. Each of them begins with what `start` makes, and takes the
/// next piece when it is done with one, so that it is made only once per thread.
pub(crate) fn for_pieces<W: Send>(
    pieces: usize,
    start: impl Fn() -> W + Sync,
    work: impl Fn(&mut W, usize) -> Result<(), QueryError> + Sync,
) -> Result<Vec<W>, QueryError> {
    let next = AtomicUsize::new(0);
    let workers = rayon::current_num_threads().min(pieces);
    (0..workers)
        .into_par_iter()
        .with_max_len(1)
        .map(|_| {
            let mut worker = start();
            loop {
                let piece = next.fetch_add(1, Ordering::Relaxed);
                if piece >= pieces {
                    return Ok(worker);
                }
                work(&mut worker, piece)?;
            }
        })
        .collect()
}
