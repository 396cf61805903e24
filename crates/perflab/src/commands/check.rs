//! `perflab check`: are the log and the segments whole?

use http::Method;
use serde::Deserialize;
use serde_json::Value;

use crate::cli::{Globals, Printed};
use crate::client::{Call, Client, LONG_ANSWER_TIMEOUT};
use crate::commands::ask;
use crate::failure::{Exit, Explain, Failure};
use crate::output::{self, Cell, Column, Format, Listing, count, note, number, text};
use crate::quantity::show_size;

/// Read the whole log and all segments and report damage; the exit status is 1 when there is any
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  perflab check
  perflab check --quarantine --format json")]
pub(crate) struct Args {
    /// Move damaged bytes out of the log, into the home's folder `quarantine`
    #[arg(long)]
    quarantine: bool,
    #[command(flatten)]
    printed: Printed,
}

const COLUMNS: [Column; 5] =
    [text("file"), number("offset"), number("bytes"), number("lost_from"), number("lost_records")];

#[derive(Debug, Deserialize)]
struct Report {
    files: u64,
    bytes: u64,
    records: u64,
    clean: bool,
    damage: Vec<Damage>,
    unreadable: Vec<Unreadable>,
    #[serde(default)]
    quarantined: Vec<String>,
    #[serde(default)]
    segments: u64,
    #[serde(default)]
    segment_bytes: u64,
    #[serde(default)]
    damaged_segments: Vec<DamagedSegment>,
    #[serde(default)]
    unread: Vec<Unread>,
}

#[derive(Debug, Deserialize)]
struct Unread {
    rows: u64,
    error: String,
}

#[derive(Debug, Deserialize)]
struct DamagedSegment {
    dataset: String,
    rows: u64,
    error: String,
}

#[derive(Debug, Deserialize)]
struct Damage {
    file: String,
    offset: u64,
    bytes: u64,
    lost_from: Option<u64>,
    lost_records: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct Unreadable {
    file: String,
    error: String,
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<Exit, Failure> {
    let query = if args.quarantine { "?quarantine=true" } else { "" };
    let mut call = Call::new(Method::POST, format!("/api/check{query}"));
    call.answer_timeout = LONG_ANSWER_TIMEOUT;
    let document = ask(globals, async |client: &mut Client| client.document::<Value>(&call).await)?;
    let report = Report::deserialize(&document)
        .context("the server reports in a way that this version does not know")?;
    print(&report, document, args.printed.format)?;
    if args.quarantine && report.quarantined.len() < report.damage.len() {
        note("damage in the file that is being written stays there until the file is full");
    }
    Ok(if report.clean { Exit::Done } else { Exit::No })
}

fn print(report: &Report, document: Value, format: Format) -> Result<(), Failure> {
    let summary = format!(
        "{} in {}, {}; {}, {}",
        count(report.records, "record"),
        count(report.files, "file"),
        show_size(report.bytes),
        count(report.segments, "segment"),
        show_size(report.segment_bytes)
    );
    let nothing = format!("{summary}: no damage");
    if format == Format::Table && !report.damage.is_empty() {
        note(&format!("{summary}: {} damaged", count(report.damage.len() as u64, "place")));
    }
    let listing = Listing {
        format: "perflab.check/1",
        document,
        columns: &COLUMNS,
        rows: report.damage.iter().map(cells).collect(),
        nothing: if report.clean { &nothing } else { &summary },
    };
    output::listing(&listing, format)?;
    for Unreadable { file, error } in &report.unreadable {
        note(&format!("warning: `{file}` can't be read: {error}"));
    }
    for DamagedSegment { dataset, rows, error } in &report.damaged_segments {
        let rows = count(*rows, "row");
        note(&format!("a segment of `{dataset}` with {rows} is made again from the log: {error}"));
    }
    for Unread { rows, error } in &report.unread {
        note(&format!("warning: {} could not be read: {error}", count(*rows, "cold row")));
    }
    for path in &report.quarantined {
        note(&format!("moved to `{path}`"));
    }
    Ok(())
}

fn cells(damage: &Damage) -> Vec<Cell> {
    vec![
        Cell::new(&damage.file),
        Cell::new(damage.offset),
        Cell::new(damage.bytes),
        Cell::optional(damage.lost_from),
        Cell::optional(damage.lost_records),
    ]
}
