//! An endpoint in the words of OpenAPI.

use std::borrow::Cow;

use axum::http::StatusCode;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use crate::error::ErrorDocument;

const JSON: &str = "application/json";

/// The schemas that operations refer to. What is read and what is written are described apart: a
/// field that need not be given may always be there in an answer.
pub(super) struct Schemas {
    read: SchemaGenerator,
    written: SchemaGenerator,
}

impl Schemas {
    pub(super) fn new() -> Self {
        let settings = SchemaSettings::draft2020_12().with(|settings| {
            settings.definitions_path = "/components/schemas".into();
        });
        Self {
            read: settings.clone().for_deserialize().into_generator(),
            written: settings.for_serialize().into_generator(),
        }
    }

    /// All schemas, those that are read and those that are written.
    pub(super) fn into_definitions(mut self) -> [Map<String, Value>; 2] {
        [&mut self.read, &mut self.written].map(|schemas| schemas.take_definitions(true))
    }
}

/// What can be asked of an endpoint, and what it answers.
pub(crate) struct Operation<'s> {
    schemas: &'s mut Schemas,
    parameters: Vec<Value>,
    bodies: Map<String, Value>,
    answers: Map<String, Value>,
}

impl<'s> Operation<'s> {
    pub(super) fn new(schemas: &'s mut Schemas) -> Self {
        Self { schemas, parameters: Vec::new(), bodies: Map::new(), answers: Map::new() }
    }

    /// The fields of this type are what the query may have.
    pub(crate) fn query<T: JsonSchema>(mut self) -> Self {
        let mut schema = T::json_schema(&mut self.schemas.read);
        let required = schema.remove("required").unwrap_or_default();
        let is_required =
            |name: &str| required.as_array().is_some_and(|all| all.contains(&json!(name)));
        let fields = schema.remove("properties").unwrap_or_default();
        for (name, mut schema) in fields.as_object().cloned().unwrap_or_default() {
            let what = schema.as_object_mut().and_then(|schema| schema.remove("description"));
            let what = what.as_ref().and_then(Value::as_str).unwrap_or_default();
            // What is not given has no value: there is no null in a query.
            if let Some(kind) = schema.pointer("/type/0").cloned() {
                schema["type"] = kind;
            }
            self = self.parameter("query", &name, what, schema);
            if is_required(&name) {
                self = self.required();
            }
        }
        self
    }

    /// A parameter that may be in the `query`, the `header` or the `path`.
    pub(crate) fn parameter(mut self, place: &str, name: &str, what: &str, schema: Value) -> Self {
        let mut parameter = json!({"name": name, "in": place});
        parameter["schema"] = schema;
        if !what.is_empty() {
            parameter["description"] = json!(what);
        }
        self.parameters.push(parameter);
        self
    }

    /// The parameter that was named last must be there.
    pub(crate) fn required(mut self) -> Self {
        if let Some(parameter) = self.parameters.last_mut() {
            parameter["required"] = json!(true);
        }
        self
    }

    /// A body of JSON.
    pub(crate) fn body<T: JsonSchema>(self) -> Self {
        self.body_as::<T>(JSON)
    }

    /// A body of some media type. There may be several.
    pub(crate) fn body_as<T: JsonSchema>(mut self, media_type: &str) -> Self {
        let schema = self.schemas.read.subschema_for::<T>();
        self.bodies.insert(media_type.to_owned(), json!({ "schema": schema }));
        self
    }

    /// An answer of JSON.
    pub(crate) fn answer<T: JsonSchema>(self, status: StatusCode, what: &str) -> Self {
        self.answer_as::<T>(status, what, JSON)
    }

    /// The usual answer.
    pub(crate) fn ok<T: JsonSchema>(self, what: &str) -> Self {
        self.answer::<T>(StatusCode::OK, what)
    }

    /// An answer of some media type. One status may have several, also of the same type.
    pub(crate) fn answer_as<T: JsonSchema>(
        mut self,
        status: StatusCode,
        what: &str,
        media_type: &str,
    ) -> Self {
        let schema = self.schemas.written.subschema_for::<T>();
        let content = &mut self.answered(status, what)["content"][media_type];
        content["schema"] = match content.get("schema") {
            Some(other) => json!({"anyOf": [other, schema]}),
            None => schema.to_value(),
        };
        self
    }

    /// An answer without a body.
    pub(crate) fn answer_without_body(mut self, status: StatusCode, what: &str) -> Self {
        self.answered(status, what);
        self
    }

    /// A header that the answer of this status may have.
    pub(crate) fn answer_header(mut self, status: StatusCode, name: &str, what: &str) -> Self {
        let header = json!({"description": what, "schema": {"type": "string"}});
        self.answered(status, what)["headers"][name] = header;
        self
    }

    /// Refusals besides those that all endpoints have in common.
    pub(crate) fn refusals(self, statuses: &[StatusCode]) -> Self {
        let refusal = |operation: Self, status: &StatusCode| {
            let what = status.canonical_reason().unwrap_or_default();
            operation.answer::<ErrorDocument<'_>>(*status, what)
        };
        statuses.iter().fold(self, refusal)
    }

    /// Whatever else goes wrong.
    pub(super) fn other_refusals(mut self) -> Self {
        let schema = self.schemas.written.subschema_for::<ErrorDocument<'_>>();
        let content = json!({JSON: {"schema": schema}});
        let other = json!({"description": "Anything else that goes wrong.", "content": content});
        self.answers.insert("default".to_owned(), other);
        self
    }

    pub(super) fn takes_a_body(&self) -> bool {
        !self.bodies.is_empty()
    }

    fn answered(&mut self, status: StatusCode, what: &str) -> &mut Value {
        let answer = self.answers.entry(status.as_u16().to_string());
        answer.or_insert_with(|| json!({ "description": what }))
    }

    /// As OpenAPI has it.
    pub(super) fn into_value(self, summary: &str, security: &Value) -> Value {
        let mut operation = json!({
            "summary": summary, "security": security, "responses": self.answers,
        });
        if !self.parameters.is_empty() {
            operation["parameters"] = self.parameters.into();
        }
        if !self.bodies.is_empty() {
            operation["requestBody"] = json!({"required": true, "content": self.bodies});
        }
        operation
    }
}

/// Bytes in a form of their own, which no schema describes.
pub(crate) struct Binary;

impl JsonSchema for Binary {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Binary".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({})
    }
}
