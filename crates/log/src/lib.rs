//! The durable log: named streams of opaque records in one append-only sequence of files.
//!
//! An append is acknowledged after `fdatasync`. Layers, each knowing only the ones before it:
//! [`disk`](Disk) → group → frame → file → window, checkpoint → writer → committer; beside them
//! recover, reader, retain, check. [`Spool`] is the small log of writers that find no server.
//!
//! This crate does not know what a record means, what a category is allowed to hold, or what
//! time it is: callers say.

mod bytes;
mod check;
mod checkpoint;
mod committer;
mod disk;
mod file;
mod frame;
mod group;
mod reader;
mod recover;
mod retain;
mod shared;
mod spool;
mod window;
mod writer;

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};

pub use check::Check;
pub use committer::Refusal;
pub use disk::{Disk, DiskFile, RealDisk, create_dir};
pub use file::{CategorySpan, Damage};
#[doc(hidden)]
pub use frame::count_records_in_body;
pub use group::{
    GROUP_BYTES_MAX, GROUP_BYTES_TARGET, Group, GroupError, GroupView, NAME_BYTES_MAX,
    RECORD_BYTES_MAX, RecordView,
};
pub use reader::{ReadError, ReadFrom, ReadItem, Reader, Records};
pub use recover::Recovery;
pub use retain::{Keep, Retained};
pub use spool::{Drain, Spool, SpoolError, SpoolFile};
pub use window::{KeyFate, WindowLimits};
pub use writer::{CommitError, Committed};

use committer::{Queue, Threads};
use shared::{Counters, Shared, lock};

/// How a log is kept.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// A file is sealed at this size.
    pub file_bytes_max: u64,
    /// Appends beyond this many waiting bytes are refused at once.
    pub queue_bytes_max: usize,
    /// How long producers' keys are remembered.
    pub window: WindowLimits,
}

impl Settings {
    /// 64 MiB files, a 32 MiB queue, a day of keys.
    pub const DEFAULT: Self =
        Self { file_bytes_max: 64 << 20, queue_bytes_max: 32 << 20, window: WindowLimits::DEFAULT };
}

/// Why a log could not be opened.
#[derive(Debug, thiserror::Error)]
#[error("failed to open the log in `{dir}`")]
pub struct OpenError {
    dir: PathBuf,
    #[source]
    error: io::Error,
}

/// Counts since the log was opened, and what waits now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stats {
    pub commits: u64,
    pub records: u64,
    pub bytes: u64,
    pub duplicates: u64,
    pub too_old: u64,
    pub failed_commits: u64,
    /// Checkpoints that could not be written: the next start reads more, retention keeps more.
    pub failed_checkpoints: u64,
    pub window_keys: u64,
    pub queue_bytes: usize,
    pub disk_full: bool,
    /// Whether no append is taken any more: after [`Log::close`], or because a thread of the log
    /// ended by a defect.
    pub closed: bool,
}

/// An open log. Cheap to clone; the last [`Log::close`] or drop ends its threads.
#[derive(Debug, Clone)]
pub struct Log {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    shared: Arc<Shared>,
    queue: Arc<Queue>,
    threads: Mutex<Option<Threads>>,
}

impl Log {
    /// Opens or creates the log in `dir`, repairing what an unclean end left behind. `now_ns` is
    /// the unix time.
    pub fn open(
        disk: Arc<dyn Disk>,
        dir: &Path,
        settings: Settings,
        now_ns: i64,
    ) -> Result<(Self, Recovery), OpenError> {
        let open = || {
            let shared = open_shared(disk, dir)?;
            let (writer, recovery) = recover::recover(&shared, &settings, now_ns)?;
            let queue = Arc::new(Queue::new(settings.queue_bytes_max));
            let threads = Mutex::new(Some(committer::start(&queue, writer)?));
            Ok((Self { inner: Arc::new(Inner { shared, queue, threads }) }, recovery))
        };
        open().map_err(|error| OpenError { dir: dir.to_owned(), error })
    }

