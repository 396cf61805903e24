//! How the numbers of a column are spread: a histogram, and one per bucket of time (a heatmap).

use perflab_store::segment::{Segment, Snapshot};

use crate::algebra::Aggregate;
use crate::limits::Budget;
use crate::selection::{RowNumbers, Scan, Selection, of_segments, sums_of_segments};
use crate::{Limits, QueryError, answer};

/// The most bins of a histogram.
pub const BINS_MAX: usize = 1000;

/// How wide bins are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bins {
    /// All the same.
    Linear,
    /// Each wider than the one before by the same factor. Numbers of zero and below have one bin
    /// of their own before the others.
    Log,
}

/// What is spread, and how finely it is shown.
#[derive(Debug, Clone, PartialEq)]
pub struct DistributionQuestion {
    /// A column of numbers.
    pub column: String,
    pub bins: Bins,
    /// How many bins, besides the one of [`Bins::Log`] for zero and below.
    pub count: usize,
    /// Where the buckets of the heatmap start, ascending; none for a histogram alone.
    pub starts: Vec<i64>,
}

/// How the numbers of a column are spread.
#[derive(Debug, Clone, PartialEq)]
pub struct Distribution {
    /// Where each bin begins, and where the last ends. A number at a border is in the bin that
    /// begins there; the last bin has its end too. Empty when there are no numbers.
    pub borders: Vec<f64>,
    /// The sum of the weights in each bin.
    pub a: Vec<f64>,
    /// The same of selection B, in the same bins.
    pub b: Option<Vec<f64>>,
    /// For each bucket of time, the weights in each bin. Rows before the first bucket are in none.
    pub heat_a: Vec<Vec<f64>>,
    pub heat_b: Option<Vec<Vec<f64>>>,
    pub rows_scanned: u64,
}

/// The distribution of a column in selection A, and in B with the same bins.
pub fn distribution(
    question: &DistributionQuestion,
    a: &Selection,
    b: Option<&Selection>,
    snapshot: &Snapshot,
    limits: &Limits,
) -> Result<Distribution, QueryError> {
    if !(1..=BINS_MAX).contains(&question.count) {
        return Err(QueryError::Bins { count: question.count });
    }
    let mut ends: Option<(f64, f64)> = None;
    for selection in [Some(a), b].into_iter().flatten() {
        let (least, most) = match ends_of(&question.column, selection, snapshot, limits)? {
            Some(ends) => ends,
            None => continue,
        };
        ends = Some(ends.map_or((least, most), |(l, m)| (l.min(least), m.max(most))));
    }
    let borders = match ends {
        None => Vec::new(),
        Some((least, most)) => match question.bins {
            Bins::Linear => linear(least, most, question.count),
            Bins::Log => {
                let positive = least_positive(&question.column, [Some(a), b], snapshot, limits)?;
                logarithmic(least, positive, most, question.count)
            }
        },
    };
    let heat_a = heat(question, &borders, a, snapshot, limits)?;
    let heat_b = b.map(|b| heat(question, &borders, b, snapshot, limits)).transpose()?;
    Ok(Distribution {
        a: heat_a.all,
        rows_scanned: heat_a.rows_scanned + heat_b.as_ref().map_or(0, |heat| heat.rows_scanned),
        heat_a: heat_a.buckets,
        b: heat_b.as_ref().map(|heat| heat.all.clone()),
        heat_b: heat_b.map(|heat| heat.buckets),
        borders,
    })
}

fn ends_of(
    column: &str,
    selection: &Selection,
    snapshot: &Snapshot,
    limits: &Limits,
) -> Result<Option<(f64, f64)>, QueryError> {
    let ends = vec![Aggregate::Min(column.to_owned()), Aggregate::Max(column.to_owned())];
    let answer = answer(&selection.question(Vec::new(), ends), snapshot, limits)?;
    Ok(answer.rows.first().and_then(|row| row.values[0].zip(row.values[1])))
}

/// The smallest number above zero.
fn least_positive(
    column: &str,
    selections: [Option<&Selection>; 2],
    snapshot: &Snapshot,
    limits: &Limits,
) -> Result<Option<f64>, QueryError> {
    let budget = Budget::of(limits);
    let mut least: Option<f64> = None;
    for selection in selections.into_iter().flatten() {
        let scan = Scan::new(selection, snapshot, &budget)?;
        let found = of_segments(snapshot, |segment| {
            let (numbers, mut least) = (RowNumbers::new(column, segment)?, f64::INFINITY);
            scan.each_row(segment, |row| {
                let number = numbers.get(row).filter(|number| *number > 0.0);
                least = least.min(number.unwrap_or(f64::INFINITY));
            })?;
            Ok(least)
        })?;
        least = found.into_iter().filter(|found| found.is_finite()).chain(least).reduce(f64::min);
    }
    Ok(least)
}

