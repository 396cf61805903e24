//! Which form an answer is wanted in: by `?format=`, or else by `Accept`.

use std::borrow::Cow;

use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use perflab_query::export::{TreeFormat, export};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::json;

use super::answer::{Answered, Document, Row};
use super::arrays;
use crate::endpoint::{Binary, Operation};
use crate::error::ApiError;
use crate::query::Asked;

/// How an answer is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Json,
    Csv,
    Arrow,
    Parquet,
    /// A tree as a file.
    Tree(TreeFormat),
}

pub(super) const PARQUET: &str = "application/vnd.apache.parquet";

/// Forms with their names and what they are in HTTP. Of those that are the same in HTTP, `Accept`
/// means the first.
const FORMS: [(Form, &str, &str); 9] = [
    (Form::Json, "json", "application/json"),
    (Form::Csv, "csv", "text/csv; charset=utf-8"),
    (Form::Arrow, "arrow", "application/vnd.apache.arrow.stream"),
    (Form::Parquet, "parquet", PARQUET),
    (Form::Tree(TreeFormat::Folded), "folded", "text/plain; charset=utf-8"),
    (Form::Tree(TreeFormat::Speedscope), "speedscope", "application/json"),
    (Form::Tree(TreeFormat::Firefox), "firefox", "application/json"),
    (Form::Tree(TreeFormat::Pprof), "pprof", "application/octet-stream"),
    (Form::Tree(TreeFormat::Svg), "svg", "image/svg+xml"),
];

/// The header that says what is missing: not every form of an answer has room for it.
const MISSING: HeaderName = HeaderName::from_static("perflab-missing");

const HINT: &str = "formats are json, csv, arrow, parquet and, of trees, folded, speedscope, firefox, \
                    pprof and svg";

/// The answers to a query, in the forms that it has.
pub(super) fn described(operation: Operation<'_>, has_form: fn(Form) -> bool) -> Operation<'_> {
    let forms = || FORMS.into_iter().filter(|(form, ..)| has_form(*form));
    let names: Vec<_> = forms().map(|(_, name, _)| name).collect();
    let what = "The form of the answer. Without it, `Accept` says which; JSON otherwise.";
    let names = json!({"type": "string", "enum": names});
    let operation = operation.parameter("query", "format", what, names);
    let missing = "What is not in the answer, and why. Without it, nothing is missing.";
    forms()
        .fold(operation, |operation, (form, _, kind)| form.described(operation, kind))
        .answer_header(StatusCode::OK, MISSING.as_str(), missing)
        .refusals(&[StatusCode::NOT_FOUND, StatusCode::NOT_ACCEPTABLE])
        .refusals(&[StatusCode::SERVICE_UNAVAILABLE])
}

/// Describes the files of other programs that are JSON like the usual answer.
struct Profile;

impl JsonSchema for Profile {
    fn schema_name() -> Cow<'static, str> {
        "Profile".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A profile as speedscope or the Firefox profiler reads it.",
            "type": "object",
            "anyOf": [{"required": ["$schema"]}, {"required": ["meta", "threads"]}],
        })
    }
}

/// What the request's query says.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    format: Option<String>,
    /// Looked at elsewhere.
    #[serde(rename = "access_token")]
    _token: Option<String>,
}

impl<S: Sync> FromRequestParts<S> for Form {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let Asked(wanted) = Asked::<Wanted>::from_request_parts(parts, state).await?;
        match wanted.format {
            Some(name) => Self::named(&name),
            None => Self::accepted(&parts.headers),
        }
    }
}

impl Form {
    fn named(name: &str) -> Result<Self, ApiError> {
        let known = FORMS.into_iter().find(|(_, known, _)| *known == name);
        known.map(|(form, ..)| form).ok_or_else(|| {
            let message = format!("there are no answers as `{}`", name.escape_debug());
            ApiError::bad_request(message).with_hint(HINT)
        })
    }

    /// The first that is asked for and known.
    fn accepted(headers: &HeaderMap) -> Result<Self, ApiError> {
        let accepted = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
        let Some(accepted) = accepted else { return Ok(Self::Json) };
        let known = |one: &str| match essence(one) {
            "*/*" | "application/*" => Some(Self::Json),
            wanted => {
                let known = FORMS.into_iter().find(|(.., kind)| essence(kind) == wanted);
                known.map(|(form, ..)| form)
            }
        };
        accepted.split(',').find_map(known).ok_or_else(|| {
            let message = format!("there are no answers as `{}`", accepted.escape_debug());
            ApiError::new(StatusCode::NOT_ACCEPTABLE, message).with_hint(HINT)
        })
    }

    /// Whether any answer has this form.
    pub(super) fn is_of_rows(self) -> bool {
        !matches!(self, Self::Tree(_))
    }

    /// The answer of this form.
    fn described<'s>(self, operation: Operation<'s>, kind: &str) -> Operation<'s> {
        let (ok, what) = (StatusCode::OK, "The answer, in the form that is asked for.");
        match self {
            Self::Json => operation.answer_as::<Document<'_, Row<'_>>>(ok, what, kind),
            Self::Tree(TreeFormat::Speedscope | TreeFormat::Firefox) => {
                operation.answer_as::<Profile>(ok, what, kind)
            }
            Self::Csv | Self::Tree(TreeFormat::Folded | TreeFormat::Svg) => {
                operation.answer_as::<String>(ok, what, kind)
            }
            Self::Arrow | Self::Parquet | Self::Tree(TreeFormat::Pprof) => {
                operation.answer_as::<Binary>(ok, what, kind)
            }
        }
    }

    fn content_type(self) -> &'static str {
        FORMS.into_iter().find(|(form, ..)| *form == self).map_or("", |(.., kind)| kind)
    }

    pub(super) fn response(self, answered: &Answered) -> Result<Response, ApiError> {
        let (table, zone) = (&answered.answer.table, &answered.answer.zone);
        let body = match self {
            Self::Json => answered.json().map_err(|error| ApiError::failed(&error))?,
            Self::Csv => answered.csv().map_err(|error| ApiError::failed(&error))?,
            Self::Arrow => arrays::arrow(table, zone).map_err(|error| ApiError::failed(&error))?,
            Self::Parquet => {
                arrays::parquet(table, zone).map_err(|error| ApiError::failed(&error))?
            }
            Self::Tree(format) => {
                let Some((tree, fold)) = &answered.answer.tree else {
                    let message = "this format is one of trees: ask for the view `tree`";
                    return Err(ApiError::bad_request(message));
                };
                export(tree, fold, format, &answered.dataset)
                    .map_err(|error| ApiError::caused_by(StatusCode::BAD_REQUEST, &error))?
            }
        };
        Ok(self.around(body, &answered.missing))
    }

    /// The response with this body.
    pub(super) fn around(self, body: impl Into<Body>, missing: &[String]) -> Response {
        let content_type = [(header::CONTENT_TYPE, self.content_type())];
        let mut response = (content_type, body.into()).into_response();
        if !missing.is_empty()
            && let Ok(missing) = HeaderValue::try_from(missing.join("; "))
        {
            response.headers_mut().insert(MISSING, missing);
        }
        response
    }
}

/// A media type without its parameters.
fn essence(kind: &str) -> &str {
    kind.split(';').next().unwrap_or_default().trim()
}
