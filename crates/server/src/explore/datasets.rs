//! `/api/datasets`: which there are, and what is in them.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use perflab_model::Nanos;
use perflab_store::segment::{SegmentError, Snapshot};
use perflab_store::{Access, Home};
use serde::Serialize;
use serde_json::Value;

use super::rows::{Readable, datasets};
use crate::access::Known;
use crate::error::ApiError;
use crate::state::{Server, blocking};

#[derive(Debug, Serialize)]
pub(crate) struct Listing {
    datasets: Vec<Dataset>,
}

#[derive(Debug, Serialize)]
struct Dataset {
    dataset: String,
    rows: u64,
    segments: usize,
    columns: usize,
    first_time: Option<String>,
    last_time: Option<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Described {
    #[serde(flatten)]
    dataset: Dataset,
    schema: Vec<Column>,
    /// As it was declared; `null` where any field is taken.
    declared: Option<Value>,
}

#[derive(Debug, Serialize)]
struct Column {
    name: String,
    kind: &'static str,
}

pub(crate) async fn get_datasets(
    State(server): State<Arc<Server>>,
    Known(access): Known,
) -> Result<Json<Listing>, ApiError> {
    let list = move || {
        let names = datasets(&server.home, &access);
        let described = names.iter().map(|name| describe(&server.home, &access, name));
        let datasets = described.map(|described| Ok(described?.dataset));
        datasets.collect::<Result<Vec<_>, ApiError>>()
    };
    Ok(Json(Listing { datasets: blocking(list).await?? }))
}

pub(crate) async fn get_dataset(
    State(server): State<Arc<Server>>,
    Known(access): Known,
    Path(name): Path<String>,
) -> Result<Json<Described>, ApiError> {
    blocking(move || describe(&server.home, &access, &name)).await?.map(Json)
}

fn describe(home: &Home, access: &Access, name: &str) -> Result<Described, ApiError> {
    let readable = Readable::find(home, access, name)?;
    let snapshot = readable.snapshot(home)?;
    let mut columns = readable.columns(home)?;
    columns.sort();
    let span = span(&snapshot).map_err(|error| ApiError::failed(&error))?;
    let declared = home.declared_schema(&readable.dataset);
    Ok(Described {
        dataset: Dataset {
            dataset: readable.dataset,
            rows: snapshot.segments.iter().map(|segment| segment.rows() as u64).sum(),
            segments: snapshot.segments.len(),
            columns: columns.len(),
            first_time: span.map(|(first, _)| Nanos(first).to_string()),
            last_time: span.map(|(_, last)| Nanos(last).to_string()),
        },
        schema: columns
            .into_iter()
            .map(|(name, kind)| Column { name, kind: kind.as_str() })
            .collect(),
        declared: declared.and_then(|text| serde_json::from_str(&text).ok()),
    })
}

/// The first and the last time of its rows.
fn span(snapshot: &Snapshot) -> Result<Option<(i64, i64)>, SegmentError> {
    let mut span: Option<(i64, i64)> = None;
    for segment in &snapshot.segments {
        let times = segment.times()?;
        if let (Some(&first), Some(&last)) = (times.first(), times.last()) {
            let (least, most) = span.unwrap_or((first, last));
            span = Some((least.min(first), most.max(last)));
        }
    }
    Ok(span)
}
