//! Answers as JSON, CSV and Arrow.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{
    ArrayRef, Float64Array, Int64Array, ListBuilder, RecordBatch, StringArray, StringBuilder,
    TimestampNanosecondArray,
};
use arrow::datatypes::{Field, Schema};
use arrow::error::ArrowError;
use arrow::ipc::writer::StreamWriter;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use jiff::tz::TimeZone;
use perflab_model::Nanos;
use perflab_query::Value;
use perflab_query::document::{self, ColumnKind, Metered, TableColumn};
use perflab_query::time::InZone;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use crate::error::ApiError;

/// What the format field of an answer says.
pub(super) const FORMAT: &str = "perflab.answer/1";

const JSON: &str = "application/json";
const CSV: &str = "text/csv";
const ARROW: &str = "application/vnd.apache.arrow.stream";

/// The header that says what is missing: not every form of an answer has room for it.
const MISSING: HeaderName = HeaderName::from_static("perflab-missing");

/// How an answer is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Json,
    Csv,
    Arrow,
}

impl Form {
    /// The first that is asked for and known.
    pub(super) fn wanted(headers: &HeaderMap) -> Result<Self, ApiError> {
        let accepted = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
        let Some(accepted) = accepted else { return Ok(Self::Json) };
        let types = accepted.split(',').map(|one| one.split(';').next().unwrap_or("").trim());
        let known = |one: &str| match one {
            JSON | "*/*" | "application/*" => Some(Self::Json),
            CSV => Some(Self::Csv),
            ARROW => Some(Self::Arrow),
            _ => None,
        };
        types.into_iter().find_map(known).ok_or_else(|| {
            let message = format!("there are no answers as `{}`", accepted.escape_debug());
            ApiError::new(StatusCode::NOT_ACCEPTABLE, message).with_hint(
                "accept application/json, text/csv or application/vnd.apache.arrow.stream",
            )
        })
    }

    pub(super) fn response(self, answered: &Answered) -> Result<Response, ApiError> {
        let body = match self {
            Self::Json => {
                let json = serde_json::to_vec(&answered.document());
                json.map_err(|error| ApiError::failed(&error))?
            }
            Self::Csv => answered.csv().map_err(|error| ApiError::failed(&error))?,
            Self::Arrow => answered.arrow().map_err(|error| ApiError::failed(&error))?,
        };
        Ok(self.around(body, &answered.missing))
    }

    /// The response with this body.
    pub(super) fn around(self, body: impl Into<Body>, missing: &[String]) -> Response {
        let kind = match self {
            Self::Json => JSON,
            Self::Csv => "text/csv; charset=utf-8",
            Self::Arrow => ARROW,
        };
        let mut response = ([(header::CONTENT_TYPE, kind)], body.into()).into_response();
        if !missing.is_empty()
            && let Ok(missing) = HeaderValue::try_from(missing.join("; "))
        {
            response.headers_mut().insert(MISSING, missing);
        }
        response
    }
}

/// An answer and what it came from.
#[derive(Debug)]
pub(super) struct Answered {
    pub(super) answer: document::Answered,
    /// What is not in it, and why.
    pub(super) missing: Vec<String>,
    pub(super) elapsed: Duration,
}

#[derive(Serialize)]
pub(super) struct Document<'a, R> {
    pub(super) format: &'static str,
    pub(super) columns: Vec<Column<'a>>,
    pub(super) rows: Vec<R>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) other: Option<BTreeMap<&'a str, Shown<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) total: Option<BTreeMap<&'a str, Shown<'a>>>,
    pub(super) stats: Stats<'a>,
}

#[derive(Serialize)]
pub(super) struct Column<'a> {
    name: &'a str,
    kind: &'static str,
}

impl<'a> Column<'a> {
    pub(super) fn of(column: &'a TableColumn) -> Self {
        Self { name: &column.name, kind: column.kind.as_str() }
    }
}

#[derive(Serialize)]
pub(super) struct Stats<'a> {
    rows_scanned: u64,
    elapsed_ns: u64,
    complete: bool,
    missing: &'a [String],
    #[serde(flatten)]
    range: Option<ShownRange>,
}

/// The times that were asked about.
#[derive(Serialize)]
struct ShownRange {
    since: String,
    until: String,
}

