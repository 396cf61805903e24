//! Conditions of a document.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::DocumentError;
use crate::algebra::{Comparison, Condition, Test};
use crate::nearest::{did_you_mean, nearest};

/// The most values of one condition.
pub const VALUES_MAX: usize = 10_000;

/// A condition: a column, how it is compared, and with what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Condition")]
pub struct Filter {
    pub column: String,
    pub op: Operator,
    /// Texts; numbers may be written as numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "texts")]
    #[schemars(schema_with = "texts_schema")]
    pub values: Vec<String>,
}

/// How a column is compared. `eq` and `neq` take several values: any of them, none of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "&'static str")]
pub enum Operator {
    Eq,
    Neq,
    Gt,
    Gte,
    Lt,
    Lte,
    Regex,
    NotRegex,
    Contains,
    /// In upper or lower case.
    Icontains,
    Prefix,
    Null,
    NotNull,
    Any,
    All,
    None,
    Exact,
    ItemRegex,
    StartsWith,
}

/// There is no such operator.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no operator `{}`{}", .name.escape_debug(), did_you_mean(*.nearest))]
pub struct UnknownOperator {
    pub name: String,
    pub nearest: Option<&'static str>,
}

impl Operator {
    pub const ALL: [Self; 19] = [
        Self::Eq,
        Self::Neq,
        Self::Gt,
        Self::Gte,
        Self::Lt,
        Self::Lte,
        Self::Regex,
        Self::NotRegex,
        Self::Contains,
        Self::Icontains,
        Self::Prefix,
        Self::Null,
        Self::NotNull,
        Self::Any,
        Self::All,
        Self::None,
        Self::Exact,
        Self::ItemRegex,
        Self::StartsWith,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Eq => "eq",
            Self::Neq => "neq",
            Self::Gt => "gt",
            Self::Gte => "gte",
            Self::Lt => "lt",
            Self::Lte => "lte",
            Self::Regex => "regex",
            Self::NotRegex => "nregex",
            Self::Contains => "contains",
            Self::Icontains => "icontains",
            Self::Prefix => "prefix",
            Self::Null => "null",
            Self::NotNull => "not_null",
            Self::Any => "any",
            Self::All => "all",
            Self::None => "none",
            Self::Exact => "exact",
            Self::ItemRegex => "item_regex",
            Self::StartsWith => "starts_with",
        }
    }

    /// How many values it takes at most; it takes none only where this is 0.
    pub(crate) fn values_max(self) -> usize {
        match self {
            Self::Null | Self::NotNull => 0,
            Self::Gt
            | Self::Gte
            | Self::Lt
            | Self::Lte
            | Self::Regex
            | Self::NotRegex
            | Self::Contains
            | Self::Icontains
            | Self::Prefix
            | Self::ItemRegex => 1,
            Self::Eq
            | Self::Neq
            | Self::Any
            | Self::All
            | Self::None
            | Self::Exact
            | Self::StartsWith => VALUES_MAX,
        }
    }
}

impl JsonSchema for Operator {
    fn schema_name() -> Cow<'static, str> {
        "Operator".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "enum": Self::ALL.map(Self::as_str)})
    }
}

impl fmt::Display for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl From<Operator> for &'static str {
    fn from(operator: Operator) -> Self {
        operator.as_str()
    }
}

impl FromStr for Operator {
    type Err = UnknownOperator;

    fn from_str(name: &str) -> Result<Self, UnknownOperator> {
        Self::ALL.into_iter().find(|operator| operator.as_str() == name).ok_or_else(|| {
            let names = Self::ALL.into_iter().map(Self::as_str);
            UnknownOperator { name: name.to_owned(), nearest: nearest(name, names) }
        })
    }
}

impl TryFrom<String> for Operator {
    type Error = UnknownOperator;

    fn try_from(name: String) -> Result<Self, UnknownOperator> {
        name.parse()
    }
}

