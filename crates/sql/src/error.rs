//! Why a query has no answer.

use std::io;
use std::time::Duration;

use datafusion::common::SchemaError;
use datafusion::common::utils::datafusion_strsim::levenshtein;
use datafusion::error::DataFusionError;

use crate::execute::{Limits, SQL_BYTES_MAX, SQL_WORDS_MAX};

/// Why a query has no answer.
#[derive(Debug, thiserror::Error)]
pub enum SqlError {
    #[error("the query has {bytes} bytes of text, more than {SQL_BYTES_MAX}")]
    TooLong { bytes: usize },
    #[error("the query has {words} names, words and signs, more than {SQL_WORDS_MAX}")]
    TooManyWords { words: usize },
    #[error("the query does not only read: SELECT, WITH, VALUES, EXPLAIN and DESCRIBE do")]
    NotReadOnly,
    #[error(
        "there is no dataset `{name}`{}; a name with other characters than letters, digits and \
         `_` goes in double quotes", did_you_mean(.nearest.as_ref())
    )]
    UnknownDataset { name: String, nearest: Option<String> },
    #[error("there is no column `{name}`{}", did_you_mean(.nearest.as_ref()))]
    UnknownColumn { name: String, nearest: Option<String> },
    #[error(
        "the query needs more memory than its {bytes} bytes: ask about less time, fewer groups or \
         fewer columns, or sort less"
    )]
    Memory { bytes: usize },
    #[error("the query took longer than {limit:?}: ask about less time, or for less")]
    Time { limit: Duration },
    #[error("the query can't be answered")]
    Engine(#[source] Box<DataFusionError>),
    #[error("the query ended in a defect of the engine")]
    Defect,
    #[error("failed to start threads for the query")]
    Threads(#[source] io::Error),
}

fn did_you_mean(nearest: Option<&String>) -> String {
    nearest.map(|nearest| format!(" (did you mean `{nearest}`?)")).unwrap_or_default()
}

impl SqlError {
    /// What the engine's error means to who asked.
    pub(crate) fn of(error: DataFusionError, limits: Limits) -> Self {
        let root = error.find_root();
        if let DataFusionError::ResourcesExhausted(_) = root {
            return Self::Memory { bytes: limits.memory_bytes };
        }
        if let DataFusionError::SchemaError(schema, _) = root
            && let SchemaError::FieldNotFound { field, valid_fields } = schema.as_ref()
        {
            let name = field.name.clone();
            let nearest = nearest(&name, valid_fields.iter().map(|field| field.name.as_str()));
            return Self::UnknownColumn { name, nearest };
        }
        Self::Engine(Box::new(error))
    }
}

/// The name that looks most like this one, if any does: no more than a third of it differs.
pub(crate) fn nearest<'n>(name: &str, names: impl Iterator<Item = &'n str>) -> Option<String> {
    let wanted = name.to_lowercase();
    let distance = |other: &str| levenshtein(&wanted, &other.to_lowercase());
    let (distance, nearest) = names.map(|other| (distance(other), other)).min()?;
    (distance <= name.chars().count().div_ceil(3)).then(|| nearest.to_owned())
}
