//! What the environment and the global flags say: which home, which server, which token.

use std::env;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use crate::client::{ServerUrl, UrlError};

/// The server under `perflab with`, as its environment gives it to other programs.
///
/// While `PERFLAB_SERVER` still has this value, our own tools go to the home instead: that is the
/// same server without the detour, and what they spool is found again after the run.
pub(crate) const WITH_SERVER_VAR: &str = "PERFLAB_WITH";

pub(crate) const SERVER_VAR: &str = "PERFLAB_SERVER";
pub(crate) const HOME_VAR: &str = "PERFLAB_HOME";
pub(crate) const TOKEN_VAR: &str = "PERFLAB_TOKEN";

/// Why the settings make no sense.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SettingsError {
    #[error("there is no home folder: none of PERFLAB_HOME, XDG_DATA_HOME and HOME is set")]
    NoHome,
    /// Without the address: people put tokens into it.
    #[error("the address in --server or PERFLAB_SERVER is wrong")]
    Server(#[source] UrlError),
    #[error("{var} is not UTF-8")]
    NotUtf8 { var: &'static str },
}

/// A token, which never prints itself.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Token(String);

impl Token {
    pub(crate) fn new(token: String) -> Self {
        Self(token)
    }

    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// Which home, server and token a command works with.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) home: PathBuf,
    /// A server that was named; without one, the server on the home.
    pub(crate) server: Option<ServerUrl>,
    token: Option<Token>,
}

impl Settings {
    /// Flags win over the environment.
    pub(crate) fn new(
        home: Option<PathBuf>,
        server: Option<&str>,
        variables: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Self, SettingsError> {
        let text = |var: &'static str| match variables(var).filter(|value| !value.is_empty()) {
            None => Ok(None),
            Some(value) => {
                value.into_string().map(Some).map_err(|_os| SettingsError::NotUtf8 { var })
            }
        };
        let from_environment = text(SERVER_VAR)?.filter(|server| {
            variables(WITH_SERVER_VAR).is_none_or(|with_server| with_server != server.as_str())
        });
        let server = match server.map(str::to_owned).or(from_environment) {
            None => None,
            Some(text) => Some(text.parse::<ServerUrl>().map_err(SettingsError::Server)?),
        };
        let home = home.or_else(|| default_home(&variables)).ok_or(SettingsError::NoHome)?;
        Ok(Self { home, server, token: text(TOKEN_VAR)?.map(Token::new) })
    }

    /// The settings of a program without flags.
    pub(crate) fn from_environment() -> Result<Self, SettingsError> {
        Self::new(None, None, |var| env::var_os(var))
    }

    /// The token for a server.
    ///
    /// It was given for the server that was named beside it, and no other one gets to see it:
    /// neither that of `scribe_cat -h`, nor one for which messages wait in the spool.
    pub(crate) fn token_for(&self, server: &ServerUrl) -> Option<&Token> {
        let is_for_it = self.server.as_ref().is_some_and(|named| named == server);
        self.token.as_ref().filter(|_| is_for_it)
    }

    pub(crate) fn token(&self) -> Option<&Token> {
        self.token.as_ref()
    }
}

fn default_home(variables: &impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let folder = |var| variables(var).filter(|value| !value.is_empty()).map(PathBuf::from);
    // The XDG specification: a relative path there is invalid and is ignored.
    let data = || folder("XDG_DATA_HOME").filter(|path| path.is_absolute());
    let in_home = || folder("HOME").map(|home| home.join(".local/share"));
    folder(HOME_VAR).or_else(|| data().or_else(in_home).map(|data| data.join("perflab")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(variables: &[(&str, &str)]) -> Result<Settings, SettingsError> {
        Settings::new(None, None, |var| {
            variables.iter().find(|(name, _)| *name == var).map(|(_, value)| value.into())
        })
    }

    #[test]
    fn the_home_is_found_in_order() {
        let home = |variables: &[_]| settings(variables).unwrap().home;
        let user = ("HOME", "/u");
        assert_eq!(home(&[user]), PathBuf::from("/u/.local/share/perflab"));
        assert_eq!(home(&[user, ("XDG_DATA_HOME", "/d")]), PathBuf::from("/d/perflab"));
        assert_eq!(home(&[user, ("XDG_DATA_HOME", "d")]), PathBuf::from("/u/.local/share/perflab"));
        assert_eq!(home(&[user, ("PERFLAB_HOME", "p")]), PathBuf::from("p"));
        assert!(matches!(settings(&[("HOME", "")]), Err(SettingsError::NoHome)));
    }

    #[test]
    fn a_token_is_for_the_server_it_was_given_for() {
        let settings = settings(&[
            ("HOME", "/u"),
            ("PERFLAB_SERVER", "http://a:7117"),
            ("PERFLAB_TOKEN", "secret"),
        ])
        .unwrap();
        let server = settings.server.clone().unwrap();
        assert_eq!(settings.token_for(&server).map(Token::reveal), Some("secret"));
        assert_eq!(settings.token_for(&"http://b:7117".parse().unwrap()), None);
        assert!(!format!("{settings:?}").contains("secret"));
    }

    #[test]
    fn a_token_that_was_given_for_no_server_is_shown_to_none() {
        let settings = settings(&[("HOME", "/u"), ("PERFLAB_TOKEN", "secret")]).unwrap();
        assert_eq!(settings.token_for(&"http://b:7117".parse().unwrap()), None);
    }

    #[test]
    fn a_token_in_an_address_is_not_repeated() {
        for server in ["http://me:plt_x@host", "plt_x@host", "http://host:plt_x", "host:plt_x"] {
            let error = settings(&[("HOME", "/u"), ("PERFLAB_SERVER", server)]).unwrap_err();
            let words = crate::failure::in_words(&error);
            assert!(
                words.contains("PERFLAB_SERVER is wrong") && !words.contains("plt_x"),
                "{words}"
            );
        }
    }

    #[test]
    fn the_server_of_a_with_run_is_the_home() {
        let run = ("PERFLAB_WITH", "http://127.0.0.1:9/r");
        let server = |variables: &[_]| settings(variables).unwrap().server;
        assert_eq!(server(&[("HOME", "/u"), run, ("PERFLAB_SERVER", run.1)]), None);
        assert!(server(&[("HOME", "/u"), run, ("PERFLAB_SERVER", "http://a:1")]).is_some());
    }
}
