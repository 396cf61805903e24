//! The query document: a question as JSON, the same over HTTP, from the command line, in links
//! and, as far as that can say it, as a drillstate.
//!
//! ```json
//! {
//!   "format": "perflab.query/1", "dataset": "builds", "since": "-7 days", "until": "now",
//!   "any_of": [[{"column": "status", "op": "eq", "values": ["failed"]}]],
//!   "group_by": ["job", "time:1h"], "aggregates": ["count", "p99:latency"],
//!   "order": {"by": "count", "descending": true}, "top": 100
//! }
//! ```
//!
//! Only the dataset must be there. What a document says is checked in two steps: its form when it
//! is read ([`Document::from_json`]), its columns and times when it is made a [`Plan`].

mod comparison;
mod fields;
mod filter;
mod grouping;
mod lines;
mod metric;
mod plan;
mod rows;
mod run;
mod shapes;
mod table;
#[cfg(test)]
mod tests;

pub use comparison::{
    COMPARISON_FORMAT, Comparison, ComparisonError, ComparisonFormat, MEASUREMENTS,
    answer_comparison, times_compared,
};
pub use filter::{Filter, Operator, UnknownOperator, VALUES_MAX};
pub use grouping::Grouping;
pub use metric::{Function, Metric, Simple};
pub use plan::{Columns, Plan, Times};
pub use rows::each_rows;
pub use run::{Answered, AskError, answer_document, times_touched};
pub use table::{ColumnKind, Metered, PIVOT_COLUMNS_MAX, Table, TableColumn, TableError};

pub(crate) use filter::text_of;
#[cfg(test)]
pub(crate) use metric::tests as strategies;
pub(crate) use plan::at_most;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::nearest::did_you_mean;
use crate::time::{RangeError, TimeError, TooManyBuckets};

/// What the format field of a document says.
pub const FORMAT: &str = "perflab.query/1";
/// The largest document, as JSON.
pub const DOCUMENT_BYTES_MAX: usize = 1 << 20;
/// The most conditions, all alternatives together.
pub const FILTERS_MAX: usize = 1000;
/// The most metrics.
pub const METRICS_MAX: usize = 64;
/// The most rows of an answer that can be asked for,
pub const TOP_MAX: usize = 1_000_000;
/// and how many there are unless asked for, where they are not a series.
pub const TOP: usize = 100;

const SINCE: &str = "-7 days";
const UNTIL: &str = "now";
const TIMEZONE: &str = "UTC";

/// A question as people and programs ask it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Query")]
pub struct Document {
    #[serde(default)]
    pub format: Format,
    pub dataset: String,
    /// The start of the range. Times are written as `-7 days`, `yesterday` or in RFC 3339.
    #[serde(default = "since")]
    pub since: String,
    /// Just after its end; all times of a document count from one `now`.
    #[serde(default = "until")]
    pub until: String,
    /// An IANA name: where days start, and what times are shown in.
    #[serde(default = "timezone", skip_serializing_if = "is_utc")]
    pub timezone: String,
    /// Rows that meet all conditions of any of these; all rows when there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub any_of: Vec<Vec<Filter>>,
    /// Columns, `time`, `time:1h` or `bucket(latency, 10)`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub group_by: Vec<Grouping>,
    /// Such as `p99:latency` or `sum:errors / count`; `count` when there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aggregates: Vec<Metric>,
    /// Columns that are computed from the others, to be used like them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub derived: Vec<Derived>,
    /// Without it, a series is in the order of its groups, and all else is ordered by the first
    /// metric, the largest first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<Order>,
    /// How many rows are wanted. Of a series: how many lines, which are chosen by the order over
    /// the whole time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = TOP_MAX))]
    pub top: Option<usize>,
    /// Whether the answer also has all groups together that are not among the first; of a series,
    /// as a line of its own.
    #[serde(default, skip_serializing_if = "is_false")]
    pub other: bool,
    /// Whether the answer also has all groups together.
    #[serde(default, skip_serializing_if = "is_false")]
    pub total: bool,
    /// Whether the values of the last group become columns.
    #[serde(default, skip_serializing_if = "is_false")]
    pub pivot: bool,
    /// What the rows are compared with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compare: Option<Compare>,
    /// How the answer is looked at.
    #[serde(default, skip_serializing_if = "View::is_table")]
    pub view: View,
    /// The column that the view is about: numbers of a distribution, stacks of a tree or a graph.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub view_column: Option<String>,
    /// The columns of raw rows that are shown; all when there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<String>,
    /// How the lists of a tree are merged.
    #[serde(default, skip_serializing_if = "Fold::is_root")]
    pub fold: Fold,
    /// What the drillstate that this was read from says besides.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub drillstate: Map<String, Value>,
}

fn since() -> String {
    SINCE.to_owned()
}

fn until() -> String {
    UNTIL.to_owned()
}

fn timezone() -> String {
    TIMEZONE.to_owned()
}

fn is_utc(timezone: &str) -> bool {
    timezone == TIMEZONE
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_false(is_set: &bool) -> bool {
    !is_set
}

/// The version of a document. There is one so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "QueryFormat")]
pub enum Format {
    #[default]
    #[serde(rename = "perflab.query/1")]
    One,
}

/// How the rows of an answer are ordered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// A group, or a metric, which need not be shown.
    pub by: String,
    #[serde(default = "yes")]
    pub descending: bool,
}

fn yes() -> bool {
    true
}

/// A column that is computed from others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Derived {
    pub name: String,
    /// Such as `latency * 1000`.
    pub expression: String,
}

