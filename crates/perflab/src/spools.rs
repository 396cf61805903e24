//! The spools of a home: one for its own server, and one for each server elsewhere.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use perflab_log::Spool;
use perflab_store::SPOOL_BYTES_MAX;
use sha2::{Digest, Sha256};

use crate::client::ServerUrl;

const LOCAL: &str = "spool";
const REMOTE: &str = "spool-remote";
/// The file in a remote spool that says where it goes.
const SERVER_FILE: &str = "server";

/// Why a spool could not be set up or listed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SpoolsError {
    #[error("failed to set up the spool `{dir}`")]
    Create {
        dir: PathBuf,
        #[source]
        error: io::Error,
    },
    #[error("failed to list the spools in `{dir}`")]
    List {
        dir: PathBuf,
        #[source]
        error: io::Error,
    },
}

/// The spool that the home's own server drains.
pub(crate) fn local(home: &Path) -> Spool {
    Spool::new(home.join(LOCAL), SPOOL_BYTES_MAX)
}

/// The folder of what waits for a server elsewhere.
fn remote_dir(home: &Path, server: &ServerUrl) -> PathBuf {
    let digest = Sha256::digest(server.to_string().as_bytes());
    let name = digest.iter().take(8).fold(0_u64, |name, byte| name << 8 | u64::from(*byte));
    home.join(REMOTE).join(format!("{name:016x}"))
}

/// What waits for a server elsewhere, for reading.
pub(crate) fn remote(home: &Path, server: &ServerUrl) -> Spool {
    Spool::new(remote_dir(home, server), SPOOL_BYTES_MAX)
}

/// The same for writing: makes sure that the folder says where its messages go.
pub(crate) fn create_remote(home: &Path, server: &ServerUrl) -> Result<Spool, SpoolsError> {
    let dir = remote_dir(home, server);
    let create = || {
        if dir.join(SERVER_FILE).exists() {
            return Ok(());
        }
        DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
        let mut file = tempfile::NamedTempFile::new_in(&dir)?;
        file.write_all(format!("{server}\n").as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(dir.join(SERVER_FILE)).map_err(|error| error.error)?;
        File::open(&dir)?.sync_all()
    };
    create().map_err(|error| SpoolsError::Create { dir: dir.clone(), error })?;
    Ok(Spool::new(dir, SPOOL_BYTES_MAX))
}

/// The spools for servers elsewhere. Folders that do not say where they go are left out.
pub(crate) fn remotes(home: &Path) -> Result<Vec<(ServerUrl, Spool)>, SpoolsError> {
    let dir = home.join(REMOTE);
    let entries = match fs::read_dir(&dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(SpoolsError::List { dir, error }),
    };
    let mut remotes = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| SpoolsError::List { dir: dir.clone(), error })?.path();
        let server = fs::read_to_string(path.join(SERVER_FILE)).ok();
        if let Some(server) = server.and_then(|text| text.trim().parse::<ServerUrl>().ok()) {
            remotes.push((server, Spool::new(path, SPOOL_BYTES_MAX)));
        }
    }
    remotes.sort_by_key(|(server, _)| server.to_string());
    Ok(remotes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_server_has_its_own_folder_which_names_it() {
        let home = tempfile::tempdir().unwrap();
        assert!(remotes(home.path()).unwrap().is_empty());
        let servers: Vec<ServerUrl> =
            ["http://a:1", "https://b"].map(|url| url.parse().unwrap()).to_vec();
        for server in &servers {
            create_remote(home.path(), server).unwrap();
            create_remote(home.path(), server).unwrap();
        }
        let found: Vec<_> =
            remotes(home.path()).unwrap().into_iter().map(|(server, _)| server).collect();
        assert_eq!(found, servers);
    }
}
