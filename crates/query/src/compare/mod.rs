//! Two answers side by side: how much A differs from B, and whether that can be chance.
//!
//! | of | chance is judged by |
//! |---|---|
//! | counts | a normal approximation. Events come as in a Poisson process, of which a row of weight w was sampled with probability 1/w: the variance of Σw is then Σw (of the events) + Σw(w−1) (of the sampling) = Σw². Good from some twenty rows on |
//! | means | Welch's test, "The generalization of Student's problem" (1947), with the size of each side being Kish's effective one, (Σw)²/Σw² ("Survey Sampling", 1965) |
//! | the rest | nothing: there is a difference, but no interval |

mod verdict;

pub use verdict::{
    Better, Judged, Judgement, Judgements, MEASUREMENTS_MAX, RUNS_MIN, Rule, Verdict, judge,
    verdict,
};

use std::cmp::Ordering;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use perflab_store::segment::Snapshot;

use crate::algebra::{Aggregate, Condition, Dimension, Order, Question, Top};
use crate::group::CellKey;
use crate::limits::Budget;
use crate::numbering::text_bytes;
use crate::statistics::{NORMAL_95, normal_p, student_95, student_p};
use crate::{AnswerRow, Limits, QueryError, Value, answer};

/// What a question is compared with.
#[derive(Debug, Clone, PartialEq)]
pub enum Against {
    /// The same question about as long a time, so many nanoseconds before. Buckets of time are
    /// moved along, and are compared each with the one that many nanoseconds before it.
    Before(i64),
    /// The same question about other rows of the same time.
    Rows(Vec<Vec<Condition>>),
}

impl Against {
    /// The time just before that of a question, as long as it is; `None` without a range.
    pub fn previous_period(question: &Question) -> Option<Self> {
        let (start, end) = question.range?;
        Some(Self::Before(end.checked_sub(start)?))
    }

    fn shift(&self) -> i64 {
        match self {
            Self::Before(nanoseconds) => *nanoseconds,
            Self::Rows(_) => 0,
        }
    }

    /// The question about B.
    fn question(&self, a: &Question) -> Question {
        let shift = self.shift();
        let earlier = |time: i64| time.saturating_sub(shift);
        let mut b = a.clone();
        b.range = a.range.map(|(start, end)| (earlier(start), earlier(end)));
        for dimension in &mut b.group_by {
            if let Dimension::Time(starts) = dimension {
                starts.iter_mut().for_each(|start| *start = earlier(*start));
            }
        }
        if let Self::Rows(any_of) = self {
            b.any_of.clone_from(any_of);
        }
        b
    }
}

/// Two answers, group by group.
#[derive(Debug, Clone, PartialEq)]
pub struct Compared {
    /// The groups that either side has. With a top, those that are first on either side, in the
    /// order of A; otherwise ascending.
    pub rows: Vec<ComparedRow>,
    /// On both sides together.
    pub rows_scanned: u64,
    pub rows_recalled: u64,
}

/// One group on both sides.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparedRow {
    pub group: Vec<Value>,
    /// One per aggregate of the question.
    pub changes: Vec<Change>,
}

/// An aggregate on both sides.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Change {
    /// `None` where there is nothing to compute it from; what counts is 0 of no rows.
    pub a: Option<f64>,
    pub b: Option<f64>,
    /// A − B.
    pub delta: Option<f64>,
    /// (A − B) / |B|: 0.1 is 10 % more. `None` where B is 0.
    pub relative: Option<f64>,
    /// In which A − B really lies, with a confidence of 95 %.
    pub interval: Option<(f64, f64)>,
    /// How likely a difference at least as large is when there is none.
    pub p: Option<f64>,
}

impl Change {
    fn new(a: Option<f64>, b: Option<f64>) -> Self {
        let delta = a.zip(b).map(|(a, b)| a - b);
        let relative = delta.zip(b).filter(|(_, b)| *b != 0.0).map(|(delta, b)| delta / b.abs());
        Self { a, b, delta, relative, interval: None, p: None }
    }

    /// With the error of the difference, where there is one.
    fn judged(mut self, error: f64, reach: f64, p: impl Fn(f64) -> f64) -> Self {
        if let Some(delta) = self.delta
            && error > 0.0
        {
            self.interval = Some((delta - reach * error, delta + reach * error));
            self.p = Some(p(delta / error));
        }
        self
    }
}

