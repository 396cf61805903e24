//! Keeps web pages out: a page on another site must not be able to post to, or read from, a
//! server that its reader's browser can reach, least of all one that asks for no token.
//!
//! A browser sends such a page's requests with the page's `Origin`, or, after DNS rebinding,
//! with the page's own host name in `Host`. Other programs send neither.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, header};
use axum::middleware::Next;
use axum::response::Response;

use crate::access::Peer;
use crate::error::ApiError;
use crate::state::Server;

pub(crate) async fn check(
    State(server): State<Arc<Server>>,
    peer: Peer,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    if let Peer::Tcp { on_loopback, is_tls } = peer {
        let headers = request.headers();
        let host = only(headers, &header::HOST)?;
        if on_loopback || server.needs_no_token(peer) {
            check_host(host, server.settings.host_name.as_deref(), on_loopback)?;
        }
        if let Some(origin) = only(headers, &header::ORIGIN)? {
            check_origin(origin, is_tls, host.unwrap_or_default())?;
        }
    }
    Ok(next.run(request).await)
}

/// A header that may be there once.
fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<Option<&'h str>, ApiError> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    if values.next().is_some() {
        return Err(ApiError::bad_request(format!("the request has more than one `{name}`")));
    }
    let text = first.map(|value| value.to_str()).transpose();
    text.map_err(|_not_text| ApiError::bad_request(format!("`{name}` is not text")))
}

fn check_host(
    host: Option<&str>,
    host_name: Option<&str>,
    on_loopback: bool,
) -> Result<(), ApiError> {
    let name = without_port(host.unwrap_or_default());
    let is_configured = host_name.is_some_and(|configured| name.eq_ignore_ascii_case(configured));
    // Rebinding needs a name: a page whose host is an address was served by that address.
    let is_address = !on_loopback && name.parse::<IpAddr>().is_ok();
    if is_configured || is_loopback(name) || is_address {
        return Ok(());
    }
    let message = format!("this server is not called `{}`", name.escape_debug());
    let hint = if on_loopback {
        "use `localhost`, or start the server with `--host-name NAME`"
    } else {
        "use its IP address, start it with `--host-name NAME`, or protect it with a token"
    };
    Err(ApiError::forbidden(message).with_hint(hint))
}

fn check_origin(origin: &str, is_tls: bool, host: &str) -> Result<(), ApiError> {
    let scheme = if is_tls { "https" } else { "http" };
    let own = origin.split_once("://").is_some_and(|(origin_scheme, origin_host)| {
        origin_scheme.eq_ignore_ascii_case(scheme) && origin_host.eq_ignore_ascii_case(host)
    });
    if own {
        return Ok(());
    }
    let message = format!("a page of `{}` may not use this server", origin.escape_debug());
    Err(ApiError::forbidden(message))
}

fn without_port(host: &str) -> &str {
    if let Some(rest) = host.strip_prefix('[') {
        return rest.split_once(']').map_or(host, |(address, _)| address);
    }
    host.split_once(':').map_or(host, |(name, _)| name)
}

fn is_loopback(name: &str) -> bool {
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_has_many_names_and_others_have_none() {
        for host in ["localhost", "LOCALHOST:7117", "127.0.0.1:1", "127.9.9.9", "[::1]:80", "[::1]"]
        {
            assert!(check_host(Some(host), None, true).is_ok(), "{host}");
        }
        for host in ["evil.example", "localhost.evil.example", "10.0.0.1", "", "127.0.0.1.nip.io"] {
            assert!(check_host(Some(host), None, true).is_err(), "{host}");
        }
        assert!(check_host(None, None, true).is_err());
        assert!(check_host(Some("lab:7117"), Some("lab"), true).is_ok());
    }

    #[test]
    fn off_loopback_an_address_is_as_good_as_a_name() {
        for host in ["10.0.0.1:7117", "[fe80::1]:7117", "localhost", "lab"] {
            assert!(check_host(Some(host), Some("lab"), false).is_ok(), "{host}");
        }
        for host in ["evil.example", "10.0.0.1.nip.io", ""] {
            assert!(check_host(Some(host), Some("lab"), false).is_err(), "{host}");
        }
    }

    #[test]
    fn only_its_own_pages_may_use_it() {
        assert!(check_origin("http://localhost:7117", false, "localhost:7117").is_ok());
        for origin in
            ["http://localhost:1", "https://localhost:7117", "null", "http://evil.example"]
        {
            assert!(check_origin(origin, false, "localhost:7117").is_err(), "{origin}");
        }
        assert!(check_origin("https://lab", true, "lab").is_ok());
    }
}
