//! What can be wrong with a question, and how much it may cost.

use std::time::Duration;

use perflab_store::segment::SegmentError;

use crate::compare::MEASUREMENTS_MAX;
use crate::expression::{COMPUTED_MAX, ExpressionError};
use crate::views::{BINS_MAX, SAMPLES_MAX};

/// Why a question has no answer.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    #[error("`{text}` is no number, and column `{column}` holds numbers")]
    NotANumber { column: String, text: String },
    #[error("column `{column}` holds {found}, and this takes numbers")]
    NoNumbers { column: String, found: &'static str },
    #[error("the regular expression for column `{column}` can't be used")]
    Regex {
        column: String,
        #[source]
        error: regex::Error,
    },
    #[error("more than {DIMENSIONS_MAX} columns to group by")]
    TooManyDimensions,
    #[error("more than {GROUPS_MAX} groups: group by fewer columns, or ask about less")]
    TooManyGroups,
    #[error(
        "the answer needs more than the {} MiB of memory that a question may use: ask about less \
         time, or group by fewer columns",
        limit >> 20
    )]
    TooMuchMemory { limit: usize },
    #[error(
        "the answer took longer than the {} s that a question may take: ask about less time",
        limit.as_secs_f64()
    )]
    TimedOut { limit: Duration },
    #[error("the question was canceled")]
    Canceled,
    #[error("there is no aggregate {0} to order by")]
    Order(usize),
    #[error("percentile {0} is not from 0 to 100")]
    Percentile(f64),
    #[error("column `{column}` holds {found}, and this takes vectors")]
    NoVectors { column: String, found: &'static str },
    #[error("{count} raw rows are more than the {SAMPLES_MAX} that can be shown")]
    TooManySamples { count: usize },
    #[error("{count} bins: a distribution has from 1 to {BINS_MAX}")]
    Bins { count: usize },
    #[error("the tree has more than {TREE_NODES_MAX} nodes: select fewer rows")]
    TooManyNodes,
    #[error("the graph has more than {GRAPH_EDGES_MAX} edges: select fewer rows")]
    TooManyEdges,
    #[error("the expression of column `{column}` can't be used")]
    Expression {
        column: String,
        #[source]
        error: ExpressionError,
    },
    #[error("column `{column}` is there already: give the computed one another name")]
    NameTaken { column: String },
    #[error("more than {COMPUTED_MAX} values to compute: ask about a shorter time")]
    TooMuchComputed,
    #[error("more than {MEASUREMENTS_MAX} measurements to judge: select fewer rows")]
    TooManyMeasurements,
    #[error(transparent)]
    Segment(#[from] SegmentError),
}

/// The most columns to group by.
pub(crate) const DIMENSIONS_MAX: usize = 8;
/// The most groups of one answer.
pub(crate) const GROUPS_MAX: usize = 1 << 24;
/// How large a compiled regular expression may be, in bytes.
pub(crate) const REGEX_BYTES_MAX: usize = 1 << 20;
/// The most nodes of a tree while it is made, before the largest are taken.
pub(crate) const TREE_NODES_MAX: usize = 1 << 23;
/// The most edges of a graph while it is made.
pub(crate) const GRAPH_EDGES_MAX: usize = 1 << 23;
