//! What a keeper finds at a start.

use std::collections::HashSet;
use std::io;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, RwLock};

use perflab_log::{Disk, Log};
use perflab_model::Clock;
use perflab_wire::Registry;

use super::Keeper;
use super::files::SegmentFiles;
use super::steps::Fault;
use crate::catalog::{Catalog, CatalogError, SegmentSet};
use crate::datasets::Datasets;
use crate::ingest::chain;
use crate::tables::{DamagedSegment, FileSegment, TableLimits, Tables};

/// Why a keeper can't start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Catalog(#[from] CatalogError),
}

/// What a keeper works with.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) log: Log,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) datasets: Arc<Datasets>,
    pub(crate) registry: Arc<RwLock<Arc<Registry>>>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) limits: TableLimits,
    pub(crate) fault: Fault,
}

impl Keeper {
    /// Opens the segments that the catalog names, and removes files that it doesn't. What is
    /// damaged is set aside, to be made again.
    pub(crate) fn open(home: &Path, parts: Parts) -> Result<Self, StartError> {
        let Parts { log, catalog, datasets, registry, clock, disk, limits, fault } = parts;
        check_log(&catalog, log.end())?;
        let replay_from = catalog.replay_from()?;
        let keeper = Self {
            tables: Arc::new(Tables::new(limits, replay_from)),
            files: SegmentFiles::new(home, disk, fault),
            settings: RwLock::new(catalog.dataset_settings()?),
            last_id: AtomicU64::new(catalog.last_segment_id()?),
            replay_from: AtomicU64::new(replay_from),
            tending: Mutex::default(),
            log,
            catalog,
            datasets,
            registry,
            clock,
            fault,
        };
        if !keeper.catalog.names_segments()? {
            keeper.set_all_aside()?;
            keeper.catalog.begin_segments()?;
        }
        let sets = keeper.catalog.segment_sets()?;
        keeper.sweep(&sets);
        for set in &sets {
            keeper.open_set(set);
        }
        // Where nothing is to be read, callbacks hand over rows from the first one on.
        if keeper.log.end() <= replay_from {
            keeper.tables.follow(replay_from, || keeper.log.end());
        }
        Ok(keeper)
    }

    fn open_set(&self, set: &SegmentSet) {
        let (mut files, mut damaged) = (Vec::new(), Vec::new());
        for &entry in &set.segments {
            match self.files.open(set.folder, &entry) {
                Ok(segment) => {
                    files.push(Arc::new(FileSegment { entry, segment: Arc::new(segment) }));
                }
                Err(error) => {
                    let why = chain(&error);
                    self.set_aside(&set.dataset, set.folder, entry.id, &why);
                    damaged.push(DamagedSegment { entry, why });
                }
            }
        }
        if set.flushed_end > 0 || !set.segments.is_empty() {
            self.tables.add_dataset(set.dataset.as_str().into(), set.flushed_end, files, damaged);
        }
    }

    /// What is left over takes space and does no other harm.
    fn sweep(&self, sets: &[SegmentSet]) {
        let ids = |set: &SegmentSet| {
            set.segments.iter().map(|segment| (set.folder, segment.id)).collect::<Vec<_>>()
        };
        let known: HashSet<(u64, u64)> = sets.iter().flat_map(ids).collect();
        match self.files.sweep(&known) {
            Ok(0) => {}
            Ok(files) => tracing::info!(files, "removed what a crash left of segments"),
            Err(error) => tracing::warn!(%error, "leftover files of segments are not removed"),
        }
    }

    /// Segments that no catalog names hold rows that the log may no longer have: they are not
    /// removed.
    fn set_all_aside(&self) -> io::Result<()> {
        let name = format!("segments-{}", self.clock.now().as_i64());
        if let Some(path) = self.files.set_all_aside(&name)? {
            let moved_to = path.display();
            tracing::error!(
                %moved_to,
                "the catalog that named the segments is lost: they are set aside, and rows that \
                 the log still has are read from there"
            );
        }
        Ok(())
    }
}

/// A log that ends before what segments were made of is not the one that they are from: its
/// records must not be taken for those.
fn check_log(catalog: &Catalog, log_end: u64) -> Result<(), CatalogError> {
    let flushed = catalog.segment_sets()?.iter().map(|set| set.flushed_end).max();
    let known_end = catalog.replay_from()?.max(flushed.unwrap_or(0));
    if log_end < known_end {
        tracing::error!(
            log_end,
            known_end,
            "the log has lost records at its end: segments keep their rows, and can't be rebuilt"
        );
        catalog.forget_sequences()?;
    }
    Ok(())
}
