//! `/api/datasets`: which there are, and what is in them.

use std::sync::{Arc, PoisonError};

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use perflab_model::{CategoryName, Kind};
use perflab_store::{Access, DatasetInfo, DatasetSettings, Home, is_reserved};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::rows::{Readable, datasets};
use crate::access::Known;
use crate::categories::{SETTINGS_BYTES_MAX, declare, mentioned, refused};
use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::state::{Server, blocking};

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "DatasetList")]
struct Listing {
    datasets: Vec<Dataset>,
}

#[derive(Debug, Serialize, JsonSchema)]
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

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "DatasetDescription")]
struct Described {
    #[serde(flatten)]
    dataset: Dataset,
    retain_seconds: Option<u64>,
    max_bytes: Option<u64>,
    hot_seconds: Option<u64>,
    schema: Vec<Column>,
    /// As it was declared; `null` where any field is taken.
    declared: Option<Value>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "DatasetColumn")]
struct Column {
    name: String,
    #[schemars(extend("enum" = Kind::ALL.map(Kind::as_str)))]
    kind: &'static str,
}

pub(super) fn endpoints() -> [Endpoint; 3] {
    const ONE: &str = "/api/datasets/{*name}";
    let list = "Lists the datasets that may be read.";
    let list = Endpoint::get("/api/datasets", get_datasets, list, |operation| {
        operation.ok::<Listing>("The datasets.")
    });
    let describe = "Says what is in a dataset; the slashes of its name are written as they are.";
    let describe = Endpoint::get(ONE, get_dataset, describe, |operation| {
        operation.ok::<Described>("What is in it.").refusals(&[StatusCode::NOT_FOUND])
    });
    let change = "Changes how a dataset is kept.";
    let change = Endpoint::put(ONE, put_dataset, change, |operation| {
        operation
            .body::<Changes>()
            .ok::<Described>("How it is kept now.")
            .refusals(&[StatusCode::NOT_FOUND])
    });
    [list, describe, change.for_admins()]
}

async fn get_datasets(
    State(server): State<Arc<Server>>,
    Known(access): Known,
) -> Result<Json<Listing>, ApiError> {
    let list = move || {
        let may_read = datasets(&server.home, &access);
        let all = server.home.datasets().map_err(|error| ApiError::failed(&error))?;
        let readable = all.into_iter().filter(|dataset| may_read.contains(&dataset.name));
        // perflab's own are there from the start; people are told once there is something in them.
        let readable = readable.filter(|dataset| dataset.rows > 0 || !is_own(&dataset.name));
        Ok::<_, ApiError>(readable.map(Dataset::from).collect())
    };
    Ok(Json(Listing { datasets: blocking(list).await?? }))
}

fn is_own(dataset: &str) -> bool {
    CategoryName::new(dataset).is_ok_and(|category| is_reserved(&category))
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

async fn get_dataset(
    State(server): State<Arc<Server>>,
    Known(access): Known,
    Path(name): Path<String>,
) -> Result<Json<Described>, ApiError> {
    blocking(move || describe(&server.home, &access, &name)).await?.map(Json)
}

/// What is to be changed: what isn't mentioned stays, `null` is no limit or no schema.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "DatasetChanges")]
struct Changes {
    #[serde(default, deserialize_with = "mentioned")]
    #[schemars(!default)]
    retain_seconds: Option<Option<u64>>,
    #[serde(default, deserialize_with = "mentioned")]
    #[schemars(!default)]
    max_bytes: Option<Option<u64>>,
    #[serde(default, deserialize_with = "mentioned")]
    #[schemars(!default)]
    hot_seconds: Option<Option<u64>>,
    #[serde(default, deserialize_with = "mentioned")]
    #[schemars(!default)]
    schema: Option<Option<Value>>,
}

async fn put_dataset(
    State(server): State<Arc<Server>>,
    Known(access): Known,
    Path(name): Path<String>,
    body: Body,
) -> Result<Json<Described>, ApiError> {
    let category = CategoryName::new(&name)
        .map_err(|error| ApiError::caused_by(StatusCode::BAD_REQUEST, &error))?;
    let received = server.receive(body, SETTINGS_BYTES_MAX).await?;
    let changes: Changes = serde_json::from_slice(&received.bytes)
        .map_err(|error| ApiError::bad_request(format!("the body is no settings: {error}")))?;
    let change = move || {
        let _turn = server.changing_settings.lock().unwrap_or_else(PoisonError::into_inner);
        change(&server.home, &category, changes)?;
        describe(&server.home, &access, category.dataset())
    };
    blocking(change).await?.map(Json)
}

fn change(home: &Home, category: &CategoryName, changes: Changes) -> Result<(), ApiError> {
    let dataset = category.dataset();
    if let Some(schema) = changes.schema {
        declare(home, category, schema)?;
    }
    let mut settings = home.dataset_settings(dataset);
    settings.retain_seconds = changes.retain_seconds.unwrap_or(settings.retain_seconds);
    settings.max_bytes = changes.max_bytes.unwrap_or(settings.max_bytes);
    settings.hot_seconds = changes.hot_seconds.unwrap_or(settings.hot_seconds);
    home.set_dataset_settings(dataset, settings).map_err(|error| refused(&error))
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
    let DatasetSettings { retain_seconds, max_bytes, hot_seconds } =
        home.dataset_settings(&readable.dataset);
    let declared = home.declared_schema(&readable.dataset);
    Ok(Described {
        dataset: info.into(),
        retain_seconds,
        max_bytes,
        hot_seconds,
        schema: columns.collect(),
        declared: declared.and_then(|text| serde_json::from_str(&text).ok()),
    })
}
