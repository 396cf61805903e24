//! From a drillstate to a document.

use serde_json::{Map, Value};

use super::{AGAINST_B, NOT_NULL, ORDERS, PREVIOUS, VIEWS, key, write};
use crate::document::{
    Compare, Derived, Document, Filter, Grouping, Metric, Operator, Order, UnknownOperator, View,
    text_of,
};
use crate::text::TextError;

/// Why a drillstate is no query.
#[derive(Debug, thiserror::Error)]
pub enum DrillstateError {
    #[error("the drillstate names no dataset")]
    NoDataset,
    #[error("`{key}` of the drillstate is {found}, not {expected}")]
    Form { key: &'static str, found: String, expected: &'static str },
    #[error("a constraint of the drillstate")]
    Operator(#[from] UnknownOperator),
    #[error("the metric of the drillstate")]
    Metric(#[from] TextError),
}

/// Reads a drillstate, with `dataset`, `view` and whatever else its URL says among its keys.
pub fn read(state: &Map<String, Value>) -> Result<Document, DrillstateError> {
    let mut document = understood(state)?;
    // What would not be written in the same way is kept as it is.
    let written = write::canonical(&document).unwrap_or_default();
    let is_new = |(key, value): &(&String, &Value)| written.get(*key) != Some(*value);
    let kept = state.iter().filter(is_new);
    document.drillstate = kept.map(|(key, value)| (key.clone(), value.clone())).collect();
    Ok(document)
}

/// What a drillstate means, without what it says besides.
pub(super) fn understood(state: &Map<String, Value>) -> Result<Document, DrillstateError> {
    let reader = Reader { state };
    let dataset = reader.text(key::DATASET)?.ok_or(DrillstateError::NoDataset)?;
    let mut document = Document::new(dataset);
    let Document { since, until, timezone, .. } = &mut document;
    for (key, field) in [(key::START, since), (key::END, until), (key::TIMEZONE, timezone)] {
        if let Some(text) = reader.text(key)?.filter(|text| !text.is_empty()) {
            *field = text;
        }
    }
    document.any_of = reader.constraints(key::CONSTRAINTS)?;
    document.group_by = reader.group_by()?;
    document.aggregates = reader.aggregates()?;
    document.order = reader.order()?;
    document.top = reader.top()?;
    document.pivot = reader.flag(key::SHOULD_PIVOT)?.unwrap_or(false);
    document.other = reader.flag(key::RETURN_REMAINDER)?.unwrap_or(false);
    document.derived = reader.derived()?;
    document.columns = reader.texts(key::SAMPLE_COLS)?;
    document.compare = reader.compare()?;
    (document.view, document.view_column) = reader.view()?;
    Ok(document)
}

struct Reader<'s> {
    state: &'s Map<String, Value>,
}

impl<'s> Reader<'s> {
    /// A key that is there and not null.
    fn get(&self, key: &str) -> Option<&'s Value> {
        self.state.get(key).filter(|value| !value.is_null())
    }

    fn text(&self, key: &'static str) -> Result<Option<String>, DrillstateError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        text_of(value).map(Some).ok_or_else(|| wrong(key, value, "a text"))
    }

