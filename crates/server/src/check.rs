//! `POST /api/check`: is everything that was acknowledged still there?

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use perflab_log::{Check, Damage};
use serde::{Deserialize, Serialize};

use crate::error::ApiError;
use crate::query::Asked;
use crate::state::{Server, blocking};

#[derive(Debug, Deserialize)]
pub(crate) struct Options {
    /// Whether damaged bytes are moved out of the log.
    #[serde(default)]
    quarantine: bool,
}

#[derive(Debug, Serialize)]
pub(crate) struct Report {
    files: u64,
    bytes: u64,
    records: u64,
    clean: bool,
    damage: Vec<DamageReport>,
    unreadable: Vec<Unreadable>,
    quarantined: Vec<String>,
}

#[derive(Debug, Serialize)]
struct DamageReport {
    file: String,
    offset: u64,
    bytes: u64,
    lost_from: Option<u64>,
    lost_records: Option<u64>,
}

#[derive(Debug, Serialize)]
struct Unreadable {
    file: String,
    error: String,
}

pub(crate) async fn post_check(
    State(server): State<Arc<Server>>,
    Asked(options): Asked<Options>,
) -> Result<Json<Report>, ApiError> {
    let home = Arc::clone(&server.home);
    let checked = blocking(move || {
        let quarantine = options.quarantine.then(|| home.quarantine_dir());
        home.log().check(quarantine.as_deref())
    });
    let check = checked.await?.map_err(|error| ApiError::failed(&error))?;
    Ok(Json(Report::from(check)))
}

impl From<Check> for Report {
    fn from(check: Check) -> Self {
        let clean = check.is_clean();
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
        }
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
