//! Cold segments back to what questions are answered from.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::Keeper;
use super::cold::{ColdError, Unreachable};
use crate::catalog::{CatalogError, SegmentEntry};
use crate::ingest::chain;
use crate::segment::{Built, Segment, thaw};

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
        let kept =
            self.read_cold(folder, entry).and_then(|built| self.thawed.keep(entry.id, &built));
        match kept {
            Err(ThawError::Damaged(why)) => {
                self.take_out_cold(dataset, entry, &why);
                Ok(None)
            }
            kept => kept.map(Some),
        }
    }

    /// Reads a cold segment and makes a hot one of it.
    pub(super) fn read_cold(&self, folder: u64, entry: &SegmentEntry) -> Result<Built, ThawError> {
        let Some(cold) = &entry.cold else {
            return Err(ThawError::Damaged("it is not cold".to_owned()));
        };
        let (rows, lists) = self.cold.read(folder, entry, cold).map_err(|error| match error {
            ColdError::Damaged { .. } => ThawError::Damaged(error.to_string()),
            ColdError::Unreachable(error) => ThawError::Unreachable(error),
        })?;
        thaw(rows, lists).map_err(|error| ThawError::Damaged(chain(&error)))
    }
}