    /// As JSON or as text.
    fn flag(&self, key: &'static str) -> Result<Option<bool>, DrillstateError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        match text_of(value).as_deref() {
            Some("true" | "1") => Ok(Some(true)),
            Some("false" | "0" | "") => Ok(Some(false)),
            _ => Err(wrong(key, value, "true or false")),
        }
    }

    fn list(&self, key: &'static str) -> Result<&'s [Value], DrillstateError> {
        match self.get(key) {
            None => Ok(&[]),
            Some(Value::Array(items)) => Ok(items),
            Some(value) => Err(wrong(key, value, "a list")),
        }
    }

    fn texts(&self, key: &'static str) -> Result<Vec<String>, DrillstateError> {
        let text = |item| text_of(item).ok_or_else(|| wrong(key, item, "a text"));
        self.list(key)?.iter().map(text).collect()
    }

    /// An OR of ANDs. An AND of nothing, as in `[[]]`, is met by all rows.
    fn constraints(&self, key: &'static str) -> Result<Vec<Vec<Filter>>, DrillstateError> {
        let mut any_of = Vec::new();
        for alternative in self.list(key)? {
            let Value::Array(constraints) = alternative else {
                return Err(wrong(key, alternative, "a list of lists"));
            };
            any_of.push(constraints.iter().map(filter).collect::<Result<Vec<_>, _>>()?);
        }
        Ok(any_of)
    }

    fn group_by(&self) -> Result<Vec<Grouping>, DrillstateError> {
        let time = self.flag(key::IS_TIMESERIES)?.unwrap_or(false).then_some(Grouping::Time(None));
        let columns = self.texts(key::DIMENSIONS)?.into_iter().map(Grouping::Column);
        Ok(time.into_iter().chain(columns).collect())
    }

    /// The metric of each of `cols`, then those of `aggregateList`.
    fn aggregates(&self) -> Result<Vec<Metric>, DrillstateError> {
        let mut metrics = Vec::new();
        if let Some(name) = self.text(key::METRIC)?.filter(|name| !name.is_empty()) {
            match name.parse::<Metric>() {
                Ok(metric) => metrics.push(metric),
                Err(error) => {
                    let columns = self.texts(key::COLS)?;
                    if columns.is_empty() {
                        return Err(error.into());
                    }
                    for column in columns {
                        metrics.push(Metric::of_column(&name, &column)?);
                    }
                }
            }
        }
        for text in self.texts(key::AGGREGATE_LIST)? {
            metrics.push(text.parse()?);
        }
        Ok(metrics)
    }

    fn derived(&self) -> Result<Vec<Derived>, DrillstateError> {
        let one = |item: &Value| {
            let text = |key: &str| item.get(key).and_then(Value::as_str).map(str::to_owned);
            let (name, expression) = text("name").zip(text("sql"))?;
            Some(Derived { name, expression })
        };
        let named =
            |item| one(item).ok_or_else(|| wrong(key::DERIVED_COLS, item, "a `name` with `sql`"));
        self.list(key::DERIVED_COLS)?.iter().map(named).collect()
    }

    fn compare(&self) -> Result<Option<Compare>, DrillstateError> {
        Ok(match self.text(key::COMPARE)?.as_deref() {
            None | Some("" | "none") => None,
            Some(PREVIOUS) => Some(Compare::Previous),
            Some(AGAINST_B) => Some(Compare::Against(self.constraints(key::B_CONSTRAINTS)?)),
            Some(length) => Some(Compare::Ago(length.to_owned())),
        })
    }

    fn order(&self) -> Result<Option<Order>, DrillstateError> {
        let Some(by) = self.text(key::ORDER)?.filter(|by| !by.is_empty()) else { return Ok(None) };
        let known = ORDERS.iter().find(|(scuba, _)| *scuba == by);
        let by = known.map_or(by, |(_, metric)| (*metric).to_owned());
        let descending = self.flag(key::ORDER_DESC)?.unwrap_or(true);
        Ok(Some(Order { by, descending }))
    }

    fn top(&self) -> Result<Option<usize>, DrillstateError> {
        let Some(value) = self.get(key::TOP) else { return Ok(None) };
        match text_of(value).as_deref() {
            Some("") => Ok(None),
            Some(text) => {
                let wrong = |_unparsable| wrong(key::TOP, value, "a number of rows");
                text.parse().map(Some).map_err(wrong)
            }
            None => Err(wrong(key::TOP, value, "a number of rows")),
        }
    }

    /// The view and the column that it is about. A view that is not known is a table.
    fn view(&self) -> Result<(View, Option<String>), DrillstateError> {
        let named = self.text(key::VIEW)?;
        let known = named.and_then(|name| {
            VIEWS.iter().find(|(known, _)| known.eq_ignore_ascii_case(&name)).map(|(_, view)| *view)
        });
        match (known, self.edges()) {
            (None | Some(View::Graph), Some(column)) => Ok((View::Graph, Some(column))),
            (view, _) => Ok((view.unwrap_or_default(), self.text(key::AGGREGATION_FIELD)?)),
        }
    }

    /// The vector column whose parents and children are asked for.
    fn edges(&self) -> Option<String> {
        let [Value::Object(parameter)] = self.list(key::PARAM_DIMENSIONS).ok()? else {
            return None;
        };
        let is_edge = parameter.get("op").and_then(Value::as_str) == Some("edge");
        parameter.get("dim").filter(|_| is_edge)?.as_str().map(str::to_owned)
    }
}

fn filter(constraint: &Value) -> Result<Filter, DrillstateError> {
    let wrong = |expected| wrong(key::CONSTRAINTS, constraint, expected);
    let text = |key: &str| constraint.get(key).and_then(Value::as_str);
    let column = text("column").ok_or_else(|| wrong("constraints with a column"))?.to_owned();
    let op = text("op").ok_or_else(|| wrong("constraints with an operator"))?;
    let op = if op == NOT_NULL.0 { NOT_NULL.1 } else { op.parse::<Operator>()? };
    let values = match constraint.get("value") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(items)) => items.iter().flat_map(values).collect(),
        Some(value) => values(value),
    };
    Ok(Filter { column, op, values })
}

/// A text that is itself a JSON array is its items.
fn values(value: &Value) -> Vec<String> {
    let Some(text) = text_of(value) else { return Vec::new() };
    match serde_json::from_str::<Vec<Value>>(&text) {
        Ok(items) => items.iter().filter_map(text_of).collect(),
        Err(_not_nested) => vec![text],
    }
}

fn wrong(key: &'static str, found: &Value, expected: &'static str) -> DrillstateError {
    DrillstateError::Form { key, found: found.to_string(), expected }
}
