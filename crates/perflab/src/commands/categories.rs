//! `perflab categories`: what is in the log.

use serde::Deserialize;

use crate::cli::{Globals, Printed};
use crate::commands::ask_for_list;
use crate::failure::{Exit, Failure};
use crate::output::{self, Cell, Column, Listing, number, text};
use crate::quantity::{show_duration, show_size};

/// List the categories with their counts, sizes and settings
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  perflab categories
  perflab categories --format csv")]
pub(crate) struct Args {
    #[command(flatten)]
    printed: Printed,
}

const COLUMNS: [Column; 9] = [
    text("category"),
    text("dataset"),
    number("records"),
    number("bytes"),
    text("first_time"),
    text("last_time"),
    text("guarantee"),
    number("retain_seconds"),
    number("max_bytes"),
];

#[derive(Debug, Deserialize)]
struct Category {
    category: String,
    dataset: String,
    records: u64,
    bytes: u64,
    first_time: Option<String>,
    last_time: Option<String>,
    guarantee: String,
    retain_seconds: Option<u64>,
    max_bytes: Option<u64>,
}

impl Category {
    fn cells(&self) -> Vec<Cell> {
        let retain = Cell::optional(self.retain_seconds);
        let max_bytes = Cell::optional(self.max_bytes);
        vec![
            Cell::new(&self.category),
            Cell::new(&self.dataset),
            Cell::new(self.records),
            Cell::new(self.bytes).shown_as(show_size(self.bytes)),
            Cell::optional(self.first_time.as_ref()),
            Cell::optional(self.last_time.as_ref()),
            Cell::new(&self.guarantee),
            retain.shown_as(self.retain_seconds.map_or("forever".to_owned(), show_duration)),
            max_bytes.shown_as(self.max_bytes.map_or("unlimited".to_owned(), show_size)),
        ]
    }
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<Exit, Failure> {
    let (document, categories) =
        ask_for_list::<Category>(globals, "/api/categories", "categories")?;
    let listing = Listing {
        format: "perflab.categories/1",
        document,
        columns: &COLUMNS,
        rows: categories.iter().map(Category::cells).collect(),
        nothing: "no categories yet: `perflab log CATEGORY MESSAGE` makes one",
    };
    output::listing(&listing, args.printed.format)?;
    Ok(Exit::Done)
}