/// Answers a question, and what it is compared with, and puts them side by side.
pub fn compare(
    question: &Question,
    against: &Against,
    snapshot: &Snapshot,
    limits: &Limits,
) -> Result<Compared, QueryError> {
    if let Some(top) = question.top
        && top.by >= question.aggregates.len()
    {
        return Err(QueryError::Order(top.by));
    }
    let (asked, plan) = with_sizes(question);
    let a = answer(&asked, snapshot, limits)?;
    let b = answer(&against.question(&asked), snapshot, limits)?;
    let rows_scanned = a.rows_scanned + b.rows_scanned;
    let rows_recalled = a.rows_recalled + b.rows_recalled;
    let mut pairs: Vec<Pair> = joined(a.rows, b.rows, against.shift(), &Budget::of(limits))?;
    pairs.sort_by(|x, y| x.group.partial_cmp(&y.group).unwrap_or(Ordering::Equal));
    if let Some(top) = question.top {
        pairs = first(pairs, top);
    }
    let row = |pair: Pair| ComparedRow {
        changes: plan.iter().map(|measure| measure.change(&pair)).collect(),
        group: pair.group,
    };
    Ok(Compared { rows: pairs.into_iter().map(row).collect(), rows_scanned, rows_recalled })
}

/// Where in an answer the numbers are that a change is judged by.
#[derive(Debug, Clone, Copy)]
enum Measure {
    Count {
        at: usize,
        size: usize,
    },
    Mean {
        at: usize,
        deviation: usize,
        size: usize,
    },
    /// A number of values or hits: 0 where there are no rows.
    Number {
        at: usize,
    },
    Other {
        at: usize,
    },
}

/// The question with the further aggregates that chance is judged by.
fn with_sizes(question: &Question) -> (Question, Vec<Measure>) {
    let mut asked = question.clone();
    asked.top = None;
    let further = &mut asked.aggregates;
    let mut ask = |aggregate| {
        further.push(aggregate);
        further.len() - 1
    };
    let measure = |(at, aggregate): (usize, &Aggregate)| match aggregate {
        Aggregate::Count => Measure::Count { at, size: ask(Aggregate::EffectiveSize(None)) },
        Aggregate::Avg(column) => Measure::Mean {
            at,
            deviation: ask(Aggregate::Stddev(column.clone())),
            size: ask(Aggregate::EffectiveSize(Some(column.clone()))),
        },
        Aggregate::Samples | Aggregate::Distinct(_) => Measure::Number { at },
        Aggregate::Sum(_)
        | Aggregate::Min(_)
        | Aggregate::Max(_)
        | Aggregate::Stddev(_)
        | Aggregate::Percentile(..)
        | Aggregate::EffectiveSize(_) => Measure::Other { at },
    };
    let plan = question.aggregates.iter().enumerate().map(measure).collect();
    (asked, plan)
}

/// A group with the values of each side; none where the side has no such group.
#[derive(Debug)]
struct Pair {
    group: Vec<Value>,
    a: Vec<Option<f64>>,
    b: Vec<Option<f64>>,
}

impl Pair {
    fn get(&self, at: usize) -> (Option<f64>, Option<f64>) {
        let value = |side: &[Option<f64>]| side.get(at).copied().flatten();
        (value(&self.a), value(&self.b))
    }
}

impl Measure {
    fn change(self, pair: &Pair) -> Change {
        match self {
            Self::Other { at } => {
                let (a, b) = pair.get(at);
                Change::new(a, b)
            }
            Self::Number { at } => {
                let (a, b) = pair.get(at);
                Change::new(Some(a.unwrap_or(0.0)), Some(b.unwrap_or(0.0)))
            }
            Self::Count { at, size } => {
                let ((a, b), sizes) = (pair.get(at), pair.get(size));
                let variance = |count: Option<f64>, size: Option<f64>| match (count, size) {
                    (Some(count), Some(size)) => count * count / size,
                    _ => 0.0,
                };
                let error = (variance(a, sizes.0) + variance(b, sizes.1)).sqrt();
                let change = Change::new(Some(a.unwrap_or(0.0)), Some(b.unwrap_or(0.0)));
                change.judged(error, NORMAL_95, normal_p)
            }
            Self::Mean { at, deviation, size } => {
                let ((a, b), sizes) = (pair.get(at), pair.get(size));
                let deviations = pair.get(deviation);
                let change = Change::new(a, b);
                match (MeanError::new(deviations.0, sizes.0), MeanError::new(deviations.1, sizes.1))
                {
                    (Some(a), Some(b)) => welch(change, a, b),
                    _ => change,
                }
            }
        }
    }
}

