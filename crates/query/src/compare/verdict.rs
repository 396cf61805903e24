//! Whether a benchmark became slower: a rule that says "unknown" where the runs do not say.
//!
//! The change is (median after − median before) / median before. Its interval is found by the
//! bootstrap (Efron, "Bootstrap methods: another look at the jackknife", 1979): both sides are
//! drawn again from their own runs, with repetition, many times, and the middle of the changes
//! seen is the interval. Draws come from a fixed seed, so that the same runs have the same verdict.
//!
//! | verdict | when |
//! |---|---|
//! | slower, faster | the whole interval is beyond the threshold, on that side |
//! | same | the whole interval is within the threshold |
//! | unknown | the interval is neither, or a side has too few runs |
//!
//! With three runs a side, all of one side must lie beyond all of the other to be told apart,
//! which happens by chance once in ten times: more runs make better verdicts.

use std::convert::Infallible;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use perflab_store::segment::{Segment, Snapshot};
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::group::{CellKey, Cells};
use crate::limits::Budget;
use crate::numbering::text_bytes;
use crate::selection::{RowNumbers, Scan, Selection, of_segments};
use crate::{Limits, QueryError, Value};

/// With fewer runs on a side, the verdict is unknown.
pub const RUNS_MIN: usize = 3;
/// The most measurements that are judged at once.
pub const MEASUREMENTS_MAX: usize = 1 << 22;
/// How often runs are drawn again.
const DRAWS: usize = 2000;
const SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// What is said of two sets of runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Same,
    Faster,
    Slower,
    Unknown,
}

impl Verdict {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::Unknown => "unknown",
        }
    }
}

/// Which numbers are better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// Times, instructions, bytes: more is slower.
    Lower,
    /// Rates: more is faster.
    Higher,
}

/// What counts as a change.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rule {
    /// Changes up to this part are not worth speaking of: 0.02 is 2 %.
    pub threshold: f64,
    /// How much of the changes seen the interval has, such as 0.95.
    pub confidence: f64,
    pub better: Better,
}

impl Default for Rule {
    fn default() -> Self {
        Self { threshold: 0.02, confidence: 0.95, better: Better::Lower }
    }
}

/// A verdict and what it is based on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Judgement {
    pub verdict: Verdict,
    /// How many runs each side has.
    pub runs_before: usize,
    pub runs_after: usize,
    /// The medians; `None` of no runs.
    pub before: Option<f64>,
    pub after: Option<f64>,
    /// By which part the median changed: 0.1 is 10 % more. `None` where that has no meaning: no
    /// runs, or a run before that is not above zero.
    pub change: Option<f64>,
    /// In which the change lies; `None` with too few runs.
    pub interval: Option<(f64, f64)>,
}

/// Judges the runs after a change against those before it.
pub fn verdict(before: &[f64], after: &[f64], rule: &Rule) -> Judgement {
    let Ok(judgement) = judgement(before, after, rule, || Ok::<_, Infallible>(()));
    judgement
}

/// Asks before every draw whether to go on.
fn judgement<E>(
    before: &[f64],
    after: &[f64],
    rule: &Rule,
    go_on: impl Fn() -> Result<(), E>,
) -> Result<Judgement, E> {
    let has_meaning =
        before.iter().all(|run| *run > 0.0) && after.iter().all(|run| run.is_finite());
    let has_runs = before.len().min(after.len()) >= RUNS_MIN;
    let (median_before, median_after) = (median(before), median(after));
    let interval = (has_meaning && has_runs)
        .then(|| interval(before, after, rule.confidence, go_on))
        .transpose()?;
    let medians = median_before.zip(median_after).filter(|_| has_meaning);
    Ok(Judgement {
        verdict: interval.map_or(Verdict::Unknown, |interval| rule.verdict(interval)),
        runs_before: before.len(),
        runs_after: after.len(),
        before: median_before,
        after: median_after,
        change: medians.map(|(before, after)| after / before - 1.0),
        interval,
    })
}

impl Rule {
    fn verdict(&self, (low, high): (f64, f64)) -> Verdict {
        let (more, less) = match self.better {
            Better::Lower => (Verdict::Slower, Verdict::Faster),
            Better::Higher => (Verdict::Faster, Verdict::Slower),
        };
        if low > self.threshold {
            more
        } else if high < -self.threshold {
            less
        } else if -self.threshold <= low && high <= self.threshold {
            Verdict::Same
        } else {
            Verdict::Unknown
        }
    }
}

fn median(runs: &[f64]) -> Option<f64> {
    let mut runs = runs.to_vec();
    (!runs.is_empty()).then(|| median_of(&mut runs))
}

