//! The memory tables: rows that can be queried at once, before they are in files, and which files
//! there are.
//!
//! Rows come from the log, in its order, in one of two ways. While the store *follows* the log,
//! the callback of each commit hands over the rows that the request has decoded
//! ([`Tables::deliver`]): a short push under one lock. While it is *behind*, the keeper's thread
//! reads the log itself ([`Tables::deliver_read`]) and callbacks hand over nothing, so that memory
//! stays bounded; when it has read everything there is, it follows again. The store falls behind
//! when a group came without rows, or when there is no room for them.

mod limits;
mod rows;
mod table;

pub use limits::TableLimits;

pub(crate) use rows::{Delivery, GroupRows};
pub(crate) use table::{DamagedSegment, FileSegment, Files, Image};

use std::collections::HashMap;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use perflab_log::Committed;
use perflab_model::Nanos;

use crate::segment::{Segment, SegmentError, Snapshot};
use limits::IN_FLIGHT_BYTES_MAX;
use rows::Reserved;
use table::Table;

#[derive(Debug)]
pub(crate) struct Tables {
    limits: TableLimits,
    state: Mutex<State>,
    /// Signalled when there is something for the keeper, and when the store follows again.
    changed: Condvar,
    in_flight: Arc<AtomicUsize>,
}

#[derive(Debug)]
struct State {
    by_dataset: HashMap<Arc<str>, Table>,
    /// Rows of records before this one are in tables or files; of later ones they are not.
    delivered: u64,
    follows: bool,
    /// What all tables together hold in memory.
    memory_bytes: usize,
    has_work: bool,
    is_stopping: bool,
}

/// The rows of a group that is on its way into the log.
#[derive(Debug)]
pub(crate) struct Consignment {
    tables: Arc<Tables>,
    dataset: Arc<str>,
    came: Nanos,
    /// `None` when there was no room for them.
    rows: Option<(GroupRows, Reserved)>,
}

impl Consignment {
    /// Hands the rows over; called in the order of commits, on the log's thread.
    pub(crate) fn deliver(self, committed: &Committed) {
        if committed.appended > 0 {
            let rows = self.rows.map(|(rows, _)| rows);
            self.tables.deliver(self.dataset, self.came, committed, rows);
        }
    }
}

/// What a dataset holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Holding {
    pub(crate) file_rows: u64,
    pub(crate) file_bytes: u64,
    pub(crate) files: usize,
    pub(crate) memory_rows: usize,
    /// The earliest and the latest time.
    pub(crate) times: Option<(i64, i64)>,
}

/// What is to be written to a file.
#[derive(Debug)]
pub(crate) struct Flush {
    pub(crate) dataset: Arc<str>,
    pub(crate) images: Vec<Arc<Image>>,
    /// Where the next start has to begin reading the log once these are in a file.
    pub(crate) replay_from: u64,
}

impl Tables {
    /// Tables of which nothing is in memory, and that have read the log up to `delivered`.
    pub(crate) fn new(limits: TableLimits, delivered: u64) -> Self {
        let state = State {
            by_dataset: HashMap::new(),
            delivered,
            follows: false,
            memory_bytes: 0,
            has_work: true,
            is_stopping: false,
        };
        let (state, changed) = (Mutex::new(state), Condvar::new());
        Self { limits, state, changed, in_flight: Arc::default() }
    }

