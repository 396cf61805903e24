//! The rules of the workspace, run on the workspace; and each rule shown to find what it forbids.

mod edges;
mod licences;
mod manifests;
mod versions;

use perflab_rules::Metadata;
use std::path::{Path, PathBuf};

fn workspace() -> Metadata {
    // Tests run in their crate's folder. Where it was when they were compiled may be elsewhere:
    // a target folder outlives the clone it was made for.
    let manifest = Path::new("Cargo.toml");
    let cargo = std::env::var_os("CARGO").map_or_else(|| "cargo".into(), PathBuf::from);
    match Metadata::load(&cargo, manifest) {
        Ok(metadata) => metadata,
        Err(error) => panic!("{error}"),
    }
}

/// Fails with one line per violation.
#[track_caller]
fn assert_none(violations: &[String]) {
    assert!(violations.is_empty(), "\n{}\n", violations.join("\n"));
}
