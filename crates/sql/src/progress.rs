//! How far a query is.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// How far a query is. Clones are of the same query.
#[derive(Debug, Clone, Default)]
pub struct Progress(Arc<State>);

#[derive(Debug, Default)]
struct State {
    rows_scanned: AtomicU64,
    missing: Mutex<Vec<String>>,
}

impl Progress {
    /// How many rows were read so far.
    pub fn rows_scanned(&self) -> u64 {
        self.0.rows_scanned.load(Ordering::Relaxed)
    }

    /// What is not among the rows though it was acknowledged, and why, as people are told.
    pub fn missing(&self) -> Vec<String> {
        self.0.missing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn add_rows(&self, rows: usize) {
        self.0.rows_scanned.fetch_add(rows as u64, Ordering::Relaxed);
    }

    pub(crate) fn add_missing(&self, missing: &[String]) {
        let mut known = self.0.missing.lock().unwrap_or_else(PoisonError::into_inner);
        known.extend_from_slice(missing);
    }
}
