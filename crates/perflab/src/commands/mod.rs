//! One file per command: its arguments, its help, and what it does.

pub(crate) mod categories;
pub(crate) mod category;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod log;
pub(crate) mod man;
pub(crate) mod serve;
pub(crate) mod shims;
pub(crate) mod spool;
pub(crate) mod tail;
pub(crate) mod thrift;
pub(crate) mod token;
pub(crate) mod with;

use std::io;

use tokio::runtime::{Builder, Runtime};

use crate::cli::Globals;
use crate::client::{Client, find};
use crate::failure::{Explain, Failure};

/// Does something with the server of this home, or of `--server`; without one, with the home.
fn ask<T>(
    globals: &Globals,
    work: impl AsyncFnOnce(&mut Client) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let settings = globals.settings()?;
    runtime()?.block_on(async {
        let mut client = find(&settings).await?;
        let done = work(&mut client).await;
        client.close().await;
        done
    })
}

/// With threads, because a server in this process needs them.
fn runtime() -> Result<Runtime, Failure> {
    Builder::new_multi_thread().enable_all().build().context("failed to start the runtime")
}

/// Reads a file that the user named.
fn read_text(path: &std::path::Path) -> Result<String, Failure> {
    let read: io::Result<String> = std::fs::read_to_string(path);
    read.context(format!("failed to read `{}`", path.display()))
}
