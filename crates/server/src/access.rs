//! Who asks, and what they may do.

use axum::extract::{FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Uri, header};
use axum::middleware::Next;
use axum::response::Response;
use perflab_store::Access;
use perflab_wire::Secret;
use std::convert::Infallible;
use std::sync::Arc;

use crate::error::ApiError;
use crate::state::Server;

/// The query parameter that holds a token.
pub(crate) const ACCESS_TOKEN: &str = "access_token";

/// Which way a request came. In-process callers insert [`Peer::Owner`] as a request extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// Over the home's Unix socket or from this very process: may do everything.
    Owner,
    /// Over the network.
    Tcp { on_loopback: bool, is_tls: bool },
}

impl Peer {
    /// Nobody who is not known to be the owner is taken for it.
    const UNKNOWN: Self = Self::Tcp { on_loopback: false, is_tls: false };
}

impl<S: Sync> FromRequestParts<S> for Peer {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get().copied().unwrap_or(Self::UNKNOWN))
    }
}

/// The token that a request's head holds.
#[derive(Debug)]
pub(crate) struct HeadToken(pub(crate) Option<Secret>);

impl<S: Sync> FromRequestParts<S> for HeadToken {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let token = bearer(&parts.headers).or_else(|| in_query(&parts.uri));
        Ok(Self(token))
    }
}

fn bearer(headers: &HeaderMap) -> Option<Secret> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| Secret::new(token.trim()))
}

fn in_query(uri: &Uri) -> Option<Secret> {
    let query = uri.query()?.as_bytes();
    let mut pairs = form_urlencoded::parse(query);
    let (_, token) = pairs.find(|(key, _)| key == ACCESS_TOKEN)?;
    Some(Secret::new(token))
}

impl Server {
    /// What this peer may do with this token.
    pub(crate) fn access(&self, peer: Peer, token: Option<&Secret>) -> Result<Access, ApiError> {
        if self.needs_no_token(peer) {
            return Ok(Access::Everything);
        }
        let Some(token) = token else {
            let hint = "give one as `Authorization: Bearer` or as `access_token`";
            return Err(ApiError::unauthorized("an access token is needed").with_hint(hint));
        };
        match self.home.tokens().find(token, self.home.now()) {
            Some(token) => Ok(Access::Token(token)),
            None => Err(ApiError::unauthorized("the access token is unknown or has expired")),
        }
    }

    pub(crate) fn needs_no_token(&self, peer: Peer) -> bool {
        match peer {
            Peer::Owner => true,
            Peer::Tcp { on_loopback, .. } => {
                (on_loopback || self.settings.insecure) && self.home.tokens().nobody_needs_one()
            }
        }
    }
}

/// Someone who may do something; the request is refused otherwise.
#[derive(Debug)]
pub(crate) struct Known(pub(crate) Access);

impl FromRequestParts<Arc<Server>> for Known {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, server: &Arc<Server>) -> Result<Self, ApiError> {
        let Ok(peer) = Peer::from_request_parts(parts, server).await;
        let Ok(HeadToken(token)) = HeadToken::from_request_parts(parts, server).await;
        Ok(Self(server.access(peer, token.as_ref())?))
    }
}

/// Lets only those through who may change settings, tokens and definitions.
pub(crate) async fn require_admin(
    Known(access): Known,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    if access.may_administer() {
        return Ok(next.run(request).await);
    }
    let message = "this needs the owner of the home, or a token made with `--admin`";
    Err(ApiError::forbidden(message))
}
