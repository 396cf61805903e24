//! The queue in front of the writer, and the two threads behind it.
//!
//! Group commit without a timer: the committer takes what is queued, up to
//! [`BATCH_BYTES_MAX`], commits it at once, and acknowledges all of it; what queues during the
//! sync is the next batch. An idle log therefore adds no delay, and a busy one amortises each
//! sync over everything that arrived during the last.
//!
//! The second thread prepares the next file once the active one is half full, since filling a
//! file with zeros takes longer than a commit may. While the disk is full it tries again every
//! [`SPACE_RETRY`].
//!
//! If either thread ends by a defect, the queue ends with it: nobody waits for ever.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::file::{FileName, prepare};
use crate::frame::BATCH_BYTES_MAX;
use crate::group::{GROUP_BYTES_MAX, Group};
use crate::shared::{Shared, lock};
use crate::writer::{CommitError, Committed, Prepared, Writer, is_no_space};

/// How often a full disk is asked for space again.
const SPACE_RETRY: Duration = Duration::from_millis(250);

/// Called once with the outcome of an append, on the committer's thread: it must not block.
pub(crate) type Done = Box<dyn FnOnce(Result<Committed, CommitError>) + Send>;

/// Why an append was not even queued.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("the log's queue is full ({bytes} of at most {bytes_max} bytes wait): try again later")]
    QueueFull { bytes: usize, bytes_max: usize },
    #[error("the disk is full: the log takes appends again by itself once there is space")]
    DiskFull,
    #[error("group of {bytes} bytes is larger than the limit of {GROUP_BYTES_MAX} bytes")]
    TooLarge { bytes: usize },
    #[error("the log is closed")]
    Closed,
}

pub(crate) struct Queue {
    state: Mutex<State>,
    /// Signalled when there is something for the committer.
    arrived: Condvar,
    /// Signalled when there is something for the preparer, or something from it.
    space: Condvar,
    bytes_max: usize,
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queue").field("bytes_max", &self.bytes_max).finish_non_exhaustive()
    }
}

#[derive(Default)]
struct State {
    waiting: VecDeque<(Group, Done)>,
    bytes: usize,
    closed: bool,
    space: Space,
}

/// What the preparer is asked for and what came of it.
#[derive(Default)]
enum Space {
    /// Nothing to prepare yet.
    #[default]
    Enough,
    /// A file with this number and size is wanted.
    Wanted {
        number: u64,
        bytes: u64,
    },
    /// The last attempt failed for lack of space; it is tried again.
    Full {
        number: u64,
        bytes: u64,
    },
    Ready(Prepared),
}

impl Queue {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { state: Mutex::default(), arrived: Condvar::new(), space: Condvar::new(), bytes_max }
    }

    pub(crate) fn push(&self, group: Group, done: Done) -> Result<(), Refusal> {
        let bytes = group.encoded_bytes();
        if bytes > GROUP_BYTES_MAX {
            return Err(Refusal::TooLarge { bytes });
        }
        let mut state = lock(&self.state);
        if state.closed {
            return Err(Refusal::Closed);
        }
        if matches!(state.space, Space::Full { .. }) {
            return Err(Refusal::DiskFull);
        }
        // One group always fits into an empty queue, however small the limit is set.
        if state.bytes > 0 && state.bytes + bytes > self.bytes_max {
            return Err(Refusal::QueueFull { bytes: state.bytes, bytes_max: self.bytes_max });
        }
        state.bytes += bytes;
        state.waiting.push_back((group, done));
        drop(state);
        self.arrived.notify_one();
        Ok(())
    }

    /// Ends both threads once what was accepted is committed.
    pub(crate) fn close(&self) {
        lock(&self.state).closed = true;
        self.arrived.notify_all();
        self.space.notify_all();
    }

    pub(crate) fn waiting_bytes(&self) -> usize {
        lock(&self.state).bytes
    }

    pub(crate) fn is_closed(&self) -> bool {
        lock(&self.state).closed
    }

    pub(crate) fn is_full(&self) -> bool {
        matches!(lock(&self.state).space, Space::Full { .. })
    }

    /// The next batch; `None` when the queue is closed and empty.
    fn take_batch(&self) -> Option<(Vec<Group>, Vec<Done>)> {
        let mut state = lock(&self.state);
        while state.waiting.is_empty() {
            if state.closed {
                return None;
            }
            state = self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let (mut groups, mut dones, mut bytes) = (Vec::new(), Vec::new(), 0);
        while let Some((next, _)) = state.waiting.front() {
            if !groups.is_empty() && bytes + next.encoded_bytes() > BATCH_BYTES_MAX {
                break;
            }
            let Some((group, done)) = state.waiting.pop_front() else {
                break;
            };
            bytes += group.encoded_bytes();
            groups.push(group);
            dones.push(done);
        }
        state.bytes -= bytes;
        Some((groups, dones))
    }

    /// Refuses everything that waits.
    fn refuse_all(&self, error: &CommitError) {
        let refused = {
            let mut state = lock(&self.state);
            state.bytes = 0;
            std::mem::take(&mut state.waiting)
        };
        for (_, done) in refused {
            done(Err(error.clone()));
        }
    }

    fn ask_for_file(&self, number: u64, bytes: u64) {
        let mut state = lock(&self.state);
        if matches!(state.space, Space::Enough) {
            state.space = Space::Wanted { number, bytes };
            self.space.notify_all();
        }
    }

    /// The prepared file, after waiting for one that is on its way.
    fn take_file(&self) -> Option<Prepared> {
        let mut state = lock(&self.state);
        while matches!(state.space, Space::Wanted { .. }) && !state.closed {
            state = self.space.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        match std::mem::take(&mut state.space) {
            Space::Ready(prepared) => Some(prepared),
            other @ (Space::Enough | Space::Wanted { .. } | Space::Full { .. }) => {
                state.space = other;
                None
            }
        }
    }

    fn report_full(&self, number: u64, bytes: u64) {
        let mut state = lock(&self.state);
        if matches!(state.space, Space::Enough) {
            state.space = Space::Full { number, bytes };
            self.space.notify_all();
        }
    }
}

/// Ends the queue together with a thread that it can't do without, however that ends: appends
/// that nobody would ever commit are told so, and no more are taken.
struct EndWith<'q> {
    queue: &'q Queue,
    forget_waiting: bool,
}

