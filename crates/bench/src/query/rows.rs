//! The rows that questions are asked about: thirty days of test runs, the same on every machine.

use std::sync::Arc;

use anyhow::Result;
use arrow::array::{
    ArrayRef, DictionaryArray, Float64Array, RecordBatch, StringArray, TimestampNanosecondArray,
    UInt8Array, UInt16Array,
};
use arrow::datatypes::UInt16Type;

use crate::random::Random;

/// The first row's time: 2023-10-16.
pub(crate) const START_NS: i64 = 1_697_414_400_000_000_000;
pub(crate) const DAY_NS: i64 = 24 * 3600 * 1_000_000_000;
pub(crate) const DAYS: i64 = 30;
pub(crate) const ROWS_PER_BATCH: usize = 1 << 16;

/// The commit that few rows have: one in this many batches has a row of it.
pub(crate) const RARE_COMMIT: &str = "rare-commit";
const RARE_EVERY: usize = 8;
/// Of a thousand rows, so many have no value in a column that may have none.
const NULLS_PER_MILLE: u64 = 10;

const STATUSES: [&str; 8] =
    ["passed", "failed", "skipped", "error", "timeout", "flaky", "xfail", "xpass"];

/// The strings of the columns.
#[derive(Debug)]
pub(crate) struct Names {
    status: ArrayRef,
    job: ArrayRef,
    test: ArrayRef,
    commit: ArrayRef,
    host: ArrayRef,
}

impl Names {
    pub(crate) fn new() -> Self {
        let numbered = |count: usize, name: &dyn Fn(usize) -> String| -> ArrayRef {
            Arc::new(StringArray::from_iter_values((0..count).map(name)))
        };
        let mut random = Random::new(7);
        let mut commits: Vec<String> =
            (0..20_000).map(|_| format!("{:012x}", random.next() >> 16)).collect();
        commits.push(RARE_COMMIT.to_owned());
        Self {
            status: Arc::new(StringArray::from_iter_values(STATUSES)),
            job: numbered(200, &|n| format!("linux-job-{n:03}")),
            test: numbered(20_000, &|n| format!("test_{:03}::case_{n:05}", n % 400)),
            commit: Arc::new(StringArray::from_iter_values(commits)),
            host: numbered(200, &|n| format!("host-{n:03}.ci")),
        }
    }

    /// The rows of one of `batches` batches; times ascend over all of them.
    pub(crate) fn batch(&self, number: usize, batches: usize) -> Result<RecordBatch> {
        let mut random = Random::new(number as u64);
        let rows = ROWS_PER_BATCH;
        let total = i64::try_from(batches * rows)?;
        let first = i64::try_from(number * rows)?;
        let step = DAYS * DAY_NS / total;
        let times = (first..).take(rows).map(|row| START_NS + row * step);
        let mut columns: Vec<(&str, ArrayRef)> = vec![
            (
                "time",
                Arc::new(TimestampNanosecondArray::from_iter_values(times).with_timezone("UTC")),
            ),
            ("weight", Arc::new(weights(&mut random, rows))),
            ("status", coded(&self.status, statuses(&mut random, rows))?),
        ];
        for (name, values) in [("job", &self.job), ("test", &self.test), ("host", &self.host)] {
            columns.push((name, coded(values, uniform(&mut random, rows, values.len()))?));
        }
        let mut commits: Vec<_> = uniform(&mut random, rows, self.commit.len() - 1).collect();
        if number.is_multiple_of(RARE_EVERY) {
            commits[rows / 2] = u16::try_from(self.commit.len() - 1).ok();
        }
        columns.push(("commit", coded(&self.commit, commits.into_iter())?));
        columns.push(("latency", Arc::new(latencies(&mut random, rows))));
        for name in ["user_cpu", "system_cpu", "memory", "read", "written"] {
            let values = (0..rows).map(|_| random.unit() * 1e6);
            columns.push((name, Arc::new(Float64Array::from_iter_values(values))));
        }
        Ok(RecordBatch::try_from_iter_with_nullable(
            columns.into_iter().map(|(name, values)| (name, values, true)),
        )?)
    }
}

/// How many rows each kept row stands for.
fn weights(random: &mut Random, rows: usize) -> UInt8Array {
    UInt8Array::from_iter_values((0..rows).map(|_| match random.below(10) {
        0..7 => 1,
        7..9 => 10,
        _ => 100,
    }))
}

/// Most pass.
fn statuses(random: &mut Random, rows: usize) -> impl Iterator<Item = Option<u16>> {
    (0..rows).map(|_| Some(u16::try_from(random.below(64)).map_or(0, |n| n.saturating_sub(56))))
}

fn uniform(random: &mut Random, rows: usize, count: usize) -> impl Iterator<Item = Option<u16>> {
    (0..rows).map(move |_| {
        let is_null = random.below(1000) < NULLS_PER_MILLE;
        let code = u16::try_from(random.below(count as u64)).ok();
        code.filter(|_| !is_null)
    })
}

/// Log-normal, about: most are near 20 ms, a few take seconds.
fn latencies(random: &mut Random, rows: usize) -> Float64Array {
    (0..rows)
        .map(|_| {
            let is_null = random.below(1000) < NULLS_PER_MILLE;
            let normal: f64 = (0..4).map(|_| random.unit() - 0.5).sum::<f64>() * 1.7;
            (!is_null).then(|| 20.0 * normal.exp())
        })
        .collect()
}

fn coded(values: &ArrayRef, codes: impl Iterator<Item = Option<u16>>) -> Result<ArrayRef> {
    let codes: UInt16Array = codes.collect();
    Ok(Arc::new(DictionaryArray::<UInt16Type>::try_new(codes, Arc::clone(values))?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::Array;

    #[test]
    fn batches_follow_each_other_and_have_nulls() {
        let names = Names::new();
        let batch = names.batch(1, 4).unwrap();
        assert_eq!(batch.num_rows(), ROWS_PER_BATCH);
        assert_eq!(batch.num_columns(), 13);
        for name in ["job", "test", "commit", "host", "latency"] {
            let nulls = batch.column_by_name(name).unwrap().null_count();
            assert!((400..1000).contains(&nulls), "{name} has {nulls}");
        }
        assert_eq!(names.batch(1, 4).unwrap(), batch);
        assert_ne!(names.batch(2, 4).unwrap().column(1), batch.column(1));
    }
}
