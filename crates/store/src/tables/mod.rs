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
mod moves;
mod rows;
mod table;
mod view;

pub use limits::TableLimits;

pub(crate) use moves::Flush;
pub(crate) use rows::{Delivery, GroupRows};
pub(crate) use table::{DamagedSegment, FileSegment, Found};
pub(crate) use view::{Holding, View};

use std::collections::HashMap;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use perflab_log::Committed;
use perflab_model::Nanos;

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

    /// How many rows of all datasets are in no file.
    pub(crate) fn memory_rows(&self) -> usize {
        self.lock().by_dataset.values().map(Table::memory_rows).sum()
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
    pub(crate) fn add_dataset(&self, dataset: Arc<str>, found: Found) {
        self.lock().by_dataset.insert(dataset, Table::found(found));
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
