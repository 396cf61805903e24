//! The binary: what the user typed → a client of the server → what is printed, and an exit code.

mod answer;
mod backlog;
mod cli;
mod client;
mod commands;
mod delivery;
mod drop_ins;
mod failure;
mod gateway;
mod lines;
mod messages;
mod output;
mod quantity;
mod selection;
mod settings;
mod spools;
mod trace;

use std::env;
use std::process::ExitCode;

use clap::Parser;

use cli::Cli;
use drop_ins::DropIn;

fn main() -> ExitCode {
    let mut arguments = env::args_os();
    // Before clap or a runtime: a drop-in is started once per message.
    if let Some(drop_in) = arguments.next().and_then(|program| DropIn::find(&program)) {
        return drop_in.run(arguments.collect());
    }
    let exit = match Cli::parse().run() {
        Ok(exit) => exit,
        Err(failure) => output::failure(&failure),
    };
    ExitCode::from(exit.code())
}
