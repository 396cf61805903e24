//! What a document groups by.
//!
//! | text | meaning |
//! |---|---|
//! | `job` | a column |
//! | `time`, `time:1h` | buckets of time, as wide as fits or as given |

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::text::{TextError, quoted, take_quoted};

/// The word for a row's time, which no column can have as its name.
pub(crate) const TIME: &str = "time";

/// What rows are grouped by.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Grouping {
    Column(String),
    /// Buckets of this width; `None`: as wide as fits.
    Time(Option<String>),
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
                    && !column.starts_with("time:");
                if is_plain { f.write_str(column) } else { f.write_str(&quoted(column)) }
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
        match take_quoted(text, text)? {
            Some((column, "")) => Ok(Self::Column(column)),
            Some((_, after)) => Err(TextError::new(text, after, "nothing belongs after the quote")),
            None if text.is_empty() => {
                Err(TextError::new(text, text, "a column belongs here, or `time`"))
            }
            None => Ok(Self::Column(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn groupings() -> impl Strategy<Value = Grouping> {
        prop_oneof![
            "\\PC{1,6}|time|time:1h|\"x".prop_map(Grouping::Column),
            Just(Grouping::Time(None)),
            "[1-9]h".prop_map(|width| Grouping::Time(Some(width))),
        ]
    }

    #[test]
    fn what_people_type_is_read() {
        let check = |text: &str, expected| assert_eq!(text.parse(), Ok(expected), "{text}");
        let column = |name: &str| Grouping::Column(name.to_owned());
        check("job", column("job"));
        check("a, b", column("a, b"));
        check("time", Grouping::Time(None));
        check("time:1h", Grouping::Time(Some("1h".to_owned())));
        check(r#""time""#, column("time"));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let error = |text: &str| text.parse::<Grouping>().unwrap_err().to_string();
        assert!(error("").contains("a column belongs here"));
    }

    proptest! {
        #[test]
        fn a_grouping_is_read_again_from_its_text(grouping in groupings()) {
            prop_assert_eq!(grouping.to_string().parse(), Ok(grouping));
        }
    }
}
