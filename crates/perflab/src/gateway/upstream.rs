//! The way to the rest of the world: straight, or through the proxy that was set before.

use std::ffi::OsString;
use std::io;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::Uri;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use super::no_proxy::NoProxy;
use crate::client::connect::{Stream, to_host};
use crate::client::tls::{self, TlsError};
use crate::client::{ConnectError, split_host_and_port};
use crate::failure::in_words;

/// The most that another proxy may answer to CONNECT.
const ANSWER_BYTES_MAX: usize = 16 << 10;
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// In the order in which programs look at them.
const PROXY_VARS: [&str; 4] = ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"];
const NO_PROXY_VARS: [&str; 2] = ["no_proxy", "NO_PROXY"];

/// Why the proxy that was set can't be used, or a host can't be reached.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UpstreamError {
    #[error("the proxy in {var} is no address of an http or https proxy")]
    Address { var: &'static str },
    #[error("`{host}:{port}` can't be reached")]
    Direct {
        host: String,
        port: u16,
        #[source]
        error: ConnectError,
    },
    #[error("the proxy `{proxy}` can't be reached")]
    Proxy {
        proxy: String,
        #[source]
        error: ConnectError,
    },
    #[error("the TLS connection to the proxy `{proxy}` failed")]
    ProxyTls {
        proxy: String,
        #[source]
        error: TlsError,
    },
    #[error("the proxy `{proxy}` broke off")]
    ProxyBroke {
        proxy: String,
        #[source]
        error: io::Error,
    },
    #[error("the proxy `{proxy}` does not answer")]
    ProxySilent { proxy: String },
    #[error("the proxy `{proxy}` refused: {line}")]
    ProxyRefused { proxy: String, line: String },
}

impl UpstreamError {
    pub(super) fn in_words(&self) -> String {
        in_words(self)
    }
}

/// How other hosts are reached.
#[derive(Debug, Clone, Default)]
pub(crate) struct Upstream {
    proxy: Option<Proxy>,
    no_proxy: NoProxy,
}

/// Another proxy. Its password is never shown.
#[derive(Clone)]
struct Proxy {
    is_tls: bool,
    host: String,
    port: u16,
    authorization: Option<String>,
}

impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name())
    }
}

impl Upstream {
    /// What the environment says, before `perflab with` changes it.
    pub(crate) fn from_variables(
        variables: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Self, UpstreamError> {
        let text = |var: &str| {
            let value = variables(var)?.into_string().ok()?;
            (!value.trim().is_empty()).then(|| value.trim().to_owned())
        };
        let found = PROXY_VARS.into_iter().find_map(|var| Some((var, text(var)?)));
        let proxy = match found {
            None => None,
            Some((var, address)) => {
                Some(Proxy::parse(&address).ok_or(UpstreamError::Address { var })?)
            }
        };
        let no_proxy = NO_PROXY_VARS.into_iter().find_map(text).unwrap_or_default();
        Ok(Self { proxy, no_proxy: NoProxy::parse(&no_proxy) })
    }

    /// `NO_PROXY` for programs that shall reach `host` through a proxy.
    pub(super) fn no_proxy_without(&self, host: &str, port: u16) -> String {
        self.no_proxy.without(host, port)
    }

    /// Connects to a host.
    pub(super) async fn connect(
        &self,
        host: &str,
        port: u16,
    ) -> Result<Box<dyn Stream>, UpstreamError> {
        match &self.proxy {
            Some(proxy) if !self.no_proxy.covers(host, port) => proxy.connect(host, port).await,
            _ => match to_host(host, port).await {
                Ok(stream) => Ok(Box::new(stream)),
                Err(error) => Err(UpstreamError::Direct { host: host.to_owned(), port, error }),
            },
        }
    }
}

impl Proxy {
    /// `http://user:password@host:port`, or `host:port`.
    fn parse(address: &str) -> Option<Self> {
        let with_scheme =
            if address.contains("://") { address.to_owned() } else { format!("http://{address}") };
        let uri: Uri = with_scheme.parse().ok()?;
        let is_tls = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return None,
        };
        let authority = uri.authority()?.as_str();
        let (user, place) = match authority.rsplit_once('@') {
            Some((user, place)) => (Some(user), place),
            None => (None, authority),
        };
        let (host, port) = split_host_and_port(place).ok()?;
        let port = port.unwrap_or(if is_tls { 443 } else { 80 });
        let authorization =
            user.map(|user| format!("Basic {}", STANDARD.encode(decode_percent(user))));
        Some(Self { is_tls, host: host.to_owned(), port, authorization })
    }

