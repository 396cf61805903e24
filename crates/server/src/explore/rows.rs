//! The rows of a dataset, as far as a peer may read them.

use std::collections::{BTreeSet, HashSet};

use axum::http::StatusCode;
use perflab_log::{ReadFrom, ReadItem};
use perflab_model::{Batch, CategoryName, Kind, Nanos};
use perflab_query::document::Columns;
use perflab_query::nearest;
use perflab_store::segment::{Segment, SegmentError, Snapshot, Source, build};
use perflab_store::{Access, Home, RecordDecoder, chain};

use crate::error::ApiError;

/// How many rows become one segment.
const SEGMENT_ROWS: usize = 1 << 16;

/// A dataset that is there and may be read.
#[derive(Debug)]
pub(super) struct Readable {
    pub(super) dataset: String,
    categories: HashSet<String>,
}

/// The datasets that may be read, by name.
pub(super) fn datasets(home: &Home, access: &Access) -> BTreeSet<String> {
    let logged = home.log().categories().into_keys();
    let configured = home.configured_categories().into_iter().map(|name| name.as_str().to_owned());
    let readable = logged.chain(configured).filter(|name| access.may_read(name));
    let categories = readable.filter_map(|name| CategoryName::new(&name).ok());
    categories.map(|category| category.dataset().to_owned()).collect()
}

impl Readable {
    /// Finds a dataset by its name or that of its category.
    pub(super) fn find(home: &Home, access: &Access, name: &str) -> Result<Self, ApiError> {
        let category = CategoryName::new(name)
            .map_err(|error| ApiError::caused_by(StatusCode::BAD_REQUEST, &error))?;
        let dataset = category.dataset().to_owned();
        let both = [dataset.clone(), format!("perfpipe_{dataset}")];
        let categories: HashSet<_> =
            both.into_iter().filter(|name| access.may_read(name)).collect();
        if categories.is_empty() {
            let message = format!("the token may not read dataset `{dataset}`");
            return Err(ApiError::forbidden(message));
        }
        let known = datasets(home, access);
        if known.contains(&dataset) {
            return Ok(Self { dataset, categories });
        }
        let nearest = nearest(&dataset, known.iter().map(String::as_str));
        let meant = nearest.map_or_else(String::new, |name| format!("; did you mean `{name}`?"));
        let message = format!("there is no dataset `{dataset}`{meant}");
        Err(ApiError::new(StatusCode::NOT_FOUND, message))
    }

    /// The columns that its rows have brought.
    pub(super) fn columns(&self, home: &Home) -> Result<Vec<(String, Kind)>, ApiError> {
        home.record_columns().map_err(|error| ApiError::failed(&error))?;
        home.recorded_columns(&self.dataset).map_err(|error| ApiError::failed(&error))
    }

    /// Its rows, from the log.
    pub(super) fn snapshot(&self, home: &Home) -> Result<Snapshot, ApiError> {
        let mut reading = Reading { rows: Vec::new(), segments: Vec::new(), missing: Vec::new() };
        let mut reader = home.log().read(Some(self.categories.clone()), ReadFrom::Oldest);
        let mut decoder = RecordDecoder::new(home);
        loop {
            match reader.next_item() {
                Ok(None) => break,
                Ok(Some(ReadItem::Damage(damage))) => {
                    let path = damage.path.display();
                    reading.missing.push(format!("{} bytes of `{path}` are damaged", damage.bytes));
                }
                Ok(Some(ReadItem::Frame(records))) => {
                    for (group, record) in records.iter() {
                        let arrival = Nanos(group.arrival_ns);
                        let decoded = decoder.decode(home, group.category, arrival, record.payload);
                        reading.add(decoded.map_err(|error| chain(&error)))?;
                    }
                }
                Err(error) => {
                    reading.missing.push(chain(&error));
                    break;
                }
            }
        }
        reading.finish()
    }
}

/// Rows on their way into segments.
struct Reading {
    rows: Vec<Batch>,
    segments: Vec<Segment>,
    missing: Vec<String>,
}

impl Reading {
    fn add(&mut self, decoded: Result<Batch, String>) -> Result<(), ApiError> {
        match decoded {
            Ok(batch) => self.rows.push(batch),
            Err(error) => self.missing.push(error),
        }
        if self.rows.len() >= SEGMENT_ROWS { self.end_segment() } else { Ok(()) }
    }

    fn end_segment(&mut self) -> Result<(), ApiError> {
        let failed = |error: SegmentError| ApiError::failed(&error);
        let rows = std::mem::take(&mut self.rows);
        let sources: Vec<_> = rows.iter().map(Source::Batch).collect();
        let built = build(&sources).map_err(failed)?;
        self.segments.push(Segment::open(&built.rows, built.lists.as_ref()).map_err(failed)?);
        Ok(())
    }

    fn finish(mut self) -> Result<Snapshot, ApiError> {
        self.end_segment()?;
        let Self { segments, missing, .. } = self;
        Ok(Snapshot { missing, ..Snapshot::of(segments) })
    }
}

/// All columns of a dataset: of the rows at hand and of those that went before.
pub(super) fn columns(snapshot: &Snapshot, recorded: Vec<(String, Kind)>) -> Columns {
    let columns = snapshot.segments.iter().flat_map(|segment| segment.columns());
    let present = columns.map(|column| (column.name().to_owned(), column.kind()));
    present.chain(recorded).collect()
}
