//! The keeper: what happens to rows after they are in the log, on one thread of its own.
//!
//! In this order, again and again: read what the memory tables lack from the log; make images of
//! what waits; write memory tables to files; rebuild what is damaged; merge small segments; make
//! old ones cold; remove what is past its retention. Every change of the set of segments goes file first, then catalog,
//! then memory, and only then are old files removed: `docs/formats/store.md` says why a crash
//! between any two is harmless.

mod check;
mod cold;
mod compact;
mod cool;
mod files;
mod flush;
mod log_rows;
mod map;
mod rebuild;
mod replay;
mod retain;
mod scratch;
mod start;
mod steps;
mod thaw;
mod thawed;
mod tidy;

pub use check::{SegmentCheck, SegmentDamage};
pub use cold::{ColdStartError, ColdUrl, ColdUrlError, PlaceError, Unreachable};
pub use steps::{FAULT_POINTS, Fault};
pub use thaw::ThawError;

pub(crate) use start::{Parts, StartError};

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use perflab_log::{Log, ReadError};
use perflab_model::Clock;
use perflab_wire::Registry;

use crate::catalog::{Catalog, CatalogError, DatasetSettings, SegmentChange, SegmentEntry};
use crate::datasets::Datasets;
use crate::ingest::{REJECTED, REJECTED_BYTES_MAX, chain};
use crate::segment::{PerFile, SegmentError, Source, Sparsity, lay_out};
use crate::tables::{FileSegment, Tables};
use cold::ColdStore;
use files::{FileError, SegmentFiles};
use steps::Steps;
use thawed::Thawed;

/// How often the keeper looks around when nobody wakes it.
const TICK: Duration = Duration::from_secs(2);

