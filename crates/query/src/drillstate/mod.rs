//! Scuba's links: a query as a drillstate, JSON in a URL, and back.
//!
//! What public programs write is read as they mean it; everything else is our reading, and
//! `docs/drillstate.md` says which is which. Nothing is lost on the way: what a document has no
//! words for stays in its field `drillstate` as it was written, and is written again.

mod read;
#[cfg(test)]
mod tests;
mod url;
mod write;

pub use read::{DrillstateError, read};
pub use url::{PATH, UrlError, is_scuba_url, read_url_query, write_url};
pub use write::{Unsayable, write};

use crate::document::{Operator, View};

/// Keys of a drillstate, and of the URL around it, that a document has words for.
mod key {
    pub(super) const DATASET: &str = "dataset";
    pub(super) const START: &str = "start";
    pub(super) const END: &str = "end";
    pub(super) const TIMEZONE: &str = "timezone";
    pub(super) const CONSTRAINTS: &str = "constraints";
    pub(super) const DIMENSIONS: &str = "dimensions";
    pub(super) const PARAM_DIMENSIONS: &str = "param_dimensions";
    pub(super) const IS_TIMESERIES: &str = "is_timeseries";
    pub(super) const METRIC: &str = "metric";
    pub(super) const COLS: &str = "cols";
    pub(super) const AGGREGATE_LIST: &str = "aggregateList";
    pub(super) const AGGREGATION_FIELD: &str = "aggregation_field";
    pub(super) const ORDER: &str = "order";
    pub(super) const ORDER_DESC: &str = "order_desc";
    pub(super) const TOP: &str = "top";
    pub(super) const RETURN_REMAINDER: &str = "return_remainder";
    pub(super) const DERIVED_COLS: &str = "derivedCols";
    pub(super) const SAMPLE_COLS: &str = "sampleCols";
    pub(super) const COMPARE: &str = "compare";
    pub(super) const B_CONSTRAINTS: &str = "b_constraints";
    pub(super) const SHOULD_PIVOT: &str = "should_pivot";
    pub(super) const VIEW: &str = "view";

    pub(super) const ALL: [&str; 22] = [
        DATASET,
        START,
        END,
        TIMEZONE,
        CONSTRAINTS,
        DIMENSIONS,
        PARAM_DIMENSIONS,
        IS_TIMESERIES,
        METRIC,
        COLS,
        AGGREGATE_LIST,
        AGGREGATION_FIELD,
        ORDER,
        ORDER_DESC,
        TOP,
        RETURN_REMAINDER,
        DERIVED_COLS,
        SAMPLE_COLS,
        COMPARE,
        B_CONSTRAINTS,
        SHOULD_PIVOT,
        VIEW,
    ];
}

/// What Scuba orders by when it says so, and which metric that is here.
const ORDERS: [(&str, &str); 2] = [("weight", "count"), ("hits", "samples")];

/// What `compare` says of the time just before,
const PREVIOUS: &str = "previous period";
/// and of the rows that `b_constraints` choose.
const AGAINST_B: &str = "b";

/// Names of views; the first of a view is the one that is written.
const VIEWS: [(&str, View); 13] = [
    ("Table", View::Table),
    ("Series", View::Series),
    ("Area", View::Series),
    ("Distribution", View::Distribution),
    ("Heatmap", View::Distribution),
    ("Samples", View::Samples),
    ("Icicle", View::Tree),
    ("Flame", View::Tree),
    ("Sandwich", View::Tree),
    ("GraphProfilerView", View::Graph),
    ("Graph", View::Graph),
    ("Edge", View::Graph),
    ("Differs", View::Differs),
];

/// The operator that is written with a space.
const NOT_NULL: (&str, Operator) = ("not null", Operator::NotNull);