/// How uncertain a mean is.
#[derive(Debug, Clone, Copy)]
struct MeanError {
    variance: f64,
    freedom: f64,
}

impl MeanError {
    /// `None` of one row, which says nothing about how far apart rows are.
    fn new(deviation: Option<f64>, size: Option<f64>) -> Option<Self> {
        let (deviation, freedom) = (deviation?, size? - 1.0);
        // The deviation is that of the rows as they are: one less for the mean taken from them.
        (freedom > 1e-9).then(|| Self { variance: deviation * deviation / freedom, freedom })
    }
}

/// Judges the difference of two means. Without any spread there is nothing to judge it by.
fn welch(change: Change, a: MeanError, b: MeanError) -> Change {
    let variance = a.variance + b.variance;
    if variance <= 0.0 {
        return change;
    }
    // Satterthwaite, "An approximate distribution of estimates of variance components" (1946).
    let freedom = variance * variance
        / (a.variance * a.variance / a.freedom + b.variance * b.variance / b.freedom);
    change.judged(variance.sqrt(), student_95(freedom), |t| student_p(t, freedom))
}

fn joined(
    a: Vec<AnswerRow>,
    b: Vec<AnswerRow>,
    shift: i64,
    budget: &Budget<'_>,
) -> Result<Vec<Pair>, QueryError> {
    let keys = |group: &[Value]| -> Result<Vec<CellKey>, QueryError> {
        let text: usize = group.iter().map(text_bytes).sum();
        budget.take(size_of::<Pair>() + group.len() * size_of::<CellKey>() + text)?;
        budget.check()?;
        Ok(group.iter().map(CellKey::of).collect())
    };
    let mut places: HashMap<Vec<CellKey>, usize, RandomState> = HashMap::default();
    let mut pairs = Vec::new();
    for row in a {
        places.insert(keys(&row.group)?, pairs.len());
        pairs.push(Pair { group: row.group, a: row.values, b: Vec::new() });
    }
    for mut row in b {
        for value in &mut row.group {
            if let Value::Time(time) = value {
                *time = time.saturating_add(shift);
            }
        }
        match places.get(&keys(&row.group)?) {
            Some(&place) => pairs[place].b = row.values,
            None => pairs.push(Pair { group: row.group, a: Vec::new(), b: row.values }),
        }
    }
    Ok(pairs)
}

/// The groups that are first in A or first in B, in the order of A. Groups that are not there come
/// last, and those with the same value stay in their order.
fn first(pairs: Vec<Pair>, top: Top) -> Vec<Pair> {
    let rank = |value: Option<f64>| match (value, top.order) {
        (None, _) => f64::INFINITY,
        (Some(value), Order::Ascending) => value,
        (Some(value), Order::Descending) => -value,
    };
    let first_of = |side: fn(&Pair) -> &[Option<f64>]| {
        let key = |&place: &usize| rank(side(&pairs[place]).get(top.by).copied().flatten());
        let mut places: Vec<usize> = (0..pairs.len()).filter(|at| key(at).is_finite()).collect();
        places.sort_by(|x, y| key(x).total_cmp(&key(y)));
        places.truncate(top.count);
        places
    };
    let (in_a, in_b) = (first_of(|pair| &pair.a), first_of(|pair| &pair.b));
    let mut is_first = vec![false; pairs.len()];
    in_a.into_iter().chain(in_b).for_each(|at| is_first[at] = true);
    let mut chosen: Vec<Pair> = pairs
        .into_iter()
        .zip(is_first)
        .filter(|(_, is_first)| *is_first)
        .map(|(pair, _)| pair)
        .collect();
    chosen.sort_by(|x, y| {
        let (x, y) = (x.get(top.by), y.get(top.by));
        rank(x.0).total_cmp(&rank(y.0)).then(rank(x.1).total_cmp(&rank(y.1)))
    });
    chosen
}
