//! What queries and operators ask of a home's rows.

use std::collections::BTreeSet;
use std::time::Duration;

use perflab_model::Nanos;

use crate::catalog::{CatalogError, DatasetSettings, LostRows, SegmentEntry};
use crate::datasets::DatasetError;
use crate::home::Home;
use crate::keeper::{SegmentCheck, ThawError};
use crate::segment::{Segment, SegmentError, Snapshot};
use crate::tables::{Holding, View};

/// Why there is no snapshot of a dataset.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// [`Home::dataset_names`] has those that there are.
    #[error("there is no dataset `{dataset}`")]
    Unknown { dataset: String },
    #[error(
        "the question touches {} MiB of cold rows of dataset `{dataset}`, and {} MiB can be thawed \
         at a time: ask about less time",
        bytes.div_ceil(1 << 20), bytes_max >> 20
    )]
    TooMuchCold { dataset: String, bytes: u64, bytes_max: u64 },
    #[error("failed to thaw cold rows of dataset `{dataset}`")]
    Thaw {
        dataset: String,
        #[source]
        error: ThawError,
    },
    /// Nobody waits for it any more, or it took too long.
    #[error(
        "the question was stopped while cold rows of dataset `{dataset}` were thawed: ask about \
         less time, or again, since some of them are thawed now"
    )]
    Stopped { dataset: String },
    #[error("failed to make the newest rows of dataset `{dataset}` ready for queries")]
    Segment {
        dataset: String,
        #[source]
        error: SegmentError,
    },
}

/// Which of a dataset's rows a snapshot is to have. Those that are cold have to be thawed, which
/// takes time and space, so the less the better; rows that are not cold are always there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    Everything,
    /// From the first time to just before the second, in nanoseconds since the Unix epoch.
    Times(i64, i64),
    /// Nothing that is cold; the snapshot says how many rows that are.
    Hot,
}

impl Reach {
    fn touches(self, min_ns: i64, max_ns: i64) -> bool {
        match self {
            Self::Everything | Self::Hot => true,
            Self::Times(start, end) => start <= max_ns && min_ns < end,
        }
    }
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
    /// All rows of a dataset as of now, however long it takes to thaw those that are cold.
    pub fn snapshot(&self, dataset: &str) -> Result<Snapshot, SnapshotError> {
        self.snapshot_of(dataset, Reach::Everything, &|| false)
    }

    /// The rows of a dataset as of now that are within reach: every row whose append was
    /// acknowledged, unless the snapshot says what is missing. `stop` is asked before each segment
    /// that has to be thawed.
    pub fn snapshot_of(
        &self,
        dataset: &str,
        reach: Reach,
        stop: &dyn Fn() -> bool,
    ) -> Result<Snapshot, SnapshotError> {
        loop {
            let View { mut snapshot, cold, lost } = self.view(dataset)?;
            let lost = lost.iter().filter(|lost| reach.touches(lost.min_ns, lost.max_ns));
            snapshot.missing.extend(lost.map(LostRows::to_string));
            let is_touched = |entry: &&SegmentEntry| {
                reach != Reach::Hot && reach.touches(entry.min_ns, entry.max_ns)
            };
            let touched: Vec<&SegmentEntry> = cold.iter().filter(is_touched).collect();
            if reach == Reach::Hot {
                let rows: u64 = cold.iter().map(|entry| entry.rows).sum();
                let told = (rows > 0).then(|| format!("{rows} rows are cold"));
                snapshot.missing.extend(told);
            }
            self.check_thawed_bytes(dataset, &touched)?;
            if self.thaw_all(dataset, &touched, stop, &mut snapshot)? {
                return Ok(snapshot);
            }
            // One was damaged, or has just been removed: what there is now is to be told.
        }
    }

    fn view(&self, dataset: &str) -> Result<View, SnapshotError> {
        let failed = |error| SnapshotError::Segment { dataset: dataset.to_owned(), error };
        let found = self.tables().view(dataset, self.log().end()).map_err(failed)?;
        match found {
            Some(view) => Ok(view),
            None if self.datasets_in_use().contains(dataset) => Ok(View::default()),
            None => Err(SnapshotError::Unknown { dataset: dataset.to_owned() }),
        }
    }

    fn check_thawed_bytes(
        &self,
        dataset: &str,
        touched: &[&SegmentEntry],
    ) -> Result<(), SnapshotError> {
        let cold = touched.iter().filter_map(|entry| entry.cold);
        let (bytes, bytes_max) =
            (cold.map(|cold| cold.thawed_bytes).sum(), self.keeper().thawed_bytes_max());
        if bytes > bytes_max {
            let dataset = dataset.to_owned();
            return Err(SnapshotError::TooMuchCold { dataset, bytes, bytes_max });
        }
        Ok(())
    }

    /// Adds cold segments to a snapshot, and says what is missing of those that can't be reached;
    /// false when one of them is not there any more.
    fn thaw_all(
        &self,
        dataset: &str,
        touched: &[&SegmentEntry],
        stop: &dyn Fn() -> bool,
        snapshot: &mut Snapshot,
    ) -> Result<bool, SnapshotError> {
        let (mut rows_missing, mut why) = (0, None);
        for entry in touched {
            if stop() {
                return Err(SnapshotError::Stopped { dataset: dataset.to_owned() });
            }
            match self.keeper().thaw(dataset, entry) {
                Ok(Some(segment)) => snapshot.segments.push(segment),
                Ok(None) => return Ok(false),
                Err(ThawError::Unreachable(error)) => {
                    rows_missing += entry.rows;
                    why = Some(error);
                }
                Err(error) => {
                    return Err(SnapshotError::Thaw { dataset: dataset.to_owned(), error });
                }
            }
        }
        let told = why.map(|why| format!("{rows_missing} cold rows are missing: {why}"));
        snapshot.missing.extend(told);
        Ok(true)
    }

    /// Whether cold rows can't be read or written where they are kept.
    pub fn is_cold_failing(&self) -> bool {
        self.keeper().is_cold_failing()
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

    /// How a dataset's rows are kept.
    pub fn dataset_settings(&self, dataset: &str) -> DatasetSettings {
        self.keeper().settings(dataset)
    }

    /// Says how a dataset's rows are kept.
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

    /// Reads all segments, hot and cold, and compares their checksums. What is damaged is set aside
    /// and made again from the log.
    pub fn check_segments(&self) -> Result<SegmentCheck, CatalogError> {
        self.keeper().check_segments()
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
