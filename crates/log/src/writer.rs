//! Writes frames: judges keys, assigns sequences, rolls files. One thread at a time, no queue,
//! no timer: [`crate::committer`] adds those.
//!
//! Steps of a commit: drop records whose keys were seen; build one frame; go on to the next file
//! if it does not fit; write; `fdatasync`; only then publish the frame to readers, remember its
//! keys and acknowledge.
//!
//! A write or sync that fails is never tried again on the same file: after a failed `fdatasync`
//! Linux marks the pages clean, and a second call would report success for bytes that are not on
//! the disk (Rebello et al., "Can Applications Recover from fsync Failures?", ATC 2020). The file
//! is given up where its committed frames end, and the next file's header says so.

use std::borrow::Cow;
use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use crate::checkpoint::{self, Place};
use crate::committer::spawn;
use crate::disk::{BLOCK, DiskFile};
use crate::file::{FileName, HEADER_BYTES, Header, Summary, prepare};
use crate::frame::{FRAME_HEADER_BYTES, FrameBuilder, FrameView};
use crate::group::Group;
use crate::shared::{FileInfo, Shared, lock};
use crate::window::{KeyFate, Snapshot, Window};

/// The first file is this large, each next one twice as large as the one before, so that a small
/// home stays small.
pub(crate) const FILE_BYTES_MIN: u64 = 4 << 20;

/// A checkpoint of a window with more runs is not written between two commits. So many take some
/// milliseconds.
const CHECKPOINT_INLINE_RUNS_MAX: usize = 20_000;

/// Where an append went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    /// The sequence of the first record that was appended.
    pub first_seq: u64,
    /// How many records were appended.
    pub appended: u32,
    /// Records that were not appended because of their keys: their index in the group, and why.
    pub not_appended: Vec<(u32, KeyFate)>,
}

/// Why a commit was refused. Whether its bytes reached the disk is not known.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CommitError {
    #[error("no space for the log's next file")]
    NoSpace(#[source] Arc<io::Error>),
    #[error("failed to write to the log")]
    Write(#[source] Arc<io::Error>),
}

/// Whether space, or the right to take more, is what is missing.
pub(crate) fn is_no_space(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// A file that is ready to become the active one.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) name: FileName,
    pub(crate) file: Arc<dyn DiskFile>,
    pub(crate) len: u64,
}

/// The file that commits go to.
#[derive(Debug)]
pub(crate) struct Active {
    pub(crate) info: Arc<FileInfo>,
    pub(crate) file: Arc<dyn DiskFile>,
    pub(crate) offset: u64,
    pub(crate) len: u64,
}

#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) shared: Arc<Shared>,
    pub(crate) active: Option<Active>,
    pub(crate) prepared: Option<Prepared>,
    pub(crate) next_number: u64,
    pub(crate) next_seq: u64,
    /// Where the last file that was written ends, or [`END_UNKNOWN`](crate::file::END_UNKNOWN).
    pub(crate) previous_end: u64,
    /// Whether the last file was given up, and no other one was begun since.
    pub(crate) gave_up: bool,
    pub(crate) file_bytes_max: u64,
    pub(crate) next_file_bytes: u64,
    pub(crate) window: Window,
    /// The thread that writes a checkpoint, or wrote the last one.
    pub(crate) checkpointing: Option<JoinHandle<()>>,
    pub(crate) builder: FrameBuilder,
}

/// A group with the records that its keys let through.
struct Judged<'a> {
    group: Cow<'a, Group>,
    not_appended: Vec<(u32, KeyFate)>,
}

impl Writer {
    /// Appends groups as one frame and makes it durable.
    pub(crate) fn commit(&mut self, groups: &[Group]) -> Result<Vec<Committed>, CommitError> {
        let told_ns = groups.iter().map(Group::appended_ns).max();
        self.window.advance(told_ns.unwrap_or(i64::MIN));
        let judged = self.judge(groups);
        let bytes: usize = judged.iter().map(|judged| judged.group.encoded_bytes()).sum();
        let is_empty = judged.iter().all(|judged| judged.group.is_empty());
        if !is_empty {
            self.make_room((FRAME_HEADER_BYTES + bytes) as u64)?;
        }
        let mut next_seq = self.next_seq;
        let active = match &mut self.active {
            Some(active) if !is_empty => active,
            _ => {
                let committed: Vec<_> =
                    judged.into_iter().map(|judged| judged.committed(next_seq)).collect();
                self.count_not_appended(&committed);
                return Ok(committed);
            }
        };
        self.builder.start(active.info.name.id, next_seq);
        let mut committed = Vec::with_capacity(judged.len());
        for judged in judged {
            if !judged.group.is_empty() {
                self.builder.push(&judged.group, next_seq);
            }
            let count = u64::from(judged.group.len());
            committed.push(judged.committed(next_seq));
            next_seq += count;
        }
        self.builder.finish();
        let written = self
            .builder
            .write(active.file.as_ref(), active.offset, active.len)
            .and_then(|()| active.file.sync_data());
        if let Err(error) = written {
            self.abandon_active();
            return Err(CommitError::Write(Arc::new(error)));
        }
        self.publish(next_seq);
        self.count(&committed, bytes);
        Ok(committed)
    }

