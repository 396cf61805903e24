//! `/api/thrift`: the definitions that name the fields of structured messages.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use perflab_store::{CatalogError, RegisterError};
use perflab_wire::Registry;
use perflab_wire::structured::IDL_BYTES_MAX;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::access::Known;
use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::query::Asked;
use crate::state::{Server, blocking};

/// The longest name of a definition.
const NAME_BYTES_MAX: usize = 255;

#[derive(Debug, Deserialize, JsonSchema)]
struct Named {
    /// What the definition is called; one of the same name is replaced.
    #[schemars(length(min = 1, max = NAME_BYTES_MAX))]
    name: String,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ThriftRegistered")]
struct Registered {
    /// The structs and categories that it names.
    targets: Vec<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ThriftList")]
struct Listing {
    idls: Vec<Listed>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ThriftDefinition")]
struct Listed {
    name: String,
    targets: Vec<String>,
    registered: String,
}

pub(crate) fn endpoints() -> [Endpoint; 2] {
    let register = "Registers a Thrift definition, which names the fields of structured messages.";
    let register = Endpoint::post("/api/thrift", post_thrift, register, |operation| {
        operation
            .query::<Named>()
            .body_as::<String>("text/plain")
            .ok::<Registered>("It is registered.")
            .refusals(&[StatusCode::CONFLICT])
    });
    let list = "Lists the Thrift definitions.";
    let list = Endpoint::get("/api/thrift", get_thrift, list, |operation| {
        operation.ok::<Listing>("The definitions.")
    });
    [register.for_admins(), list]
}

async fn post_thrift(
    State(server): State<Arc<Server>>,
    Asked(Named { name }): Asked<Named>,
    body: Body,
) -> Result<Json<Registered>, ApiError> {
    if !(1..=NAME_BYTES_MAX).contains(&name.len()) {
        let message = format!("a definition's name has 1 to {NAME_BYTES_MAX} bytes");
        return Err(ApiError::bad_request(message));
    }
    let received = server.receive(body, IDL_BYTES_MAX).await?;
    let home = Arc::clone(&server.home);
    let registered = blocking(move || match std::str::from_utf8(&received.bytes) {
        Ok(text) => home.register_idl(&name, text).map_err(|error| refusal(&error)),
        Err(error) => Err(ApiError::bad_request(format!("the definition is not UTF-8: {error}"))),
    });
    Ok(Json(Registered { targets: registered.await?? }))
}

fn refusal(error: &RegisterError) -> ApiError {
    match error {
        RegisterError::Idl { .. } => ApiError::caused_by(StatusCode::BAD_REQUEST, error),
        RegisterError::TooMany => ApiError::caused_by(StatusCode::CONFLICT, error),
        RegisterError::Catalog(_) => ApiError::failed(error),
    }
}

async fn get_thrift(
    State(server): State<Arc<Server>>,
    _: Known,
) -> Result<Json<Listing>, ApiError> {
    let home = Arc::clone(&server.home);
    let listing = blocking(move || {
        let idls = home.idls()?.into_iter().map(|idl| Listed {
            // One that this version can't read names no targets.
            targets: Registry::default().register(&idl.text).unwrap_or_default(),
            name: idl.name,
            registered: idl.registered.to_string(),
        });
        Ok(Listing { idls: idls.collect() })
    });
    listing.await?.map(Json).map_err(|error: CatalogError| ApiError::failed(&error))
}
