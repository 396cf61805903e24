//! `fburl`: a short link for a URL.

use std::ffi::OsString;
use std::process::ExitCode;

use serde_json::json;

use crate::cli::Globals;
use crate::commands::query::print_link;
use crate::failure::{Exit, Failure};
use crate::output;

const USAGE: &str = "\
usage: fburl URL   print a short link to it

A link of Scuba's becomes one that shows the same query in perflab.";

pub(super) fn run(arguments: &[OsString]) -> ExitCode {
    let exit = match arguments {
        [help] if help == "--help" => {
            output::help(USAGE);
            Ok(Exit::Done)
        }
        [url] => print_link(&Globals::default(), &json!({ "url": url.to_string_lossy() })),
        _ => Err(Failure::new(Exit::Usage, "one URL is wanted").with_hint(USAGE)),
    };
    ExitCode::from(exit.unwrap_or_else(|failure| output::failure(&failure)).code())
}
