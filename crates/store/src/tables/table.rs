//! The rows of one dataset: segments in files, and the memory table before them.
//!
//! Rows go from deliveries (as they came) into images (segments in memory), and from images into
//! files. All three are in the order of the log.

use std::borrow::Cow;
use std::sync::{Arc, Mutex};

use perflab_model::{Batch, Nanos};

use super::limits::{FREEZE_BYTES, FREEZE_GROUPS, TableLimits, WAITING_BYTES};
use super::rows::Delivery;
use crate::catalog::{LostRows, SegmentEntry};
use crate::segment::{Segment, SegmentError, Source, Sparsity, Vocabularies, build};

/// A segment that is in a file.
#[derive(Debug)]
pub(crate) struct FileSegment {
    pub(crate) entry: SegmentEntry,
    pub(crate) segment: Arc<Segment>,
}

/// The segments of a dataset that are in files. Replaced, never changed.
pub(crate) type Files = Arc<Vec<Arc<FileSegment>>>;

/// The cold segments of a dataset. Replaced, never changed.
pub(crate) type Cold = Arc<Vec<SegmentEntry>>;

/// What a start finds of a dataset, of which everything is in files.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) flushed_end: u64,
    pub(crate) files: Vec<Arc<FileSegment>>,
    pub(crate) cold: Vec<SegmentEntry>,
    pub(crate) damaged: Vec<DamagedSegment>,
    pub(crate) lost: Vec<LostRows>,
}

/// A segment whose file can't be used.
#[derive(Debug, Clone)]
pub(crate) struct DamagedSegment {
    pub(crate) entry: SegmentEntry,
    pub(crate) why: String,
}

/// A segment in memory.
#[derive(Debug)]
pub(crate) struct Image {
    pub(crate) segment: Arc<Segment>,
    pub(crate) first_seq: u64,
    pub(crate) end_seq: u64,
    came: Nanos,
    /// How many its rows have.
    values: usize,
}

/// The rows of a dataset.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// The numbers of its strings, for all snapshots.
    pub(super) vocabularies: Arc<Vocabularies>,
    /// In the order of the log.
    pub(super) files: Files,
    /// Those of which nothing is open.
    pub(super) cold: Cold,
    pub(super) damaged: Vec<DamagedSegment>,
    pub(super) lost: Vec<LostRows>,
    images: Vec<Arc<Image>>,
    /// How many of the images, from the first on, are being written to a file.
    flushing: usize,
    waiting: Vec<Arc<Delivery>>,
    waiting_rows: usize,
    waiting_bytes: usize,
    /// Rows before this sequence are in files, or were.
    pub(super) flushed_end: u64,
    /// Held while deliveries become an image, so that no two threads do it at once.
    pub(super) freezing: Arc<Mutex<()>>,
}

/// What is to become one image.
#[derive(Debug)]
pub(super) struct Freeze {
    images: Vec<Arc<Image>>,
    deliveries: Vec<Arc<Delivery>>,
}

impl Table {
    pub(super) fn found(found: Found) -> Self {
        let Found { flushed_end, files, cold, damaged, lost } = found;
        let (files, cold) = (Arc::new(files), Arc::new(cold));
        Self { flushed_end, files, cold, damaged, lost, ..Self::default() }
    }

    pub(super) fn push(&mut self, delivery: Delivery) {
        self.waiting_rows += delivery.rows;
        self.waiting_bytes += delivery.bytes;
        self.waiting.push(Arc::new(delivery));
    }

    /// Whether it is time to make an image of what waits.
    pub(super) fn must_freeze(&self, limits: &TableLimits) -> bool {
        self.waiting_rows >= limits.freeze_rows
            || self.waiting.len() >= FREEZE_GROUPS
            || self.waiting_bytes >= WAITING_BYTES
    }

    /// How many rows are in no file.
    pub(super) fn memory_rows(&self) -> usize {
        let images: usize = self.images.iter().map(|image| image.segment.rows()).sum();
        images + self.waiting_rows
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.image_bytes() + self.waiting_bytes
    }

    /// What it has become of rows that no longer wait, which is about what their file takes.
    pub(super) fn image_bytes(&self) -> usize {
        self.images.iter().map(|image| image.segment.bytes()).sum()
    }

    /// When the oldest row that is in no file came.
    pub(super) fn since(&self) -> Option<Nanos> {
        let image = self.images.first().map(|image| image.came);
        image.or_else(|| self.waiting.first().map(|delivery| delivery.came))
    }

    /// The sequence of the first record whose rows are in no file, nor about to be.
    pub(super) fn first_pending(&self) -> Option<u64> {
        let image = self.images.get(self.flushing).map(|image| image.first_seq);
        image.or_else(|| self.waiting.first().map(|delivery| delivery.first_seq))
    }

    pub(super) fn images(&self) -> &[Arc<Image>] {
        &self.images
    }

    /// The next deliveries that become an image, together with images that are no larger: so
    /// that there are few, and each row is copied a few times only.
    pub(super) fn plan_freeze(&self, limits: &TableLimits) -> Option<Freeze> {
        let (mut rows, mut columns, mut values, mut taken) = (0, 0, 0, 0);
        let is_much = |rows, columns, values| {
            let bytes = Sparsity::DEFAULT.bytes_max(rows, columns, values);
            rows > limits.freeze_rows || bytes > FREEZE_BYTES
        };
        for delivery in &self.waiting {
            columns = delivery.columns.max(columns);
            let then = (rows + delivery.rows, values + delivery.values);
            if taken > 0 && is_much(then.0, columns, then.1) {
                break;
            }
            ((rows, values), taken) = (then, taken + 1);
        }
        let mut first = self.images.len();
        while let Some(image) = self.images[self.flushing..first].last()
            && image.segment.rows() <= rows
            && !is_much(rows + image.segment.rows(), columns, values + image.values)
        {
            (rows, values) = (rows + image.segment.rows(), values + image.values);
            first -= 1;
        }
        (taken > 0).then(|| Freeze {
            images: self.images[first..].to_vec(),
            deliveries: self.waiting[..taken].to_vec(),
        })
    }