    fn judge<'a>(&self, groups: &'a [Group]) -> Vec<Judged<'a>> {
        let mut in_this_commit = HashSet::new();
        groups
            .iter()
            .map(|group| {
                if !group.is_keyed() {
                    return Judged { group: Cow::Borrowed(group), not_appended: Vec::new() };
                }
                let view = group.view();
                let mut not_appended = Vec::new();
                for (index, record) in (0..).zip(view.records()) {
                    let seq = record.producer_seq.unwrap_or_default();
                    let mut fate = self.window.fate(view.producer, seq);
                    if fate == KeyFate::New && !in_this_commit.insert((view.producer, seq)) {
                        fate = KeyFate::Duplicate;
                    }
                    if fate != KeyFate::New {
                        not_appended.push((index, fate));
                    }
                }
                let group = match not_appended.as_slice() {
                    [] => Cow::Borrowed(group),
                    dropped => Cow::Owned(without(group, dropped)),
                };
                Judged { group, not_appended }
            })
            .collect()
    }

    /// Shows the frame that was just made durable to readers and remembers its keys.
    fn publish(&mut self, next_seq: u64) {
        let Some(active) = &mut self.active else {
            return;
        };
        let frame = FrameView::checked_before(self.builder.finished(), active.offset);
        for group in frame.groups().filter(|group| group.is_keyed()) {
            for record in group.records() {
                let seq = record.producer_seq.unwrap_or_default();
                self.window.insert(group.producer, seq);
            }
        }
        active.offset = frame.end();
        self.next_seq = next_seq;
        self.previous_end = active.offset;
        lock(&active.info.summary).add(&frame);
        self.shared.publish_commit(next_seq);
    }

    fn count(&self, committed: &[Committed], bytes: usize) {
        let counters = &self.shared.counters;
        let records: u64 = committed.iter().map(|c| u64::from(c.appended)).sum();
        counters.commits.fetch_add(1, Ordering::Relaxed);
        counters.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        counters.records.fetch_add(records, Ordering::Relaxed);
        counters.window_keys.store(self.window.keys(), Ordering::Relaxed);
        self.count_not_appended(committed);
    }

    fn count_not_appended(&self, committed: &[Committed]) {
        let counters = &self.shared.counters;
        let fates = || committed.iter().flat_map(|c| &c.not_appended).map(|(_, fate)| *fate);
        let duplicates = fates().filter(|fate| *fate == KeyFate::Duplicate).count();
        counters.duplicates.fetch_add(duplicates as u64, Ordering::Relaxed);
        counters.too_old.fetch_add((fates().count() - duplicates) as u64, Ordering::Relaxed);
    }

    /// Whether groups of `bytes` fit into the active file.
    pub(crate) fn has_room(&self, bytes: u64) -> bool {
        let frame = bytes + FRAME_HEADER_BYTES as u64;
        self.active.as_ref().is_some_and(|active| active.len - active.offset >= frame)
    }

    /// Whether it is time to prepare the next file.
    pub(crate) fn is_half_full(&self) -> bool {
        self.active.as_ref().is_some_and(|active| active.offset > active.len / 2)
    }

    /// Makes sure that the active file has `bytes` left.
    fn make_room(&mut self, bytes: u64) -> Result<(), CommitError> {
        match &self.active {
            Some(active) if active.len - active.offset >= bytes => Ok(()),
            _ => self.roll(bytes),
        }
    }

    /// Goes on to the next file. The old one is sealed only once the next one is there: should
    /// that fail, appends that still fit into the old one are none the worse.
    fn roll(&mut self, bytes: u64) -> Result<(), CommitError> {
        let next = self.take_prepared(HEADER_BYTES + bytes)?;
        if let Some(old) = self.active.take() {
            // Not fatal: an unsealed file is read through at the next start, and sealed then, or
            // before its successor is removed.
            let sealed = lock(&old.info.summary).write_seal(old.file.as_ref(), old.info.name.id);
            old.info.has_seal.store(sealed.is_ok(), Ordering::Release);
            old.file.forget_cached();
            old.info.sealed.store(true, Ordering::Release);
        }
        let place = Place { number: next.name.number, offset: HEADER_BYTES };
        let path = next.name.path(&self.shared.dir);
        // Also if that fails: whether its header is on the disk is not known, and of two files with
        // one number only one would count.
        self.next_number = next.name.number + 1;
        if let Err(error) = self.activate(next) {
            let removed = self.shared.disk.remove(&path);
            drop(removed);
            return Err(CommitError::Write(Arc::new(error)));
        }
        self.write_checkpoint(place);
        Ok(())
    }

    /// The next file, prepared before or now. It is as large as `bytes` at least.
    fn take_prepared(&mut self, bytes: u64) -> Result<Prepared, CommitError> {
        if let Some(next) = self.prepared.take() {
            if next.len >= bytes && next.name.number >= self.next_number {
                return Ok(next);
            }
            // Too small for this one frame, or overtaken: an unused file is made anew.
            let removed = self.shared.disk.remove(&next.name.path(&self.shared.dir));
            drop(removed);
        }
        let len = bytes.max(self.next_file_bytes).next_multiple_of(BLOCK as u64);
        let prepared = FileName::new(self.next_number).and_then(|name| {
            let file = prepare(self.shared.disk.as_ref(), &self.shared.dir, name, len)?;
            Ok(Prepared { name, file, len })
        });
        prepared.map_err(|error| match is_no_space(&error) {
            true => CommitError::NoSpace(Arc::new(error)),
            false => CommitError::Write(Arc::new(error)),
        })
    }

    fn activate(&mut self, next: Prepared) -> io::Result<()> {
        let header = Header {
            file_id: next.name.id,
            first_seq: self.next_seq,
            previous_end: self.previous_end,
        };
        next.file.write_at(&header.encode(), 0)?;
        if self.gave_up {
            // The checkpoint is about to say that the given up file's keys are all in it. Without
            // this header the next start might count a refused frame of that file, whose keys
            // are not.
            next.file.sync_data()?;
            self.gave_up = false;
        }
        let summary = Summary::new(self.next_seq);
        let info = Arc::new(FileInfo::new(next.name, &self.shared.dir, false, summary));
        self.shared.publish_file(Arc::clone(&info));
        self.next_file_bytes = (next.len * 2).min(self.file_bytes_max);
        self.active = Some(Active { info, file: next.file, offset: HEADER_BYTES, len: next.len });
        Ok(())
    }

    /// Gives the active file up after a failed write. Its successor's header, which says where
    /// this one ends, is durable before anything else is accepted.
    fn abandon_active(&mut self) {
        self.shared.counters.failed_commits.fetch_add(1, Ordering::Relaxed);
        self.gave_up = true;
        if let Some(old) = self.active.take() {
            old.info.sealed.store(true, Ordering::Release);
        }
    }

    /// Writes a checkpoint, in a thread of its own if that takes long: commits go on meanwhile,
    /// and a later checkpoint is left out if the one before it is not done.
    fn write_checkpoint(&mut self, place: Place) {
        if self.checkpointing.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return;
        }
        let (shared, next_seq) = (Arc::clone(&self.shared), self.next_seq);
        let snapshot = self.window.snapshot();
        let write = move || write_checkpoint(&shared, place, next_seq, &snapshot);
        if self.window.runs() <= CHECKPOINT_INLINE_RUNS_MAX {
            write();
        } else {
            // If there can be no thread, the next file tries again.
            self.checkpointing = spawn("log-checkpoint", write).ok();
        }
    }

    /// A checkpoint of all there is, so that the next start reads next to nothing. Not after a
    /// file was given up: what the next start finds in it is not known.
    pub(crate) fn checkpoint_all(&mut self) {
        self.wait_for_checkpoint();
        if let Some(active) = &self.active {
            let place = Place { number: active.info.name.number, offset: active.offset };
            self.write_checkpoint(place);
        }
        self.wait_for_checkpoint();
    }

    /// Two at once would write the same file.
    fn wait_for_checkpoint(&mut self) {
        if let Some(thread) = self.checkpointing.take() {
            let ended = thread.join();
            drop(ended);
        }
    }
}

