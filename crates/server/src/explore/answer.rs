//! Answers as JSON and CSV.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use jiff::tz::TimeZone;
use perflab_model::Nanos;
use perflab_query::Value;
use perflab_query::document::{self, ColumnKind, Metered, TableColumn};
use perflab_query::time::InZone;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

/// What the format field of an answer says.
pub(super) const FORMAT: &str = "perflab.answer/1";

/// An answer and what it came from.
#[derive(Debug)]
pub(super) struct Answered {
    pub(super) answer: document::Answered,
    pub(super) dataset: String,
    /// What is not in it, and why.
    pub(super) missing: Vec<String>,
    pub(super) elapsed: Duration,
}

/// The answer to a query.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Answer")]
pub(super) struct Document<'a, R> {
    #[schemars(extend("const" = FORMAT))]
    pub(super) format: &'static str,
    pub(super) columns: Vec<Column<'a>>,
    /// Objects with a value for each column.
    pub(super) rows: Vec<R>,
    /// The metrics of all groups together that are not among the rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) other: Option<BTreeMap<&'a str, Shown<'a>>>,
    /// The metrics of all groups together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) total: Option<BTreeMap<&'a str, Shown<'a>>>,
    pub(super) stats: Stats<'a>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "AnswerColumn")]
pub(super) struct Column<'a> {
    name: &'a str,
    kind: ColumnKind,
}

impl<'a> Column<'a> {
    pub(super) fn of(column: &'a TableColumn) -> Self {
        Self { name: &column.name, kind: column.kind }
    }
}

/// What an answer came from, and what it took.
#[derive(Serialize, JsonSchema)]
pub(super) struct Stats<'a> {
    /// How many rows were looked at.
    rows_scanned: u64,
    /// Of these, the rows whose segments had answered the same question before.
    rows_recalled: u64,
    elapsed_ns: u64,
    /// Whether nothing is missing.
    complete: bool,
    /// What is not in the answer, and why.
    missing: &'a [String],
    #[serde(flatten)]
    range: Option<ShownRange>,
}

/// The times that were asked about.
#[derive(Serialize, JsonSchema)]
struct ShownRange {
    since: String,
    until: String,
}

impl<'a> Stats<'a> {
    /// Of an answer about no range in particular, with nothing recalled.
    pub(super) fn new(rows_scanned: u64, elapsed: Duration, missing: &'a [String]) -> Self {
        let elapsed_ns = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
        Self {
            rows_scanned,
            rows_recalled: 0,
            elapsed_ns,
            complete: missing.is_empty(),
            missing,
            range: None,
        }
    }
}

/// A row as an object, its columns in their order.
pub(super) struct Row<'a> {
    pub(super) columns: &'a [TableColumn],
    pub(super) values: &'a [Value],
    pub(super) zone: &'a TimeZone,
}

impl JsonSchema for Row<'_> {
    fn schema_name() -> Cow<'static, str> {
        "Row".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let cell = generator.subschema_for::<Shown<'_>>();
        json_schema!({"type": "object", "additionalProperties": cell})
    }
}

impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(Some(self.columns.len()))?;
        for (column, value) in self.columns.iter().zip(self.values) {
            object.serialize_entry(&column.name, &Shown { value, zone: self.zone })?;
        }
        object.end()
    }
}

/// A value, times in the zone that was asked for.
pub(super) struct Shown<'a> {
    value: &'a Value,
    zone: &'a TimeZone,
}

impl JsonSchema for Shown<'_> {
    fn schema_name() -> Cow<'static, str> {
        "Cell".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        cell_schema()
    }
}

/// What a value of a row is in JSON. Infinite numbers are null.
pub(crate) fn cell_schema() -> Schema {
    json_schema!({
        "type": ["null", "integer", "number", "string", "array"], "items": {"type": "string"},
    })
}

impl Serialize for Shown<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.value {
            Value::Null => serializer.serialize_none(),
            Value::Int(number) => serializer.serialize_i64(*number),
            Value::Float(number) => serializer.serialize_f64(*number),
            Value::String(text) => serializer.serialize_str(text),
            Value::List(items) => items.serialize(serializer),
            Value::Time(nanos) => serializer.collect_str(&in_zone(*nanos, self.zone)),
        }
    }
}

fn metered<'a>(metered: &'a [Metered], zone: &'a TimeZone) -> BTreeMap<&'a str, Shown<'a>> {
    metered.iter().map(|(name, value)| (name.as_str(), Shown { value, zone })).collect()
}

fn in_zone(nanos: i64, zone: &TimeZone) -> InZone<'_> {
    InZone { time: Nanos(nanos), zone }
}

/// A value as text; lists as JSON, since their items may hold anything.
pub(super) fn text_of(value: &Value, zone: &TimeZone) -> Option<String> {
    match value {
        Value::Null => None,
        Value::Int(number) => Some(number.to_string()),
        Value::Float(number) => Some(number.to_string()),
        Value::String(text) => Some(text.clone()),
        Value::List(items) => serde_json::to_string(items).ok(),
        Value::Time(nanos) => Some(in_zone(*nanos, zone).to_string()),
    }
}

impl Answered {
    fn document(&self) -> Document<'_, Row<'_>> {
        let document::Answered { table, zone, range, rows_scanned, rows_recalled, tree: _ } =
            &self.answer;
        let time = |time| InZone { time, zone }.to_string();
        let row = |values| Row { columns: &table.columns, values, zone };
        Document {
            format: FORMAT,
            columns: table.columns.iter().map(Column::of).collect(),
            rows: table.rows.iter().map(|values| row(values)).collect(),
            other: table.other.as_deref().map(|other| metered(other, zone)),
            total: table.total.as_deref().map(|total| metered(total, zone)),
            stats: Stats {
                rows_recalled: *rows_recalled,
                range: Some(ShownRange { since: time(range.start), until: time(range.end) }),
                ..Stats::new(*rows_scanned, self.elapsed, &self.missing)
            },
        }
    }

    pub(super) fn json(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(&self.document())
    }

    pub(super) fn csv(&self) -> Result<Vec<u8>, csv::Error> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(self.answer.table.columns.iter().map(|column| &column.name))?;
        for row in &self.answer.table.rows {
            let cells =
                row.iter().map(|value| text_of(value, &self.answer.zone).unwrap_or_default());
            writer.write_record(cells)?;
        }
        writer.into_inner().map_err(|error| error.into_error().into())
    }
}
