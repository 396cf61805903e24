//! `perflab schema`: the columns of a dataset.

use serde::Deserialize;

use crate::cli::{Globals, Printed};
use crate::client::encode_query;
use crate::commands::ask_for_list;
use crate::failure::{Exit, Failure};
use crate::output::{self, Cell, Column, Listing, text};

/// List the columns of a dataset and what they hold
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  perflab schema builds
  perflab schema builds --format json")]
pub(crate) struct Args {
    /// The dataset, or its category
    dataset: String,
    #[command(flatten)]
    printed: Printed,
}

const COLUMNS: [Column; 2] = [text("column"), text("kind")];

#[derive(Debug, Deserialize)]
struct Named {
    name: String,
    kind: String,
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<Exit, Failure> {
    let path = format!("/api/datasets/{}", encode_query(&args.dataset));
    let (document, columns) = ask_for_list::<Named>(globals, &path, "schema")?;
    let cells = |column: &Named| vec![Cell::new(&column.name), Cell::new(&column.kind)];
    let listing = Listing {
        format: "perflab.schema/1",
        document,
        columns: &COLUMNS,
        rows: columns.iter().map(cells).collect(),
        nothing: "no columns yet",
    };
    output::listing(&listing, args.printed.format)?;
    Ok(Exit::Done)
}
