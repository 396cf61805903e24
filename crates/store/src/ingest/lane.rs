//! The entries of one category within one request.

use std::sync::Arc;

use perflab_log::{GROUP_BYTES_TARGET, Group, GroupError, RECORD_BYTES_MAX};
use perflab_model::{Batch, CategoryName, Nanos};
use perflab_wire::{Codec, EntryCode, Registry, decode};

use super::outcome::{Busy, chain};
use crate::catalog::Guarantee;
use crate::datasets::Dataset;
use crate::tables::GroupRows;

/// The most rows of one batch: a column that appears late is filled with nulls up to its row.
pub(crate) const BATCH_ROWS_MAX: usize = 1024;

/// A producer's number for one entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key<'k> {
    pub(crate) producer: &'k str,
    pub(crate) sequence: u64,
}

/// What an entry carries besides its message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stamp<'k> {
    pub(crate) arrival: Nanos,
    pub(crate) key: Option<Key<'k>>,
}

impl<'k> Stamp<'k> {
    fn producer(&self) -> &'k str {
        self.key.map_or("", |key| key.producer)
    }
}

/// Why an entry is refused.
#[derive(Debug, Clone)]
pub(super) struct Refused {
    pub(super) code: EntryCode,
    pub(super) reason: Arc<str>,
    /// Set when the entry itself is not at fault.
    pub(super) busy: Option<Busy>,
}

impl Refused {
    pub(super) fn new(code: EntryCode, reason: impl Into<Arc<str>>) -> Self {
        Self { code, reason: reason.into(), busy: None }
    }

    /// To be sent again.
    pub(super) fn busy(busy: Busy, reason: impl Into<Arc<str>>) -> Self {
        Self { code: EntryCode::TryLater, reason: reason.into(), busy: Some(busy) }
    }
}

impl From<GroupError> for Refused {
    fn from(error: GroupError) -> Self {
        Self::new(EntryCode::TooLarge, error.to_string())
    }
}

/// A category that this request may write to.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) category: CategoryName,
    pub(super) guarantee: Guarantee,
    dataset: Arc<Dataset>,
    /// The typed rows of the last records of the open group: what the dataset takes in.
    batch: Batch,
    /// How many rows there were in all.
    rows: u64,
    open: Option<OpenGroup>,
}

/// A group that still takes records.
#[derive(Debug)]
pub(super) struct OpenGroup {
    pub(super) group: Group,
    pub(super) producer: Box<str>,
    arrival: Nanos,
    /// Which entries of the request its records are; none for what perflab adds itself.
    pub(super) entries: Vec<usize>,
    /// Their keys' sequences, if they have keys.
    pub(super) sequences: Vec<u64>,
    /// Its records' rows; `None` when they took too much memory.
    pub(super) rows: Option<GroupRows>,
}

impl Lane {
    pub(super) fn new(category: CategoryName, guarantee: Guarantee, dataset: Arc<Dataset>) -> Self {
        let batch = Batch::new(Arc::clone(&dataset.schema));
        Self { category, guarantee, dataset, batch, rows: 0, open: None }
    }

    /// Whether the open group can't take a record with this stamp and so many bytes: a large one
    /// must not make its neighbours' group larger than the log takes.
    pub(super) fn must_close_before(&self, stamp: &Stamp<'_>, bytes: usize) -> bool {
        self.open.as_ref().is_some_and(|open| {
            let would_be_full = open.group.encoded_bytes() + bytes > GROUP_BYTES_TARGET;
            open.arrival != stamp.arrival
                || &*open.producer != stamp.producer()
                || (would_be_full && !open.group.is_empty())
        })
    }

    /// Whether the next record belongs in another group.
    pub(super) fn is_full(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.group.is_full())
    }

    pub(super) fn close(&mut self) -> Option<OpenGroup> {
        self.end_batch();
        self.open.take()
    }

    pub(super) fn dataset(&self) -> &Dataset {
        &self.dataset
    }

    /// Checks a message and adds it to the batch and the open group, or changes nothing.
    pub(super) fn take(
        &mut self,
        entry: Option<usize>,
        (codec, message): (Codec, &[u8]),
        stamp: &Stamp<'_>,
        registry: &Registry,
    ) -> Result<(), Refused> {
        // Before the row is in the batch: it could not be taken out again.
        if message.len() >= RECORD_BYTES_MAX {
            return Err(GroupError::RecordTooLarge { bytes: message.len() + 1 }.into());
        }
        if self.open.is_none() {
            self.open = Some(OpenGroup::new(&self.category, stamp)?);
        }
        if codec == Codec::Bulk {
            self.end_batch();
        }
        let before = self.batch.len();
        decode(codec, message, stamp.arrival, registry, &mut self.batch)
            .map_err(|error| Refused::new(EntryCode::Error, chain(&error)))?;
        let rows = self.batch.len() - before;
        self.rows += rows as u64;
        if let Some(open) = &mut self.open {
            let sequence = stamp.key.map(|key| key.sequence);
            open.group.push(sequence.unwrap_or_default(), &[&[codec.byte()], message])?;
            open.entries.extend(entry);
            open.sequences.extend(sequence);
            if let Some(held) = &mut open.rows {
                held.note_record(rows);
            }
        }
        if self.batch.len() >= BATCH_ROWS_MAX {
            self.end_batch();
        }
        Ok(())
    }

    /// About how much memory the rows of the open group take.
    pub(super) fn row_bytes(&self) -> usize {
        let ended = self.open.as_ref().and_then(|open| open.rows.as_ref());
        ended.map_or(0, GroupRows::bytes) + self.batch.bytes()
    }

    /// Adds the batch to the open group's rows, and begins another one.
    fn end_batch(&mut self) {
        if !self.batch.is_empty() {
            let schema = Arc::clone(&self.dataset.schema);
            let ended = std::mem::replace(&mut self.batch, Batch::new(schema));
            if let Some(held) = self.open.as_mut().and_then(|open| open.rows.as_mut()) {
                held.push(ended);
            }
        }
    }

    /// Lets go of the open group's rows: they are read from the log again later.
    pub(super) fn forget_rows(&mut self) {
        if let Some(open) = &mut self.open {
            open.rows = None;
        }
        self.end_batch();
    }

    /// Whether the open group has its first record and no more.
    pub(super) fn has_just_opened(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.group.len() == 1)
    }

    /// Makes room for this many bytes of records.
    pub(super) fn reserve(&mut self, bytes: usize) {
        if let Some(open) = &mut self.open {
            open.group.reserve(bytes);
        }
    }

    /// Ends the lane: its dataset learns what the rows brought. Returns how many there were.
    pub(super) fn finish(self) -> u64 {
        self.dataset.touch();
        self.rows
    }
}

impl OpenGroup {
    fn new(category: &CategoryName, stamp: &Stamp<'_>) -> Result<Self, GroupError> {
        let arrival_ns = stamp.arrival.as_i64();
        let group = match stamp.key {
            None => Group::new(category.as_str(), arrival_ns)?,
            Some(key) => Group::with_producer(category.as_str(), key.producer, arrival_ns)?,
        };
        let producer = stamp.producer().into();
        let (entries, sequences) = (Vec::new(), Vec::new());
        let rows = Some(GroupRows::default());
        Ok(Self { group, producer, arrival: stamp.arrival, entries, sequences, rows })
    }
}
