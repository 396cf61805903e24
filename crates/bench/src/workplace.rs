//! Where a benchmark works, and the program that it measures.

use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};

/// What to measure, and on which disk.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct WorkplaceSettings {
    /// The program to measure [default: `perflab` beside this program]
    #[arg(long)]
    perflab: Option<PathBuf>,
    /// The folder, on the disk to measure, for everything that is written [default: `bench-data`
    /// in the target folder]
    #[arg(long)]
    dir: Option<PathBuf>,
}

/// A folder of the benchmark's own, and the program.
#[derive(Debug)]
pub(crate) struct Workplace {
    pub(crate) perflab: PathBuf,
    /// Removed at the end.
    folder: tempfile::TempDir,
}

impl Workplace {
    pub(crate) fn new(settings: &WorkplaceSettings) -> Result<Self> {
        let program = std::env::current_exe()?;
        let beside = program.parent().context("this program is in no folder")?;
        let parent = match &settings.dir {
            Some(dir) => dir.clone(),
            None => beside.parent().unwrap_or(beside).join("bench-data"),
        };
        std::fs::create_dir_all(&parent)
            .with_context(|| format!("failed to create {}", parent.display()))?;
        let perflab = match &settings.perflab {
            Some(perflab) => perflab.clone(),
            None => beside.join("perflab"),
        };
        // Said now, not after minutes of measuring everything else.
        if !perflab.is_file() {
            bail!("there is no program {} (`cargo build --release` makes it)", perflab.display());
        }
        Ok(Self { perflab, folder: tempfile::tempdir_in(parent)? })
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A new empty folder on the disk that is measured.
    pub(crate) fn new_folder(&self) -> Result<tempfile::TempDir> {
        Ok(tempfile::tempdir_in(&self.folder)?)
    }
}
