//! What a folder of this machine needs besides: `object_store` syncs nothing, and leaves behind
//! what it was writing when the process ended.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use object_store::path::Path as ObjectPath;
use perflab_log::Disk;

/// What comes after the name of an object in that of the file that it is written to at first; a
/// number follows.
const STAGED: char = '#';

#[derive(Debug)]
pub(super) struct LocalFolder {
    dir: PathBuf,
    disk: Arc<dyn Disk>,
}

impl LocalFolder {
    pub(super) fn new(dir: PathBuf, disk: Arc<dyn Disk>) -> Self {
        Self { dir, disk }
    }

    /// Of an object; its name has no characters that would be written in another way.
    fn path(&self, object: &ObjectPath) -> PathBuf {
        self.dir.join(object.as_ref())
    }

    /// Makes the folder of an object, so that it is there after a power cut.
    pub(super) fn make_folder_of(&self, object: &ObjectPath) -> io::Result<()> {
        self.disk.create_dir(folder_of(&self.path(object)))
    }

    pub(super) fn sync(&self, object: &ObjectPath) -> io::Result<()> {
        self.disk.open(&self.path(object))?.sync_data()
    }

    pub(super) fn sync_folder_of(&self, object: &ObjectPath) -> io::Result<()> {
        self.disk.sync_dir(folder_of(&self.path(object)))
    }

    /// Removes what was being written when a process ended, which is not among the objects.
    /// Returns how many files there were.
    pub(super) fn remove_staged(&self, prefix: &ObjectPath) -> io::Result<usize> {
        let dir = self.path(prefix);
        if !dir.try_exists()? {
            return Ok(0);
        }
        let mut removed = 0;
        for folder in fs::read_dir(&dir)? {
            let folder = folder?;
            if !folder.file_type()?.is_dir() {
                continue;
            }
            for file in fs::read_dir(folder.path())? {
                let file = file?;
                if file.file_name().to_string_lossy().contains(STAGED) {
                    self.disk.remove(&file.path())?;
                    removed += 1;
                }
            }
        }
        Ok(removed)
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}
