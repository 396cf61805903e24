//! The names under which other programs know this binary.

mod fburl;
mod scribe_cat;

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;

/// A program that this binary stands in for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DropIn {
    ScribeCat,
    FbUrl,
}

impl DropIn {
    pub(crate) const ALL: [Self; 2] = [Self::ScribeCat, Self::FbUrl];

    /// The name it is called by.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ScribeCat => "scribe_cat",
            Self::FbUrl => "fburl",
        }
    }

    /// Which one was called, by the first argument of the process.
    pub(crate) fn find(program: &OsStr) -> Option<Self> {
        let name = Path::new(program).file_name()?;
        Self::ALL.into_iter().find(|drop_in| drop_in.name() == name)
    }

    pub(crate) fn run(self, arguments: Vec<OsString>) -> ExitCode {
        match self {
            Self::ScribeCat => scribe_cat::run(arguments),
            Self::FbUrl => fburl::run(&arguments),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_name_counts() {
        let find = |program: &str| DropIn::find(OsStr::new(program));
        assert_eq!(find("scribe_cat"), Some(DropIn::ScribeCat));
        assert_eq!(find("/opt/shims/scribe_cat"), Some(DropIn::ScribeCat));
        assert_eq!(find("fburl"), Some(DropIn::FbUrl));
        assert_eq!(find("perflab"), None);
        assert_eq!(find("/scribe_cat/perflab"), None);
        assert_eq!(find(""), None);
    }
}
