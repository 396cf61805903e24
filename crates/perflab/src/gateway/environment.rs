//! What a program under `perflab with` finds in its environment.

use std::env;
use std::ffi::OsString;
use std::path::Path;

use super::bundle::{BUNDLE_VARS, Bundle};
use super::upstream::Upstream;
use super::{Destination, Gateway, SCRIBE_HOST, TLS_PORT};
use crate::settings::{HOME_VAR, SERVER_VAR, Token, WITH_SERVER_VAR};

const ACCESS_TOKEN_VAR: &str = "SCRIBE_GRAPHQL_ACCESS_TOKEN";
/// Clients insist on a token even where none is needed.
const ANY_TOKEN: &str = "perflab";
/// Where programs are found when there is no PATH, as `execvp` has it.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// What was prepared for a run.
#[derive(Debug)]
pub(crate) struct Prepared<'a> {
    pub(crate) gateway: &'a Gateway,
    pub(crate) destination: &'a Destination,
    pub(crate) upstream: &'a Upstream,
    pub(crate) home: &'a Path,
    pub(crate) bundle: &'a Bundle,
    pub(crate) shims: &'a Path,
    pub(crate) token: Option<&'a Token>,
}

impl Prepared<'_> {
    /// The variables to set.
    pub(crate) fn variables(
        &self,
        present: impl Fn(&str) -> Option<OsString>,
    ) -> Vec<(&'static str, OsString)> {
        // The home also with a server elsewhere: there the command spools when nobody answers.
        let mut variables =
            vec![("PATH", self.path(present("PATH"))), (HOME_VAR, self.home.into())];
        let server = match self.destination {
            Destination::Home(_) => {
                let server = self.gateway.server_url();
                variables.push((WITH_SERVER_VAR, server.clone().into()));
                server
            }
            Destination::Server { url, .. } => url.to_string(),
        };
        variables.push(("SCRIBE_GRAPHQL_ENDPOINT", format!("{server}/scribe_logs").into()));
        variables.push((SERVER_VAR, server.into()));
        if present(ACCESS_TOKEN_VAR).is_none_or(|token| token.is_empty()) {
            let token = self.token.map_or(ANY_TOKEN, Token::reveal);
            variables.push((ACCESS_TOKEN_VAR, token.into()));
        }
        for var in ["HTTPS_PROXY", "https_proxy"] {
            variables.push((var, self.gateway.proxy_url().into()));
        }
        let no_proxy = self.upstream.no_proxy_without(SCRIBE_HOST, TLS_PORT);
        for var in ["NO_PROXY", "no_proxy"] {
            variables.push((var, no_proxy.clone().into()));
        }
        for var in BUNDLE_VARS {
            variables.push((var, self.bundle.path.clone().into()));
        }
        variables
    }

    /// The shims come first.
    fn path(&self, path: Option<OsString>) -> OsString {
        let path = path.unwrap_or_else(|| DEFAULT_PATH.into());
        let folders = std::iter::once(self.shims.to_owned()).chain(env::split_paths(&path));
        // Joining fails only for a folder with a colon in its name, which splitting never gives
        // and a temporary folder does not have.
        env::join_paths(folders).unwrap_or(path)
    }
}
