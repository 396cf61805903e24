//! What a keeper finds at a start.

use std::collections::HashSet;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, RwLock};

use perflab_log::{Disk, Log};
use perflab_model::Clock;
use perflab_wire::Registry;

use super::Keeper;
use super::cold::{ColdParts, ColdStartError, ColdStore, ColdUrl};
use super::files::{COLD_FOLDER, FileError, SegmentFiles, set_all_aside};
use super::steps::Fault;
use super::thawed::Thawed;
use crate::catalog::{Catalog, CatalogError, SegmentEntry, SegmentSet};
use crate::datasets::Datasets;
use crate::ingest::chain;
use crate::tables::{DamagedSegment, FileSegment, Found, TableLimits, Tables};

/// Why a keeper can't start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    #[error(transparent)]
    Cold(#[from] ColdStartError),
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
    pub(crate) thawed_bytes_max: u64,
    pub(crate) cold: Option<ColdUrl>,
    pub(crate) fault: Fault,
}

impl Keeper {
    /// Opens the segments that the catalog names, and removes files that it doesn't. What is
    /// damaged is set aside, to be made again.
    pub(crate) fn open(home: &Path, parts: Parts) -> Result<Self, StartError> {
        let Parts {
            log,
            catalog,
            datasets,
            registry,
            clock,
            disk,
            limits,
            thawed_bytes_max,
            cold,
            fault,
        } = parts;
        check_log(&catalog, log.end())?;
        let replay_from = catalog.replay_from()?;
        let url = cold_url(cold, &catalog)?;
        let cold = ColdParts {
            home,
            home_id: &catalog.home_id()?,
            disk: Arc::clone(&disk),
            clock: Arc::clone(&clock),
            fault,
        };
        let keeper = Self {
            cold: ColdStore::open(url.as_ref(), cold)?,
            cold_is_untidy: AtomicBool::new(true),
            tables: Arc::new(Tables::new(limits, replay_from)),
            files: SegmentFiles::new(home, disk, fault),
            thawed: Thawed::open(home, thawed_bytes_max),
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
            keeper.set_all_aside(home)?;
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
        let (flushed_end, lost) = (set.flushed_end, set.lost.clone());
        let mut found = Found { flushed_end, lost, ..Found::default() };
        for &entry in &set.segments {
            if let Err(error) = self.open_segment(set.folder, entry, &mut found) {
                let why = chain(&error);
                self.set_aside(&set.dataset, set.folder, &entry, &why);
                found.damaged.push(DamagedSegment { entry, why });
            }
        }
        if set.flushed_end > 0 || !set.segments.is_empty() || !set.lost.is_empty() {
            self.tables.add_dataset(set.dataset.as_str().into(), found);
        }
    }

    fn open_segment(
        &self,
        folder: u64,
        entry: SegmentEntry,
        found: &mut Found,
    ) -> Result<(), FileError> {
        if entry.cold.is_some() {
            // Which may be elsewhere: whether it is whole is seen later.
            found.cold.push(entry);
        } else {
            let segment = Arc::new(self.files.open(folder, &entry)?);
            found.files.push(Arc::new(FileSegment { entry, segment }));
        }
        Ok(())
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
    fn set_all_aside(&self, home: &Path) -> io::Result<()> {
        for path in set_all_aside(home, self.clock.now())? {
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

/// Where cold segments are kept: where they were so far, unless another place is given before there
/// are any.
fn cold_url(given: Option<ColdUrl>, catalog: &Catalog) -> Result<Option<ColdUrl>, StartError> {
    let known = match catalog.cold_url()? {
        None => None,
        Some(place) => match place.parse::<ColdUrl>() {
            Ok(url) => Some(url),
            Err(error) => return Err(ColdStartError::NoPlace { place, error }.into()),
        },
    };
    let Some(given) = given.filter(|given| Some(given) != known.as_ref()) else {
        return Ok(known);
    };
    let sets = catalog.segment_sets()?;
    if sets.iter().flat_map(|set| &set.segments).any(|entry| entry.cold.is_some()) {
        let known = known.map_or_else(|| COLD_FOLDER.to_owned(), |url| url.to_string());
        return Err(ColdStartError::Elsewhere { known, given: given.to_string() }.into());
    }
    catalog.set_cold_url(&given.to_string())?;
    Ok(Some(given))
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
