//! `perflab completions`: what a shell needs to complete the command line.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::cli::Cli;
use crate::failure::{Exit, Failure};
use crate::output;

/// Print completions for a shell
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  perflab completions bash > ~/.local/share/bash-completion/completions/perflab
  perflab completions zsh > ~/.zfunc/_perflab")]
pub(crate) struct Args {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn run(args: &Args) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "perflab", &mut script);
    output::bytes(&script)?;
    Ok(Exit::Done)
}
