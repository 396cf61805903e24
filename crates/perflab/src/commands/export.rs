//! `perflab export`: writes rows to a Parquet file.

use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use http::Method;
use http_body_util::BodyExt;
use perflab_query::document::Document;
use serde_json::json;
use tempfile::Builder;

use crate::cli::Globals;
use crate::client::{Call, Client, LONG_ANSWER_TIMEOUT, refusal};
use crate::commands::ask;
use crate::failure::{Exit, Explain, Failure};
use crate::output;
use crate::quantity::show_size;
use crate::selection::{AnyOf, Times, all_of, parse_any_of};

/// The first and the last day that there are times of.
const EVER: (&str, &str) = ("1677-09-22", "2262-04-11");

/// Write rows to a Parquet file
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  perflab export builds -o builds.parquet
  perflab export builds --since '-30 days' --where status=failed --columns job,test -o failed.parquet")]
pub(crate) struct Args {
    /// The dataset, or its category
    dataset: String,
    /// Where to write
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
    /// Only rows for which this holds; given several times, all of them
    #[arg(long = "where", value_name = "CONDITIONS", value_parser = parse_any_of)]
    conditions: Vec<AnyOf>,
    #[command(flatten)]
    times: Times,
    /// The columns to write besides time and weight, separated by commas [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    columns: Vec<String>,
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<Exit, Failure> {
    let mut document = Document::new(&args.dataset);
    (document.since, document.until) = (EVER.0.to_owned(), EVER.1.to_owned());
    args.times.set(&mut document.since, &mut document.until, &mut document.timezone);
    document.any_of = all_of(&args.conditions)?;
    document.columns.clone_from(&args.columns);
    let mut call = Call::new(Method::POST, "/api/export").json(&json!(document));
    call.answer_timeout = LONG_ANSWER_TIMEOUT;
    let bytes = ask(globals, async |client: &mut Client| save(client, &call, &args.output).await)?;
    output::note(&format!("{} in `{}`", show_size(bytes), args.output.display()));
    Ok(Exit::Done)
}

/// Writes an answer to a file, which is there only if it is whole; returns how many bytes it has.
async fn save(client: &mut Client, call: &Call, path: &Path) -> Result<u64, Failure> {
    let response = client.send(call).await?;
    let (status, mut body) = (response.status(), response.into_body());
    if !status.is_success() {
        let body = body.collect().await.map(|body| body.to_bytes());
        return Err(refusal(status, &body.unwrap_or_default(), &client.target()));
    }
    let failed = || format!("failed to write `{}`", path.display());
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    // Who may read it is up to the user's mask, as of any file.
    let permissions = Permissions::from_mode(0o666);
    let made =
        Builder::new().permissions(permissions).tempfile_in(folder.unwrap_or(Path::new(".")));
    let mut file = made.context(failed())?;
    let mut bytes = 0;
    while let Some(frame) = body.frame().await {
        let frame = frame.context(format!("{} stopped answering", client.target()))?;
        let data = frame.into_data().unwrap_or_default();
        bytes += data.len() as u64;
        file.write_all(&data).context(failed())?;
    }
    file.persist(path).context(failed())?;
    Ok(bytes)
}
