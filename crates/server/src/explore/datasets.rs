//! `/api/datasets`: which there are, and what is in them.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use perflab_store::{Access, DatasetInfo, DatasetSettings, Home};
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
    bytes: u64,
    segments: usize,
    memory_rows: u64,
    columns: usize,
    first_time: Option<String>,
    last_time: Option<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Described {
    #[serde(flatten)]
    dataset: Dataset,
    retain_seconds: Option<u64>,
    max_bytes: Option<u64>,
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
        let may_read = datasets(&server.home, &access);
        let all = server.home.datasets().map_err(|error| ApiError::failed(&error))?;
        let readable = all.into_iter().filter(|dataset| may_read.contains(&dataset.name));
        Ok::<_, ApiError>(readable.map(Dataset::from).collect())
    };
    Ok(Json(Listing { datasets: blocking(list).await?? }))
}

impl From<DatasetInfo> for Dataset {
    fn from(info: DatasetInfo) -> Self {
        let DatasetInfo { name, rows, bytes, segments, memory_rows, times, columns } = info;
        Self {
            dataset: name,
            rows,
            bytes,
            segments,
            memory_rows,
            columns,
            first_time: times.map(|(first, _)| first.to_string()),
            last_time: times.map(|(_, last)| last.to_string()),
        }
    }
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
    let all = home.datasets().map_err(|error| ApiError::failed(&error))?;
    let Some(info) = all.into_iter().find(|info| info.name == readable.dataset) else {
        return Err(ApiError::internal(format!("dataset `{name}` has just gone")));
    };
    let mut columns = readable.columns(home)?;
    columns.sort();
    let columns = columns.into_iter().map(|(name, kind)| Column { name, kind: kind.as_str() });
    let DatasetSettings { retain_seconds, max_bytes } = home.dataset_settings(&readable.dataset);
    let declared = home.declared_schema(&readable.dataset);
    Ok(Described {
        dataset: info.into(),
        retain_seconds,
        max_bytes,
        schema: columns.collect(),
        declared: declared.and_then(|text| serde_json::from_str(&text).ok()),
    })
}
