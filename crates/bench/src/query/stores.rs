//! What each store takes: time to load, memory and disk.

use anyhow::Result;

use super::ours::Perflab;
use super::peer::QueryPeer;
use crate::process;

/// How much a store takes for the rows and the samples.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) name: String,
    /// Unless it was loaded by a run before that did not say.
    pub(crate) load_s: Option<f64>,
    pub(crate) bytes_per_row: f64,
    /// Anonymous memory and that of mapped files after all questions, in bytes.
    pub(crate) memory: Option<(u64, u64)>,
}

impl Store {
    pub(crate) fn all(
        perflab: &Perflab,
        load_s: Option<f64>,
        peers: &[QueryPeer],
    ) -> Result<Vec<Self>> {
        let rows = perflab.rows_and_samples();
        let ours = std::process::id();
        let mut stores = vec![
            Self {
                name: "perflab, hot segments".to_owned(),
                load_s,
                bytes_per_row: perflab.bytes() as f64 / rows as f64,
                memory: Some(memory(ours)?),
            },
            Self {
                name: "perflab, cold segments".to_owned(),
                load_s: None,
                bytes_per_row: perflab.cold_bytes_per_row()?,
                memory: None,
            },
        ];
        for peer in peers {
            stores.push(Self {
                name: format!("{} {}", peer.name, peer.loaded.version),
                load_s: peer.loaded.load_s,
                bytes_per_row: peer.loaded.bytes as f64 / rows as f64,
                memory: Some(memory(peer.pid())?),
            });
        }
        Ok(stores)
    }
}

fn memory(pid: u32) -> Result<(u64, u64)> {
    Ok((process::anonymous_bytes(pid)?, process::mapped_bytes(pid)?))
}
