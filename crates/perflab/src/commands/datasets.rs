//! `perflab datasets`: what can be asked about.

use serde::Deserialize;

use crate::cli::{Globals, Printed};
use crate::commands::ask_for_list;
use crate::failure::{Exit, Failure};
use crate::output::{self, Cell, Column, Listing, number, text};
use crate::quantity::show_size;

/// List the datasets with their rows, columns and times
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  perflab datasets
  perflab datasets --format csv")]
pub(crate) struct Args {
    #[command(flatten)]
    printed: Printed,
}

const COLUMNS: [Column; 7] = [
    text("dataset"),
    number("rows"),
    number("bytes"),
    number("segments"),
    number("columns"),
    text("first_time"),
    text("last_time"),
];

#[derive(Debug, Deserialize)]
struct Dataset {
    dataset: String,
    rows: u64,
    bytes: u64,
    segments: u64,
    columns: u64,
    first_time: Option<String>,
    last_time: Option<String>,
}

impl Dataset {
    fn cells(&self) -> Vec<Cell> {
        vec![
            Cell::new(&self.dataset),
            Cell::new(self.rows),
            Cell::new(self.bytes).shown_as(show_size(self.bytes)),
            Cell::new(self.segments),
            Cell::new(self.columns),
            Cell::optional(self.first_time.as_ref()),
            Cell::optional(self.last_time.as_ref()),
        ]
    }
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<Exit, Failure> {
    let (document, datasets) = ask_for_list::<Dataset>(globals, "/api/datasets", "datasets")?;
    let listing = Listing {
        format: "perflab.datasets/1",
        document,
        columns: &COLUMNS,
        rows: datasets.iter().map(Dataset::cells).collect(),
        nothing: "no datasets yet: `perflab log CATEGORY MESSAGE` makes one",
    };
    output::listing(&listing, args.printed.format)?;
    Ok(Exit::Done)
}
