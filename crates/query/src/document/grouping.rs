//! What a document groups by.
//!
//! | text | meaning |
//! |---|---|
//! | `job` | a column |
//! | `time`, `time:1h` | buckets of time, as wide as fits or as given |
//! | `bucket(latency, 10)` | the multiple of 10 at or below a number |

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::{TextError, quoted, take_quoted};

/// The word for a row's time, which no column can have as its name.
pub(crate) const TIME: &str = "time";

/// What rows are grouped by.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub enum Grouping {
    Column(String),
    /// Buckets of this width; `None`: as wide as fits.
    Time(Option<String>),
    /// A number, rounded down to a multiple of the width.
    Bucket {
        column: String,
        width: f64,
    },
}

impl fmt::Display for Grouping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time(None) => f.write_str(TIME),
            Self::Time(Some(width)) => write!(f, "{TIME}:{width}"),
            Self::Column(column) => {
                let is_plain = column.trim() == column
                    && !column.is_empty()
                    && !column.starts_with('"')
                    && column != TIME
                    && !column.starts_with("time:")
                    && !column.starts_with("bucket(");
                if is_plain { f.write_str(column) } else { f.write_str(&quoted(column)) }
            }
            Self::Bucket { column, width } => {
                let is_plain = column.trim() == column
                    && !column.is_empty()
                    && !column.contains(['"', '(', ')', ',']);
                let column = if is_plain { column.clone() } else { quoted(column) };
                write!(f, "bucket({column}, {width})")
            }
        }
    }
}

impl From<Grouping> for String {
    fn from(grouping: Grouping) -> Self {
        grouping.to_string()
    }
}

impl TryFrom<String> for Grouping {
    type Error = TextError;

    fn try_from(text: String) -> Result<Self, TextError> {
        text.parse()
    }
}

impl FromStr for Grouping {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        if text == TIME {
            return Ok(Self::Time(None));
        }
        if let Some(width) = text.strip_prefix("time:") {
            return Ok(Self::Time(Some(width.to_owned())));
        }
        if let Some(rest) = text.strip_prefix("bucket(") {
            return take_bucket(text, rest);
        }
        match take_quoted(text, text)? {
            Some((column, "")) => Ok(Self::Column(column)),
            Some((_, after)) => Err(TextError::new(text, after, "nothing belongs after the quote")),
            None if text.is_empty() => {
                Err(TextError::new(text, text, "a column belongs here, `time` or `bucket(x, 10)`"))
            }
            None => Ok(Self::Column(text.to_owned())),
        }
    }
}

fn take_bucket(text: &str, rest: &str) -> Result<Grouping, TextError> {
    let (column, rest) = match take_quoted(text, rest.trim_start())? {
        Some(taken) => taken,
        None => {
            let end = rest.find([',', ')']).unwrap_or(rest.len());
            (rest[..end].trim().to_owned(), &rest[end..])
        }
    };
    if column.is_empty() {
        return Err(TextError::new(text, rest, "a column belongs here, as in `bucket(x, 10)`"));
    }
    let written = rest.trim_start().strip_prefix(',').and_then(|rest| rest.strip_suffix(')'));
    let width = written.and_then(|width| width.trim().parse::<f64>().ok());
    match width.filter(|width| width.is_finite() && *width > 0.0) {
        Some(width) => Ok(Grouping::Bucket { column, width }),
        None => {
            let problem = "a width above 0 belongs here, as in `bucket(x, 10)`";
            Err(TextError::new(text, rest, problem))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn groupings() -> impl Strategy<Value = Grouping> {
        let widths = (1_u32..100_000).prop_map(|width| f64::from(width) / 8.0);
        prop_oneof![
            "\\PC{1,6}|time|time:1h|bucket\\(x, 1\\)|\"x".prop_map(Grouping::Column),
            Just(Grouping::Time(None)),
            "[1-9]h".prop_map(|width| Grouping::Time(Some(width))),
            ("\\PC{1,6}", widths).prop_map(|(column, width)| Grouping::Bucket { column, width }),
        ]
    }

    #[test]
    fn what_people_type_is_read() {
        let check = |text: &str, expected| assert_eq!(text.parse(), Ok(expected), "{text}");
        let column = |name: &str| Grouping::Column(name.to_owned());
        let bucket = |name: &str, width| Grouping::Bucket { column: name.to_owned(), width };
        check("job", column("job"));
        check("a, b", column("a, b"));
        check("time", Grouping::Time(None));
        check("time:1h", Grouping::Time(Some("1h".to_owned())));
        check("bucket(latency, 10)", bucket("latency", 10.0));
        check(r#"bucket("a,b",0.5)"#, bucket("a,b", 0.5));
        check(r#""time""#, column("time"));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let error = |text: &str| text.parse::<Grouping>().unwrap_err().to_string();
        assert_eq!(
            error("bucket(x)"),
            "`bucket(x)`: a width above 0 belongs here, as in `bucket(x, 10)` (at character 9)"
        );
        for bad in ["bucket(x, 0)", "bucket(x, -1)", "bucket(x, inf)", "bucket(x, 1", "bucket(x"] {
            assert!(error(bad).contains("a width above 0 belongs here"), "{bad}");
        }
        assert!(error("bucket(, 1)").contains("a column belongs here"));
        assert!(error("").contains("a column belongs here"));
    }

    proptest! {
        #[test]
        fn a_grouping_is_read_again_from_its_text(grouping in groupings()) {
            prop_assert_eq!(grouping.to_string().parse(), Ok(grouping));
        }
    }
}
