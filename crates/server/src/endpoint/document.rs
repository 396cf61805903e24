//! `GET /api/openapi.json`: what can be called here, for programs.

use std::sync::LazyLock;

use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::operation::{Operation, Schemas};
use super::{Described, Endpoint, Needs};
use crate::access::ACCESS_TOKEN;

/// The version of OpenAPI whose schemas are those of JSON Schema.
const OPENAPI: &str = "3.1.0";
const ABOUT: &str = "What is refused is answered with an error document, whose message says what \
    is wrong. Whoever can open the home's Unix socket needs no token, and neither does anyone on \
    loopback as long as no token exists.";

pub(crate) async fn get_document() -> impl IntoResponse {
    /// Made when it is first asked for: routers are made for single requests too.
    static DOCUMENT: LazyLock<Bytes> =
        LazyLock::new(|| document(&crate::endpoints()).to_string().into());
    ([(header::CONTENT_TYPE, "application/json")], DOCUMENT.clone())
}

/// The OpenAPI document of these endpoints.
fn document(endpoints: &[Endpoint]) -> Value {
    let mut schemas = Schemas::new();
    let mut paths = Map::new();
    for endpoint in endpoints {
        let Some(described) = &endpoint.described else { continue };
        let methods = paths.entry(path_of(endpoint)).or_insert_with(|| json!({}));
        let method = endpoint.method.as_str().to_ascii_lowercase();
        methods[method] = operation(endpoint, described, &mut schemas);
    }
    let [read, written] = schemas.into_definitions();
    let all: Map<_, _> = read.into_iter().chain(written).collect();
    json!({
        "openapi": OPENAPI,
        "info": {"title": "perflab", "version": env!("CARGO_PKG_VERSION"), "description": ABOUT},
        "paths": paths,
        "components": {
            "schemas": all,
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                ACCESS_TOKEN: {"type": "apiKey", "in": "query", "name": ACCESS_TOKEN},
            },
        },
    })
}

/// OpenAPI has no word for the rest of a path; a name in it may have slashes all the same.
fn path_of(endpoint: &Endpoint) -> String {
    endpoint.path.replace("{*", "{")
}

fn operation(endpoint: &Endpoint, described: &Described, schemas: &mut Schemas) -> Value {
    let names = endpoint.path.split(['{', '}']).skip(1).step_by(2);
    let in_path = names.fold(Operation::new(schemas), |operation, name| {
        let name = name.trim_start_matches('*');
        operation.parameter("path", name, "", json!({"type": "string"})).required()
    });
    let mut operation = (described.describe)(in_path);
    operation = operation.refusals(&[StatusCode::BAD_REQUEST, StatusCode::FORBIDDEN]);
    if operation.takes_a_body() {
        operation = operation.refusals(&[
            StatusCode::REQUEST_TIMEOUT,
            StatusCode::PAYLOAD_TOO_LARGE,
            StatusCode::TOO_MANY_REQUESTS,
        ]);
    }
    let security = match endpoint.needs {
        Needs::Nothing => json!([]),
        Needs::Token | Needs::Admin => {
            operation = operation.refusals(&[StatusCode::UNAUTHORIZED]);
            json!([{"bearer": []}, {ACCESS_TOKEN: []}, {}])
        }
    };
    let admin =
        if endpoint.needs == Needs::Admin { " Only for those who may administer." } else { "" };
    let summary = format!("{}{admin}", described.summary);
    operation.other_refusals().into_value(&summary, &security)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_and_what_is_written_have_names_of_their_own() {
        let mut schemas = Schemas::new();
        for endpoint in crate::endpoints() {
            if let Some(described) = &endpoint.described {
                operation(&endpoint, described, &mut schemas);
            }
        }
        let [read, written] = schemas.into_definitions();
        let both: Vec<_> = read.keys().filter(|name| written.contains_key(*name)).collect();
        assert_eq!(both, Vec::<&String>::new());
        let numbered = |name: &&String| name.ends_with(|last: char| last.is_ascii_digit());
        let numbered: Vec<_> = read.keys().chain(written.keys()).filter(numbered).collect();
        assert_eq!(numbered, Vec::<&String>::new(), "two types of one name");
    }
}
