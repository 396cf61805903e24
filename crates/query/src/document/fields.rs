//! Fields that a document does not have. serde would list all that it has; people want the one
//! they meant.

use serde_json::Value;

use super::DocumentError;
use crate::nearest::nearest;

const QUERY: [&str; 20] = [
    "format",
    "dataset",
    "since",
    "until",
    "timezone",
    "any_of",
    "group_by",
    "aggregates",
    "derived",
    "order",
    "top",
    "other",
    "total",
    "pivot",
    "compare",
    "view",
    "view_column",
    "columns",
    "fold",
    "drillstate",
];
const COMPARISON: [&str; 12] = [
    "format",
    "dataset",
    "before",
    "after",
    "since",
    "until",
    "timezone",
    "any_of",
    "value",
    "series",
    "better",
    "threshold_percent",
];
const CONDITION: [&str; 3] = ["column", "op", "values"];
const ORDER: [&str; 2] = ["by", "descending"];
const DERIVED: [&str; 2] = ["name", "expression"];
const COMPARE: [&str; 3] = ["previous", "ago", "against"];

/// Refuses fields that are not known.
pub(super) fn check(document: &Value) -> Result<(), DocumentError> {
    check_object(document, "the query", &QUERY)?;
    check_object(&document["order"], "the order", &ORDER)?;
    check_object(&document["compare"], "the comparison", &COMPARE)?;
    for derived in document["derived"].as_array().into_iter().flatten() {
        check_object(derived, "a derived column", &DERIVED)?;
    }
    check_conditions(document)
}

/// The same of a comparison.
pub(super) fn check_comparison(comparison: &Value) -> Result<(), DocumentError> {
    check_object(comparison, "the comparison", &COMPARISON)?;
    check_conditions(comparison)
}

fn check_conditions(document: &Value) -> Result<(), DocumentError> {
    for conditions in document["any_of"].as_array().into_iter().flatten() {
        for condition in conditions.as_array().into_iter().flatten() {
            check_object(condition, "a condition", &CONDITION)?;
        }
    }
    Ok(())
}

fn check_object(
    value: &Value,
    inside: &'static str,
    known: &[&'static str],
) -> Result<(), DocumentError> {
    let fields = value.as_object().into_iter().flat_map(|object| object.keys());
    match fields.into_iter().find(|field| !known.contains(&field.as_str())) {
        None => Ok(()),
        Some(field) => {
            let nearest = nearest(field, known.iter().copied());
            Err(DocumentError::Field { field: field.clone(), inside, nearest })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::Better;
    use crate::document::{
        Compare, Comparison, Derived, Document, Filter, Fold, Grouping, Metric, Operator, Order,
        Simple, View,
    };
    use serde_json::json;

    fn names(value: &Value) -> Vec<String> {
        value.as_object().unwrap().keys().cloned().collect()
    }

    fn sorted(known: &[&str]) -> Vec<String> {
        let mut known: Vec<_> = known.iter().map(ToString::to_string).collect();
        known.sort();
        known
    }

    /// The list above and the struct can't drift apart: this has everything set.
    #[test]
    fn every_field_of_a_document_is_known() {
        let values = vec!["v".to_owned()];
        let full = Document {
            timezone: "Europe/Berlin".to_owned(),
            any_of: vec![vec![Filter { column: "c".to_owned(), op: Operator::Eq, values }]],
            group_by: vec![Grouping::Time(None)],
            aggregates: vec![Metric::Of(Simple::Count)],
            derived: vec![Derived { name: "n".to_owned(), expression: "x + 1".to_owned() }],
            other: true,
            total: true,
            compare: Some(Compare::Ago("1 week".to_owned())),
            columns: vec!["c".to_owned()],
            fold: Fold::Leaf,
            order: Some(Order { by: "count".to_owned(), descending: false }),
            top: Some(1),
            pivot: true,
            view: View::Tree,
            view_column: Some("stack".to_owned()),
            drillstate: [("pool".to_owned(), json!("uber"))].into_iter().collect(),
            ..Document::new("d")
        };
        let value = serde_json::to_value(&full).unwrap();
        assert_eq!(names(&value), sorted(&QUERY));
        assert_eq!(names(&value["any_of"][0][0]), sorted(&CONDITION));
        assert_eq!(names(&value["order"]), sorted(&ORDER));
        assert_eq!(names(&value["derived"][0]), sorted(&DERIVED));
        assert!(check(&value).is_ok());
    }
    #[test]
    fn every_field_of_a_comparison_is_known() {
        let values = vec!["v".to_owned()];
        let full = Comparison {
            timezone: "Europe/Berlin".to_owned(),
            any_of: vec![vec![Filter { column: "c".to_owned(), op: Operator::Eq, values }]],
            value: Some("mean".to_owned()),
            series: vec!["benchmark".to_owned()],
            better: Some(Better::Higher),
            threshold_percent: Some(5.0),
            ..Comparison::new("main", "fix")
        };
        let value = serde_json::to_value(&full).unwrap();
        assert_eq!(names(&value), sorted(&COMPARISON));
        assert!(check_comparison(&value).is_ok());
        assert_eq!(Comparison::from_json(value.to_string().as_bytes()).unwrap(), full);
    }
}