/// Of one number, one bin.
#[expect(clippy::cast_precision_loss, reason = "bins are few")]
fn linear(least: f64, most: f64, count: usize) -> Vec<f64> {
    if least >= most {
        return vec![least, most];
    }
    let share = |n: usize| n as f64 / count as f64;
    // As two products, because the distance of the ends may be too large for a number.
    let border = |n| least * (1.0 - share(n)) + most * share(n);
    let mut borders: Vec<f64> = (0..count).map(border).chain([most]).collect();
    // Where the ends are neighbours, there are no numbers between them to begin bins at.
    borders.dedup();
    borders
}

fn logarithmic(least: f64, positive: Option<f64>, most: f64, count: usize) -> Vec<f64> {
    let Some(positive) = positive else { return vec![least, most] };
    let exp = |border: f64| border.exp().clamp(positive, most);
    let mut borders: Vec<f64> =
        linear(positive.ln(), most.ln(), count).into_iter().map(exp).collect();
    // The ends are what they are, not what is left of them after a logarithm.
    if let [first, .., last] = &mut borders[..] {
        (*first, *last) = (positive, most);
    }
    if least <= 0.0 {
        borders.insert(0, least);
    }
    borders
}

/// The weights in bins, of all rows and of those of each bucket of time.
struct Heat {
    all: Vec<f64>,
    buckets: Vec<Vec<f64>>,
    rows_scanned: u64,
}

impl Heat {
    fn new(bins: usize, buckets: usize, budget: &Budget<'_>) -> Result<Self, QueryError> {
        let bytes = bins.saturating_mul(buckets + 1).saturating_mul(size_of::<f64>());
        budget.take(bytes)?;
        let buckets = vec![vec![0.0; bins]; buckets];
        Ok(Self { all: vec![0.0; bins], buckets, rows_scanned: 0 })
    }

    fn add(
        &mut self,
        question: &DistributionQuestion,
        borders: &[f64],
        scan: &Scan<'_>,
        segment: &Segment,
    ) -> Result<(), QueryError> {
        let numbers = RowNumbers::new(&question.column, segment)?;
        let (times, weights) = (segment.times()?, segment.weights()?);
        let Self { all, buckets, rows_scanned } = self;
        let bins = all.len();
        *rows_scanned += scan.each_row(segment, |row| {
            let Some(number) = numbers.get(row) else { return };
            let bin = borders.partition_point(|border| *border <= number);
            let (bin, weight) = (bin.clamp(1, bins) - 1, weights.get(row));
            all[bin] += weight;
            let bucket = question.starts.partition_point(|start| *start <= times[row]);
            if let Some(bucket) = bucket.checked_sub(1) {
                buckets[bucket][bin] += weight;
            }
        })?;
        Ok(())
    }

    fn merge(&mut self, other: &Self) {
        let rows = std::iter::once(&mut self.all).chain(&mut self.buckets);
        for (into, from) in rows.zip(std::iter::once(&other.all).chain(&other.buckets)) {
            into.iter_mut().zip(from).for_each(|(into, from)| *into += from);
        }
        self.rows_scanned += other.rows_scanned;
    }
}

fn heat(
    question: &DistributionQuestion,
    borders: &[f64],
    selection: &Selection,
    snapshot: &Snapshot,
    limits: &Limits,
) -> Result<Heat, QueryError> {
    let budget = Budget::of(limits);
    let scan = Scan::new(selection, snapshot, &budget)?;
    let new = || Heat::new(borders.len().saturating_sub(1), question.starts.len(), &budget);
    let mut all = new()?;
    // Without bins, what numbers there are have no weight.
    if !all.all.is_empty() {
        let add = |heat: &mut Heat, segment| heat.add(question, borders, &scan, segment);
        sums_of_segments(snapshot, new, add)?.iter().for_each(|heat| all.merge(heat));
    }
    Ok(all)
}

/// The sum of the weights in each bin, the first and the last being open to their sides.
pub(crate) fn bin_weights(
    column: &str,
    borders: &[f64],
    selection: &Selection,
    snapshot: &Snapshot,
    limits: &Limits,
) -> Result<Vec<f64>, QueryError> {
    let (column, count) = (column.to_owned(), borders.len());
    let question = DistributionQuestion { column, bins: Bins::Linear, count, starts: Vec::new() };
    Ok(heat(&question, borders, selection, snapshot, limits)?.all)
}