/// What the rows are compared with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Compare {
    /// As long a time just before.
    Previous,
    /// The same time so long ago: `1 week`.
    Ago(String),
    /// Rows of the same time that meet other conditions.
    Against(Vec<Vec<Filter>>),
}

/// Which way the lists of a tree are merged.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Fold {
    #[default]
    Root,
    Leaf,
    /// What leads to a frame.
    Callers(String),
    /// What a frame leads to.
    Callees(String),
}

impl Fold {
    fn is_root(&self) -> bool {
        *self == Self::Root
    }
}

/// How the answer is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum View {
    #[default]
    Table,
    Series,
    Distribution,
    Samples,
    Tree,
    Graph,
    /// Which values are more common than in what is compared with.
    Differs,
}

impl View {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
    fn is_table(&self) -> bool {
        *self == Self::Table
    }
}

/// Why a document is no question.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    #[error("the query has {bytes} bytes, the limit is {DOCUMENT_BYTES_MAX}")]
    TooLarge { bytes: usize },
    #[error("the query is not JSON")]
    Json(#[source] serde_json::Error),
    #[error("the query is not of the form that is known as {FORMAT}")]
    Form(#[source] serde_json::Error),
    #[error("the comparison is not of the form that is known as {COMPARISON_FORMAT}")]
    ComparisonForm(#[source] serde_json::Error),
    #[error("there is no field `{}` in {inside}{}", .field.escape_debug(), did_you_mean(*.nearest))]
    Field { field: String, inside: &'static str, nearest: Option<&'static str> },
    #[error(
        "there is no column `{}` in dataset `{dataset}`{}",
        .column.escape_debug(), did_you_mean(.nearest.as_deref())
    )]
    Column { column: String, dataset: String, nearest: Option<String> },
    #[error(
        "`time` is no column: `since` and `until` say which rows are meant, and `time` or \
         `time:1h` to group by cuts them into buckets"
    )]
    TimeAsColumn,
    #[error("`{operator}` of column `{column}` takes {}, not {given}", values(*.operator))]
    Values { operator: Operator, column: String, given: usize },
    #[error("there is no time zone `{}`{}", .zone.escape_debug(), did_you_mean(.nearest.as_deref()))]
    Zone { zone: String, nearest: Option<String> },
    #[error(transparent)]
    Range(#[from] RangeError),
    #[error("`time:{width}` is no bucket of time")]
    Width {
        width: String,
        #[source]
        error: TimeError,
    },
    #[error(transparent)]
    Buckets(#[from] TooManyBuckets),
    #[error("{given} {what} are more than {limit}, which is the limit")]
    TooMany { what: &'static str, given: usize, limit: usize },
    #[error("`{0}` is asked for twice")]
    Twice(String),
    #[error("`{}` to order by is neither a group of this query nor an aggregate", .by.escape_debug())]
    Order {
        by: String,
        #[source]
        error: crate::text::TextError,
    },
    #[error("a pivot needs something to group by")]
    PivotOfNothing,
    #[error(
        "`other` needs an order that the rows are chosen by as they are found: by one aggregate, \
         not by a group, a ratio, or a rate in a series"
    )]
    Other,
    #[error(
        "the line of all others needs a series by one column, of texts or of numbers, but not of \
         both"
    )]
    OtherLine,
    #[error(
        "an export is of raw rows: it takes `dataset`, `since`, `until`, `timezone`, `any_of`, \
         `derived` and `columns` only"
    )]
    NotRaw,
    #[error("a series needs a time to group by")]
    NoTime,
    #[error("a comparison is of two answers, and not of {0}")]
    CompareOf(&'static str),
    #[error("what differs needs something to differ from: give `compare`")]
    NothingToDifferFrom,
    #[error("`{}` is no time to go back by; write `1 week` or `7 days`", .length.escape_debug())]
    Ago {
        length: String,
        #[source]
        error: TimeError,
    },
    #[error("the view needs `view_column`: {}", view_column(*.view))]
    NoViewColumn { view: View },
}

fn values(operator: Operator) -> &'static str {
    match operator.values_max() {
        0 => "no value",
        1 => "one value",
        _ => "one to 10000 values",
    }
}

fn view_column(view: View) -> &'static str {
    match view {
        View::Distribution => "a column of numbers",
        View::Tree | View::Graph => "a column of vectors, such as stacks",
        View::Table | View::Series | View::Samples | View::Differs => "no column",
    }
}

impl Document {
    /// A question about all rows of a dataset in the last days.
    pub fn new(dataset: impl Into<String>) -> Self {
        Self {
            format: Format::One,
            dataset: dataset.into(),
            since: since(),
            until: until(),
            timezone: timezone(),
            any_of: Vec::new(),
            group_by: Vec::new(),
            aggregates: Vec::new(),
            derived: Vec::new(),
            order: None,
            top: None,
            other: false,
            total: false,
            pivot: false,
            compare: None,
            view: View::Table,
            view_column: None,
            columns: Vec::new(),
            fold: Fold::Root,
            drillstate: Map::new(),
        }
    }

    /// Reads a document.
    pub fn from_json(json: &[u8]) -> Result<Self, DocumentError> {
        if json.len() > DOCUMENT_BYTES_MAX {
            return Err(DocumentError::TooLarge { bytes: json.len() });
        }
        let value: Value = serde_json::from_slice(json).map_err(DocumentError::Json)?;
        fields::check(&value)?;
        serde_json::from_value(value).map_err(DocumentError::Form)
    }
}
