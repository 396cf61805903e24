//! Which rows are meant: flags that several commands share.

use perflab_query::document::Filter;
use perflab_query::text::{self, TextError};

use crate::failure::{Exit, Explain, Failure};

/// Times of rows. What is not given is up to the server.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Times {
    /// From this time on: '-7 days', yesterday, 2026-11-01, 1700000000
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    since: Option<String>,
    /// Until just before this time [default: now]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    until: Option<String>,
    /// Where days start, and what times are shown in [default: UTC]
    #[arg(long, value_name = "ZONE")]
    timezone: Option<String>,
}

impl Times {
    /// Sets what was given.
    pub(crate) fn set(&self, since: &mut String, until: &mut String, timezone: &mut String) {
        let given = [&self.since, &self.until, &self.timezone];
        for (field, given) in [since, until, timezone].into_iter().zip(given) {
            if let Some(given) = given {
                field.clone_from(given);
            }
        }
    }
}

/// What one `--where` says: rows that meet all conditions of any of these.
#[derive(Debug, Clone)]
pub(crate) struct AnyOf(Vec<Vec<Filter>>);

pub(crate) fn parse_any_of(text: &str) -> Result<AnyOf, TextError> {
    text::parse_conditions(text).map(AnyOf)
}

/// What several of them say together: all of it.
pub(crate) fn all_of(several: &[AnyOf]) -> Result<Vec<Vec<Filter>>, Failure> {
    let several: Vec<_> = several.iter().map(|AnyOf(any_of)| any_of.clone()).collect();
    text::all_of(&several).exit(Exit::Usage)
}
