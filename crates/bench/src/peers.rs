//! Other stores taking the same rows, by the scripts in `bench/`.

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A store and the script that fills it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    script: &'static str,
}

pub(crate) const PEERS: [Peer; 2] = [
    Peer { name: "DuckDB", script: "duckdb_insert.py" },
    Peer { name: "chDB", script: "chdb_insert.py" },
];

/// Where the scripts are, and what runs them.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct PeerSettings {
    /// The Python with DuckDB and chDB
    #[arg(long, default_value = ".venv/bin/python")]
    pub(crate) python: PathBuf,
    /// The folder of the scripts
    #[arg(long, default_value = "bench")]
    pub(crate) scripts: PathBuf,
    /// Leave out DuckDB and chDB
    #[arg(long)]
    pub(crate) without_peers: bool,
}

/// What a script writes on stdout.
#[derive(Debug, Deserialize)]
pub(crate) struct PeerOutcome {
    pub(crate) version: String,
    pub(crate) rows: u64,
    wall_s: f64,
    cpu_s: f64,
}

impl PeerOutcome {
    pub(crate) fn rows_per_s(&self) -> f64 {
        self.rows as f64 / self.wall_s
    }

    pub(crate) fn cpu_us_per_row(&self) -> f64 {
        self.cpu_s * 1e6 / self.rows as f64
    }
}

impl Peer {
    /// Inserts the `rows` messages of `ndjson` into a store in the new folder `folder`.
    pub(crate) fn insert(
        self,
        settings: &PeerSettings,
        ndjson: &Path,
        folder: &Path,
        rows: u64,
    ) -> Result<PeerOutcome> {
        let python = &settings.python;
        let output = Command::new(python)
            .arg(settings.scripts.join(self.script))
            .args([ndjson, folder])
            .output()
            .with_context(|| {
                format!("failed to run {} (`make setup-bench` makes it)", python.display())
            })?;
        if !output.status.success() {
            let stderr = String::from_utf8_lossy(&output.stderr);
            bail!("{} failed: {}", self.script, stderr.trim());
        }
        let outcome: PeerOutcome = serde_json::from_slice(&output.stdout)
            .with_context(|| format!("{} wrote no result", self.script))?;
        if outcome.rows != rows {
            bail!("{} has {} of {rows} rows", self.name, outcome.rows);
        }
        Ok(outcome)
    }
}
