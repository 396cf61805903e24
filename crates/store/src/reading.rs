//! What queries and operators ask of a home's rows.

use std::collections::BTreeSet;
use std::time::Duration;

use perflab_model::Nanos;

use crate::catalog::DatasetSettings;
use crate::datasets::DatasetError;
use crate::home::Home;
use crate::segment::{Segment, SegmentError, Snapshot};
use crate::tables::Holding;

/// Why there is no snapshot of a dataset.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// [`Home::dataset_names`] has those that there are.
    #[error("there is no dataset `{dataset}`")]
    Unknown { dataset: String },
    #[error("failed to make the newest rows of dataset `{dataset}` ready for queries")]
    Segment {
        dataset: String,
        #[source]
        error: SegmentError,
    },
}

/// What a dataset holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatasetInfo {
    pub name: String,
    /// In files and in memory.
    pub rows: u64,
    /// Of its files.
    pub bytes: u64,
    /// How many segments are in files.
    pub segments: usize,
    /// Rows that are in no file yet.
    pub memory_rows: u64,
    /// The earliest and the latest time of its rows.
    pub times: Option<(Nanos, Nanos)>,
    pub columns: usize,
}

impl Home {
    /// The rows of a dataset as of now: every row whose append was acknowledged, unless the
    /// snapshot says what is missing.
    pub fn snapshot(&self, dataset: &str) -> Result<Snapshot, SnapshotError> {
        let failed = |error| SnapshotError::Segment { dataset: dataset.to_owned(), error };
        let found = self.tables().snapshot(dataset, self.log().end()).map_err(failed)?;
        match found {
            Some(snapshot) => Ok(snapshot),
            None if self.datasets_in_use().contains(dataset) => Ok(Snapshot::default()),
            None => Err(SnapshotError::Unknown { dataset: dataset.to_owned() }),
        }
    }

    /// Every dataset's name, sorted.
    pub fn dataset_names(&self) -> BTreeSet<String> {
        let in_tables = self.tables().datasets();
        let mut names: BTreeSet<String> = in_tables.iter().map(|name| name.to_string()).collect();
        names.extend(self.datasets_in_use().names());
        names
    }

    /// What each dataset holds, by name.
    pub fn datasets(&self) -> Result<Vec<DatasetInfo>, SnapshotError> {
        self.dataset_names().into_iter().map(|name| self.dataset_info(name)).collect()
    }

    fn dataset_info(&self, name: String) -> Result<DatasetInfo, SnapshotError> {
        let holding = self.tables().holding(&name);
        let failed = |error| SnapshotError::Segment { dataset: name.clone(), error };
        let Holding { file_rows, file_bytes, files, memory_rows, times } =
            holding.map_err(failed)?.unwrap_or_default();
        let memory_rows = memory_rows as u64;
        Ok(DatasetInfo {
            columns: self.dataset(&name).map_or(0, |dataset| dataset.schema.columns_known()),
            rows: file_rows + memory_rows,
            bytes: file_bytes,
            segments: files,
            memory_rows,
            times: times.map(|(first, last)| (Nanos(first), Nanos(last))),
            name,
        })
    }

    /// How long a dataset's rows are kept.
    pub fn dataset_settings(&self, dataset: &str) -> DatasetSettings {
        self.keeper().settings(dataset)
    }

    /// Says how long a dataset's rows are kept.
    pub fn set_dataset_settings(
        &self,
        dataset: &str,
        settings: DatasetSettings,
    ) -> Result<(), DatasetError> {
        self.dataset(dataset)?;
        Ok(self.keeper().set_settings(dataset, settings)?)
    }

    /// Says that a segment of a snapshot was found damaged. If it is, it is set aside and made
    /// again from the log; returns whether that is so.
    pub fn report_damage(&self, dataset: &str, segment: &Segment) -> bool {
        self.keeper().report_damage(dataset, segment)
    }

    /// Waits until the rows of everything in the log can be queried; false when that takes longer
    /// than `at_most`.
    pub fn wait_until_current(&self, at_most: Duration) -> bool {
        self.tables().wait_until_following(at_most)
    }

    /// Does at once what the keeper's thread does by itself: reads what is missing, writes what is
    /// due to files, merges, removes.
    pub fn tend(&self) {
        self.keeper().tend();
    }
}
