//! `perflab man`: the manual pages.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

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
            let mut command = Cli::command().disable_help_subcommand(true);
            // Names the commands within commands, and so their pages.
            command.build();
            let pages = write_pages(&command, dir).context(failed)?;
            note(&format!("{} in `{}`", count(pages, "page"), dir.display()));
        }
    }
    Ok(Exit::Done)
}

/// Writes the page of a command and those of the commands within it; returns how many.
fn write_pages(command: &clap::Command, dir: &Path) -> io::Result<u64> {
    clap_mangen::Man::new(command.clone()).generate_to(dir)?;
    let mut pages = 1;
    for within in command.get_subcommands().filter(|within| !within.is_hide_set()) {
        pages += write_pages(within, dir)?;
    }
    Ok(pages)
}
