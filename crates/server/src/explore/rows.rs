//! The rows of a dataset, for whoever may read them.

use std::collections::BTreeSet;
use std::time::Duration;

use axum::http::StatusCode;
use perflab_model::{CategoryName, Kind};
use perflab_query::document::Columns;
use perflab_query::{did_you_mean, nearest};
use perflab_store::segment::Snapshot;
use perflab_store::{Access, Home, Reach, SnapshotError, ThawError};

use crate::error::ApiError;

/// How long a query just after a start waits for the rows that are still read from the log; then
/// its answer says what is missing.
const REPLAY_WAIT: Duration = Duration::from_secs(2);

/// A dataset that is there and may be read.
#[derive(Debug)]
pub(super) struct Readable {
    pub(super) dataset: String,
}

/// The datasets that may be read, by name.
pub(super) fn datasets(home: &Home, access: &Access) -> BTreeSet<String> {
    home.dataset_names().into_iter().filter(|dataset| may_read(access, dataset)).collect()
}

/// Whoever may read one of the categories of a dataset may read its rows.
fn may_read(access: &Access, dataset: &str) -> bool {
    access.may_read(dataset) || access.may_read(&format!("perfpipe_{dataset}"))
}

impl Readable {
    /// Finds a dataset by its name or that of its category.
    pub(super) fn find(home: &Home, access: &Access, name: &str) -> Result<Self, ApiError> {
        let category = CategoryName::new(name)
            .map_err(|error| ApiError::caused_by(StatusCode::BAD_REQUEST, &error))?;
        let dataset = category.dataset().to_owned();
        if !may_read(access, &dataset) {
            let message = format!("the token may not read dataset `{dataset}`");
            return Err(ApiError::forbidden(message));
        }
        let known = datasets(home, access);
        if known.contains(&dataset) {
            return Ok(Self { dataset });
        }
        let meant = did_you_mean(nearest(&dataset, known.iter().map(String::as_str)));
        let message = format!("there is no dataset `{dataset}`{meant}");
        Err(ApiError::new(StatusCode::NOT_FOUND, message))
    }

    /// The columns that its rows have brought.
    pub(super) fn columns(&self, home: &Home) -> Result<Vec<(String, Kind)>, ApiError> {
        home.record_columns().map_err(|error| ApiError::failed(&error))?;
        home.recorded_columns(&self.dataset).map_err(|error| ApiError::failed(&error))
    }

    /// Its rows as of now that are within reach.
    pub(super) fn snapshot(
        &self,
        home: &Home,
        reach: Reach,
        stop: &dyn Fn() -> bool,
    ) -> Result<Snapshot, ApiError> {
        self.try_snapshot(home, reach, stop).map_err(|error| no_snapshot(&error))
    }

    /// The same, for whoever tells people later why there are none.
    pub(super) fn try_snapshot(
        &self,
        home: &Home,
        reach: Reach,
        stop: &dyn Fn() -> bool,
    ) -> Result<Snapshot, SnapshotError> {
        // Whether it is current by then is up to the snapshot to say.
        home.wait_until_current(REPLAY_WAIT);
        home.snapshot_of(&self.dataset, reach, stop)
    }
}

/// Too many cold rows are the question's fault, lack of time or room the moment's, all else this
/// machine's.
pub(super) fn no_snapshot(error: &SnapshotError) -> ApiError {
    match error {
        SnapshotError::TooMuchCold { .. } => ApiError::caused_by(StatusCode::BAD_REQUEST, error),
        SnapshotError::Stopped { .. }
        | SnapshotError::Thaw { error: ThawError::NoRoom { .. }, .. } => {
            ApiError::caused_by(StatusCode::SERVICE_UNAVAILABLE, error)
        }
        SnapshotError::Unknown { .. }
        | SnapshotError::Segment { .. }
        | SnapshotError::Thaw { .. } => ApiError::failed(error),
    }
}

/// All columns of a dataset: of the rows at hand and of those that went before.
pub(super) fn columns(snapshot: &Snapshot, recorded: Vec<(String, Kind)>) -> Columns {
    let columns = snapshot.segments.iter().flat_map(|segment| segment.columns());
    let present = columns.map(|column| (column.name().to_owned(), column.kind()));
    present.chain(recorded).collect()
}
