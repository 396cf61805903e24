//! What questions are answered from.

use std::sync::Arc;

use super::{Segment, Vocabularies};

/// The rows of a dataset at one moment. Cheap to clone, and never changes: segments that are
/// replaced meanwhile live as long as someone looks at them.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// In no order; the rows that are not in files yet are segments in memory.
    pub segments: Vec<Arc<Segment>>,
    /// What is not in it though it was acknowledged, and why, as people are told.
    pub missing: Vec<String>,
    /// The numbers of the dataset's strings, the same for all its snapshots.
    pub vocabularies: Arc<Vocabularies>,
}

impl Snapshot {
    /// Of these segments, with nothing missing.
    pub fn of(segments: impl IntoIterator<Item = Segment>) -> Self {
        Self { segments: segments.into_iter().map(Arc::new).collect(), ..Self::default() }
    }
}
