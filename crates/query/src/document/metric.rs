//! What a document computes of each group.
//!
//! | text | meaning |
//! |---|---|
//! | `count`, `samples` | the sum of the weights; the sum of `hits` |
//! | `sum:x`, `avg:x`, `min:x`, `max:x`, `stddev:x`, `distinct:x` | of a column |
//! | `p50:x`, `p99.9:x` | a percentile, from `p0` to `p100` |
//! | `rate`, `rate:x` | the count, or the sum of a column, per second |
//! | `sum:errors / count` | one divided by another |

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::algebra::Aggregate;
use crate::nearest::{did_you_mean, nearest};
use crate::text::{TextError, quoted, take_quoted};

const BETWEEN: &str = " / ";

/// What is computed of each group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub enum Metric {
    Of(Simple),
    /// Per second of the range or, in a series, of the bucket: the count, or the sum of a column.
    Rate(Option<String>),
    Ratio(Simple, Simple),
}

/// What the engine computes.
#[derive(Debug, Clone, PartialEq)]
pub enum Simple {
    Count,
    Samples,
    Column(Function, String),
}

/// What is computed of a column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Function {
    Sum,
    Avg,
    Min,
    Max,
    Stddev,
    Distinct,
    /// From 0 to 100.
    Percentile(f64),
}

/// Everything that a metric can begin with, for those who mistype it.
const NAMES: [&str; 10] =
    ["count", "samples", "sum", "avg", "min", "max", "stddev", "distinct", "rate", "p99"];

impl Metric {
    /// What is meant by a name such as `p99`, of a column.
    pub(crate) fn of_column(name: &str, column: &str) -> Result<Self, TextError> {
        format!("{name}:{}", Column(column)).parse()
    }

    /// The columns it looks at.
    pub(super) fn columns(&self) -> impl Iterator<Item = &str> {
        let (first, second) = match self {
            Self::Of(simple) => (simple.column(), None),
            Self::Rate(column) => (column.as_deref(), None),
            Self::Ratio(above, below) => (above.column(), below.column()),
        };
        first.into_iter().chain(second)
    }
}

impl Simple {
    fn column(&self) -> Option<&str> {
        match self {
            Self::Count | Self::Samples => None,
            Self::Column(_, column) => Some(column),
        }
    }

    pub(super) fn aggregate(&self) -> Aggregate {
        match self {
            Self::Count => Aggregate::Count,
            Self::Samples => Aggregate::Samples,
            Self::Column(function, column) => {
                let column = column.clone();
                match function {
                    Function::Sum => Aggregate::Sum(column),
                    Function::Avg => Aggregate::Avg(column),
                    Function::Min => Aggregate::Min(column),
                    Function::Max => Aggregate::Max(column),
                    Function::Stddev => Aggregate::Stddev(column),
                    Function::Distinct => Aggregate::Distinct(column),
                    Function::Percentile(percent) => Aggregate::Percentile(percent / 100.0, column),
                }
            }
        }
    }
}

impl Function {
    fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "sum" => Self::Sum,
            "avg" => Self::Avg,
            "min" => Self::Min,
            "max" => Self::Max,
            "stddev" => Self::Stddev,
            "distinct" => Self::Distinct,
            _ => {
                let percent: f64 = name.strip_prefix('p')?.parse().ok()?;
                let is_number = name.bytes().skip(1).all(|b| b.is_ascii_digit() || b == b'.');
                if !is_number || !(0.0..=100.0).contains(&percent) {
                    return None;
                }
                Self::Percentile(percent)
            }
        })
    }
}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sum => f.write_str("sum"),
            Self::Avg => f.write_str("avg"),
            Self::Min => f.write_str("min"),
            Self::Max => f.write_str("max"),
            Self::Stddev => f.write_str("stddev"),
            Self::Distinct => f.write_str("distinct"),
            Self::Percentile(percent) => write!(f, "p{percent}"),
        }
    }
}

/// A column, in quotes where it would be misread.
struct Column<'c>(&'c str);

impl fmt::Display for Column<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_plain = !self.0.is_empty()
            && self.0.trim() == self.0
            && !self.0.starts_with('"')
            && !self.0.contains(BETWEEN);
        if is_plain { f.write_str(self.0) } else { f.write_str(&quoted(self.0)) }
    }
}

impl fmt::Display for Simple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count => f.write_str("count"),
            Self::Samples => f.write_str("samples"),
            Self::Column(function, column) => write!(f, "{function}:{}", Column(column)),
        }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Of(simple) => simple.fmt(f),
            Self::Rate(None) => f.write_str("rate"),
            Self::Rate(Some(column)) => write!(f, "rate:{}", Column(column)),
            Self::Ratio(above, below) => write!(f, "{above}{BETWEEN}{below}"),
        }
    }
}

impl From<Metric> for String {
    fn from(metric: Metric) -> Self {
        metric.to_string()
    }
}

impl TryFrom<String> for Metric {
    type Error = TextError;

    fn try_from(text: String) -> Result<Self, TextError> {
        text.parse()
    }
}

impl FromStr for Metric {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        let (first, rest) = take_metric(text, text)?;
        let Some(below) = rest.strip_prefix(BETWEEN) else { return Ok(first) };
        let (second, rest) = take_metric(text, below)?;
        match (first, second, rest) {
            (Self::Of(above), Self::Of(below), "") => Ok(Self::Ratio(above, below)),
            _ => Err(TextError::new(text, below, "a ratio is of two simple ones, such as `count`")),
        }
    }
}