impl Drop for EndWith<'_> {
    fn drop(&mut self) {
        self.queue.close();
        if self.forget_waiting {
            let forgotten = {
                let mut state = lock(&self.queue.state);
                state.bytes = 0;
                std::mem::take(&mut state.waiting)
            };
            // Whoever waits for a `Done` learns from its drop that it will not be called.
            drop(forgotten);
        }
    }
}

/// Commits batches until the queue is closed and empty; returns the writer.
pub(crate) fn run_committer(queue: &Queue, mut writer: Writer) -> Writer {
    let _end = EndWith { queue, forget_waiting: true };
    while let Some((groups, dones)) = queue.take_batch() {
        let bytes = groups.iter().map(|group| group.encoded_bytes() as u64).sum();
        if !writer.has_room(bytes) {
            writer.prepared = writer.prepared.take().or_else(|| queue.take_file());
        }
        match writer.commit(&groups) {
            Ok(committed) => {
                for (done, committed) in dones.into_iter().zip(committed) {
                    done(Ok(committed));
                }
            }
            Err(error) => {
                for done in dones {
                    done(Err(error.clone()));
                }
                if matches!(error, CommitError::NoSpace(_)) {
                    queue.refuse_all(&error);
                    queue.report_full(writer.next_number, writer.next_file_bytes);
                }
            }
        }
        if writer.is_half_full() && writer.prepared.is_none() {
            queue.ask_for_file(writer.next_number, writer.next_file_bytes);
        }
    }
    writer.checkpoint_all();
    writer
}

/// Prepares files when asked, until the queue is closed.
pub(crate) fn run_preparer(queue: &Queue, shared: &Shared) {
    let _end = EndWith { queue, forget_waiting: false };
    let mut state = lock(&queue.state);
    while !state.closed {
        let (number, bytes, is_retry) = match state.space {
            Space::Wanted { number, bytes } => (number, bytes, false),
            Space::Full { number, bytes } => (number, bytes, true),
            Space::Enough | Space::Ready(_) => {
                state = queue.space.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
        };
        if is_retry {
            let waited = queue.space.wait_timeout(state, SPACE_RETRY);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            if state.closed {
                break;
            }
        }
        drop(state);
        let prepared = FileName::new(number).and_then(|name| {
            let file = prepare(shared.disk.as_ref(), &shared.dir, name, bytes)?;
            Ok(Prepared { name, file, len: bytes })
        });
        state = lock(&queue.state);
        state.space = match prepared {
            Ok(prepared) => Space::Ready(prepared),
            Err(error) if is_retry && is_no_space(&error) => Space::Full { number, bytes },
            // A file that is wanted but cannot be had yet is no reason to refuse appends: the
            // active file may have room for a long time. The committer asks again, and says what
            // is wrong if it is not space.
            Err(_) => Space::Enough,
        };
        queue.space.notify_all();
    }
}

/// Starts a named thread.
pub(crate) fn spawn<T: Send + 'static>(
    name: &str,
    run: impl FnOnce() -> T + Send + 'static,
) -> std::io::Result<thread::JoinHandle<T>> {
    thread::Builder::new().name(name.to_owned()).spawn(run)
}

/// What an opened log consists of.
pub(crate) type Threads = (thread::JoinHandle<Writer>, thread::JoinHandle<()>);

pub(crate) fn start(queue: &Arc<Queue>, writer: Writer) -> std::io::Result<Threads> {
    let shared = Arc::clone(&writer.shared);
    let committer_queue = Arc::clone(queue);
    let preparer_queue = Arc::clone(queue);
    let preparer = spawn("log-preparer", move || {
        run_preparer(&preparer_queue, &shared);
    })?;
    let committer = spawn("log-committer", move || run_committer(&committer_queue, writer))?;
    Ok((committer, preparer))
}
