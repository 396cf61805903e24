//! What each crate's own files must look like.

use std::fs;
use std::path::Path;
use toml::{Table, Value};

/// A crate with no more lines of code than this is a placeholder.
const PLACEHOLDER_LINES_MAX: usize = 5;

/// The tables of a manifest that name dependencies.
const DEPENDENCY_TABLES: [&str; 3] = ["dependencies", "dev-dependencies", "build-dependencies"];

/// What is wrong with a manifest: lints that aren't the workspace's, versions of its own.
pub fn manifest_violations(manifest: &str) -> Vec<String> {
    let table: Table = match manifest.parse() {
        Ok(table) => table,
        Err(error) => return vec![format!("is not TOML: {error}")],
    };
    let mut found = Vec::new();
    if !is_from_workspace(table.get("lints")) {
        found.push("lacks `[lints] workspace = true`".to_owned());
    }
    found.extend(dependency_violations(&table));
    let targets = table.get("target").and_then(Value::as_table);
    for platform in targets.into_iter().flat_map(Table::values) {
        found.extend(platform.as_table().into_iter().flat_map(dependency_violations));
    }
    found
}

fn dependency_violations(table: &Table) -> Vec<String> {
    DEPENDENCY_TABLES
        .iter()
        .filter_map(|name| table.get(*name)?.as_table())
        .flatten()
        .filter(|(_, dependency)| !is_from_workspace(Some(dependency)))
        .map(|(name, _)| format!("declares `{name}` without `workspace = true`"))
        .collect()
}

fn is_from_workspace(value: Option<&Value>) -> bool {
    let workspace = value.and_then(|value| value.get("workspace"));
    workspace.and_then(Value::as_bool) == Some(true)
}

/// Whether the crate's first file starts by saying what the crate is.
pub fn starts_with_doc(source: &str) -> bool {
    let first = source.lines().next().unwrap_or_default();
    first.strip_prefix("//!").is_some_and(|doc| !doc.trim().is_empty())
}

/// Whether the crate in `folder` has real code.
pub fn has_code(folder: &Path) -> std::io::Result<bool> {
    Ok(code_lines(&folder.join("src"))? > PLACEHOLDER_LINES_MAX)
}

/// The lines under `folder` that are neither blank nor a comment.
fn code_lines(folder: &Path) -> std::io::Result<usize> {
    let mut lines = 0;
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            lines += code_lines(&path)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            lines += fs::read_to_string(&path)?
                .lines()
                .map(str::trim)
                .filter(|line| !line.is_empty() && !line.starts_with("//"))
                .count();
        }
    }
    Ok(lines)
}
