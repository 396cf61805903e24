//! `/api/tokens`: who may do what.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use perflab_model::Nanos;
use perflab_store::{CatalogError, Glob, NewToken, Token, TokenError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::query::Asked;
use crate::state::{Server, blocking};

const BODY_BYTES_MAX: usize = 64 << 10;

/// A token that is to be made.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NewToken")]
struct Wanted {
    name: String,
    /// Patterns of categories, in which `*` stands for any run of characters.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    write: Vec<Glob>,
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    read: Vec<Glob>,
    #[serde(default)]
    admin: bool,
    expires_seconds: Option<u64>,
}

/// The only time that a token is shown.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "MadeToken")]
struct Made {
    name: String,
    token: String,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "TokenList")]
struct Listing {
    tokens: Vec<Listed>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Token")]
struct Listed {
    name: String,
    #[schemars(with = "Vec<String>")]
    write: Vec<Glob>,
    #[schemars(with = "Vec<String>")]
    read: Vec<Glob>,
    admin: bool,
    created: String,
    expires: Option<String>,
    expired: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Named {
    name: String,
}

pub(crate) fn endpoints() -> [Endpoint; 3] {
    const PATH: &str = "/api/tokens";
    let list = Endpoint::get(PATH, get_tokens, "Lists the tokens.", |operation| {
        operation.ok::<Listing>("The tokens, without what is secret.")
    });
    let make = Endpoint::post(PATH, post_token, "Makes a token.", |operation| {
        let made = "The only time that it is shown.";
        operation
            .body::<Wanted>()
            .answer::<Made>(StatusCode::CREATED, made)
            .refusals(&[StatusCode::CONFLICT])
    });
    let remove = Endpoint::delete(PATH, delete_token, "Removes a token.", |operation| {
        operation
            .query::<Named>()
            .answer_without_body(StatusCode::NO_CONTENT, "It is gone.")
            .refusals(&[StatusCode::NOT_FOUND])
    });
    [list, make, remove].map(Endpoint::for_admins)
}

async fn post_token(
    State(server): State<Arc<Server>>,
    body: Body,
) -> Result<(StatusCode, Json<Made>), ApiError> {
    let received = server.receive(body, BODY_BYTES_MAX).await?;
    let wanted: Wanted = serde_json::from_slice(&received.bytes)
        .map_err(|error| ApiError::bad_request(format!("the body is no token: {error}")))?;
    let Wanted { name, write, read, admin, expires_seconds } = wanted;
    let expires_in = expires_seconds.map(Duration::from_secs);
    let new = NewToken { name: name.clone(), write, read, admin, expires_in };
    let home = Arc::clone(&server.home);
    let made = blocking(move || home.add_token(new)).await?;
    let token = made.map_err(|error| refusal(&error))?.expose().to_owned();
    Ok((StatusCode::CREATED, Json(Made { name, token })))
}

fn refusal(error: &TokenError) -> ApiError {
    let status = match error {
        TokenError::Name { .. } | TokenError::Pattern { .. } => StatusCode::BAD_REQUEST,
        TokenError::TooMany | TokenError::Catalog(CatalogError::TokenExists { .. }) => {
            StatusCode::CONFLICT
        }
        TokenError::Random(_) | TokenError::Catalog(_) => return ApiError::failed(error),
    };
    ApiError::caused_by(status, error)
}

async fn get_tokens(State(server): State<Arc<Server>>) -> Json<Listing> {
    let now = server.home.now();
    let tokens = server.home.tokens().list();
    Json(Listing { tokens: tokens.iter().map(|token| Listed::new(token, now)).collect() })
}

impl Listed {
    fn new(token: &Token, now: Nanos) -> Self {
        Self {
            name: token.name.clone(),
            write: token.write.clone(),
            read: token.read.clone(),
            admin: token.admin,
            created: token.created.to_string(),
            expires: token.expires.map(|expires| expires.to_string()),
            expired: token.is_expired(now),
        }
    }
}

async fn delete_token(
    State(server): State<Arc<Server>>,
    Asked(Named { name }): Asked<Named>,
) -> Result<StatusCode, ApiError> {
    let home = Arc::clone(&server.home);
    let wanted = name.clone();
    let removed = blocking(move || home.remove_token(&wanted)).await?;
    if removed.map_err(|error| ApiError::failed(&error))? {
        return Ok(StatusCode::NO_CONTENT);
    }
    let message = format!("there is no token named `{}`", name.escape_debug());
    Err(ApiError::new(StatusCode::NOT_FOUND, message))
}
