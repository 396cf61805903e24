//! Disks that are full, or slow when told to be.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};

use perflab_log::{Disk, DiskFile, RealDisk};

#[derive(Debug, Default)]
struct State {
    is_full: bool,
    holds_syncs: bool,
    syncs_held: usize,
}

/// The real disk, except that it can be made full and its syncs can be held up.
#[derive(Debug, Default, Clone)]
pub(crate) struct MoodyDisk {
    shared: Arc<(Mutex<State>, Condvar)>,
}

impl MoodyDisk {
    pub(crate) fn set_full(&self, is_full: bool) {
        self.shared.0.lock().unwrap().is_full = is_full;
    }

    /// From now on, or no longer, syncs wait.
    pub(crate) fn hold_syncs(&self, holds_syncs: bool) {
        self.shared.0.lock().unwrap().holds_syncs = holds_syncs;
        self.shared.1.notify_all();
    }

    /// Waits until a sync is held up.
    pub(crate) fn wait_for_held_sync(&self) {
        let (state, changed) = &*self.shared;
        let held = changed.wait_while(state.lock().unwrap(), |state| state.syncs_held == 0);
        drop(held.unwrap());
    }

    fn check_space(&self) -> io::Result<()> {
        if self.shared.0.lock().unwrap().is_full {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        Ok(())
    }

    fn wait_until_let_go(&self) {
        let (state, changed) = &*self.shared;
        let mut state = state.lock().unwrap();
        state.syncs_held += 1;
        changed.notify_all();
        let mut state = changed.wait_while(state, |state| state.holds_syncs).unwrap();
        state.syncs_held -= 1;
    }
}

impl Disk for MoodyDisk {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        RealDisk.create_dir(dir)
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        self.check_space()?;
        let file = RealDisk.create(path)?;
        Ok(Arc::new(MoodyFile { file, disk: self.clone() }))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let file = RealDisk.open(path)?;
        Ok(Arc::new(MoodyFile { file, disk: self.clone() }))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        RealDisk.list(dir)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        RealDisk.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        RealDisk.remove(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        RealDisk.sync_dir(dir)
    }
}

struct MoodyFile {
    file: Arc<dyn DiskFile>,
    disk: MoodyDisk,
}

impl fmt::Debug for MoodyFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.file.fmt(f)
    }
}

impl DiskFile for MoodyFile {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_at(bytes, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn reserve(&self, len: u64) -> io::Result<()> {
        self.disk.check_space()?;
        self.file.reserve(len)
    }

    fn write_zeros(&self, from: u64, to: u64) -> io::Result<()> {
        self.file.write_zeros(from, to)
    }

    fn forget_cached(&self) {
        self.file.forget_cached();
    }

    fn sync_data(&self) -> io::Result<()> {
        self.disk.wait_until_let_go();
        self.file.sync_data()
    }
}
