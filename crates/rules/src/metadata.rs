//! What `cargo metadata` says, reduced to what the rules look at.

use serde::Deserialize;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Why the workspace can't be read.
#[derive(Debug, thiserror::Error)]
pub enum MetadataError {
    #[error("failed to run `cargo metadata`")]
    Run(#[source] io::Error),
    #[error("`cargo metadata` failed: {stderr}")]
    Failed { stderr: String },
    #[error("`cargo metadata` wrote something else than its JSON")]
    Json(#[source] serde_json::Error),
}

/// The packages of the workspace and of everything it depends on, on this platform.
#[derive(Debug, Deserialize)]
pub struct Metadata {
    pub packages: Vec<Package>,
    pub workspace_members: BTreeSet<String>,
    pub resolve: Resolve,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Package {
    pub id: String,
    pub name: String,
    pub version: String,
    pub license: Option<String>,
    pub manifest_path: PathBuf,
    pub targets: Vec<Target>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Target {
    pub kind: Vec<String>,
    pub src_path: PathBuf,
}

/// The dependency graph as cargo resolved it.
#[derive(Debug, Deserialize)]
pub struct Resolve {
    pub nodes: Vec<Node>,
}

#[derive(Debug, Deserialize)]
pub struct Node {
    pub id: String,
    pub deps: Vec<NodeDependency>,
}

#[derive(Debug, Deserialize)]
pub struct NodeDependency {
    pub pkg: String,
    pub dep_kinds: Vec<DependencyKind>,
}

#[derive(Debug, Deserialize)]
pub struct DependencyKind {
    /// `None` for a normal dependency, else `dev` or `build`.
    pub kind: Option<String>,
}

impl Metadata {
    /// Asks cargo about the workspace that holds `manifest`.
    ///
    /// Offline, and for this platform alone: whoever runs a test of the workspace has just built
    /// it, so every manifest that is needed is there; those of other platforms may not be.
    pub fn load(cargo: &Path, manifest: &Path) -> Result<Self, MetadataError> {
        let output = Command::new(cargo)
            .args(["metadata", "--format-version", "1", "--offline"])
            .args(["--filter-platform", "host-tuple", "--manifest-path"])
            .arg(manifest)
            .output()
            .map_err(MetadataError::Run)?;
        if !output.status.success() {
            let stderr = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(MetadataError::Failed { stderr });
        }
        serde_json::from_slice(&output.stdout).map_err(MetadataError::Json)
    }

    /// The workspace's own packages.
    pub fn members(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| self.workspace_members.contains(&package.id))
    }

    /// The packages that aren't ours.
    pub fn others(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| !self.workspace_members.contains(&package.id))
    }
}

impl Package {
    /// The file that a reader opens first: `lib.rs`, or `main.rs` where there is no library.
    pub fn root_file(&self) -> Option<&Path> {
        let of_kind = |wanted: &str| {
            self.targets.iter().find(|target| target.kind.iter().any(|kind| kind == wanted))
        };
        let target = of_kind("lib").or_else(|| of_kind("bin"))?;
        Some(&target.src_path)
    }
}
