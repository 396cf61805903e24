//! Cold segments back to what questions are answered from.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Keeper;
use super::cold::{ColdError, Unreachable};
use crate::catalog::{CatalogError, SegmentEntry};
use crate::ingest::chain;
use crate::segment::{Segment, SegmentError, Sheets, Sparsity, thaw};

/// Why a cold segment can't be looked at.
#[derive(Debug, thiserror::Error)]
pub enum ThawError {
    #[error("it is damaged: {0}")]
    Damaged(String),
    /// It is not known whether it is damaged.
    #[error(transparent)]
    Unreachable(#[from] Unreachable),
    #[error(
        "other questions use all of the {} MiB for thawed rows: ask again when they are answered",
        bytes_max >> 20
    )]
    NoRoom { bytes_max: u64 },
    #[error("failed to write to `{dir}`")]
    Write {
        dir: PathBuf,
        #[source]
        error: io::Error,
    },
    #[error(transparent)]
    Catalog(#[from] CatalogError),
}

impl ThawError {
    /// Of a segment that could not be made, or written to a folder.
    pub(super) fn of(error: SegmentError, dir: &Path) -> Self {
        match error {
            SegmentError::Write(error) => Self::Write { dir: dir.to_owned(), error },
            SegmentError::Damaged(_)
            | SegmentError::TooManyRows { .. }
            | SegmentError::TooMuchText
            | SegmentError::Arrow(_)
            | SegmentError::Parquet(_) => Self::Damaged(chain(&error)),
        }
    }
}

impl Keeper {
    /// How many bytes of thawed segments there may be at a time.
    pub(crate) fn thawed_bytes_max(&self) -> u64 {
        self.thawed.bytes_max()
    }

    /// A cold segment, thawed; `None` when it is not there any more. One that turns out to be
    /// damaged is set aside and made again from the log, as a hot one would be.
    pub(crate) fn thaw(
        &self,
        dataset: &str,
        entry: &SegmentEntry,
    ) -> Result<Option<Arc<Segment>>, ThawError> {
        if let Some(segment) = self.thawed.find(entry.id) {
            return Ok(Some(segment));
        }
        let _turn = self.thawed.turn();
        if let Some(segment) = self.thawed.find(entry.id) {
            return Ok(Some(segment));
        }
        let folder = self.catalog.dataset_folder(dataset)?;
        let bytes = entry.cold.map_or(0, |cold| cold.thawed_bytes);
        let read = self.read_cold(folder, entry);
        match read.and_then(|sheets| self.thawed.keep(entry.id, sheets, bytes)) {
            Err(ThawError::Damaged(why)) => {
                self.take_out_cold(dataset, entry, &why);
                Ok(None)
            }
            kept => kept.map(Some),
        }
    }

    /// Reads a cold segment and makes a hot one of it.
    pub(super) fn read_cold(&self, folder: u64, entry: &SegmentEntry) -> Result<Sheets, ThawError> {
        let Some(cold) = &entry.cold else {
            return Err(ThawError::Damaged("it is not cold".to_owned()));
        };
        let (rows, lists) = self.cold.read(folder, entry, cold).map_err(|error| match error {
            ColdError::Damaged { .. } => ThawError::Damaged(error.to_string()),
            ColdError::Unreachable(error) => ThawError::Unreachable(error),
        })?;
        let scratch = self.files.scratch().map_err(SegmentError::from);
        let thawed =
            scratch.and_then(|scratch| thaw(rows, lists, Some(&scratch), Sparsity::DEFAULT));
        thawed.map_err(|error| ThawError::of(error, self.files.dir()))
    }
}
