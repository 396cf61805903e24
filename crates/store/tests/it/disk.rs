//! A disk whose syncs fail or take long when told to.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use perflab_log::{Disk, DiskFile, RealDisk};

const SLOW_SYNC: Duration = Duration::from_millis(20);

#[derive(Debug, Default, Clone)]
pub(crate) struct FaultyDisk {
    failing_syncs: Arc<AtomicUsize>,
    is_slow: Arc<AtomicBool>,
}

impl FaultyDisk {
    /// Makes the next so many syncs of files fail.
    pub(crate) fn fail_syncs(&self, syncs: usize) {
        self.failing_syncs.store(syncs, Ordering::Relaxed);
    }

    /// Makes syncs of files take long.
    pub(crate) fn be_slow(&self) {
        self.is_slow.store(true, Ordering::Relaxed);
    }

    fn wrap(&self, file: Arc<dyn DiskFile>) -> Arc<dyn DiskFile> {
        Arc::new(FaultyFile { file, disk: self.clone() })
    }
}

impl Disk for FaultyDisk {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        RealDisk.create_dir(dir)
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        RealDisk.create(path).map(|file| self.wrap(file))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        RealDisk.open(path).map(|file| self.wrap(file))
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

struct FaultyFile {
    file: Arc<dyn DiskFile>,
    disk: FaultyDisk,
}

impl fmt::Debug for FaultyFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.file.fmt(f)
    }
}

impl DiskFile for FaultyFile {
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
        self.file.reserve(len)
    }

    fn write_zeros(&self, from: u64, to: u64) -> io::Result<()> {
        self.file.write_zeros(from, to)
    }

    fn forget_cached(&self) {
        self.file.forget_cached();
    }

    fn sync_data(&self) -> io::Result<()> {
        if self.disk.is_slow.load(Ordering::Relaxed) {
            std::thread::sleep(SLOW_SYNC);
        }
        let take_one = |left: usize| left.checked_sub(1);
        let failing = &self.disk.failing_syncs;
        if failing.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take_one).is_ok() {
            return Err(io::Error::other("input/output error"));
        }
        self.file.sync_data()
    }
}
