//! Records of the log as lines of JSON: one line per row.

use std::io::Write;

use axum::body::Bytes;
use perflab_log::{Damage, GroupView, RecordView};
use perflab_model::batch::Row;
use perflab_model::{Nanos, Value};
use perflab_store::{Home, RecordDecoder, chain};
use perflab_wire::Codec;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use std::borrow::Cow;
use std::collections::HashSet;

use crate::explore::cell_schema;

/// Lines that are about to be sent.
#[derive(Debug, Default)]
pub(super) struct Lines {
    json: Vec<u8>,
}

/// What a line of the answer is.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "TailLine")]
pub(super) enum Line<'r> {
    Record(RecordLine<'r>),
    /// Bytes of the log that can't be read.
    Damage {
        damage: DamagePlace<'r>,
    },
    /// Why the lines end here.
    Error {
        error: ErrorText<'r>,
    },
    /// The last line.
    End {
        end: EndPlace,
    },
}

/// A row of a record, or why it has none.
#[derive(Serialize, JsonSchema)]
pub(super) struct RecordLine<'r> {
    offset: u64,
    time: String,
    category: &'r str,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    row: Option<RowObject<'r>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    row_error: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct DamagePlace<'d> {
    file: Cow<'d, str>,
    offset: u64,
    bytes: u64,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct ErrorText<'e> {
    message: &'e str,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct EndPlace {
    /// Where to read on.
    next_offset: u64,
    /// Whether nothing was damaged on the way.
    complete: bool,
    /// Whether there was no room for all that was asked for.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    cut: bool,
}

impl Lines {
    pub(super) fn len(&self) -> usize {
        self.json.len()
    }

    pub(super) fn take(self) -> Bytes {
        self.json.into()
    }

    /// Each line apart.
    pub(super) fn split(self) -> Vec<Bytes> {
        let all = self.take();
        let lines = all.split_inclusive(|byte| *byte == b'\n');
        lines.map(|line| all.slice_ref(line)).collect()
    }

    /// Adds a line that was made before.
    pub(super) fn line(&mut self, line: &[u8]) {
        self.json.extend_from_slice(line);
    }

    pub(super) fn record(
        &mut self,
        home: &Home,
        decoder: &mut RecordDecoder,
        group: &GroupView<'_>,
        record: &RecordView<'_>,
    ) {
        let arrival = Nanos(group.arrival_ns);
        let decoded = decoder.decode(home, group.category, arrival, record.payload);
        let message = match Codec::split(record.payload) {
            Ok((Codec::Message, message)) => std::str::from_utf8(message).ok(),
            Ok((Codec::Structured | Codec::Bulk, _)) | Err(_) => None,
        };
        let mut push = |row, row_error| {
            self.push(&Line::Record(RecordLine {
                offset: record.seq,
                time: arrival.to_string(),
                category: group.category,
                message,
                row,
                row_error,
            }));
        };
        match &decoded {
            Ok(batch) => batch.rows().for_each(|row| push(Some(RowObject(row)), None)),
            Err(error) => push(None, Some(chain(error))),
        }
    }

    pub(super) fn damage(&mut self, damage: &Damage) {
        let file = damage.path.to_string_lossy();
        let Damage { offset, bytes, .. } = *damage;
        self.push(&Line::Damage { damage: DamagePlace { file, offset, bytes } });
    }

    pub(super) fn error(&mut self, message: &str) {
        self.push(&Line::Error { error: ErrorText { message } });
    }

    /// `cut` says that there was no room for all that was asked for.
    pub(super) fn end(&mut self, next_offset: u64, complete: bool, cut: bool) {
        self.push(&Line::End { end: EndPlace { next_offset, complete, cut } });
    }

    fn push(&mut self, line: &Line<'_>) {
        // Neither serializing these nor writing to memory fails.
        let written = serde_json::to_writer(&mut self.json, line);
        debug_assert!(written.is_ok());
        let ended = self.json.write_all(b"\n");
        debug_assert!(ended.is_ok());
    }
}

/// A row as an object: its time and weight, then its columns.
pub(super) struct RowObject<'b>(Row<'b>);

impl JsonSchema for RowObject<'_> {
    fn schema_name() -> Cow<'static, str> {
        "TailRow".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "properties": {"time": {"type": "string"}, "weight": {"type": "number"}},
            "required": ["time", "weight"],
            "additionalProperties": cell_schema(),
        })
    }
}

impl Serialize for RowObject<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(None)?;
        object.serialize_entry("time", &self.0.time().to_string())?;
        object.serialize_entry("weight", &self.0.weight())?;
        let mut names = HashSet::new();
        for (name, value) in self.0.fields() {
            // The second kind under one name is called after its kind, as in the dataset.
            if names.insert(name) {
                object.serialize_entry(name, &Field(&value))?;
            } else {
                let name = format!("{name}:{}", kind_of(&value));
                object.serialize_entry(&name, &Field(&value))?;
            }
        }
        object.end()
    }
}

fn kind_of(value: &Value<'_>) -> &'static str {
    match value {
        Value::Int(_) => "int",
        Value::Float(_) => "float",
        Value::String(_) => "string",
        Value::Set(_) => "set",
        Value::Vector(_) => "vector",
    }
}

struct Field<'v, 'b>(&'v Value<'b>);

impl Serialize for Field<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Int(value) => serializer.serialize_i64(*value),
            Value::Float(value) => serializer.serialize_f64(*value),
            Value::String(value) => serializer.serialize_str(value),
            Value::Set(values) | Value::Vector(values) => serializer.collect_seq(values.clone()),
        }
    }
}
