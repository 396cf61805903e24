//! What a request's query says.

use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use crate::error::ApiError;

/// The query as a struct. One that does not fit is refused in the form of all other refusals.
#[derive(Debug)]
pub(crate) struct Asked<T>(pub(crate) T);

impl<S: Sync, T: DeserializeOwned> FromRequestParts<S> for Asked<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let Query(asked) = Query::try_from_uri(&parts.uri)
            .map_err(|rejection| ApiError::bad_request(rejection.body_text()))?;
        Ok(Self(asked))
    }
}