impl Drop for Writer {
    /// Whoever opens the log next must find nobody at its files.
    fn drop(&mut self) {
        self.wait_for_checkpoint();
    }
}

/// Not fatal when it fails: recovery then starts from the checkpoint before, and retention leaves
/// the files alone that only this one covers.
fn write_checkpoint(shared: &Shared, place: Place, next_seq: u64, window: &Snapshot) {
    let Shared { disk, dir, checkpointed, counters, .. } = shared;
    match checkpoint::write(disk.as_ref(), dir, place, next_seq, window) {
        Ok(()) => checkpointed.store(place.number, Ordering::Release),
        Err(_) => _ = counters.failed_checkpoints.fetch_add(1, Ordering::Relaxed),
    }
}

impl Judged<'_> {
    fn committed(self, first_seq: u64) -> Committed {
        Committed { first_seq, appended: self.group.len(), not_appended: self.not_appended }
    }
}

/// The group less some of its records.
fn without(group: &Group, dropped: &[(u32, KeyFate)]) -> Group {
    let view = group.view();
    let mut rest = group.emptied();
    let mut dropped = dropped.iter().map(|(index, _)| *index).peekable();
    for (index, record) in (0..).zip(view.records()) {
        if dropped.next_if_eq(&index).is_none() {
            let seq = record.producer_seq.unwrap_or_default();
            rest.push(seq, &[record.payload]).expect("it was in a group before");
        }
    }
    rest
}