fn median_of(runs: &mut [f64]) -> f64 {
    runs.sort_unstable_by(f64::total_cmp);
    let middle = runs.len() / 2;
    if runs.len() % 2 == 1 { runs[middle] } else { runs[middle - 1] / 2.0 + runs[middle] / 2.0 }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "a part of a small number"
)]
fn interval<E>(
    before: &[f64],
    after: &[f64],
    confidence: f64,
    go_on: impl Fn() -> Result<(), E>,
) -> Result<(f64, f64), E> {
    let mut random = Random(SEED);
    let mut changes = Vec::with_capacity(DRAWS);
    for _ in 0..DRAWS {
        go_on()?;
        let before = random.median(before);
        changes.push(random.median(after) / before - 1.0);
    }
    changes.sort_unstable_by(f64::total_cmp);
    let outside = ((1.0 - confidence.clamp(0.0, 1.0)) / 2.0 * DRAWS as f64) as usize;
    let outside = outside.min(DRAWS / 2 - 1);
    Ok((changes[outside], changes[DRAWS - 1 - outside]))
}

/// SplitMix64: Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// The median of as many runs, drawn from these.
    fn median(&mut self, runs: &[f64]) -> f64 {
        let count = runs.len() as u128;
        let place = |random: u64| usize::try_from((u128::from(random) * count) >> 64).unwrap_or(0);
        let mut drawn: Vec<f64> = runs.iter().map(|_| runs[place(self.next())]).collect();
        median_of(&mut drawn)
    }
}

/// What is said of stored measurements.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgements {
    /// Sorted by series.
    pub series: Vec<Judged>,
    /// On both sides together.
    pub rows_scanned: u64,
}

/// One benchmark × metric × machine, judged.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// The values of the columns that tell series apart.
    pub series: Vec<Value>,
    pub judgement: Judgement,
}

/// A series and its runs before and after.
type Sides = (Vec<Value>, [Vec<f64>; 2]);

/// Judges stored measurements, one row being one run: for each combination of values in the
/// `series` columns, the numbers in column `value` of the rows after against those before. A series
/// that only one side has is unknown.
pub fn judge(
    series: &[String],
    value: &str,
    before: &Selection,
    after: &Selection,
    rule: &Rule,
    snapshot: &Snapshot,
    limits: &Limits,
) -> Result<Judgements, QueryError> {
    let budget = Budget::of(limits);
    let before = Runs::find(series, value, &Scan::new(before, snapshot, &budget)?, snapshot)?;
    let after = Runs::find(series, value, &Scan::new(after, snapshot, &budget)?, snapshot)?;
    let rows_scanned = before.rows_scanned + after.rows_scanned;
    let mut all: HashMap<Vec<CellKey>, Sides, RandomState> = HashMap::default();
    for (side, runs) in [before, after].into_iter().enumerate() {
        for (series, run) in runs.runs {
            let key = series.iter().map(CellKey::of).collect();
            all.entry(key).or_insert_with(|| (series, Default::default())).1[side].push(run);
        }
    }
    let all: Vec<_> = all.into_values().collect();
    let mut judged: Vec<Judged> = all
        .into_par_iter()
        .map(|(series, [before, after])| {
            let judgement = judgement(&before, &after, rule, || budget.check())?;
            Ok(Judged { series, judgement })
        })
        .collect::<Result<_, QueryError>>()?;
    judged.sort_by(|x, y| x.series.partial_cmp(&y.series).unwrap_or(std::cmp::Ordering::Equal));
    Ok(Judgements { series: judged, rows_scanned })
}

/// Each run with its series, in the order of segments and rows.
#[derive(Debug, Default)]
struct Runs {
    runs: Vec<(Vec<Value>, f64)>,
    rows_scanned: u64,
}

impl Runs {
    fn find(
        series: &[String],
        value: &str,
        scan: &Scan<'_>,
        snapshot: &Snapshot,
    ) -> Result<Self, QueryError> {
        let mut all = Self::default();
        for of_segment in
            of_segments(snapshot, |segment| Self::of_segment(series, value, scan, segment))?
        {
            all.runs.extend(of_segment.runs);
            all.rows_scanned += of_segment.rows_scanned;
        }
        if all.runs.len() > MEASUREMENTS_MAX {
            return Err(QueryError::TooManyMeasurements);
        }
        Ok(all)
    }

    fn of_segment(
        series: &[String],
        value: &str,
        scan: &Scan<'_>,
        segment: &Segment,
    ) -> Result<Self, QueryError> {
        let mut cells = Vec::new();
        for name in series {
            cells.push(Cells::new(&segment.columns_named(name).collect::<Vec<_>>(), segment)?);
        }
        let (numbers, mut runs) = (RowNumbers::new(value, segment)?, Vec::new());
        let rows_scanned = scan.each_block(segment, |chosen| {
            let before = runs.len();
            chosen.for_each(|row| {
                if let Some(number) = numbers.get(row) {
                    runs.push((cells.iter().map(|cells| cells.value(row)).collect(), number));
                }
            });
            scan.budget().take(runs[before..].iter().map(run_bytes).sum())?;
            match runs.len() > MEASUREMENTS_MAX {
                true => Err(QueryError::TooManyMeasurements),
                false => Ok(()),
            }
        })?;
        Ok(Self { runs, rows_scanned })
    }
}

/// What a run takes, with its series once more as a key.
fn run_bytes((series, _): &(Vec<Value>, f64)) -> usize {
    let values: usize = series.iter().map(|value| size_of::<Value>() + text_bytes(value)).sum();
    size_of::<(Vec<Value>, f64)>() + 2 * values
}