/// Why rows could not be moved on; they stay where they are, and it is tried again.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeepError {
    #[error("failed to write a cold segment of dataset `{dataset}`")]
    WriteCold {
        dataset: String,
        #[source]
        error: Unreachable,
    },
    #[error(transparent)]
    Cold(#[from] Unreachable),
    #[error("failed to make a segment of dataset `{dataset}`")]
    Segment {
        dataset: String,
        #[source]
        error: SegmentError,
    },
    #[error("failed to read the log")]
    Log(#[from] ReadError),
    #[error(transparent)]
    File(#[from] FileError),
    #[error("failed to read a cold segment again that was just written")]
    Verify(#[from] ThawError),
    #[error(transparent)]
    Catalog(#[from] CatalogError),
}

#[derive(Debug)]
pub(crate) struct Keeper {
    tables: Arc<Tables>,
    log: Log,
    catalog: Arc<Catalog>,
    datasets: Arc<Datasets>,
    registry: Arc<RwLock<Arc<Registry>>>,
    clock: Arc<dyn Clock>,
    files: SegmentFiles,
    cold: ColdStore,
    /// Whether objects may be there that are of no segment.
    cold_is_untidy: AtomicBool,
    thawed: Thawed,
    fault: Fault,
    settings: RwLock<HashMap<String, DatasetSettings>>,
    /// The highest number that a segment has.
    last_id: AtomicU64,
    /// As the catalog has it.
    replay_from: AtomicU64,
    /// Held while the keeper works.
    tending: Mutex<()>,
}

impl Keeper {
    pub(crate) fn tables(&self) -> &Arc<Tables> {
        &self.tables
    }

    /// Whether the last use of where cold segments are kept failed.
    pub(crate) fn is_cold_failing(&self) -> bool {
        self.cold.is_failing()
    }

    /// Ends what it is at as soon as that can be done.
    pub(crate) fn stop(&self) {
        self.tables.stop();
        self.cold.end();
    }

    /// Works until it is told to stop.
    pub(crate) fn run(&self) {
        loop {
            self.tend();
            if !self.tables.wait_for_work(TICK) {
                break;
            }
        }
        self.put_away();
    }

    /// Does everything that is to be done now.
    pub(crate) fn tend(&self) {
        let _tending = self.tending.lock().unwrap_or_else(PoisonError::into_inner);
        let due = || Some(self.clock.now().saturating_sub(self.tables.limits().flush_after));
        self.catch_up();
        self.make_room(due());
        self.rebuild_damaged();
        while !self.tables.is_stopping() && self.compact_next() {
            self.make_room(due());
        }
        self.tidy_cold();
        while !self.tables.is_stopping() && self.cool_next() {
            self.make_room(due());
        }
        self.retain_datasets();
    }

    /// The first record that must stay in the log: no segment holds its rows.
    pub(crate) fn held_from(&self) -> u64 {
        let damaged = self.tables.damaged().into_iter().map(|(_, segment)| segment.entry.first_seq);
        damaged.min().unwrap_or(u64::MAX).min(self.replay_from.load(Ordering::Acquire))
    }

    pub(crate) fn settings(&self, dataset: &str) -> DatasetSettings {
        let settings = self.settings.read().unwrap_or_else(PoisonError::into_inner);
        let max_bytes = (dataset == REJECTED).then_some(REJECTED_BYTES_MAX);
        let default = DatasetSettings { max_bytes, ..DatasetSettings::default() };
        settings.get(dataset).copied().unwrap_or(default)
    }

    pub(crate) fn set_settings(
        &self,
        dataset: &str,
        settings: DatasetSettings,
    ) -> Result<(), CatalogError> {
        let mut known = self.settings.write().unwrap_or_else(PoisonError::into_inner);
        self.catalog.set_dataset_settings(dataset, &settings)?;
        known.insert(dataset.to_owned(), settings);
        drop(known);
        self.tables.wake_keeper();
        Ok(())
    }

    /// Makes a segment of rows in files and opens it; nobody knows of it yet.
    fn write_segment(
        &self,
        dataset: &str,
        sources: &[Source<'_>],
        span: (u64, u64),
        steps: &Steps,
    ) -> Result<FileSegment, KeepError> {
        let segment_failed = |error| KeepError::Segment { dataset: dataset.to_owned(), error };
        let scratch = self.files.scratch().map_err(|error| segment_failed(error.into()))?;
        let sheets = lay_out(sources, Some(&scratch), Sparsity::DEFAULT).map_err(segment_failed)?;
        let folder = self.catalog.dataset_folder(dataset)?;
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let written = self.files.write((folder, id), sheets, steps).map_err(segment_failed);
        let opened = written.and_then(|lengths| self.open_new((folder, id), lengths, span));
        if opened.is_err() {
            self.remove_files(dataset, &[id]);
        }
        opened
    }

    /// Opens a segment that was just written.
    fn open_new(
        &self,
        (folder, id): (u64, u64),
        lengths: PerFile<u64>,
        (first_seq, end_seq): (u64, u64),
    ) -> Result<FileSegment, KeepError> {
        let mut entry = SegmentEntry {
            id,
            rows: 0,
            row_bytes: lengths.rows,
            list_bytes: lengths.lists,
            sparse_bytes: lengths.sparse,
            min_ns: 0,
            max_ns: 0,
            first_seq,
            end_seq,
            cold: None,
        };
        let segment = self.files.open(folder, &entry)?;
        entry.rows = segment.rows() as u64;
        (entry.min_ns, entry.max_ns) = segment.time_ends().unwrap_or_default();
        Ok(FileSegment { entry, segment: Arc::new(segment) })
    }

    /// Makes a change of a dataset's segments known to the next start.
    fn record(
        &self,
        dataset: &str,
        change: &SegmentChange<'_>,
        step: &'static str,
    ) -> Result<(), KeepError> {
        if let Err(error) = self.catalog.change_segments(dataset, change) {
            if let Some(added) = change.added {
                self.remove_segment(dataset, added);
            }
            return Err(error.into());
        }
        if let Some(replay_from) = change.replay_from {
            self.replay_from.store(replay_from, Ordering::Release);
        }
        (self.fault)(step);
        Ok(())
    }

    /// Removes a segment that the catalog doesn't name.
    fn remove_segment(&self, dataset: &str, entry: &SegmentEntry) {
        if entry.cold.is_some() {
            self.remove_cold(dataset, entry.id);
        } else {
            self.remove_files(dataset, &[entry.id]);
        }
    }

    /// Removes files that the catalog doesn't name. What can't be removed now is at the next
    /// start.
    fn remove_files(&self, dataset: &str, ids: &[u64]) {
        for &id in ids {
            let folder = self.catalog.dataset_folder(dataset);
            if let Ok(Err(error)) = folder.map(|folder| self.files.remove(folder, id)) {
                tracing::warn!(dataset, id, %error, "a segment's file could not be removed");
            }
        }
    }

    fn tell(&self, error: &KeepError, what: &str) {
        // Not while the home is being closed, when the catalog takes nothing any more.
        if !self.tables.is_stopping() {
            tracing::error!(error = chain(error), "{what}");
        }
    }
}
