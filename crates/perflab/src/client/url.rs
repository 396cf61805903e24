//! The address of a server: `http://host:7117`, `https://host/base`.

use std::fmt;
use std::str::FromStr;

use http::Uri;
use perflab_server::PORT;

/// What is wrong with an address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UrlError {
    #[error("it is no address")]
    Malformed,
    #[error("`{0}` is neither http nor https")]
    Scheme(String),
    #[error("it holds a user name or token; put the token into PERFLAB_TOKEN")]
    Credentials,
    #[error("it has a query, which is no part of a server's address")]
    Query,
    /// Without the text, which may be the password of `user:password`.
    #[error("its port is no number from 1 to 65535")]
    Port,
}

/// A server's address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerUrl {
    pub(crate) is_tls: bool,
    /// Without brackets, also when it is an IPv6 address.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Empty, or `/…` without a `/` at its end.
    pub(crate) base_path: String,
}

impl ServerUrl {
    /// The address that `scribe_cat -h host[:port]` means.
    pub(crate) fn from_host_and_port(text: &str) -> Result<Self, UrlError> {
        let (host, port) = split_host_and_port(text)?;
        Ok(Self {
            is_tls: false,
            host: host.to_owned(),
            port: port.unwrap_or(PORT),
            base_path: String::new(),
        })
    }

    /// What goes into the Host header.
    pub(crate) fn authority(&self) -> String {
        match (self.host.contains(':'), self.port, self.is_tls) {
            (false, 80, false) | (false, 443, true) => self.host.clone(),
            (false, port, _) => format!("{}:{port}", self.host),
            (true, port, _) => format!("[{}]:{port}", self.host),
        }
    }
}

impl FromStr for ServerUrl {
    type Err = UrlError;

    /// Without a scheme, it is `host[:port]`.
    fn from_str(text: &str) -> Result<Self, UrlError> {
        if !text.contains("://") {
            return Self::from_host_and_port(text.trim_end_matches('/'));
        }
        let uri: Uri = text.parse().map_err(|_malformed| UrlError::Malformed)?;
        let is_tls = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            other => return Err(UrlError::Scheme(other.unwrap_or_default().to_owned())),
        };
        let authority = uri.authority().ok_or(UrlError::Malformed)?.as_str();
        if uri.query().is_some() {
            return Err(UrlError::Query);
        }
        let (host, port) = split_host_and_port(authority)?;
        Ok(Self {
            is_tls,
            host: host.to_owned(),
            port: port.unwrap_or(if is_tls { 443 } else { 80 }),
            base_path: uri.path().trim_end_matches('/').to_owned(),
        })
    }
}

impl fmt::Display for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_tls { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority(), self.base_path)
    }
}

/// Takes `host`, `host:port`, `[::1]` or `[::1]:port` apart.
pub(crate) fn split_host_and_port(text: &str) -> Result<(&str, Option<u16>), UrlError> {
    if text.contains('@') {
        return Err(UrlError::Credentials);
    }
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, "")) => (host, None),
        Some((host, port)) => (host, Some(port.strip_prefix(':').ok_or(UrlError::Malformed)?)),
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let is_in_a_name =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | ':' | '%');
    if host.is_empty() || !host.chars().all(is_in_a_name) {
        return Err(UrlError::Malformed);
    }
    let port = match port {
        None => None,
        Some(port) => match port.parse() {
            Ok(number) if number > 0 => Some(number),
            _ => return Err(UrlError::Port),
        },
    };
    Ok((host, port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(text: &str) -> String {
        match text.parse::<ServerUrl>() {
            Ok(url) => url.to_string(),
            Err(error) => format!("error: {error}"),
        }
    }

    #[test]
    fn addresses_are_read_and_shown_one_way() {
        assert_eq!(shown("http://127.0.0.1:7117/"), "http://127.0.0.1:7117");
        assert_eq!(shown("https://perf.example/lab/"), "https://perf.example/lab");
        assert_eq!(shown("http://perf.example:80"), "http://perf.example");
        assert_eq!(shown("ci-host"), "http://ci-host:7117");
        assert_eq!(shown("ci-host:99"), "http://ci-host:99");
        assert_eq!(shown("http://[::1]:7117"), "http://[::1]:7117");
        assert_eq!(shown("[::1]"), "http://[::1]:7117");
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert_eq!(shown("ftp://x"), "error: `ftp` is neither http nor https");
        assert_eq!(shown("host:0"), "error: its port is no number from 1 to 65535");
        assert_eq!(shown("host:http"), shown("host:0"));
        assert!(shown("http://me:plt_x@host").contains("PERFLAB_TOKEN"));
        assert!(!shown("http://me:plt_x@host").contains("plt_x"));
        for text in ["", "http://", "a b", "http://h/?q=1", "[::1", "[::1]x"] {
            assert!(shown(text).starts_with("error"), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_shown_address_reads_back(text in "(https?://)?[a-z0-9.]{1,9}(:[0-9]{1,5})?(/[a-z]{1,4})?/?") {
            if let Ok(url) = text.parse::<ServerUrl>() {
                prop_assert_eq!(url.to_string().parse::<ServerUrl>(), Ok(url));
            }
        }
    }
}
