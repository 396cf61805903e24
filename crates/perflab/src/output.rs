//! The one place that prints. stdout is data, stderr is talk.

use std::io::{self, IsTerminal, Write};

use clap::ValueEnum;
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use serde_json::{Value, json};

use crate::delivery::Outcome;
use crate::failure::{Exit, Explain, Failure, OutputClosed};

/// How data is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    Table,
    /// One document with a `format` field that names its version; for `tail`, one object per line
    Json,
    /// With a header line
    Csv,
}

/// A column of a listing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    name: &'static str,
    is_number: bool,
}

pub(crate) const fn text(name: &'static str) -> Column {
    Column { name, is_number: false }
}

pub(crate) const fn number(name: &'static str) -> Column {
    Column { name, is_number: true }
}

/// A cell: what a program reads and what a person reads may differ, as in `1048576` and `1 MiB`.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    exact: String,
    shown: String,
}

impl Cell {
    #[expect(clippy::needless_pass_by_value, reason = "numbers and texts alike, without a `&`")]
    pub(crate) fn new(value: impl ToString) -> Self {
        Self { exact: value.to_string(), shown: value.to_string() }
    }

    pub(crate) fn shown_as(self, shown: impl Into<String>) -> Self {
        Self { shown: shown.into(), ..self }
    }

    /// Nothing, shown as a dash.
    pub(crate) fn optional(value: Option<impl ToString>) -> Self {
        match value {
            Some(value) => Self::new(value),
            None => Self { exact: String::new(), shown: "-".to_owned() },
        }
    }
}

/// What a reading command found.
#[derive(Debug)]
pub(crate) struct Listing<'a> {
    /// The name and version of the JSON document, as in `perflab.categories/1`.
    pub(crate) format: &'static str,
    /// The content of the JSON document, an object.
    pub(crate) document: Value,
    pub(crate) columns: &'a [Column],
    pub(crate) rows: Vec<Vec<Cell>>,
    /// Said on stderr instead of an empty table.
    pub(crate) nothing: &'a str,
}

/// Prints a listing.
pub(crate) fn listing(listing: &Listing<'_>, format: Format) -> Result<(), Failure> {
    match format {
        Format::Json => data(&format!("{:#}\n", versioned(listing))),
        Format::Csv => data(&csv(listing)?),
        Format::Table if listing.rows.is_empty() => {
            note(listing.nothing);
            Ok(())
        }
        Format::Table => data(&table(listing)),
    }
}

fn versioned(listing: &Listing<'_>) -> Value {
    let mut document = json!({ "format": listing.format });
    if let (Value::Object(into), Value::Object(from)) = (&mut document, &listing.document) {
        into.extend(from.clone());
    }
    document
}

fn csv(listing: &Listing<'_>) -> Result<String, Failure> {
    let mut lines = csv_line(listing.columns.iter().map(|column| column.name))?;
    for row in &listing.rows {
        lines.push_str(&csv_line(row.iter().map(|cell| cell.exact.as_str()))?);
    }
    Ok(lines)
}

/// One line of CSV with its end.
pub(crate) fn csv_line<'a>(cells: impl Iterator<Item = &'a str>) -> Result<String, Failure> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(cells)?;
    let line = writer.into_inner().map_err(|error| error.into_error())?;
    Ok(String::from_utf8_lossy(&line).into_owned())
}

fn table(listing: &Listing<'_>) -> String {
    let heads = listing.columns.iter().map(|column| (heading(column.name), column.is_number));
    let cells = |row: &Vec<Cell>| row.iter().map(|cell| cell.shown.clone()).collect();
    grid(heads.collect(), listing.rows.iter().map(cells))
}

/// Rows under heads, of which some are of numbers.
pub(crate) fn grid(heads: Vec<(String, bool)>, rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    // In a file or a pipe nobody wants lines broken.
    table.set_content_arrangement(if is_terminal() {
        ContentArrangement::Dynamic
    } else {
        ContentArrangement::Disabled
    });
    table.set_header(heads.iter().map(|(head, _)| visible(head)));
    for row in rows {
        table.add_row(row.iter().map(|cell| visible(cell)));
    }
    for (index, (_, is_number)) in heads.into_iter().enumerate() {
        if let Some(cells) = table.column_mut(index) {
            cells.set_padding((0, 2));
            if is_number {
                cells.set_cell_alignment(CellAlignment::Right);
            }
        }
    }
    let mut shown = table.trim_fmt();
    shown.push('\n');
    shown
}