/// Reads one that is no ratio; what follows is nothing, or a ratio's other side.
fn take_metric<'t>(text: &'t str, rest: &'t str) -> Result<(Metric, &'t str), TextError> {
    let end = rest.find([':', ' ']).unwrap_or(rest.len());
    let (name, after) = rest.split_at(end);
    let (column, after) = match after.strip_prefix(':') {
        None => (None, after),
        Some(after) => {
            let (column, after) = take_column(text, after)?;
            (Some(column), after)
        }
    };
    let metric = match (name, column, Function::parse(name)) {
        ("count", None, _) => Metric::Of(Simple::Count),
        ("samples", None, _) => Metric::Of(Simple::Samples),
        ("rate", column, _) => Metric::Rate(column),
        (_, Some(column), Some(function)) => Metric::Of(Simple::Column(function, column)),
        ("count" | "samples", Some(_), _) => {
            let problem = format!("`{name}` takes no column");
            return Err(TextError::new(text, &rest[end..], problem));
        }
        (_, None, Some(_)) => {
            let problem = format!("`{name}` takes a column, as in `{name}:latency`");
            return Err(TextError::new(text, after, problem));
        }
        (_, _, None) => return Err(unknown(text, rest, name)),
    };
    if after.is_empty() || after.starts_with(BETWEEN) {
        return Ok((metric, after));
    }
    Err(TextError::new(text, after, "nothing belongs here but ` / ` and another"))
}

fn unknown(text: &str, rest: &str, name: &str) -> TextError {
    let meant = did_you_mean(nearest(name, NAMES));
    let name = name.escape_debug();
    let hint = "aggregates are count, samples, sum, avg, min, max, stddev, distinct, rate and p0 \
                to p100";
    TextError::new(text, rest, format!("there is no aggregate `{name}`{meant} ({hint})"))
}

fn take_column<'t>(text: &str, rest: &'t str) -> Result<(String, &'t str), TextError> {
    if let Some(taken) = take_quoted(text, rest)? {
        return Ok(taken);
    }
    let end = rest.find(BETWEEN).unwrap_or(rest.len());
    let (column, after) = rest.split_at(end);
    if column.trim().is_empty() {
        return Err(TextError::new(text, rest, "a column belongs after `:`"));
    }
    Ok((column.trim().to_owned(), after))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(crate) fn functions() -> impl Strategy<Value = Function> {
        prop_oneof![
            Just(Function::Sum),
            Just(Function::Avg),
            Just(Function::Min),
            Just(Function::Max),
            Just(Function::Stddev),
            Just(Function::Distinct),
            (0_u32..=1000).prop_map(|tenths| Function::Percentile(f64::from(tenths) / 10.0)),
        ]
    }

    pub(crate) fn simple_metrics() -> impl Strategy<Value = Simple> {
        prop_oneof![
            Just(Simple::Count),
            Just(Simple::Samples),
            (functions(), "\\PC{1,6}| / |a / b")
                .prop_map(|(function, column)| Simple::Column(function, column)),
        ]
    }

    pub(crate) fn metrics() -> impl Strategy<Value = Metric> {
        prop_oneof![
            simple_metrics().prop_map(Metric::Of),
            prop::option::of("\\PC{1,6}").prop_map(Metric::Rate),
            (simple_metrics(), simple_metrics()).prop_map(|(a, b)| Metric::Ratio(a, b)),
        ]
    }

    #[test]
    fn what_people_type_is_read() {
        let of = |function, column: &str| Simple::Column(function, column.to_owned());
        let check = |text: &str, expected| assert_eq!(text.parse(), Ok(expected), "{text}");
        check("count", Metric::Of(Simple::Count));
        check("p99:latency", Metric::Of(of(Function::Percentile(99.0), "latency")));
        check("p99.9:x:float", Metric::Of(of(Function::Percentile(99.9), "x:float")));
        check("rate", Metric::Rate(None));
        check("rate:bytes", Metric::Rate(Some("bytes".to_owned())));
        check("sum:a/b", Metric::Of(of(Function::Sum, "a/b")));
        check("sum:errors / count", Metric::Ratio(of(Function::Sum, "errors"), Simple::Count));
        check(r#"sum:"a / b""#, Metric::Of(of(Function::Sum, "a / b")));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let error = |text: &str| text.parse::<Metric>().unwrap_err().to_string();
        assert_eq!(
            error("cuont"),
            "`cuont`: there is no aggregate `cuont`; did you mean `count`? (aggregates are count, \
             samples, sum, avg, min, max, stddev, distinct, rate and p0 to p100) (at character 1)"
        );
        assert_eq!(error("p99"), "`p99`: `p99` takes a column, as in `p99:latency` (at the end)");
        assert_eq!(error("count:x"), "`count:x`: `count` takes no column (at character 6)");
        assert_eq!(error("sum:"), "`sum:`: a column belongs after `:` (at the end)");
        assert!(error("p101:x").contains("there is no aggregate `p101`"));
        assert!(error("p1e1:x").contains("there is no aggregate `p1e1`"));
        assert!(error("pnan:x").contains("there is no aggregate `pnan`"));
        assert!(error("").contains("there is no aggregate ``"));
        assert!(error("count / rate").contains("a ratio is of two simple ones"));
        assert!(error("count / count / count").contains("a ratio is of two simple ones"));
        assert!(error(r#"sum:"a"b"#).contains("nothing belongs here"));
    }

    proptest! {
        #[test]
        fn a_metric_is_read_again_from_its_text(metric in metrics()) {
            prop_assert_eq!(metric.to_string().parse(), Ok(metric));
        }

        #[test]
        fn no_text_panics(text in "[a-z0-9:/\" .]{0,16}") {
            if let Ok(metric) = text.parse::<Metric>() {
                prop_assert_eq!(metric.to_string().parse(), Ok(metric));
            }
        }
    }
}
