//! Questions as data.

/// A question about the rows of one dataset.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Question {
    /// Half-open, in nanoseconds since the Unix epoch; `None`: all of time.
    pub range: Option<(i64, i64)>,
    /// Rows that meet all conditions of any of these; all rows when there are none.
    pub any_of: Vec<Vec<Condition>>,
    pub group_by: Vec<Dimension>,
    pub aggregates: Vec<Aggregate>,
    /// Only the first groups; `None`: all of them, in no order.
    pub top: Option<Top>,
    /// Whether the answer has all groups together that are not among the first.
    pub with_other: bool,
    /// Whether the answer has all groups together.
    pub with_total: bool,
}

/// Which groups come first. Groups without a value come last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Top {
    pub count: usize,
    /// The place of the aggregate that decides.
    pub by: usize,
    pub order: Order,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    Ascending,
    Descending,
}

/// What a row must meet: a column by its name, of whatever kind, and a test of its value.
///
/// A name that was sent with several kinds is met when any of them is. The tests that begin with
/// "not" are the opposite of the others, and so hold for rows without a value.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    pub column: String,
    pub test: Test,
}

/// A test of a value.
#[derive(Debug, Clone, PartialEq)]
pub enum Test {
    /// Equal to one of these.
    In(Vec<String>),
    NotIn(Vec<String>),
    Compare(Comparison, String),
    /// Found anywhere in a string.
    Regex(String),
    NotRegex(String),
    Contains(String),
    Prefix(String),
    Null,
    NotNull,
    /// A list has one of these.
    Any(Vec<String>),
    /// A list has all of these.
    All(Vec<String>),
    /// A list has none of these, or there is no list.
    None(Vec<String>),
    /// A list has exactly these: a vector in this order, a set in any.
    Exact(Vec<String>),
    /// A list has an item in which this is found.
    ItemRegex(String),
    /// A vector begins with these.
    StartsWith(Vec<String>),
}

impl Test {
    /// The test that holds where this one doesn't, for those that are defined so.
    pub(crate) fn opposite(&self) -> Option<Self> {
        match self {
            Self::NotIn(values) => Some(Self::In(values.clone())),
            Self::NotRegex(text) => Some(Self::Regex(text.clone())),
            Self::None(values) => Some(Self::Any(values.clone())),
            Self::Null => Some(Self::NotNull),
            Self::In(_)
            | Self::Compare(..)
            | Self::Regex(_)
            | Self::Contains(_)
            | Self::Prefix(_)
            | Self::NotNull
            | Self::Any(_)
            | Self::All(_)
            | Self::Exact(_)
            | Self::ItemRegex(_)
            | Self::StartsWith(_) => None,
        }
    }
}

/// How two values stand to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// What rows are grouped by.
#[derive(Debug, Clone, PartialEq)]
pub enum Dimension {
    Column(String),
    /// The bucket a row's time is in: the starts of the buckets, ascending.
    Time(Vec<i64>),
}

/// What is computed of each group. Weighted, except where it says otherwise.
#[derive(Debug, Clone, PartialEq)]
pub enum Aggregate {
    /// The sum of the weights.
    Count,
    /// The sum of `hits`, 1 where a row has none; unweighted.
    Samples,
    Sum(String),
    Avg(String),
    /// Unweighted.
    Min(String),
    /// Unweighted.
    Max(String),
    /// Of the population.
    Stddev(String),
    /// How many different values; unweighted.
    Distinct(String),
    /// How many rows of the same weight would say as much as these: (Σw)²/Σw², after Kish, "Survey
    /// Sampling" (1965). Of all rows, or of those with a number in a column.
    EffectiveSize(Option<String>),
    /// The value below which this part of the weight lies, from 0 to 1.
    Percentile(f64, String),
}

impl Question {
    /// The columns that are read of a segment, as often as they are.
    pub(crate) fn columns(&self) -> impl Iterator<Item = &str> {
        let conditions = self.any_of.iter().flatten().map(|condition| condition.column.as_str());
        let dimensions = self.group_by.iter().filter_map(Dimension::column);
        conditions.chain(dimensions).chain(self.aggregates.iter().filter_map(Aggregate::column))
    }
}

impl Dimension {
    pub(crate) fn column(&self) -> Option<&str> {
        match self {
            Self::Column(name) => Some(name),
            Self::Time(_) => None,
        }
    }
}

impl Aggregate {
    /// What it reads beside weights.
    pub(crate) fn column(&self) -> Option<&str> {
        match self {
            Self::Count | Self::EffectiveSize(None) => None,
            Self::Samples => Some("hits"),
            Self::Sum(column)
            | Self::Avg(column)
            | Self::Min(column)
            | Self::Max(column)
            | Self::Stddev(column)
            | Self::Percentile(_, column)
            | Self::Distinct(column)
            | Self::EffectiveSize(Some(column)) => Some(column),
        }
    }
}