    pub(crate) fn limits(&self) -> &TableLimits {
        &self.limits
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the rows of a group until its commit, if there is room for them.
    pub(crate) fn announce(
        self: &Arc<Self>,
        dataset: Arc<str>,
        came: Nanos,
        rows: Option<GroupRows>,
    ) -> Consignment {
        let rows = rows.and_then(|rows| {
            let reserved = Reserved::take(&self.in_flight, rows.bytes(), IN_FLIGHT_BYTES_MAX)?;
            Some((rows, reserved))
        });
        Consignment { tables: Arc::clone(self), dataset, came, rows }
    }

    fn deliver(
        &self,
        dataset: Arc<str>,
        came: Nanos,
        committed: &Committed,
        rows: Option<GroupRows>,
    ) {
        let span = (committed.first_seq, committed.first_seq + u64::from(committed.appended));
        let dropped = committed.not_appended.iter().map(|(record, _)| *record).collect();
        let delivery = rows.map(|rows| Delivery::new(span, came, rows, dropped));
        let mut state = self.lock();
        // What comes before it was read from the log already.
        if !state.follows || span.0 < state.delivered {
            return;
        }
        match delivery {
            // Not the next one: something was appended without us.
            Some(delivery) if span.0 == state.delivered && state.has_room(&self.limits) => {
                state.push(&self.limits, dataset, delivery);
                state.delivered = span.1;
            }
            Some(_) | None => {
                state.follows = false;
                state.has_work = true;
            }
        }
        if state.has_work {
            drop(state);
            self.changed.notify_all();
        }
    }

    /// Takes in what was read from the log, up to `end_seq`.
    pub(crate) fn deliver_read(
        &self,
        rows: impl Iterator<Item = (Arc<str>, Delivery)>,
        end_seq: u64,
    ) {
        let mut state = self.lock();
        for (dataset, delivery) in rows {
            state.push(&self.limits, dataset, delivery);
        }
        state.delivered = state.delivered.max(end_seq);
    }

    /// Follows the log from now on, if everything before `end_seq` was read and `log_end` is no
    /// further.
    pub(crate) fn follow(&self, end_seq: u64, log_end: impl FnOnce() -> u64) -> bool {
        let mut state = self.lock();
        // Asked under the lock: the callback of a later commit comes after this and finds that
        // the store follows; those of all earlier ones are about records that were read.
        if log_end() > end_seq {
            return false;
        }
        state.delivered = state.delivered.max(end_seq);
        state.follows = true;
        drop(state);
        self.changed.notify_all();
        true
    }

    /// Where the log is to be read from; `None` while the store follows it.
    pub(crate) fn behind_from(&self) -> Option<u64> {
        let state = self.lock();
        (!state.follows).then_some(state.delivered)
    }

    /// Whether there is room for more rows.
    pub(crate) fn has_room(&self) -> bool {
        self.lock().has_room(&self.limits)
    }

    /// Rows of the dataset before this sequence are in files, or were.
    pub(crate) fn flushed_end(&self, dataset: &str) -> u64 {
        self.lock().by_dataset.get(dataset).map_or(0, |table| table.flushed_end)
    }

    /// Waits until there is work or some time has passed; false when it is time to stop.
    pub(crate) fn wait_for_work(&self, at_most: Duration) -> bool {
        let is_idle = |state: &mut State| !state.has_work && !state.is_stopping;
        let waited = self.changed.wait_timeout_while(self.lock(), at_most, is_idle);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        state.has_work = false;
        !state.is_stopping
    }

    pub(crate) fn wake_keeper(&self) {
        self.lock().has_work = true;
        self.changed.notify_all();
    }

    pub(crate) fn stop(&self) {
        self.lock().is_stopping = true;
        self.changed.notify_all();
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.lock().is_stopping
    }

    /// Waits until the store follows the log; false when it still doesn't after `at_most`.
    pub(crate) fn wait_until_following(&self, at_most: Duration) -> bool {
        let is_behind = |state: &mut State| !state.follows && !state.is_stopping;
        let waited = self.changed.wait_timeout_while(self.lock(), at_most, is_behind);
        waited.unwrap_or_else(PoisonError::into_inner).0.follows
    }

    /// Adds what was found at a start.
    pub(crate) fn add_dataset(
        &self,
        dataset: Arc<str>,
        flushed_end: u64,
        files: Vec<Arc<FileSegment>>,
        damaged: Vec<DamagedSegment>,
    ) {
        let table = Table::found(flushed_end, files, damaged);
        self.lock().by_dataset.insert(dataset, table);
    }

    /// Makes images of all that waits of a dataset.
    pub(crate) fn freeze(&self, dataset: &str) -> Result<(), SegmentError> {
        let Some(freezing) = self.with_table(dataset, |table| Arc::clone(&table.freezing)) else {
            return Ok(());
        };
        let _freezing = freezing.lock().unwrap_or_else(PoisonError::into_inner);
        self.freeze_alone(dataset)
    }

    /// As [`Self::freeze`], for whoever holds the table's `freezing`.
    fn freeze_alone(&self, dataset: &str) -> Result<(), SegmentError> {
        let plan = || self.with_table(dataset, |table| table.plan_freeze(&self.limits)).flatten();
        while let Some(freeze) = plan() {
            let image = freeze.build()?;
            self.change(dataset, |table| table.finish_freeze(&freeze, image));
        }
        Ok(())
    }

    /// The datasets of which enough waits to become an image.
    pub(crate) fn to_freeze(&self) -> Vec<Arc<str>> {
        let state = self.lock();
        let full = state.by_dataset.iter().filter(|(_, table)| table.must_freeze(&self.limits));
        full.map(|(dataset, _)| Arc::clone(dataset)).collect()
    }

    /// The dataset whose memory table is to be written to a file next, if any is: one that is
    /// full or whose rows came before `before`, else the largest if all together are large.
    pub(crate) fn next_to_flush(&self, before: Option<Nanos>) -> Option<Arc<str>> {
        let state = self.lock();
        let due = state.by_dataset.iter().find(|(_, table)| self.must_flush(table, before));
        let largest = || {
            let is_crowded = state.memory_bytes > self.limits.memory_bytes / 2;
            let tables = state.by_dataset.iter().filter(|_| is_crowded);
            let tables = tables.filter(|(_, table)| table.memory_rows() > 0);
            tables.max_by_key(|(_, table)| table.memory_bytes())
        };
        due.or_else(largest).map(|(dataset, _)| Arc::clone(dataset))
    }

    fn must_flush(&self, table: &Table, before: Option<Nanos>) -> bool {
        table.memory_rows() >= self.limits.flush_rows
            || table.memory_bytes() >= self.limits.flush_bytes
            || table.since().zip(before).is_some_and(|(since, before)| since <= before)
    }

    /// Takes the images of a dataset that go into one file. They stay where they are until
    /// [`Self::finish_flush`] or [`Self::give_up_flush`].
    pub(crate) fn begin_flush(&self, dataset: &Arc<str>) -> Result<Option<Flush>, SegmentError> {
        let Some(freezing) = self.with_table(dataset, |table| Arc::clone(&table.freezing)) else {
            return Ok(None);
        };
        let _freezing = freezing.lock().unwrap_or_else(PoisonError::into_inner);
        self.freeze_alone(dataset)?;
        let mut state = self.lock();
        let Some(table) = state.by_dataset.get_mut(dataset) else { return Ok(None) };
        let images = table.begin_flush(&self.limits);
        let replay_from = state.first_pending();
        let dataset = Arc::clone(dataset);
        Ok((!images.is_empty()).then_some(Flush { dataset, images, replay_from }))
    }

    pub(crate) fn give_up_flush(&self, dataset: &str) {
        self.change(dataset, Table::give_up_flush);
    }

    pub(crate) fn finish_flush(&self, dataset: &str, file: FileSegment) {
        self.change(dataset, |table| table.finish_flush(file));
    }

    /// Takes files out of a dataset's set and puts another one in, as one step.
    pub(crate) fn replace(&self, dataset: &str, removed: &[u64], added: Option<FileSegment>) {
        self.change(dataset, |table| table.replace(removed, added));
    }

    /// The files of every dataset.
    pub(crate) fn files(&self) -> Vec<(Arc<str>, Files)> {
        let state = self.lock();
        let tables = state.by_dataset.iter();
        tables.map(|(dataset, table)| (Arc::clone(dataset), Arc::clone(&table.files))).collect()
    }

    /// The segments that are to be rebuilt.
    pub(crate) fn damaged(&self) -> Vec<(Arc<str>, DamagedSegment)> {
        let state = self.lock();
        let of = |(dataset, table): (&Arc<str>, &Table)| {
            let damaged = table.damaged.iter();
            damaged.map(|damaged| (Arc::clone(dataset), damaged.clone())).collect::<Vec<_>>()
        };
        state.by_dataset.iter().flat_map(of).collect()
    }

    /// Takes a segment whose bytes were found damaged out of the set; `None` when it is no file
    /// of this dataset.
    pub(crate) fn mark_damaged(
        &self,
        dataset: &str,
        segment: &Segment,
        why: &str,
    ) -> Option<Arc<FileSegment>> {
        let mut state = self.lock();
        let table = state.by_dataset.get_mut(dataset)?;
        let is_it = |file: &&Arc<FileSegment>| std::ptr::eq(&raw const *file.segment, segment);
        let file = Arc::clone(table.files.iter().find(is_it)?);
        table.replace(&[file.entry.id], None);
        table.damaged.push(DamagedSegment { entry: file.entry, why: why.to_owned() });
        Some(file)
    }

    /// Puts what could be rebuilt of a damaged segment in its place.
    pub(crate) fn finish_rebuild(
        &self,
        dataset: &str,
        damaged: u64,
        rebuilt: Option<FileSegment>,
        lost: Option<String>,
    ) {
        self.change(dataset, |table| {
            table.damaged.retain(|segment| segment.entry.id != damaged);
            table.lost.extend(lost);
            table.replace(&[], rebuilt);
        });
    }

    /// The rows of a dataset as of now; `None` when none ever came.
    pub(crate) fn snapshot(
        &self,
        dataset: &str,
        log_end: u64,
    ) -> Result<Option<Snapshot>, SegmentError> {
        self.freeze(dataset)?;
        let state = self.lock();
        let mut missing = state.missing(log_end);
        let Some(table) = state.by_dataset.get(dataset) else {
            return Ok((!missing.is_empty()).then_some(Snapshot { missing, ..Snapshot::default() }));
        };
        let files = Arc::clone(&table.files);
        let images = table.images().iter().map(|image| Arc::clone(&image.segment));
        let images: Vec<Arc<Segment>> = images.collect();
        missing.extend(table.damaged.iter().map(|damaged| {
            let DamagedSegment { entry, why } = damaged;
            format!("a segment of {} rows is being rebuilt from the log: {why}", entry.rows)
        }));
        missing.extend_from_slice(&table.lost);
        let vocabularies = Arc::clone(&table.vocabularies);
        drop(state);
        let files = files.iter().map(|file| Arc::clone(&file.segment));
        Ok(Some(Snapshot { segments: files.chain(images).collect(), missing, vocabularies }))
    }

    /// What a dataset holds; `None` when it has no rows and never had.
    pub(crate) fn holding(&self, dataset: &str) -> Result<Option<Holding>, SegmentError> {
        self.freeze(dataset)?;
        Ok(self.with_table(dataset, |table| {
            let entries = || table.files.iter().map(|file| file.entry);
            let file_times = entries().map(|entry| (entry.min_ns, entry.max_ns));
            let image_times = table.images().iter().filter_map(|image| {
                let times = image.segment.times().ok()?;
                Some((*times.first()?, *times.last()?))
            });
            let join = |a: (i64, i64), b: (i64, i64)| (a.0.min(b.0), a.1.max(b.1));
            Holding {
                file_rows: entries().map(|entry| entry.rows).sum(),
                file_bytes: entries().map(|entry| entry.bytes()).sum(),
                files: table.files.len(),
                memory_rows: table.memory_rows(),
                times: file_times.chain(image_times).reduce(join),
            }
        }))
    }

    /// Every dataset that has, or had, rows.
    pub(crate) fn datasets(&self) -> Vec<Arc<str>> {
        self.lock().by_dataset.keys().cloned().collect()
    }

    fn with_table<T>(&self, dataset: &str, read: impl FnOnce(&Table) -> T) -> Option<T> {
        self.lock().by_dataset.get(dataset).map(read)
    }

    /// Changes a table, and what is known of the memory of all.
    fn change(&self, dataset: &str, change: impl FnOnce(&mut Table)) {
        let mut state = self.lock();
        if let Some(table) = state.by_dataset.get_mut(dataset) {
            let before = table.memory_bytes();
            change(table);
            let after = table.memory_bytes();
            state.memory_bytes = state.memory_bytes - before + after;
        }
    }
}

impl State {
    fn push(&mut self, limits: &TableLimits, dataset: Arc<str>, delivery: Delivery) {
        self.memory_bytes += delivery.bytes;
        let table = self.by_dataset.entry(dataset).or_default();
        table.push(delivery);
        self.has_work |= table.must_freeze(limits);
    }

    fn has_room(&self, limits: &TableLimits) -> bool {
        self.memory_bytes < limits.memory_bytes
    }

    /// The first record whose rows are in no file, nor about to be.
    fn first_pending(&self) -> u64 {
        let pending = self.by_dataset.values().filter_map(Table::first_pending);
        pending.min().unwrap_or(self.delivered)
    }

    fn missing(&self, log_end: u64) -> Vec<String> {
        let records = log_end.saturating_sub(self.delivered);
        if self.follows || records == 0 {
            return Vec::new();
        }
        vec![format!("the store is {records} records behind the log")]
    }
}
