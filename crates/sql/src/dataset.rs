//! What is asked about.

use std::fmt;
use std::sync::Arc;

use perflab_model::Kind;
use perflab_store::segment::Snapshot;
use perflab_store::{Reach, SnapshotError};

/// A dataset as a query needs it: its columns to begin with, and its rows once it is known which
/// times are asked about.
#[derive(Debug, Clone)]
pub struct Dataset {
    /// All that its rows have or had; where there are none any more, they are null.
    pub columns: Vec<(String, Kind)>,
    pub source: Arc<dyn Source>,
}

/// Where the rows of a dataset come from.
pub trait Source: fmt::Debug + Send + Sync {
    /// The rows as of now that are within reach. May take its time.
    fn snapshot(&self, reach: Reach) -> Result<Snapshot, SnapshotError>;
}

/// Always the same rows.
impl Source for Snapshot {
    fn snapshot(&self, _reach: Reach) -> Result<Snapshot, SnapshotError> {
        Ok(self.clone())
    }
}
