//! The command line: help texts, completions and manual pages all come from here.

use std::env;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::commands;
use crate::failure::{Exit, Explain, Failure};
use crate::output::Format;
use crate::settings::Settings;

/// A performance lab: ship measurements and logs to where they can't be lost, and look at them
#[derive(Debug, Parser)]
#[command(
    name = "perflab",
    version,
    about,
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "\
Examples:
  perflab serve                                 start a server on this machine
  perflab log builds 'took 93 s'                send a message
  perflab tail builds --follow                  read messages as they come
  perflab query builds --group-by job           count them
  perflab compare main fix --fail-on slower     say whether benchmarks became slower
  perflab with -- python upload_scribe.py       run any Scribe client unchanged

Exit status: 0 done, 1 the answer is no, 2 wrong usage, 3 it could not be done."
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) globals: Globals,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Flags of every command.
#[derive(Debug, Default, Args)]
pub(crate) struct Globals {
    /// The folder with all data [env: PERFLAB_HOME] [default: ~/.local/share/perflab]
    #[arg(long, global = true, value_name = "DIR")]
    home: Option<PathBuf>,
    /// A server elsewhere, as in http://ci-host:7117 [env: PERFLAB_SERVER; its token: PERFLAB_TOKEN]
    #[arg(long, global = true, value_name = "URL")]
    server: Option<String>,
}

impl Globals {
    /// A wrong `--server` is wrong usage.
    pub(crate) fn settings(&self) -> Result<Settings, Failure> {
        Settings::new(self.home.clone(), self.server.as_deref(), |var| env::var_os(var))
            .exit(Exit::Usage)
    }
}

/// How a reading command prints.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Printed {
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Serve(commands::serve::Args),
    Log(commands::log::Args),
    Tail(commands::tail::Args),
    Categories(commands::categories::Args),
    /// Set how a category is kept
    #[command(subcommand)]
    Category(commands::category::Action),
    Query(commands::query::Args),
    Compare(commands::compare::Args),
    Export(commands::export::Args),
    Sql(commands::sql::Args),
    Datasets(commands::datasets::Args),
    Schema(commands::schema::Args),
    /// Set how the rows of a dataset are kept
    #[command(subcommand)]
    Dataset(commands::dataset::Action),
    Check(commands::check::Args),
    /// Make, list and remove the tokens by which others may use the server
    #[command(subcommand)]
    Token(commands::token::Action),
    /// Register Thrift IDLs, which name the fields of structured messages
    #[command(subcommand)]
    Thrift(commands::thrift::Action),
    Spool(commands::spool::Args),
    With(commands::with::Args),
    Shims(commands::shims::Args),
    Completions(commands::completions::Args),
    Man(commands::man::Args),
}

impl Cli {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let globals = &self.globals;
        match self.command {
            Command::Serve(args) => commands::serve::run(args, globals),
            Command::Log(args) => commands::log::run(args, globals),
            Command::Tail(args) => commands::tail::run(&args, globals),
            Command::Categories(args) => commands::categories::run(&args, globals),
            Command::Category(action) => commands::category::run(&action, globals),
            Command::Query(args) => commands::query::run(&args, globals),
            Command::Compare(args) => commands::compare::run(&args, globals),
            Command::Export(args) => commands::export::run(&args, globals),
            Command::Sql(args) => commands::sql::run(&args, globals),
            Command::Datasets(args) => commands::datasets::run(&args, globals),
            Command::Schema(args) => commands::schema::run(&args, globals),
            Command::Dataset(action) => commands::dataset::run(&action, globals),
            Command::Check(args) => commands::check::run(&args, globals),
            Command::Token(action) => commands::token::run(&action, globals),
            Command::Thrift(action) => commands::thrift::run(&action, globals),
            Command::Spool(args) => commands::spool::run(args, globals),
            Command::With(args) => commands::with::run(&args, globals),
            Command::Shims(args) => commands::shims::run(&args),
            Command::Completions(args) => commands::completions::run(&args),
            Command::Man(args) => commands::man::run(&args),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definitions_hold_together() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_says_what_it_does_and_shows_an_example() {
        fn check(command: &clap::Command) {
            assert!(command.get_about().is_some(), "{} has no description", command.get_name());
            for argument in command.get_arguments() {
                let is_told = argument.get_help().is_some();
                assert!(is_told, "{} {} has no help", command.get_name(), argument.get_id());
            }
            let examples = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let is_leaf = command.get_subcommands().next().is_none();
            assert!(
                !is_leaf || examples.contains("perflab "),
                "{} has no example",
                command.get_name()
            );
            command.get_subcommands().for_each(check);
        }
        check(&Cli::command());
    }
}
