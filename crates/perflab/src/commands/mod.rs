//! One file per command: its arguments, its help, and what it does.

pub(crate) mod categories;
pub(crate) mod category;
pub(crate) mod check;
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod dataset;
pub(crate) mod datasets;
pub(crate) mod export;
pub(crate) mod log;
pub(crate) mod man;
pub(crate) mod query;
pub(crate) mod schema;
pub(crate) mod serve;
pub(crate) mod shims;
pub(crate) mod spool;
pub(crate) mod sql;
pub(crate) mod tail;
pub(crate) mod thrift;
pub(crate) mod token;
pub(crate) mod with;

use std::io;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};

use crate::cli::Globals;
use crate::client::{Call, Client, find};
use crate::failure::{Explain, Failure};

/// Does something with the server of this home, or of `--server`; without one, with the home.
fn ask<T>(
    globals: &Globals,
    work: impl AsyncFnOnce(&mut Client) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let settings = globals.settings()?;
    run_on(runtime()?, async {
        let mut client = find(&settings).await?;
        let done = work(&mut client).await;
        client.close().await;
        done
    })
}

/// Asks for what is listed in a field of a document; returns the whole document with it.
fn ask_for_list<T: DeserializeOwned>(
    globals: &Globals,
    path: &str,
    field: &str,
) -> Result<(Value, Vec<T>), Failure> {
    let document =
        ask(globals, async |client: &mut Client| client.document::<Value>(&Call::get(path)).await)?;
    let listed = Vec::deserialize(&document[field])
        .context(format!("the server lists {field} in a way that this version does not know"))?;
    Ok((document, listed))
}

/// Does work to its end and leaves alone what still runs beside it: a name that is being looked
/// up must not hold up the end of a command, however it ends.
fn run_on<T>(runtime: Runtime, work: impl Future<Output = T>) -> T {
    let done = runtime.block_on(work);
    runtime.shutdown_background();
    done
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{RecvTimeoutError, channel};
    use std::time::Duration;

    /// Longer than anyone waits for a command that has failed.
    const LOOKED_UP_FOR: Duration = Duration::from_secs(60);

    #[test]
    fn a_command_that_fails_does_not_wait_for_what_runs_beside_it() {
        let (release, held) = channel::<()>();
        let done: Result<(), RecvTimeoutError> = run_on(runtime().unwrap(), async move {
            tokio::task::spawn_blocking(move || held.recv_timeout(LOOKED_UP_FOR));
            Err(RecvTimeoutError::Timeout)
        });
        assert!(done.is_err());
        // Whoever was waited for has ended by now, and takes nothing any more.
        release.send(()).expect("it still waits");
    }
}
