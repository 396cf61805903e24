//! What is in the tables, for queries and operators.

use std::sync::Arc;

use super::Tables;
use super::table::{Cold, DamagedSegment};
use crate::catalog::{LostRows, SegmentEntry};
use crate::segment::{Segment, SegmentError, Snapshot};

/// What a dataset holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Holding {
    pub(crate) file_rows: u64,
    pub(crate) file_bytes: u64,
    pub(crate) files: usize,
    pub(crate) memory_rows: usize,
    /// The earliest and the latest time.
    pub(crate) times: Option<(i64, i64)>,
}

/// The rows of a dataset.
#[derive(Debug, Default)]
pub(crate) struct View {
    /// Without rows that are cold, and not saying yet which are lost.
    pub(crate) snapshot: Snapshot,
    pub(crate) cold: Cold,
    pub(crate) lost: Vec<LostRows>,
}

impl Tables {
    /// The rows of a dataset as of now; `None` when none ever came.
    pub(crate) fn view(&self, dataset: &str, log_end: u64) -> Result<Option<View>, SegmentError> {
        self.freeze(dataset)?;
        let state = self.lock();
        let mut missing = state.missing(log_end);
        let Some(table) = state.by_dataset.get(dataset) else {
            let snapshot = Snapshot { missing, ..Snapshot::default() };
            return Ok((!snapshot.missing.is_empty()).then(|| View { snapshot, ..View::default() }));
        };
        let (files, cold) = (Arc::clone(&table.files), Arc::clone(&table.cold));
        let images = table.images().iter().map(|image| Arc::clone(&image.segment));
        let images: Vec<Arc<Segment>> = images.collect();
        missing.extend(table.damaged.iter().map(|damaged| {
            let DamagedSegment { entry, why } = damaged;
            format!("a segment of {} rows is being rebuilt from the log: {why}", entry.rows)
        }));
        let lost = table.lost.clone();
        let vocabularies = Arc::clone(&table.vocabularies);
        drop(state);
        let files = files.iter().map(|file| Arc::clone(&file.segment));
        let segments = files.chain(images).collect();
        Ok(Some(View { snapshot: Snapshot { segments, missing, vocabularies }, cold, lost }))
    }

    /// What a dataset holds; `None` when it has no rows and never had.
    pub(crate) fn holding(&self, dataset: &str) -> Result<Option<Holding>, SegmentError> {
        self.freeze(dataset)?;
        Ok(self.with_table(dataset, |table| {
            let entries = table.entries();
            let file_times = entries.iter().map(|entry| (entry.min_ns, entry.max_ns));
            let image_times = table.images().iter().filter_map(|image| {
                let times = image.segment.times().ok()?;
                Some((*times.first()?, *times.last()?))
            });
            let join = |a: (i64, i64), b: (i64, i64)| (a.0.min(b.0), a.1.max(b.1));
            Holding {
                file_rows: entries.iter().map(|entry| entry.rows).sum(),
                file_bytes: entries.iter().map(SegmentEntry::bytes).sum(),
                files: entries.len(),
                memory_rows: table.memory_rows(),
                times: file_times.chain(image_times).reduce(join),
            }
        }))
    }

    /// Every dataset that has, or had, rows.
    pub(crate) fn datasets(&self) -> Vec<Arc<str>> {
        self.lock().by_dataset.keys().cloned().collect()
    }
}
