//! `perflab sql`: asks about rows in SQL.

use std::io::{self, Read};

use axum::body::Body;
use http::{Method, Response};
use http_body_util::BodyExt;
use perflab_sql::SQL_BYTES_MAX;

use crate::answer::{self, Answer};
use crate::cli::Globals;
use crate::client::{Call, Client, LONG_ANSWER_TIMEOUT, refusal};
use crate::commands::ask;
use crate::failure::{Exit, Explain, Failure};
use crate::output;

/// The header in which the server says what an answer misses.
const MISSING: &str = "perflab-missing";

/// Ask about rows in SQL
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A dataset is a table with the columns time, weight and those of its rows. Names with other
characters than letters, digits and _ go in double quotes, texts in single ones.

Examples:
  perflab sql 'SELECT job, sum(weight) FROM builds GROUP BY job'
  perflab sql \"SELECT percentile(latency, 0.99, weight) FROM builds WHERE status = 'ok'\"
  perflab sql \"SELECT * FROM builds WHERE time > now() - INTERVAL '1 hour'\" --format csv
  perflab sql 'DESCRIBE \"ci/builds\"'
  perflab sql - --format arrow < query.sql > answer.arrow")]
pub(crate) struct Args {
    /// The query; `-` reads it from standard input
    #[arg(value_name = "QUERY")]
    sql: String,
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

/// How an answer is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// For people
    Table,
    /// The document that the server answers with
    Json,
    /// With a header line
    Csv,
    /// An Arrow IPC stream
    Arrow,
    /// A Parquet file
    Parquet,
}

impl Format {
    fn media_type(self) -> &'static str {
        match self {
            Self::Table | Self::Json => "application/json",
            Self::Csv => "text/csv",
            Self::Arrow => "application/vnd.apache.arrow.stream",
            Self::Parquet => "application/vnd.apache.parquet",
        }
    }
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<Exit, Failure> {
    let sql = if args.sql == "-" { read_query()? } else { args.sql.clone() };
    let mut call = Call::new(Method::POST, "/api/sql").body("text/plain; charset=utf-8", sql);
    call = call.header("accept", args.format.media_type());
    call.answer_timeout = LONG_ANSWER_TIMEOUT;
    ask(globals, async |client: &mut Client| match args.format {
        Format::Table => {
            let answer: Answer = client.document(&call).await?;
            answer::print_table(&answer)
        }
        Format::Json => {
            print_stream(client, &call).await?;
            output::bytes(b"\n")
        }
        Format::Csv | Format::Arrow | Format::Parquet => {
            let missing = print_stream(client, &call).await?;
            missing.iter().for_each(|missing| answer::warn_of_missing(missing));
            Ok(())
        }
    })?;
    Ok(Exit::Done)
}

/// No more than a byte beyond the longest query: the server says that it is too long.
fn read_query() -> Result<String, Failure> {
    let mut sql = String::new();
    let mut input = io::stdin().lock().take(SQL_BYTES_MAX as u64 + 1);
    input.read_to_string(&mut sql).context("failed to read the query")?;
    Ok(sql)
}

/// Prints an answer as it comes; returns what is missing in it.
async fn print_stream(client: &mut Client, call: &Call) -> Result<Option<String>, Failure> {
    let response = client.send(call).await?;
    let status = response.status();
    if !status.is_success() {
        let body = response.into_body().collect().await.map(|body| body.to_bytes());
        return Err(refusal(status, &body.unwrap_or_default(), &client.target()));
    }
    let missing = missing(&response);
    let mut body = response.into_body();
    while let Some(frame) = body.frame().await {
        let frame = frame.context(format!("the answer of {} broke off", client.target()))?;
        output::bytes(&frame.into_data().unwrap_or_default())?;
    }
    Ok(missing)
}

fn missing(response: &Response<Body>) -> Option<String> {
    let missing = response.headers().get(MISSING)?;
    Some(String::from_utf8_lossy(missing.as_bytes()).into_owned())
}
