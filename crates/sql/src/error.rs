//! Why a query has no answer.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use datafusion::common::SchemaError;
use datafusion::error::DataFusionError;
use perflab_query::{did_you_mean, nearest};
use perflab_store::SnapshotError;
use perflab_store::segment::SegmentError;

use crate::execute::Limits;
use crate::query::{SQL_BYTES_MAX, SQL_WORDS_MAX};

/// Why a query has no answer.
#[derive(Debug, thiserror::Error)]
pub enum SqlError {
    #[error("the query has {bytes} bytes of text, more than {SQL_BYTES_MAX}")]
    TooLong { bytes: usize },
    #[error("the query has {words} names, words and signs, more than {SQL_WORDS_MAX}")]
    TooManyWords { words: usize },
    #[error("{count} statements: a query is one")]
    Statements { count: usize },
    #[error("the query can't be read")]
    Unreadable(#[source] Box<DataFusionError>),
    #[error("the query does not only read: SELECT, WITH, VALUES, EXPLAIN and DESCRIBE do")]
    NotReadOnly,
    #[error("there is no dataset `{name}`: the name of a dataset has no parts")]
    InParts { name: String },
    #[error("there is no column `{name}`{}", did_you_mean(.nearest.as_deref()))]
    UnknownColumn { name: String, nearest: Option<String> },
    #[error(
        "the query needs more than the {} MiB of memory that it may use: ask about less time, \
         fewer groups or fewer columns, or sort less",
        bytes >> 20
    )]
    Memory { bytes: usize },
    #[error(
        "the query took longer than the {} s that it may take: ask about less time, or for less",
        limit.as_secs_f64()
    )]
    Time { limit: Duration },
    #[error(transparent)]
    Snapshot(Arc<SnapshotError>),
    #[error("rows that the query is about can't be read")]
    Damaged(#[source] Box<DataFusionError>),
    #[error("the query can't be answered")]
    Engine(#[source] Box<DataFusionError>),
    #[error("the query ended in a defect of the engine")]
    Defect,
    #[error("failed to start threads for the query")]
    Threads(#[source] io::Error),
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
            let nearest = nearest.map(str::to_owned);
            return Self::UnknownColumn { name, nearest };
        }
        if let DataFusionError::External(cause) = root {
            if let Some(cause) = cause.downcast_ref::<Arc<SnapshotError>>() {
                return Self::Snapshot(Arc::clone(cause));
            }
            if cause.is::<SegmentError>() {
                return Self::Damaged(Box::new(error));
            }
        }
        Self::Engine(Box::new(error))
    }
}
