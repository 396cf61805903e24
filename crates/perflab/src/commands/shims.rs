//! `perflab shims`: puts the drop-in names into a folder.

use std::env;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::drop_ins::DropIn;
use crate::failure::{Exit, Explain, Failure};
use crate::output::note;

/// Put the drop-in programs (scribe_cat, fburl) into a folder, as links to this program
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  perflab shims ~/.local/lib/perflab-shims
  export PATH=~/.local/lib/perflab-shims:$PATH")]
pub(crate) struct Args {
    /// The folder, made if it is not there
    dir: PathBuf,
}

pub(crate) fn run(args: &Args) -> Result<Exit, Failure> {
    let dir = create(&args.dir)?;
    for drop_in in DropIn::ALL {
        note(&format!("{} is now perflab", dir.join(drop_in.name()).display()));
    }
    note(&format!("put the folder first in PATH: export PATH=\"{}:$PATH\"", dir.display()));
    Ok(Exit::Done)
}

/// Makes the links; ones that are there already and point to this program stay.
pub(crate) fn create(dir: &Path) -> Result<PathBuf, Failure> {
    let program = env::current_exe().context("failed to find the path of this program")?;
    fs::create_dir_all(dir).context(format!("failed to make `{}`", dir.display()))?;
    let dir = dir.canonicalize()?;
    for drop_in in DropIn::ALL {
        link(&program, &dir.join(drop_in.name()))?;
    }
    Ok(dir)
}

fn link(program: &Path, path: &Path) -> Result<(), Failure> {
    match symlink(program, path) {
        Ok(()) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => {
            return Err(error).context(format!("failed to make the link `{}`", path.display()));
        }
    }
    match fs::read_link(path) {
        Ok(target) if target == program => Ok(()),
        Ok(target) if is_perflab(&target) => replace(program, path),
        Ok(_) | Err(_) => {
            let message = format!("`{}` is there already and is not perflab's", path.display());
            Err(Failure::new(Exit::No, message)
                .with_hint("choose another folder, or remove that file yourself"))
        }
    }
}

/// A link of an earlier installation, whose program may be gone.
fn is_perflab(target: &Path) -> bool {
    target.file_name().is_some_and(|name| name == "perflab")
}

/// By renaming, so that the name is never missing.
fn replace(program: &Path, path: &Path) -> Result<(), Failure> {
    let failed = format!("failed to replace the link `{}`", path.display());
    let fresh = path.with_extension(format!("{}.new", std::process::id()));
    symlink(program, &fresh).and_then(|()| fs::rename(&fresh, path)).context(failed)
}