impl<'a> Stats<'a> {
    /// Of an answer about no range in particular.
    pub(super) fn new(rows_scanned: u64, elapsed: Duration, missing: &'a [String]) -> Self {
        let elapsed_ns = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
        Self { rows_scanned, elapsed_ns, complete: missing.is_empty(), missing, range: None }
    }
}

/// A row as an object, its columns in their order.
pub(super) struct Row<'a> {
    pub(super) columns: &'a [TableColumn],
    pub(super) values: &'a [Value],
    pub(super) zone: &'a TimeZone,
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
        let document::Answered { table, zone, range, rows_scanned } = &self.answer;
        let time = |time| InZone { time, zone }.to_string();
        let row = |values| Row { columns: &table.columns, values, zone };
        Document {
            format: FORMAT,
            columns: table.columns.iter().map(Column::of).collect(),
            rows: table.rows.iter().map(|values| row(values)).collect(),
            other: table.other.as_deref().map(|other| metered(other, zone)),
            total: table.total.as_deref().map(|total| metered(total, zone)),
            stats: Stats {
                range: Some(ShownRange { since: time(range.start), until: time(range.end) }),
                ..Stats::new(*rows_scanned, self.elapsed, &self.missing)
            },
        }
    }

    fn csv(&self) -> Result<Vec<u8>, csv::Error> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(self.answer.table.columns.iter().map(|column| &column.name))?;
        for row in &self.answer.table.rows {
            let cells =
                row.iter().map(|value| text_of(value, &self.answer.zone).unwrap_or_default());
            writer.write_record(cells)?;
        }
        writer.into_inner().map_err(|error| error.into_error().into())
    }

    fn arrow(&self) -> Result<Vec<u8>, ArrowError> {
        let arrays = (0..self.answer.table.columns.len()).map(|place| self.array(place));
        let arrays: Vec<ArrayRef> = arrays.collect();
        let named = self.answer.table.columns.iter().zip(&arrays);
        let field = |(column, array): (&TableColumn, &ArrayRef)| {
            Field::new(&column.name, array.data_type().clone(), true)
        };
        let schema = Arc::new(Schema::new(named.map(field).collect::<Vec<_>>()));
        let mut writer = StreamWriter::try_new(Vec::new(), &schema)?;
        // A batch without columns can't say how many rows it has, and has none here.
        if !arrays.is_empty() {
            writer.write(&RecordBatch::try_new(Arc::clone(&schema), arrays)?)?;
        }
        writer.finish()?;
        writer.into_inner()
    }

    /// A column as an array: what is of another kind than the column is text in a mixed one, and
    /// does not occur in others.
    fn array(&self, place: usize) -> ArrayRef {
        let values = self.answer.table.rows.iter().map(|row| &row[place]);
        match self.answer.table.columns[place].kind {
            ColumnKind::Int => Arc::new(values.map(int).collect::<Int64Array>()),
            ColumnKind::Float => Arc::new(values.map(float).collect::<Float64Array>()),
            ColumnKind::Time => {
                let times = values.map(int).collect::<TimestampNanosecondArray>();
                Arc::new(times.with_timezone("UTC"))
            }
            ColumnKind::Set | ColumnKind::Vector => {
                let mut lists = ListBuilder::new(StringBuilder::new());
                for value in values {
                    match value {
                        Value::List(items) => lists.append_value(items.iter().map(Some)),
                        Value::Null
                        | Value::Int(_)
                        | Value::Float(_)
                        | Value::String(_)
                        | Value::Time(_) => lists.append_null(),
                    }
                }
                Arc::new(lists.finish())
            }
            ColumnKind::String | ColumnKind::Mixed => Arc::new(
                values.map(|value| text_of(value, &self.answer.zone)).collect::<StringArray>(),
            ),
        }
    }
}

fn int(value: &Value) -> Option<i64> {
    match value {
        Value::Int(number) | Value::Time(number) => Some(*number),
        Value::Null | Value::Float(_) | Value::String(_) | Value::List(_) => None,
    }
}

fn float(value: &Value) -> Option<f64> {
    match value {
        Value::Float(number) => Some(*number),
        #[expect(clippy::cast_precision_loss, reason = "the column is one of floats")]
        Value::Int(number) => Some(*number as f64),
        Value::Null | Value::String(_) | Value::List(_) | Value::Time(_) => None,
    }
}
