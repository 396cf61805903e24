//! What the committer publishes and everyone else reads.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use crate::disk::Disk;
use crate::file::{CategorySpan, FileName, Summary};

/// A lock's content, whether or not a thread panicked while holding it: every critical section
/// here leaves its data whole.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One file of the log, as readers know it.
#[derive(Debug)]
pub(crate) struct FileInfo {
    pub(crate) name: FileName,
    pub(crate) path: PathBuf,
    /// Whether it is never written again.
    pub(crate) sealed: AtomicBool,
    /// Whether its seal is on the disk. A file whose seal could not be written, or that was given
    /// up after a failed sync, has none until the next start.
    pub(crate) has_seal: AtomicBool,
    /// Of the committed frames only.
    pub(crate) summary: Mutex<Summary>,
}

impl FileInfo {
    pub(crate) fn new(name: FileName, dir: &Path, sealed: bool, summary: Summary) -> Self {
        Self {
            name,
            path: name.path(dir),
            sealed: AtomicBool::new(sealed),
            has_seal: AtomicBool::new(sealed),
            summary: Mutex::new(summary),
        }
    }

    pub(crate) fn is_sealed(&self) -> bool {
        self.sealed.load(Ordering::Acquire)
    }
}

/// Called with the sequence after the last committed record.
type Listener = Box<dyn Fn(u64) + Send + Sync>;

pub(crate) struct Shared {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) dir: PathBuf,
    pub(crate) files: RwLock<BTreeMap<u64, Arc<FileInfo>>>,
    /// The sequence after the last committed record.
    pub(crate) committed: AtomicU64,
    pub(crate) counters: Counters,
    pub(crate) listeners: Mutex<Vec<Listener>>,
    /// Held while sealed files are replaced or removed.
    pub(crate) rewriting: Mutex<()>,
    /// Set when the log is about to end: nothing is replaced or removed from then on.
    pub(crate) closing: AtomicBool,
    /// The number of the file up to which the checkpoint on disk holds all keys. Those of that
    /// file and later ones may be known from the files alone.
    pub(crate) checkpointed: AtomicU64,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("dir", &self.dir).finish_non_exhaustive()
    }
}

/// Counts since the log was opened.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) commits: AtomicU64,
    pub(crate) records: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) duplicates: AtomicU64,
    pub(crate) too_old: AtomicU64,
    pub(crate) failed_commits: AtomicU64,
    pub(crate) failed_checkpoints: AtomicU64,
    pub(crate) window_keys: AtomicU64,
}

impl Shared {
    /// Fails once the log is about to end: whoever has its folder next may change it already.
    pub(crate) fn check_open(&self) -> io::Result<()> {
        if self.closing.load(Ordering::Acquire) {
            return Err(io::Error::other("the log is closed"));
        }
        Ok(())
    }

    pub(crate) fn files(&self) -> Vec<Arc<FileInfo>> {
        let files = self.files.read().unwrap_or_else(PoisonError::into_inner);
        files.values().cloned().collect()
    }

    /// The first file whose number is at least `number`.
    pub(crate) fn file_from(&self, number: u64) -> Option<Arc<FileInfo>> {
        let files = self.files.read().unwrap_or_else(PoisonError::into_inner);
        files.range(number..).next().map(|(_, info)| Arc::clone(info))
    }

    /// The last file whose number is below `number`.
    pub(crate) fn file_before(&self, number: u64) -> Option<Arc<FileInfo>> {
        let files = self.files.read().unwrap_or_else(PoisonError::into_inner);
        files.range(..number).next_back().map(|(_, info)| Arc::clone(info))
    }

    pub(crate) fn publish_file(&self, info: Arc<FileInfo>) {
        let mut files = self.files.write().unwrap_or_else(PoisonError::into_inner);
        files.insert(info.name.number, info);
    }

    pub(crate) fn forget_file(&self, number: u64) {
        let mut files = self.files.write().unwrap_or_else(PoisonError::into_inner);
        files.remove(&number);
    }

    pub(crate) fn publish_commit(&self, next_seq: u64) {
        self.committed.store(next_seq, Ordering::Release);
        for listener in lock(&self.listeners).iter() {
            listener(next_seq);
        }
    }

    pub(crate) fn categories(&self) -> BTreeMap<String, CategorySpan> {
        let mut all: BTreeMap<String, CategorySpan> = BTreeMap::new();
        for info in self.files() {
            for (name, span) in &lock(&info.summary).categories {
                all.entry(name.clone())
                    .and_modify(|known| *known = known.join(*span))
                    .or_insert(*span);
            }
        }
        all
    }
}