impl Filter {
    /// As the engine takes it.
    pub(super) fn condition(&self) -> Result<Condition, DocumentError> {
        let (column, values) = (self.column.clone(), self.values.clone());
        let values_max = self.op.values_max();
        if values.len() > values_max || values.is_empty() && values_max > 0 {
            let (operator, given) = (self.op, values.len());
            return Err(DocumentError::Values { operator, column, given });
        }
        let first = || self.values.first().cloned().unwrap_or_default();
        let compare = |comparison| Test::Compare(comparison, first());
        let test = match self.op {
            Operator::Eq => Test::In(values),
            Operator::Neq => Test::NotIn(values),
            Operator::Gt => compare(Comparison::Greater),
            Operator::Gte => compare(Comparison::GreaterOrEqual),
            Operator::Lt => compare(Comparison::Less),
            Operator::Lte => compare(Comparison::LessOrEqual),
            Operator::Regex => Test::Regex(first()),
            Operator::NotRegex => Test::NotRegex(first()),
            Operator::Contains => Test::Contains(first()),
            Operator::Icontains => Test::Regex(format!("(?i){}", regex::escape(&first()))),
            Operator::Prefix => Test::Prefix(first()),
            Operator::Null => Test::Null,
            Operator::NotNull => Test::NotNull,
            Operator::Any => Test::Any(values),
            Operator::All => Test::All(values),
            Operator::None => Test::None(values),
            Operator::Exact => Test::Exact(values),
            Operator::ItemRegex => Test::ItemRegex(first()),
            Operator::StartsWith => Test::StartsWith(values),
        };
        Ok(Condition { column, test })
    }
}

/// A value of a condition as text: `5`, `true` and `"x"` alike. `None`: it is none of these.
pub(crate) fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(is_true) => Some(is_true.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn texts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let values = Vec::<Value>::deserialize(deserializer)?;
    let text = |value: &Value| {
        let problem = || serde::de::Error::custom(format!("`{value}` is no text and no number"));
        text_of(value).ok_or_else(problem)
    };
    values.iter().map(text).collect()
}

/// What [`texts`] reads.
fn texts_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array", "items": {"type": ["string", "number", "boolean"]}, "maxItems": VALUES_MAX,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(json: &str) -> Result<Filter, String> {
        serde_json::from_str(json).map_err(|error| error.to_string())
    }

    #[test]
    fn values_are_texts_or_numbers() {
        let found = filter(r#"{"column":"x","op":"eq","values":["a",5,2.5,true]}"#).unwrap();
        assert_eq!(found.values, ["a", "5", "2.5", "true"]);
        let error = filter(r#"{"column":"x","op":"eq","values":[null]}"#).unwrap_err();
        assert!(error.starts_with("`null` is no text and no number"), "{error}");
    }

    #[test]
    fn an_operator_that_is_not_there_has_a_neighbour() {
        let error = filter(r#"{"column":"x","op":"regx","values":["a"]}"#).unwrap_err();
        assert!(error.starts_with("there is no operator `regx`; did you mean `regex`?"), "{error}");
    }

    #[test]
    fn every_operator_has_a_name_of_its_own_and_says_how_many_values_it_takes() {
        for operator in Operator::ALL {
            assert_eq!(operator.as_str().parse(), Ok(operator));
            let of = |values: &[&str]| {
                let values = values.iter().map(ToString::to_string).collect();
                Filter { column: "c".to_owned(), op: operator, values }.condition()
            };
            assert_eq!(of(&[]).is_ok(), operator.values_max() == 0, "{operator}");
            assert_eq!(of(&["a"]).is_ok(), operator.values_max() > 0, "{operator}");
            assert_eq!(of(&["a", "b"]).is_ok(), operator.values_max() > 1, "{operator}");
        }
    }

    #[test]
    fn any_case_is_a_regular_expression_of_the_very_text() {
        let json = r#"{"column":"x","op":"icontains","values":["a.b"]}"#;
        let condition = filter(json).unwrap().condition().unwrap();
        assert_eq!(condition.test, Test::Regex(r"(?i)a\.b".to_owned()));
    }
}
