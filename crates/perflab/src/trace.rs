//! The program's own log: on stderr, for people on a terminal and as JSON otherwise.

use std::io::{self, IsTerminal};

use clap::ValueEnum;
use tracing_subscriber::EnvFilter;

use crate::output::talk_has_colour;

const FILTER_VAR: &str = "PERFLAB_LOG";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Lines for people
    Text,
    /// One object per line
    Json,
}

/// For the server.
pub(crate) fn start(format: Option<LogFormat>) {
    let default = if io::stderr().is_terminal() { LogFormat::Text } else { LogFormat::Json };
    start_with("info", format.unwrap_or(default));
}

/// For commands that have a server in them: only what someone should know. Where it listens is
/// of no interest then, and refusals are told by whoever sent the messages.
pub(crate) fn start_quietly() {
    let filter = "warn,perflab_server::serve=error,perflab_server::ingest=error";
    start_with(filter, LogFormat::Text);
}

fn start_with(default: &str, format: LogFormat) {
    let filter =
        EnvFilter::try_from_env(FILTER_VAR).unwrap_or_else(|_unset| EnvFilter::new(default));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(talk_has_colour());
    // It fails when there is one already, which then goes on.
    match format {
        LogFormat::Text => builder.try_init().ok(),
        LogFormat::Json => builder.json().try_init().ok(),
    };
}
