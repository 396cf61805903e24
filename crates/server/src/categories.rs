//! `/api/categories`: what there is, and how it is kept.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use perflab_log::CategorySpan;
use perflab_model::{CategoryName, Nanos};
use perflab_store::{CategorySettings, DatasetError, Guarantee, Home, is_reserved};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::access::Known;
use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::query::Asked;
use crate::state::{Server, blocking};

/// The largest body that changes settings; a declared schema is in it.
pub(crate) const SETTINGS_BYTES_MAX: usize = 1 << 20;

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "CategoryList")]
struct Listing {
    categories: Vec<Category>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Category {
    #[serde(flatten)]
    settings: Settings,
    records: u64,
    bytes: u64,
    first_offset: Option<u64>,
    last_offset: Option<u64>,
    first_time: Option<String>,
    last_time: Option<String>,
}

/// How a category is kept.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "CategorySettings")]
struct Settings {
    category: String,
    dataset: String,
    #[schemars(extend("enum" = [Guarantee::Durable.as_str(), Guarantee::Fast.as_str()]))]
    guarantee: &'static str,
    retain_seconds: Option<u64>,
    max_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    schema: Option<Value>,
}

pub(crate) fn endpoints() -> [Endpoint; 2] {
    let list = "Lists the categories that may be read.";
    let list = Endpoint::get("/api/categories", get_categories, list, |operation| {
        operation.ok::<Listing>("The categories.")
    });
    let change = "Changes how a category is kept.";
    let change = Endpoint::put("/api/categories", put_category, change, |operation| {
        operation.query::<Target>().body::<Changes>().ok::<Settings>("How it is kept now.")
    });
    [list, change.for_admins()]
}

async fn get_categories(State(server): State<Arc<Server>>, Known(access): Known) -> Json<Listing> {
    let mut spans: BTreeMap<String, Option<CategorySpan>> = BTreeMap::new();
    for category in server.home.configured_categories() {
        spans.insert(category.as_str().to_owned(), None);
    }
    for (name, span) in server.home.log().categories() {
        spans.insert(name, Some(span));
    }
    let categories = spans
        .into_iter()
        .filter(|(name, _)| access.may_read(name))
        .filter_map(|(name, span)| Category::new(&server.home, &name, span))
        .collect();
    Json(Listing { categories })
}

impl Category {
    /// `None` for a name that no door would have let in.
    fn new(home: &Home, name: &str, span: Option<CategorySpan>) -> Option<Self> {
        let category = CategoryName::new(name).ok()?;
        Some(Self {
            settings: Settings::of(home, &category),
            records: span.map_or(0, |span| span.records),
            bytes: span.map_or(0, |span| span.bytes),
            first_offset: span.map(|span| span.first_seq),
            last_offset: span.map(|span| span.last_seq),
            first_time: span.map(|span| Nanos(span.first_ns).to_string()),
            last_time: span.map(|span| Nanos(span.last_ns).to_string()),
        })
    }
}

impl Settings {
    fn of(home: &Home, category: &CategoryName) -> Self {
        let CategorySettings { guarantee, retain_seconds, max_bytes } =
            home.category_settings(category);
        let schema = home.declared_schema(category.dataset());
        Self {
            category: category.as_str().to_owned(),
            dataset: category.dataset().to_owned(),
            guarantee: guarantee.as_str(),
            retain_seconds,
            max_bytes,
            schema: schema.and_then(|text| serde_json::from_str(&text).ok()),
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Target {
    category: String,
}

/// What is to be changed: what isn't mentioned stays, `null` is no limit or no schema.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "CategoryChanges")]
struct Changes {
    #[schemars(extend("enum" = [Guarantee::Durable.as_str(), Guarantee::Fast.as_str(), null]))]
    guarantee: Option<String>,
    #[serde(default, deserialize_with = "mentioned")]
    #[schemars(!default)]
    retain_seconds: Option<Option<u64>>,
    #[serde(default, deserialize_with = "mentioned")]
    #[schemars(!default)]
    max_bytes: Option<Option<u64>>,
    #[serde(default, deserialize_with = "mentioned")]
    #[schemars(!default)]
    schema: Option<Option<Value>>,
}

/// Tells "null" from "not mentioned".
pub(crate) fn mentioned<'de, D, T>(deserializer: D) -> Result<Option<Option<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Option::deserialize(deserializer).map(Some)
}

async fn put_category(
    State(server): State<Arc<Server>>,
    Asked(target): Asked<Target>,
    body: Body,
) -> Result<Json<Settings>, ApiError> {
    let category = CategoryName::new(&target.category)
        .map_err(|error| ApiError::caused_by(StatusCode::BAD_REQUEST, &error))?;
    let received = server.receive(body, SETTINGS_BYTES_MAX).await?;
    let changes: Changes = serde_json::from_slice(&received.bytes)
        .map_err(|error| ApiError::bad_request(format!("the body is no settings: {error}")))?;
    let change = move || {
        let _turn = server.changing_settings.lock().unwrap_or_else(PoisonError::into_inner);
        change(&server.home, &category, changes)
    };
    blocking(change).await?.map(Json)
}

fn change(home: &Home, category: &CategoryName, changes: Changes) -> Result<Settings, ApiError> {
    let mut settings = home.category_settings(category);
    if let Some(word) = changes.guarantee {
        settings.guarantee = word
            .parse::<Guarantee>()
            .map_err(|error| ApiError::caused_by(StatusCode::BAD_REQUEST, &error))?;
    }
    settings.retain_seconds = changes.retain_seconds.unwrap_or(settings.retain_seconds);
    settings.max_bytes = changes.max_bytes.unwrap_or(settings.max_bytes);
    if let Some(schema) = changes.schema {
        declare(home, category, schema)?;
    }
    home.set_category_settings(category, settings).map_err(|error| ApiError::failed(&error))?;
    Ok(Settings::of(home, category))
}

/// Declares what the dataset of a category accepts; `None`: anything again.
pub(crate) fn declare(
    home: &Home,
    category: &CategoryName,
    schema: Option<Value>,
) -> Result<(), ApiError> {
    if is_reserved(category) {
        let message = format!("the schema of `{category}` is perflab's own");
        return Err(ApiError::bad_request(message));
    }
    let text = schema.map(|schema| schema.to_string());
    home.declare_schema(category.dataset(), text.as_deref()).map_err(|error| refused(&error))
}

/// What the catalog can't keep is this machine's fault, all else the request's.
pub(crate) fn refused(error: &DatasetError) -> ApiError {
    match error {
        DatasetError::Catalog(_) => ApiError::failed(error),
        DatasetError::Schema { .. } | DatasetError::TooMany { .. } => {
            ApiError::caused_by(StatusCode::BAD_REQUEST, error)
        }
    }
}
