//! `perflab category set`: how a category is kept.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use http::Method;
use perflab_model::CategoryName;
use serde_json::{Map, Value, json};

use crate::cli::Globals;
use crate::client::{Call, Client, encode_query};
use crate::commands::{ask, read_text};
use crate::failure::{Exit, Explain, Failure};
use crate::output::note;
use crate::quantity::{QuantityError, parse_duration, parse_size, show_duration, show_size};

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Action {
    Set(SetArgs),
}

/// Change the settings that are given; the others stay
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  perflab category set builds --retain 90d --max-size 20G
  perflab category set traces --guarantee fast
  perflab category set perfpipe_pytorch_benchmarks --schema schema.json
  perflab category set builds --retain forever --schema none")]
pub(crate) struct SetArgs {
    /// The category, which need not exist yet
    category: CategoryName,
    /// When a message is acknowledged
    #[arg(long, value_enum)]
    guarantee: Option<Guarantee>,
    /// Remove messages older than this: 90d, 24h, or `forever` to keep them
    #[arg(long, value_name = "AGE", value_parser = parse_retain)]
    retain: Option<Limit>,
    /// Remove the oldest messages beyond this size: 20G, 512M, or `unlimited`
    #[arg(long, value_name = "SIZE", value_parser = parse_max_size)]
    max_size: Option<Limit>,
    /// Refuse fields that this JSON file does not name, as in {"int": ["time"], "normal": ["host"]};
    /// `none` takes any
    #[arg(long, value_name = "FILE", verbatim_doc_comment)]
    schema: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Guarantee {
    /// Once it is on disk
    Durable,
    /// At once: the last messages are lost when the machine fails
    Fast,
}

/// A limit, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limit(pub(crate) Option<u64>);

pub(crate) fn parse_retain(text: &str) -> Result<Limit, QuantityError> {
    match text {
        "forever" => Ok(Limit(None)),
        text => Ok(Limit(Some(parse_duration(text)?.as_secs()))),
    }
}

pub(crate) fn parse_max_size(text: &str) -> Result<Limit, QuantityError> {
    match text {
        "unlimited" => Ok(Limit(None)),
        text => Ok(Limit(Some(parse_size(text)?))),
    }
}

pub(crate) fn run(action: &Action, globals: &Globals) -> Result<Exit, Failure> {
    let Action::Set(args) = action;
    let changes = changes(args)?;
    if changes.is_empty() {
        return Err(Failure::new(Exit::Usage, "nothing to set")
            .with_hint("give --guarantee, --retain, --max-size or --schema"));
    }
    let path = format!("/api/categories?category={}", encode_query(args.category.as_str()));
    let call = Call::new(Method::PUT, path).json(&Value::Object(changes));
    let settings = ask(globals, async |client: &mut Client| client.document::<Value>(&call).await)?;
    note(&describe(&args.category, &settings));
    Ok(Exit::Done)
}

fn changes(args: &SetArgs) -> Result<Map<String, Value>, Failure> {
    let mut changes = Map::new();
    if let Some(guarantee) = args.guarantee {
        let word = match guarantee {
            Guarantee::Durable => "durable",
            Guarantee::Fast => "fast",
        };
        changes.insert("guarantee".to_owned(), json!(word));
    }
    if let Some(Limit(seconds)) = args.retain {
        changes.insert("retain_seconds".to_owned(), json!(seconds));
    }
    if let Some(Limit(bytes)) = args.max_size {
        changes.insert("max_bytes".to_owned(), json!(bytes));
    }
    if let Some(path) = &args.schema {
        changes.insert("schema".to_owned(), read_schema(path)?);
    }
    Ok(changes)
}

/// A declared schema; null for `none`.
pub(crate) fn read_schema(path: &Path) -> Result<Value, Failure> {
    if path.as_os_str() == "none" {
        return Ok(Value::Null);
    }
    serde_json::from_str(&read_text(path)?)
        .context(format!("`{}` is not JSON", path.display()))
        .exit(Exit::No)
}

fn describe(category: &CategoryName, settings: &Value) -> String {
    let guarantee = settings["guarantee"].as_str().unwrap_or("durable");
    let retain = match settings["retain_seconds"].as_u64() {
        Some(seconds) => format!("kept for {}", show_duration(seconds)),
        None => "kept forever".to_owned(),
    };
    let size = match settings["max_bytes"].as_u64() {
        Some(bytes) => format!("at most {}", show_size(bytes)),
        None => "of any size".to_owned(),
    };
    let schema = if settings["schema"].is_object() { "declared fields only" } else { "any fields" };
    format!("{category}: {guarantee}, {retain}, {size}, {schema}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_limit_is_a_limit_too() {
        assert_eq!(parse_retain("forever"), Ok(Limit(None)));
        assert_eq!(parse_retain("1h"), Ok(Limit(Some(3600))));
        assert_eq!(parse_max_size("unlimited"), Ok(Limit(None)));
        assert!(parse_max_size("forever").is_err());
    }
}
