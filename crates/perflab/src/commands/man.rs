//! `perflab man`: the manual pages.

use std::fs;
use std::path::PathBuf;

use clap::CommandFactory;

use crate::cli::Cli;
use crate::failure::{Exit, Explain, Failure};
use crate::output::{self, count, note};

/// Print the manual page, or write the pages of all commands
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  perflab man | man -l -
  perflab man ~/.local/share/man/man1")]
pub(crate) struct Args {
    /// Write one page per command into this folder
    dir: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<Exit, Failure> {
    match &args.dir {
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(Cli::command()).render(&mut page)?;
            output::bytes(&page)?;
        }
        Some(dir) => {
            let failed = format!("failed to write manual pages to `{}`", dir.display());
            fs::create_dir_all(dir).context(failed.clone())?;
            clap_mangen::generate_to(Cli::command().disable_help_subcommand(true), dir)
                .context(failed)?;
            let pages = fs::read_dir(dir)?.count() as u64;
            note(&format!("{} in `{}`", count(pages, "file"), dir.display()));
        }
    }
    Ok(Exit::Done)
}
