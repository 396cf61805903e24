//! `perflab dataset set`: how the rows of a dataset are kept.

use std::path::PathBuf;

use http::Method;
use perflab_model::CategoryName;
use serde_json::{Map, Value, json};

use crate::cli::Globals;
use crate::client::{Call, Client, encode_query};
use crate::commands::ask;
use crate::commands::category::{Limit, parse_max_size, parse_retain, read_schema};
use crate::failure::{Exit, Failure};
use crate::output::note;
use crate::quantity::{show_duration, show_size};

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Action {
    Set(SetArgs),
}

/// Change the settings that are given; the others stay
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  perflab dataset set builds --retain 90d --max-bytes 20G
  perflab dataset set builds --hot 7d
  perflab dataset set builds --schema schema.json
  perflab dataset set builds --retain forever --schema none")]
pub(crate) struct SetArgs {
    /// The dataset, which need not exist yet
    dataset: CategoryName,
    /// Remove rows older than this: 90d, 24h, or `forever` to keep them
    #[arg(long, value_name = "AGE", value_parser = parse_retain)]
    retain: Option<Limit>,
    /// Remove the oldest rows beyond this size: 20G, 512M, or `unlimited`
    #[arg(long, value_name = "SIZE", value_parser = parse_max_size)]
    max_bytes: Option<Limit>,
    /// Keep rows older than this in less space, which makes questions about them slower:
    /// 30d, 24h, or `forever` to keep all as they are
    #[arg(long, value_name = "AGE", value_parser = parse_retain, verbatim_doc_comment)]
    hot: Option<Limit>,
    /// Refuse fields that this JSON file does not name, as in {"int": ["time"], "normal": ["host"]};
    /// `none` takes any
    #[arg(long, value_name = "FILE", verbatim_doc_comment)]
    schema: Option<PathBuf>,
}

pub(crate) fn run(action: &Action, globals: &Globals) -> Result<Exit, Failure> {
    let Action::Set(args) = action;
    let mut changes = Map::new();
    if let Some(Limit(seconds)) = args.retain {
        changes.insert("retain_seconds".to_owned(), json!(seconds));
    }
    if let Some(Limit(bytes)) = args.max_bytes {
        changes.insert("max_bytes".to_owned(), json!(bytes));
    }
    if let Some(Limit(seconds)) = args.hot {
        changes.insert("hot_seconds".to_owned(), json!(seconds));
    }
    if let Some(path) = &args.schema {
        changes.insert("schema".to_owned(), read_schema(path)?);
    }
    if changes.is_empty() {
        return Err(Failure::new(Exit::Usage, "nothing to set")
            .with_hint("give --retain, --max-bytes, --hot or --schema"));
    }
    let path = format!("/api/datasets/{}", encode_query(args.dataset.as_str()));
    let call = Call::new(Method::PUT, path).json(&Value::Object(changes));
    let settings = ask(globals, async |client: &mut Client| client.document::<Value>(&call).await)?;
    note(&describe(&settings));
    Ok(Exit::Done)
}

fn describe(settings: &Value) -> String {
    let dataset = settings["dataset"].as_str().unwrap_or_default();
    let retain = match settings["retain_seconds"].as_u64() {
        Some(seconds) => format!("kept for {}", show_duration(seconds)),
        None => "kept forever".to_owned(),
    };
    let size = match settings["max_bytes"].as_u64() {
        Some(bytes) => format!("at most {}", show_size(bytes)),
        None => "of any size".to_owned(),
    };
    let hot = match settings["hot_seconds"].as_u64() {
        Some(seconds) => format!("hot for {}", show_duration(seconds)),
        None => "hot forever".to_owned(),
    };
    let schema =
        if settings["declared"].is_object() { "declared fields only" } else { "any fields" };
    format!("{dataset}: {retain}, {size}, {hot}, {schema}")
}
