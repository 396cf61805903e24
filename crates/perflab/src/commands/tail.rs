//! `perflab tail`: reads the messages of a category.

use axum::body::Body;
use http_body_util::BodyExt;
use perflab_model::CategoryName;
use serde::Deserialize;
use serde_json::Value;

use crate::cli::{Globals, Printed};
use crate::client::{Call, Client, encode_query, refusal};
use crate::commands::ask;
use crate::failure::{Exit, Explain, Failure};
use crate::output::{self, Format, csv_line, note, visible};

/// The longest line of an answer: a message of the largest size, escaped, and its row.
const LINE_BYTES_MAX: usize = 128 << 20;

/// Read the messages of a category
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  perflab tail builds
  perflab tail builds --from -1h --follow
  perflab tail perfpipe_builds --from 2026-11-01T00:00:00Z --limit 100 --format json")]
pub(crate) struct Args {
    /// The category, with or without its `perfpipe_`
    category: CategoryName,
    /// Begin at this offset or time: 4711, 2026-11-01T08:00:00Z, -1h, '-30 days'
    #[arg(long, value_name = "OFFSET|TIME", allow_hyphen_values = true)]
    from: Option<String>,
    /// Stay, and print messages as they come
    #[arg(long, short)]
    follow: bool,
    /// Stop after so many messages
    #[arg(long, short = 'n', value_name = "N")]
    limit: Option<u64>,
    #[command(flatten)]
    printed: Printed,
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<Exit, Failure> {
    ask(globals, async |client: &mut Client| {
        if args.follow && client.is_local() {
            return Err(Failure::new(Exit::Failed, "no server runs, so nothing new can come")
                .with_hint("start one with `perflab serve`, or leave out --follow"));
        }
        let call = Call::get(path(args));
        let response = client.send(&call).await?;
        let status = response.status();
        if !status.is_success() {
            let body = response.into_body().collect().await.map(|body| body.to_bytes());
            return Err(refusal(status, &body.unwrap_or_default(), &client.target()));
        }
        let mut printer = Printer::start(args)?;
        let mut lines = AnswerLines { body: response.into_body(), buffer: Vec::new() };
        while let Some(line) = lines.next(&client.target()).await? {
            printer.print(&line)?;
        }
        printer.finish(&client.target())
    })
}

fn path(args: &Args) -> String {
    let mut path = format!("/api/tail?category={}", encode_query(args.category.as_str()));
    if let Some(from) = &args.from {
        path.push_str("&from=");
        path.push_str(&encode_query(from));
    }
    if let Some(limit) = args.limit {
        path.push_str("&limit=");
        path.push_str(&limit.to_string());
    }
    if args.follow {
        path.push_str("&follow=true");
    }
    path
}

/// The lines of an answer as they come.
struct AnswerLines {
    body: Body,
    buffer: Vec<u8>,
}

impl AnswerLines {
    async fn next(&mut self, target: &str) -> Result<Option<Vec<u8>>, Failure> {
        let mut searched = 0;
        loop {
            if let Some(end) = memchr::memchr(b'\n', &self.buffer[searched..]) {
                let rest = self.buffer.split_off(searched + end + 1);
                return Ok(Some(std::mem::replace(&mut self.buffer, rest)));
            }
            searched = self.buffer.len();
            if searched > LINE_BYTES_MAX {
                let message = format!("a line of the answer is longer than {LINE_BYTES_MAX} bytes");
                return Err(Failure::new(Exit::Failed, message));
            }
            match self.body.frame().await {
                None => return Ok(None),
                Some(Ok(frame)) => {
                    let data = frame.into_data().unwrap_or_default();
                    self.buffer.extend_from_slice(&data);
                }
                Some(Err(error)) => {
                    return Err(Failure::from(error).context(format!("{target} stopped answering")));
                }
            }
        }
    }
}

/// A line of the answer: a message, damage, or the end.
#[derive(Debug, Deserialize)]
struct Line {
    #[serde(flatten)]
    place: Option<Place>,
    message: Option<String>,
    row: Option<Value>,
    row_error: Option<String>,
    damage: Option<Damage>,
    end: Option<End>,
}

#[derive(Debug, Deserialize)]
struct Place {
    offset: u64,
    time: String,
    category: String,
}

#[derive(Debug, Deserialize)]
struct Damage {
    file: String,
    offset: u64,
    bytes: u64,
}

#[derive(Debug, Deserialize)]
struct End {
    complete: bool,
}

/// Prints the lines in the format that was asked for.
struct Printer {
    format: Format,
    limit: Option<u64>,
    printed: u64,
    is_following: bool,
    end: Option<End>,
}

impl Printer {
    fn start(args: &Args) -> Result<Self, Failure> {
        if args.printed.format == Format::Csv {
            output::data(&csv_line(["offset", "time", "category", "message"].into_iter())?)?;
        }
        Ok(Self {
            format: args.printed.format,
            limit: args.limit,
            printed: 0,
            is_following: args.follow,
            end: None,
        })
    }

    fn print(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let line: Line = serde_json::from_slice(bytes)
            .context("the server answered what this version does not know")?;
        if let Some(damage) = &line.damage {
            let Damage { file, offset, bytes } = damage;
            note(&format!("warning: {bytes} bytes at {offset} of `{file}` are damaged"));
        }
        if line.end.is_some() {
            self.end = line.end;
            return Ok(());
        }
        if self.format == Format::Json {
            self.printed += u64::from(line.place.is_some());
            return output::bytes(bytes);
        }
        match &line.place {
            Some(place) => self.print_message(place, &line),
            None => Ok(()),
        }
    }

    fn print_message(&mut self, place: &Place, line: &Line) -> Result<(), Failure> {
        self.printed += 1;
        let message = match (&line.message, &line.row, &line.row_error) {
            (Some(message), _, _) => message.clone(),
            (None, Some(row), _) => row.to_string(),
            (None, None, error) => error.clone().unwrap_or_default(),
        };
        let offset = place.offset.to_string();
        if self.format == Format::Csv {
            let cells = [&offset, &place.time, &place.category, &message];
            return output::data(&csv_line(cells.into_iter().map(String::as_str))?);
        }
        output::data(&format!("{offset:>8}  {}  {}\n", place.time, visible(&message)))
    }

    /// An answer that just stops was cut short.
    fn finish(self, target: &str) -> Result<Exit, Failure> {
        let is_enough = self.limit.is_some_and(|limit| self.printed >= limit);
        match self.end {
            Some(End { complete: true }) => Ok(Exit::Done),
            None if is_enough => Ok(Exit::Done),
            None if self.is_following => {
                Err(Failure::new(Exit::Failed, format!("{target} ended the answer")))
            }
            Some(End { complete: false }) | None => {
                let message = format!("{target} did not answer completely");
                Err(Failure::new(Exit::Failed, message)
                    .with_hint("run `perflab check` to see whether the log is damaged"))
            }
        }
    }
}
