//! `perflab spool`: what waits to be sent.

use std::time::Duration;

use perflab_log::{Spool, SpoolError, SpoolFile};
use perflab_model::Nanos;
use serde_json::{Value, json};

use crate::backlog::{self, Amount, Flushed};
use crate::cli::{Globals, Printed};
use crate::client::{Client, ServerUrl, find};
use crate::commands::{run_on, runtime};
use crate::failure::{Exit, Explain, Failure};
use crate::output::{self, Cell, Column, Listing, count, note, number, text};
use crate::quantity::show_size;
use crate::settings::Settings;
use crate::spools;

/// A running server drains its spool every second; so long it is given.
const DRAIN_WAIT: Duration = Duration::from_secs(30);
const DRAIN_POLL: Duration = Duration::from_millis(100);

/// Show what waits to be sent because no server answered, or send it now
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  perflab spool
  perflab spool --format json
  perflab spool flush"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    printed: Printed,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    Show(ShowArgs),
    Flush(FlushArgs),
}

/// Show what waits
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  perflab spool show --format csv")]
struct ShowArgs {
    #[command(flatten)]
    printed: Printed,
}

/// Send what waits, each message once
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  perflab spool flush")]
struct FlushArgs {}

pub(crate) fn run(args: Args, globals: &Globals) -> Result<Exit, Failure> {
    let settings = globals.settings()?;
    match args.action {
        None => show(args.printed, &settings),
        Some(Action::Show(args)) => show(args.printed, &settings),
        Some(Action::Flush(FlushArgs {})) => run_on(runtime()?, flush(&settings)),
    }
}

const COLUMNS: [Column; 5] =
    [text("server"), number("messages"), number("bytes"), text("oldest"), text("file")];

fn show(printed: Printed, settings: &Settings) -> Result<Exit, Failure> {
    let mut files = Vec::new();
    let local = spools::local(&settings.home).waiting()?;
    files.extend(local.into_iter().map(|file| (None, file)));
    for (server, spool) in spools::remotes(&settings.home)? {
        files.extend(spool.waiting()?.into_iter().map(|file| (Some(server.clone()), file)));
    }
    let listing = Listing {
        format: "perflab.spool/1",
        document: json!({ "files": files.iter().map(document).collect::<Vec<_>>() }),
        columns: &COLUMNS,
        rows: files.iter().map(cells).collect(),
        nothing: "nothing waits to be sent",
    };
    output::listing(&listing, printed.format)?;
    Ok(Exit::Done)
}

type Waiting = (Option<ServerUrl>, SpoolFile);

fn document((server, file): &Waiting) -> Value {
    json!({
        "server": server.as_ref().map(ToString::to_string),
        "messages": file.records,
        "bytes": file.bytes,
        "bad_bytes": file.bad_bytes,
        "oldest": file.oldest_ns.map(|ns| Nanos(ns).to_string()),
        "file": file.path.display().to_string(),
    })
}

fn cells((server, file): &Waiting) -> Vec<Cell> {
    vec![
        Cell::optional(server.as_ref()).shown_as(
            server.as_ref().map_or_else(|| "this home's".to_owned(), ToString::to_string),
        ),
        Cell::new(file.records),
        Cell::new(file.bytes).shown_as(show_size(file.bytes)),
        Cell::optional(file.oldest_ns.map(Nanos)),
        Cell::new(file.path.display()),
    ]
}

/// Where nobody answers, what waits goes on waiting, and is no reason not to send the rest.
async fn flush(settings: &Settings) -> Result<Exit, Failure> {
    let mut flushed = Flushed::default();
    let mut failed = None;
    let mut add = |sent: Result<Flushed, Failure>| match sent {
        Ok(sent) => {
            flushed.sent += sent.sent;
            flushed.refused += sent.refused;
        }
        Err(failure) => {
            failed.get_or_insert(output::failure(&failure));
        }
    };
    let local = spools::local(&settings.home);
    let was_empty = local.is_empty()?;
    if !was_empty {
        add(flush_local(settings, &local).await);
    }
    for (server, spool) in spools::remotes(&settings.home)? {
        let mut client = Client::of_server(server.clone(), settings.token_for(&server).cloned());
        let sent = backlog::flush(&mut client, &spool, Amount::Everything).await;
        add(sent.context(format!("failed to send what waits for {server}")));
    }
    Ok(tell(&flushed, was_empty, failed))
}

/// A running server drains the spool itself; without one, finding the home does it.
async fn flush_local(settings: &Settings, spool: &Spool) -> Result<Flushed, Failure> {
    let waiting: u64 = spool.waiting()?.iter().map(|file| file.records).sum();
    let mut here = settings.clone();
    here.server = None;
    let client = find(&here).await?;
    let report = client.drained();
    let patience = if report.is_some() { Duration::ZERO } else { DRAIN_WAIT };
    let drained = tokio::time::timeout(patience, async {
        while !spool.is_empty()? {
            tokio::time::sleep(DRAIN_POLL).await;
        }
        Ok::<(), SpoolError>(())
    });
    let drained = drained.await;
    client.close().await;
    let drained = drained.map_err(|_elapsed| {
        let message = format!("the spool of `{}` was not drained", settings.home.display());
        Failure::new(Exit::Failed, message)
            .with_hint("nothing is lost; the warnings above or the server's log say why")
    })?;
    drained?;
    Ok(match report {
        Some(report) => {
            Flushed { sent: report.records + report.duplicates, refused: report.refused }
        }
        None => {
            let messages = count(waiting, "message");
            note(&format!(
                "{messages} handed to the server; what it refuses is in perflab/rejected"
            ));
            Flushed::default()
        }
    })
}

/// Says what was done; what could not be done has been said. The first failure gives the code.
fn tell(flushed: &Flushed, was_empty: bool, failed: Option<Exit>) -> Exit {
    match flushed.sent {
        0 if flushed.refused == 0 && was_empty && failed.is_none() => {
            note("nothing waits to be sent");
        }
        0 => {}
        sent => note(&format!("{} sent", count(sent, "message"))),
    }
    if flushed.refused > 0 {
        note(&format!(
            "{} refused: see `perflab tail perflab/rejected`",
            count(flushed.refused, "message")
        ));
    }
    let by_count = if flushed.refused > 0 { Exit::No } else { Exit::Done };
    failed.unwrap_or(by_count)
}