    /// Queues a group and returns; `done` is called once it is durable, or refused. It runs on
    /// the committer's thread and must not block.
    pub fn append(
        &self,
        group: Group,
        done: impl FnOnce(Result<Committed, CommitError>) + Send + 'static,
    ) -> Result<(), Refusal> {
        self.inner.queue.push(group, Box::new(done))
    }

    /// Queues a group and waits until it is durable.
    pub fn append_and_wait(&self, group: Group) -> Result<Committed, AppendError> {
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        self.append(group, move |outcome| {
            let received = sender.send(outcome);
            drop(received);
        })?;
        match receiver.recv() {
            Ok(outcome) => Ok(outcome?),
            Err(_closed) => Err(AppendError::Refused(Refusal::Closed)),
        }
    }

    /// A reader of some categories, or of all.
    pub fn read(&self, categories: Option<HashSet<String>>, from: ReadFrom) -> Reader {
        Reader::new(Arc::clone(&self.inner.shared), categories, from)
    }

    /// The sequence after the last committed record.
    pub fn end(&self) -> u64 {
        self.inner.shared.committed.load(Ordering::Acquire)
    }

    /// Calls `listener` with [`Log::end`] after every commit. It must not block.
    pub fn on_commit(&self, listener: impl Fn(u64) + Send + Sync + 'static) {
        lock(&self.inner.shared.listeners).push(Box::new(listener));
    }

    /// What is there of each category.
    pub fn categories(&self) -> BTreeMap<String, CategorySpan> {
        self.inner.shared.categories()
    }

    /// Removes what no category's `keep` asks for, except records from `held_from` on.
    pub fn retain(
        &self,
        now_ns: i64,
        keep: &dyn Fn(&str) -> Keep,
        held_from: u64,
    ) -> io::Result<Retained> {
        retain::retain(&self.inner.shared, now_ns, keep, held_from)
    }

    /// Reads everything and reports damage; with a folder given, moves damaged bytes there.
    pub fn check(&self, quarantine: Option<&Path>) -> io::Result<Check> {
        check::check(&self.inner.shared, quarantine)
    }

    /// Counts for monitoring.
    pub fn stats(&self) -> Stats {
        let Counters {
            commits,
            records,
            bytes,
            duplicates,
            too_old,
            failed_commits,
            failed_checkpoints,
            window_keys,
        } = &self.inner.shared.counters;
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Stats {
            commits: get(commits),
            records: get(records),
            bytes: get(bytes),
            duplicates: get(duplicates),
            too_old: get(too_old),
            failed_commits: get(failed_commits),
            failed_checkpoints: get(failed_checkpoints),
            window_keys: get(window_keys),
            queue_bytes: self.inner.queue.waiting_bytes(),
            disk_full: self.inner.queue.is_full(),
            closed: self.inner.queue.is_closed(),
        }
    }

    /// Commits what was accepted, writes a checkpoint and ends the threads.
    pub fn close(&self) {
        self.inner.close();
    }
}

/// Why a waiting append did not become durable.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Commit(#[from] CommitError),
}

impl Inner {
    fn close(&self) {
        self.shared.closing.store(true, Ordering::Release);
        self.queue.close();
        // Retention and checks end after the file that they are at.
        drop(lock(&self.shared.rewriting));
        if let Some((committer, preparer)) = lock(&self.threads).take() {
            let ended = (committer.join(), preparer.join());
            drop(ended);
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.close();
    }
}

fn open_shared(disk: Arc<dyn Disk>, dir: &Path) -> io::Result<Arc<Shared>> {
    disk.create_dir(dir)?;
    if let Some(parent) = dir.parent() {
        disk.sync_dir(parent)?;
    }
    Ok(Arc::new(Shared {
        disk,
        dir: dir.to_owned(),
        files: RwLock::default(),
        committed: AtomicU64::new(0),
        counters: Counters::default(),
        listeners: Mutex::default(),
        rewriting: Mutex::default(),
        closing: AtomicBool::new(false),
        checkpointed: AtomicU64::new(0),
    }))
}

#[cfg(test)]
mod tests;