    fn name(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    async fn connect(&self, host: &str, port: u16) -> Result<Box<dyn Stream>, UpstreamError> {
        let proxy = self.name();
        let stream = to_host(&self.host, self.port)
            .await
            .map_err(|error| UpstreamError::Proxy { proxy: proxy.clone(), error })?;
        let mut stream: Box<dyn Stream> = if self.is_tls {
            let connecting = timeout(ANSWER_TIMEOUT, tls::connect(&self.host, stream)).await;
            match connecting {
                Ok(Ok(stream)) => Box::new(stream),
                Ok(Err(error)) => return Err(UpstreamError::ProxyTls { proxy, error }),
                Err(_elapsed) => return Err(UpstreamError::ProxySilent { proxy }),
            }
        } else {
            Box::new(stream)
        };
        let line = match timeout(ANSWER_TIMEOUT, self.ask(&mut stream, host, port)).await {
            Ok(Ok(line)) => line,
            Ok(Err(error)) => return Err(UpstreamError::ProxyBroke { proxy, error }),
            Err(_elapsed) => return Err(UpstreamError::ProxySilent { proxy }),
        };
        if line.split(' ').nth(1).is_some_and(|status| status.starts_with('2')) {
            Ok(stream)
        } else {
            Err(UpstreamError::ProxyRefused { proxy, line })
        }
    }

    /// Sends CONNECT; returns the first line of the answer.
    async fn ask(&self, stream: &mut Box<dyn Stream>, host: &str, port: u16) -> io::Result<String> {
        let target =
            if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
        let mut request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n");
        if let Some(authorization) = &self.authorization {
            request.extend(["Proxy-Authorization: ", authorization, "\r\n"]);
        }
        request.push_str("\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut head = Vec::new();
        // Byte by byte: what comes after the head belongs to the client.
        while !head.ends_with(b"\r\n\r\n") {
            if head.len() == ANSWER_BYTES_MAX {
                return Err(io::Error::other("its answer is too long"));
            }
            head.push(stream.read_u8().await?);
        }
        let head = String::from_utf8_lossy(&head);
        Ok(head.lines().next().unwrap_or_default().to_owned())
    }
}

/// Undoes the percent-encoding of a user name and password.
fn decode_percent(text: &str) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let escape = (byte == b'%').then(|| after.get(..2)).flatten();
        let value =
            escape.and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        decoded.push(value.unwrap_or(byte));
        rest = if value.is_some() { &after[2..] } else { after };
    }
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upstream(variables: &[(&str, &str)]) -> Result<Upstream, UpstreamError> {
        Upstream::from_variables(|var| {
            variables.iter().find(|(name, _)| *name == var).map(|(_, value)| value.into())
        })
    }

    #[test]
    fn the_proxy_that_was_set_is_found() {
        let proxy = |variables: &[_]| upstream(variables).unwrap().proxy.map(|proxy| proxy.name());
        assert_eq!(proxy(&[]), None);
        assert_eq!(proxy(&[("HTTPS_PROXY", "")]), None);
        assert_eq!(proxy(&[("HTTPS_PROXY", "http://a:3128/")]), Some("a:3128".to_owned()));
        assert_eq!(proxy(&[("ALL_PROXY", "a:1"), ("https_proxy", "b:2")]), Some("b:2".to_owned()));
    }

    #[test]
    fn a_password_is_sent_and_never_shown() {
        let found = upstream(&[("HTTPS_PROXY", "http://me:p%40ss@a:1")]).unwrap();
        assert!(!format!("{found:?}").contains("ss"));
        let authorization = found.proxy.unwrap().authorization.unwrap();
        assert_eq!(authorization, format!("Basic {}", STANDARD.encode("me:p@ss")));
        let refused = upstream(&[("HTTPS_PROXY", "socks5://me:secret@a:1")]).unwrap_err();
        assert!(!refused.to_string().contains("secret"));
    }
}