/// Whether data goes to a person.
pub(crate) fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

fn heading(name: &str) -> String {
    name.replace('_', " ").to_uppercase()
}

/// Text of others without what a terminal would act upon.
pub(crate) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() { shown.extend(c.escape_default()) } else { shown.push(c) }
    }
    shown
}

/// Prints data as it is.
pub(crate) fn data(text: &str) -> Result<(), Failure> {
    bytes(text.as_bytes())
}

/// Prints data that is no text.
pub(crate) fn bytes(bytes: &[u8]) -> Result<(), Failure> {
    write_to(&mut io::stdout().lock(), bytes)
}

fn write_to(out: &mut impl Write, bytes: &[u8]) -> Result<(), Failure> {
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(OutputClosed.into()),
        written => written.context("failed to write the output"),
    }
}

/// Prints a usage that was asked for.
pub(crate) fn help(usage: &str) {
    data(&format!("{usage}\n")).ok();
}

/// Says something to the person at the terminal.
pub(crate) fn note(text: &str) {
    // Nowhere is left to say that stderr is gone.
    writeln!(io::stderr(), "{text}").ok();
}

/// Says what went wrong; a reader who has gone away is not told.
pub(crate) fn failure(failure: &Failure) -> Exit {
    if failure.is_output_closed() {
        return Exit::Done;
    }
    write!(io::stderr(), "{failure}").ok();
    failure.exit()
}

/// Says why messages were refused, and which.
pub(crate) fn refusals(outcome: &Outcome) {
    for refused in &outcome.reasons {
        let place = match refused.line {
            0 => String::new(),
            line => format!("line {line}: "),
        };
        note(&format!("error: {place}refused ({}): {}", refused.code, visible(&refused.reason)));
    }
    let untold = outcome.refused - outcome.reasons.len() as u64;
    if untold > 0 {
        note(&format!("error: {untold} more refused"));
    }
}

/// Says where sending the lines of an input stopped.
pub(crate) fn stop(outcome: &Outcome) {
    if let Some(line) = outcome.first_unsent_line {
        note(&format!("stopped at line {line}: nothing from there on is certain to be sent"));
    }
}

/// `1 message`, `2 messages`.
pub(crate) fn count(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Whether talk may have colours: on a terminal, and nobody said NO_COLOR.
pub(crate) fn talk_has_colour() -> bool {
    let is_unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    io::stderr().is_terminal() && !is_unwanted
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 2] = [text("name"), number("first_bytes")];

    fn example() -> Listing<'static> {
        Listing {
            format: "perflab.example/1",
            document: json!({ "things": [{ "name": "a", "bytes": 2048 }] }),
            columns: &COLUMNS,
            rows: vec![
                vec![Cell::new("a"), Cell::new(2048).shown_as("2.0 KiB")],
                vec![Cell::new("b\u{1b}[31m, c"), Cell::optional(None::<u64>)],
            ],
            nothing: "no things",
        }
    }

    #[test]
    fn a_table_is_for_people() {
        assert_eq!(
            table(&example()),
            "NAME            FIRST BYTES\n\
             a                   2.0 KiB\n\
             b\\u{1b}[31m, c            -\n"
        );
    }

    #[test]
    fn a_reader_who_has_gone_is_told_from_a_full_disk() {
        let (reader, mut writer) = io::pipe().unwrap();
        drop(reader);
        assert!(write_to(&mut writer, b"x").unwrap_err().is_output_closed());
        let mut full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        assert!(!write_to(&mut full, b"x").unwrap_err().is_output_closed());
    }

    #[test]
    fn csv_and_json_are_for_programs() {
        assert_eq!(csv(&example()).unwrap(), "name,first_bytes\na,2048\n\"b\u{1b}[31m, c\",\n");
        assert_eq!(
            versioned(&example()).to_string(),
            r#"{"format":"perflab.example/1","things":[{"bytes":2048,"name":"a"}]}"#
        );
    }
}
