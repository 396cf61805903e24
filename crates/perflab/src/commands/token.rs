//! `perflab token`: who may write and read.

use std::time::Duration;

use http::Method;
use serde::Deserialize;
use serde_json::json;

use crate::cli::{Globals, Printed};
use crate::client::{Call, Client, encode_query};
use crate::commands::{ask, ask_for_list};
use crate::failure::{Exit, Failure};
use crate::output::{self, Cell, Column, Listing, note, text};
use crate::quantity::{parse_duration, show_duration};

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Action {
    Add(AddArgs),
    List(ListArgs),
    Remove(RemoveArgs),
}

/// Make a token and print it; it is never shown again
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  perflab token add --name ci --write 'perfpipe_*' --expires 90d
  perflab token add --name dashboard --read '*'
  PERFLAB_TOKEN=$(perflab token add --name me --admin)")]
pub(crate) struct AddArgs {
    /// What to call it; each name once
    #[arg(long)]
    name: String,
    /// Categories that it may write to; `*` stands for anything
    #[arg(long, value_name = "GLOB")]
    write: Vec<String>,
    /// Categories that it may read
    #[arg(long, value_name = "GLOB")]
    read: Vec<String>,
    /// It may also change settings, tokens and IDLs
    #[arg(long)]
    admin: bool,
    /// It ends after this time, as in 90d
    #[arg(long, value_name = "AGE", value_parser = parse_duration)]
    expires: Option<Duration>,
}

/// List the tokens, without what is secret of them
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  perflab token list --format json")]
pub(crate) struct ListArgs {
    #[command(flatten)]
    printed: Printed,
}

/// Remove a token; requests with it are refused from now on
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  perflab token remove ci")]
pub(crate) struct RemoveArgs {
    /// Its name
    name: String,
}

const COLUMNS: [Column; 6] =
    [text("name"), text("write"), text("read"), text("admin"), text("created"), text("expires")];

#[derive(Debug, Deserialize)]
struct Listed {
    name: String,
    write: Vec<String>,
    read: Vec<String>,
    #[serde(default)]
    admin: bool,
    created: Option<String>,
    expires: Option<String>,
}

impl Listed {
    fn cells(&self) -> Vec<Cell> {
        let globs = |globs: &[String]| (!globs.is_empty()).then(|| globs.join(" "));
        vec![
            Cell::new(&self.name),
            Cell::optional(globs(&self.write)),
            Cell::optional(globs(&self.read)),
            Cell::new(self.admin).shown_as(if self.admin { "yes" } else { "no" }),
            Cell::optional(self.created.as_ref()),
            Cell::optional(self.expires.as_ref())
                .shown_as(self.expires.as_deref().unwrap_or("never")),
        ]
    }
}

pub(crate) fn run(action: &Action, globals: &Globals) -> Result<Exit, Failure> {
    match action {
        Action::Add(args) => add(args, globals),
        Action::List(args) => list(args, globals),
        Action::Remove(args) => remove(args, globals),
    }
}

fn add(args: &AddArgs, globals: &Globals) -> Result<Exit, Failure> {
    if args.write.is_empty() && args.read.is_empty() && !args.admin {
        return Err(Failure::new(Exit::Usage, "a token that may do nothing")
            .with_hint("give --write GLOB, --read GLOB or --admin"));
    }
    let mut wanted = json!({ "name": args.name, "write": args.write, "read": args.read });
    if args.admin {
        wanted["admin"] = json!(true);
    }
    if let Some(expires) = args.expires {
        wanted["expires_seconds"] = json!(expires.as_secs());
    }
    #[derive(Deserialize)]
    struct Made {
        token: String,
    }
    let call = Call::new(Method::POST, "/api/tokens").json(&wanted);
    let made = ask(globals, async |client: &mut Client| client.document::<Made>(&call).await)?;
    note(&describe(args));
    output::data(&format!("{}\n", made.token))?;
    Ok(Exit::Done)
}

fn describe(args: &AddArgs) -> String {
    let mut rights = Vec::new();
    if !args.write.is_empty() {
        rights.push(format!("may write {}", args.write.join(", ")));
    }
    if !args.read.is_empty() {
        rights.push(format!("may read {}", args.read.join(", ")));
    }
    if args.admin {
        rights.push("may administer".to_owned());
    }
    let ends = match args.expires {
        Some(expires) => format!("ends in {}", show_duration(expires.as_secs())),
        None => "never ends".to_owned(),
    };
    format!(
        "token `{}`: {}, {ends}; this is the only time it is shown",
        args.name,
        rights.join(", ")
    )
}

fn list(args: &ListArgs, globals: &Globals) -> Result<Exit, Failure> {
    let (document, tokens) = ask_for_list::<Listed>(globals, "/api/tokens", "tokens")?;
    let listing = Listing {
        format: "perflab.tokens/1",
        document,
        columns: &COLUMNS,
        rows: tokens.iter().map(Listed::cells).collect(),
        nothing: "no tokens: on this machine, everything is open",
    };
    output::listing(&listing, args.printed.format)?;
    Ok(Exit::Done)
}

fn remove(args: &RemoveArgs, globals: &Globals) -> Result<Exit, Failure> {
    let path = format!("/api/tokens?name={}", encode_query(&args.name));
    let call = Call::new(Method::DELETE, path);
    ask(globals, async |client: &mut Client| client.done(&call).await)?;
    note(&format!("token `{}` removed", args.name));
    Ok(Exit::Done)
}
