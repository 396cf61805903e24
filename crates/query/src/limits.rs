//! What a question may cost.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::{Cache, QueryError};

/// The memory of one question where nothing else is said.
pub const MEMORY_BYTES_DEFAULT: usize = 2 << 30;
/// The groups of one answer where nothing else is said.
pub const GROUPS_DEFAULT: usize = 1 << 24;

/// What a question may cost, and use.
pub struct Limits {
    /// For what is remembered of groups and rows until the answer is there.
    pub memory_bytes: usize,
    /// Of an answer; there may be more of them when only the first are asked for.
    pub groups: usize,
    /// Asked every few thousand rows: whether to stop, and why. The clock is the caller's.
    pub stop: Box<dyn Fn() -> Option<Stop> + Send + Sync>,
    /// Where the results of segments are kept for the next question, if they are.
    pub cache: Option<Arc<Cache>>,
}

impl Default for Limits {
    fn default() -> Self {
        let stop = Box::new(|| None);
        Self { memory_bytes: MEMORY_BYTES_DEFAULT, groups: GROUPS_DEFAULT, stop, cache: None }
    }
}

impl fmt::Debug for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { memory_bytes, groups, stop: _, cache } = self;
        f.debug_struct("Limits")
            .field("memory_bytes", memory_bytes)
            .field("groups", groups)
            .field("cache", cache)
            .finish_non_exhaustive()
    }
}

/// Why a question is not answered to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    Canceled,
    /// It took longer than this.
    TimedOut(Duration),
}

/// Where the engine goes from one way of answering to another. The answer is the same on both
/// sides; tests move them, so that few rows go all ways.
#[derive(Debug, Clone)]
pub struct Thresholds {
    /// Up to this size of the table of all possible groups each of them has a place in it.
    pub table_bytes: usize,
    /// The same for the possible groups of one segment.
    pub segment_groups: usize,
    /// Where there are more possible groups than rows, times this, groups are hashed.
    pub groups_per_row: u64,
    /// Groups and rows are divided into parts of about two to this power, 16 at most.
    pub partition_bits: u32,
    /// At most so many bytes of rows are sorted by group at a time.
    pub round_bytes: usize,
}

impl Thresholds {
    const USUAL: Self = Self {
        table_bytes: 128 << 20,
        segment_groups: 1 << 18,
        groups_per_row: 32,
        partition_bits: 16,
        round_bytes: 1 << 30,
    };
}

impl Default for Thresholds {
    fn default() -> Self {
        Self::USUAL
    }
}

/// What is left of the limits of a question.
#[derive(Debug)]
pub(crate) struct Budget<'l> {
    limits: &'l Limits,
    pub(crate) thresholds: &'l Thresholds,
    used: AtomicUsize,
}

impl<'l> Budget<'l> {
    pub(crate) fn new(limits: &'l Limits, thresholds: &'l Thresholds) -> Self {
        Self { limits, thresholds, used: AtomicUsize::new(0) }
    }

    /// With the usual thresholds.
    pub(crate) fn of(limits: &'l Limits) -> Self {
        Self::new(limits, &Thresholds::USUAL)
    }

    pub(crate) fn cache(&self) -> Option<&'l Cache> {
        self.limits.cache.as_deref()
    }

    /// Whether to go on.
    pub(crate) fn check(&self) -> Result<(), QueryError> {
        match (self.limits.stop)() {
            None => Ok(()),
            Some(Stop::Canceled) => Err(QueryError::Canceled),
            Some(Stop::TimedOut(limit)) => Err(QueryError::TimedOut { limit }),
        }
    }

    pub(crate) fn check_groups(&self, groups: usize) -> Result<(), QueryError> {
        let limit = self.limits.groups;
        if groups > limit { Err(QueryError::TooManyGroups { limit }) } else { Ok(()) }
    }

    pub(crate) fn take(&self, bytes: usize) -> Result<(), QueryError> {
        let used = self.used.fetch_add(bytes, Ordering::Relaxed);
        if used.saturating_add(bytes) > self.limits.memory_bytes {
            return Err(QueryError::TooMuchMemory { limit: self.limits.memory_bytes });
        }
        Ok(())
    }

    pub(crate) fn give_back(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub(crate) fn left(&self) -> usize {
        self.limits.memory_bytes.saturating_sub(self.used.load(Ordering::Relaxed))
    }
}
