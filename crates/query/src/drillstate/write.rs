//! From a document to a drillstate.

use serde_json::{Map, Value, json};

use super::{AGAINST_B, NOT_NULL, ORDERS, PREVIOUS, VIEWS, key, read};
use crate::document::{Compare, Derived, Document, Filter, Fold, Grouping, View};

/// A drillstate has no words for this part of a document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a drillstate can't say {what}; a link of perflab's own can")]
pub struct Unsayable {
    pub what: String,
}

/// Writes a document as a drillstate, with `dataset` and `view` among its keys.
pub fn write(document: &Document) -> Result<Map<String, Value>, Unsayable> {
    let written = canonical(document)?;
    let mut as_read = written.clone();
    as_read.extend(document.drillstate.clone());
    // As it was read, unless the document was changed since.
    let plain = Document { drillstate: Map::new(), ..document.clone() };
    if read::understood(&as_read).is_ok_and(|read| read == plain) {
        return Ok(as_read);
    }
    let unknown = document.drillstate.clone().into_iter();
    let mut state: Map<_, _> = unknown.filter(|(key, _)| !key::ALL.contains(&&**key)).collect();
    state.extend(written);
    Ok(state)
}

/// What a document says, in one way of several.
pub(super) fn canonical(document: &Document) -> Result<Map<String, Value>, Unsayable> {
    if document.total {
        return unsayable("that all groups are wanted together");
    }
    if document.fold != Fold::Root {
        return unsayable("how the lists of a tree are merged");
    }
    let mut state = Map::new();
    let mut set = |key: &str, value: Value| drop(state.insert(key.to_owned(), value));
    set(key::DATASET, json!(document.dataset));
    set(key::START, json!(document.since));
    set(key::END, json!(document.until));
    set(key::TIMEZONE, json!(document.timezone));
    set(key::CONSTRAINTS, constraints(&document.any_of));
    let (is_timeseries, dimensions) = dimensions(&document.group_by)?;
    set(key::IS_TIMESERIES, json!(is_timeseries));
    set(key::DIMENSIONS, json!(dimensions));
    if let [first, others @ ..] = &document.aggregates[..] {
        set(key::METRIC, json!(first));
        set(key::AGGREGATE_LIST, json!(others));
    }
    if let Some(order) = &document.order {
        let known = ORDERS.iter().find(|(_, metric)| *metric == order.by);
        set(key::ORDER, json!(known.map_or(order.by.as_str(), |(scuba, _)| scuba)));
        set(key::ORDER_DESC, json!(order.descending));
    }
    if let Some(top) = document.top {
        set(key::TOP, json!(top));
    }
    set(key::RETURN_REMAINDER, json!(document.other));
    set(key::SHOULD_PIVOT, json!(document.pivot));
    if !document.derived.is_empty() {
        let one = |one: &Derived| json!({ "name": one.name, "sql": one.expression });
        set(key::DERIVED_COLS, document.derived.iter().map(one).collect());
    }
    if !document.columns.is_empty() {
        set(key::SAMPLE_COLS, json!(document.columns));
    }
    match &document.compare {
        None => {}
        Some(Compare::Previous) => set(key::COMPARE, json!(PREVIOUS)),
        Some(Compare::Ago(length)) => set(key::COMPARE, json!(length)),
        Some(Compare::Against(any_of)) => {
            set(key::COMPARE, json!(AGAINST_B));
            set(key::B_CONSTRAINTS, constraints(any_of));
        }
    }
    let view = VIEWS.iter().find(|(_, view)| *view == document.view);
    set(key::VIEW, json!(view.map(|(name, _)| name)));
    match (&document.view_column, document.view) {
        (None, _) => {}
        (Some(column), View::Graph) => set(
            key::PARAM_DIMENSIONS,
            json!([{ "dim": column, "op": "edge", "param": "0", "anchor": "0" }]),
        ),
        (Some(column), _) => set(key::AGGREGATION_FIELD, json!(column)),
    }
    Ok(state)
}

fn constraints(any_of: &[Vec<Filter>]) -> Value {
    let all_of = |filters: &Vec<Filter>| filters.iter().map(constraint).collect::<Vec<_>>();
    json!(any_of.iter().map(all_of).collect::<Vec<_>>())
}

/// All values in one text, as PyTorch's profiler writes them.
fn constraint(filter: &Filter) -> Value {
    let op = if filter.op == NOT_NULL.1 { NOT_NULL.0 } else { filter.op.as_str() };
    let values = match &filter.values[..] {
        [] => json!([]),
        values => json!([json!(values).to_string()]),
    };
    json!({ "column": filter.column, "op": op, "value": values })
}

/// Whether time comes first, and the columns after it.
fn dimensions(group_by: &[Grouping]) -> Result<(bool, Vec<&str>), Unsayable> {
    let (is_timeseries, columns) = match group_by {
        [Grouping::Time(None), columns @ ..] => (true, columns),
        columns => (false, columns),
    };
    let mut names = Vec::new();
    for grouping in columns {
        match grouping {
            Grouping::Column(column) => names.push(column.as_str()),
            Grouping::Time(_) | Grouping::Bucket { .. } => {
                return unsayable(format!("that rows are grouped by `{grouping}` at this place"));
            }
        }
    }
    Ok((is_timeseries, names))
}

fn unsayable<T>(what: impl Into<String>) -> Result<T, Unsayable> {
    Err(Unsayable { what: what.into() })
}
