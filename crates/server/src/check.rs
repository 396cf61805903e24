//! `POST /api/check`: is everything that was acknowledged still there?

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use perflab_log::{Check, Damage};
use perflab_store::{SegmentCheck, SegmentDamage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::query::Asked;
use crate::state::{Server, blocking};

#[derive(Debug, Deserialize, JsonSchema)]
struct Options {
    /// Whether damaged bytes are moved out of the log.
    #[serde(default)]
    quarantine: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "CheckReport")]
struct Report {
    files: u64,
    bytes: u64,
    records: u64,
    clean: bool,
    damage: Vec<DamageReport>,
    unreadable: Vec<Unreadable>,
    quarantined: Vec<String>,
    segments: u64,
    segment_bytes: u64,
    damaged_segments: Vec<DamagedSegment>,
    unread: Vec<Unread>,
}

/// Cold rows that could not be read.
#[derive(Debug, Serialize, JsonSchema)]
struct Unread {
    rows: u64,
    error: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct DamagedSegment {
    dataset: String,
    rows: u64,
    error: String,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "LogDamage")]
struct DamageReport {
    file: String,
    offset: u64,
    bytes: u64,
    lost_from: Option<u64>,
    lost_records: Option<u64>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "UnreadableFile")]
struct Unreadable {
    file: String,
    error: String,
}

pub(crate) fn endpoints() -> [Endpoint; 1] {
    let check = "Reads all that is stored, and says what is damaged.";
    let check = Endpoint::post("/api/check", post_check, check, |operation| {
        operation.query::<Options>().ok::<Report>("What was found.")
    });
    [check.for_admins()]
}

async fn post_check(
    State(server): State<Arc<Server>>,
    Asked(options): Asked<Options>,
) -> Result<Json<Report>, ApiError> {
    let home = Arc::clone(&server.home);
    let checked = blocking(move || {
        let quarantine = options.quarantine.then(|| home.quarantine_dir());
        let log = home.log().check(quarantine.as_deref());
        let log = log.map_err(|error| ApiError::failed(&error))?;
        let segments = home.check_segments().map_err(|error| ApiError::failed(&error))?;
        Ok::<_, ApiError>(Report::new(&log, segments))
    });
    checked.await?.map(Json)
}

impl Report {
    fn new(check: &Check, segments: SegmentCheck) -> Self {
        let clean = check.is_clean() && segments.damage.is_empty() && segments.unread.is_empty();
        let unread = segments.unread.into_iter().map(|(error, rows)| Unread { rows, error });
        let unreadable = check.unreadable.iter().map(|(path, error)| Unreadable {
            file: path.display().to_string(),
            error: error.to_string(),
        });
        Self {
            files: check.files,
            bytes: check.bytes,
            records: check.records,
            clean,
            damage: check.damage.iter().map(DamageReport::from).collect(),
            unreadable: unreadable.collect(),
            quarantined: check.quarantined.iter().map(|path| path.display().to_string()).collect(),
            segments: segments.segments,
            segment_bytes: segments.bytes,
            damaged_segments: segments.damage.into_iter().map(DamagedSegment::from).collect(),
            unread: unread.collect(),
        }
    }
}

impl From<SegmentDamage> for DamagedSegment {
    fn from(damage: SegmentDamage) -> Self {
        let SegmentDamage { dataset, rows, why } = damage;
        Self { dataset, rows, error: why }
    }
}

impl From<&Damage> for DamageReport {
    fn from(damage: &Damage) -> Self {
        Self {
            file: damage.path.display().to_string(),
            offset: damage.offset,
            bytes: damage.bytes,
            lost_from: damage.lost.map(|(first, _)| first),
            lost_records: damage.lost.map(|(_, records)| records),
        }
    }
}
