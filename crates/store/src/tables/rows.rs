//! The rows of one group, on their way from the request that brought them into a memory table.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use perflab_model::{Batch, Nanos};

/// The rows that the records of one group gave, in the order of the records.
#[derive(Debug, Default)]
pub(crate) struct GroupRows {
    batches: Vec<Batch>,
    records: usize,
    /// How many rows each record gave; empty while it is one each.
    counts: Vec<usize>,
}

impl GroupRows {
    /// Says that the next record of the group gave so many rows.
    pub(crate) fn note_record(&mut self, rows: usize) {
        if rows != 1 && self.counts.is_empty() {
            self.counts = vec![1; self.records];
        }
        if rows != 1 || !self.counts.is_empty() {
            self.counts.push(rows);
        }
        self.records += 1;
    }

    /// Adds rows of records that were, or are about to be, noted.
    pub(crate) fn push(&mut self, batch: Batch) {
        self.batches.push(batch);
    }

    /// About how much memory they take.
    pub(crate) fn bytes(&self) -> usize {
        self.batches.iter().map(Batch::bytes).sum()
    }

    fn rows(&self) -> usize {
        self.batches.iter().map(Batch::len).sum()
    }

    fn count(&self, record: usize) -> usize {
        self.counts.get(record).copied().unwrap_or(1)
    }

    /// Whether each row is of a record that is not in `dropped`, which is sorted.
    fn kept(&self, dropped: &[u32]) -> Vec<bool> {
        let mut dropped = dropped.iter().map(|&record| record as usize).peekable();
        let mut kept = Vec::with_capacity(self.rows());
        for record in 0..self.records {
            let is_kept = dropped.next_if_eq(&record).is_none();
            kept.resize(kept.len() + self.count(record), is_kept);
        }
        kept
    }
}

/// Room for rows that wait for their commit, given back when dropped.
#[derive(Debug)]
pub(crate) struct Reserved {
    bytes: usize,
    taken: Arc<AtomicUsize>,
}

impl Reserved {
    /// `None` when more than `bytes_max` would be taken.
    pub(crate) fn take(taken: &Arc<AtomicUsize>, bytes: usize, bytes_max: usize) -> Option<Self> {
        let before = taken.fetch_add(bytes, Ordering::Relaxed);
        let reserved = Self { bytes, taken: Arc::clone(taken) };
        (before + bytes <= bytes_max).then_some(reserved)
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.taken.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// The rows of one group that is in the log.
#[derive(Debug)]
pub(crate) struct Delivery {
    pub(super) first_seq: u64,
    pub(super) end_seq: u64,
    /// When it came to perflab.
    pub(super) came: Nanos,
    pub(super) rows: usize,
    pub(super) bytes: usize,
    /// About how many columns a segment of its dataset has.
    pub(super) columns: usize,
    /// How many values its rows have.
    pub(super) values: usize,
    group: GroupRows,
    /// Records that the log did not append.
    dropped: Vec<u32>,
}

impl Delivery {
    /// `dropped` is sorted.
    pub(crate) fn new(
        (first_seq, end_seq): (u64, u64),
        came: Nanos,
        group: GroupRows,
        dropped: Vec<u32>,
    ) -> Self {
        let not_kept: usize = dropped.iter().map(|&record| group.count(record as usize)).sum();
        let columns = group.batches.iter().map(|batch| batch.schema().columns_known()).max();
        Self {
            first_seq,
            end_seq,
            came,
            rows: group.rows() - not_kept,
            bytes: group.bytes(),
            columns: columns.unwrap_or(0),
            values: group.batches.iter().map(Batch::values).sum(),
            group,
            dropped,
        }
    }

    /// The rows that are in the log.
    pub(crate) fn batches(&self) -> Vec<Cow<'_, Batch>> {
        let batches = self.group.batches.iter();
        if self.dropped.is_empty() {
            return batches.map(Cow::Borrowed).collect();
        }
        let kept = self.group.kept(&self.dropped);
        let mut start = 0;
        let selected = batches.map(|batch| {
            let kept = &kept[start..start + batch.len()];
            start += batch.len();
            Cow::Owned(batch.select(|row| kept[row]))
        });
        selected.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use perflab_model::{Schema, SchemaState};

    /// Records of so many rows each; a row's time is its record.
    fn group(counts: &[usize]) -> GroupRows {
        let schema = Arc::new(SchemaState::new(Schema::default()));
        let mut group = GroupRows::default();
        for (record, &rows) in (0..).zip(counts) {
            let mut batch = Batch::new(Arc::clone(&schema));
            for _ in 0..rows {
                batch.begin_row().commit(Nanos(record), 1.0).unwrap();
            }
            group.note_record(rows);
            group.push(batch);
        }
        group
    }

    #[test]
    fn rows_of_records_that_were_not_appended_are_left_out() {
        for (counts, dropped, expected) in [
            (&[1, 1, 1][..], &[][..], &[0, 1, 2][..]),
            (&[1, 1, 1], &[1], &[0, 2]),
            (&[1, 0, 3, 2], &[2], &[0, 3, 3]),
            (&[2, 1], &[0, 1], &[]),
        ] {
            let delivery = Delivery::new((0, 1), Nanos(0), group(counts), dropped.to_vec());
            let batches = delivery.batches();
            let times: Vec<i64> = batches.iter().flat_map(|batch| batch.times()).copied().collect();
            assert_eq!(times, expected);
            assert_eq!(delivery.rows, expected.len());
        }
    }

    #[test]
    fn reserved_room_is_given_back() {
        let taken = Arc::default();
        let first = Reserved::take(&taken, 6, 10);
        assert!(first.is_some());
        assert!(Reserved::take(&taken, 6, 10).is_none());
        drop(first);
        assert!(Reserved::take(&taken, 6, 10).is_some());
    }
}
