//! `perflab thrift`: names for the fields of structured messages.

use std::path::PathBuf;

use http::Method;
use serde::Deserialize;

use crate::cli::{Globals, Printed};
use crate::client::{Call, Client, encode_query};
use crate::commands::{ask, ask_for_list, read_text};
use crate::failure::{Exit, Explain, Failure};
use crate::output::{self, Cell, Column, Listing, note, text};

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Action {
    Register(RegisterArgs),
    List(ListArgs),
}

/// Register an IDL file; messages that are already there get their names too
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  perflab thrift register torch_open_source_signpost.thrift")]
pub(crate) struct RegisterArgs {
    /// The file; the struct `XLogEntry` in it names the fields of category `X`
    file: PathBuf,
}

/// List what is registered
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  perflab thrift list")]
pub(crate) struct ListArgs {
    #[command(flatten)]
    printed: Printed,
}

pub(crate) fn run(action: &Action, globals: &Globals) -> Result<Exit, Failure> {
    match action {
        Action::Register(args) => register(args, globals),
        Action::List(args) => list(args, globals),
    }
}

fn register(args: &RegisterArgs, globals: &Globals) -> Result<Exit, Failure> {
    #[derive(Deserialize)]
    struct Registered {
        targets: Vec<String>,
    }
    let idl = read_text(&args.file)?;
    let name = args.file.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let call = Call::new(Method::POST, format!("/api/thrift?name={}", encode_query(&name)))
        .body("text/plain; charset=utf-8", idl);
    let registered =
        ask(globals, async |client: &mut Client| client.document::<Registered>(&call).await)
            .context(format!("failed to register `{}`", args.file.display()))?;
    note(&format!("registered: {}", registered.targets.join(", ")));
    Ok(Exit::Done)
}

const COLUMNS: [Column; 3] = [text("name"), text("targets"), text("registered")];

fn list(args: &ListArgs, globals: &Globals) -> Result<Exit, Failure> {
    #[derive(Deserialize)]
    struct Listed {
        name: String,
        #[serde(default)]
        targets: Vec<String>,
        registered: Option<String>,
    }
    let (document, idls) = ask_for_list::<Listed>(globals, "/api/thrift", "idls")?;
    let row = |idl: &Listed| {
        let registered = Cell::optional(idl.registered.as_ref());
        vec![Cell::new(&idl.name), Cell::new(idl.targets.join(" ")), registered]
    };
    let listing = Listing {
        format: "perflab.thrift/1",
        rows: idls.iter().map(row).collect(),
        document,
        columns: &COLUMNS,
        nothing: "no IDLs: fields of structured messages are called f1, f2, …",
    };
    output::listing(&listing, args.printed.format)?;
    Ok(Exit::Done)
}