    /// Puts an image in the place of what it was made of; `None` when that had no rows.
    pub(super) fn finish_freeze(&mut self, freeze: &Freeze, image: Option<Image>) {
        for delivery in self.waiting.drain(..freeze.deliveries.len()) {
            self.waiting_rows -= delivery.rows;
            self.waiting_bytes -= delivery.bytes;
        }
        self.images.truncate(self.images.len() - freeze.images.len());
        self.images.extend(image.map(Arc::new));
    }

    /// Takes the images that go into the next file, in order.
    pub(super) fn begin_flush(&mut self, limits: &TableLimits) -> Vec<Arc<Image>> {
        let (mut rows, mut bytes) = (0, 0);
        for image in &self.images {
            let (more_rows, more_bytes) = (image.segment.rows(), image.segment.bytes());
            let is_full =
                rows + more_rows > limits.flush_rows || bytes + more_bytes > limits.flush_bytes;
            if self.flushing > 0 && is_full {
                break;
            }
            (rows, bytes) = (rows + more_rows, bytes + more_bytes);
            self.flushing += 1;
        }
        self.images[..self.flushing].to_vec()
    }

    pub(super) fn give_up_flush(&mut self) {
        self.flushing = 0;
    }

    /// Puts a file in the place of the images that it was made of.
    pub(super) fn finish_flush(&mut self, file: FileSegment) {
        self.images.drain(..self.flushing);
        self.flushing = 0;
        self.flushed_end = file.entry.end_seq;
        self.replace(&[], Some(file));
    }

    /// All segments in files, hot and cold, in the order of the log.
    pub(super) fn entries(&self) -> Vec<SegmentEntry> {
        let hot = self.files.iter().map(|file| file.entry);
        let mut entries: Vec<SegmentEntry> = hot.chain(self.cold.iter().copied()).collect();
        entries.sort_by_key(|entry| entry.first_seq);
        entries
    }

    /// Takes a cold segment out of the set, if it is there.
    pub(super) fn take_cold(&mut self, id: u64) -> Option<SegmentEntry> {
        let found = self.cold.iter().copied().find(|entry| entry.id == id)?;
        Arc::make_mut(&mut self.cold).retain(|entry| entry.id != id);
        Some(found)
    }

    pub(super) fn add_cold(&mut self, entry: SegmentEntry) {
        Arc::make_mut(&mut self.cold).push(entry);
    }

    /// Takes files out of the set and puts another one in.
    pub(super) fn replace(&mut self, removed: &[u64], added: Option<FileSegment>) {
        let is_kept = |file: &&Arc<FileSegment>| !removed.contains(&file.entry.id);
        let mut files: Vec<_> = self.files.iter().filter(is_kept).cloned().collect();
        files.extend(added.map(Arc::new));
        files.sort_by_key(|file| file.entry.first_seq);
        self.files = Arc::new(files);
    }
}

impl Freeze {
    /// `None` when there is no row: records that were not appended, or held none.
    pub(super) fn build(&self) -> Result<Option<Image>, SegmentError> {
        let batches: Vec<Cow<'_, Batch>> =
            self.deliveries.iter().flat_map(|delivery| delivery.batches()).collect();
        let images = self.images.iter().map(|image| Source::Segment(&image.segment));
        let sources: Vec<Source<'_>> =
            images.chain(batches.iter().map(|batch| Source::Batch(batch))).collect();
        let segment = Segment::open(&build(&sources)?)?;
        let image_spans =
            self.images.iter().map(|image| (image.first_seq, image.end_seq, image.came));
        let spans = self.deliveries.iter().map(|d| (d.first_seq, d.end_seq, d.came));
        let mut spans = image_spans.chain(spans);
        let Some((first_seq, mut end_seq, came)) = spans.next() else { return Ok(None) };
        end_seq = spans.last().map_or(end_seq, |(_, end, _)| end);
        let columns = segment.columns().iter();
        let values = columns.map(|column| segment.rows() - column.nulls()).sum();
        let image = Image { segment: Arc::new(segment), first_seq, end_seq, came, values };
        Ok((image.segment.rows() > 0).then_some(image))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::rows::GroupRows;

    /// How many deliveries of 2,000 rows and columns become one image, of more that wait.
    fn frozen_at_once(values_per_row: usize) -> usize {
        let mut table = Table::default();
        for _ in 0..40 {
            let mut delivery = Delivery::new((0, 1), Nanos(0), GroupRows::default(), Vec::new());
            (delivery.rows, delivery.columns) = (2000, 2000);
            delivery.values = 2000 * values_per_row;
            table.push(delivery);
        }
        table.plan_freeze(&TableLimits::DEFAULT).unwrap().deliveries.len()
    }

    #[test]
    fn images_have_as_many_rows_as_their_values_allow() {
        assert_eq!(frozen_at_once(2000), 2, "64 MiB of numbers");
        assert_eq!(frozen_at_once(20), 13, "most of them are nulls, which take nothing");
        assert_eq!(frozen_at_once(1), 32, "64 Ki rows");
    }
}
