//! From deliveries to images to files, and from files to other files.

use std::sync::{Arc, PoisonError};

use perflab_model::Nanos;

use super::Tables;
use super::table::{DamagedSegment, FileSegment, Files, Image, Table};
use crate::catalog::{LostRows, SegmentEntry};
use crate::segment::{Segment, SegmentError};

/// What is to be written to a file.
#[derive(Debug)]
pub(crate) struct Flush {
    pub(crate) dataset: Arc<str>,
    pub(crate) images: Vec<Arc<Image>>,
    /// Where the next start has to begin reading the log once these are in a file.
    pub(crate) replay_from: u64,
}

impl Tables {
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
            || table.image_bytes() >= self.limits.flush_bytes
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

    /// Takes segments out of a dataset's set, hot or cold, and forgets lost rows up to a time, as
    /// one step.
    pub(crate) fn remove(&self, dataset: &str, ids: &[u64], forget_lost_until: i64) {
        self.change(dataset, |table| {
            table.replace(ids, None);
            for &id in ids {
                table.take_cold(id);
            }
            table.lost.retain(|lost| lost.max_ns > forget_lost_until);
        });
    }

    /// Puts a cold segment in the place of the hot one that it was made of, as one step.
    pub(crate) fn replace_by_cold(&self, dataset: &str, hot: u64, cold: SegmentEntry) {
        self.change(dataset, |table| {
            table.replace(&[hot], None);
            table.add_cold(cold);
        });
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

    /// All segments of a dataset that are in files, hot and cold, in the order of the log.
    pub(crate) fn entries(&self, dataset: &str) -> Vec<SegmentEntry> {
        self.with_table(dataset, Table::entries).unwrap_or_default()
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

    /// Takes a cold segment out of the set because its bytes are damaged; false when it is not in
    /// it any more.
    pub(crate) fn mark_cold_damaged(&self, dataset: &str, id: u64, why: &str) -> bool {
        let mut state = self.lock();
        let Some(table) = state.by_dataset.get_mut(dataset) else { return false };
        let taken = table.take_cold(id);
        let damaged = taken.map(|entry| DamagedSegment { entry, why: why.to_owned() });
        table.damaged.extend(damaged.clone());
        damaged.is_some()
    }

    /// Puts what could be rebuilt of a damaged segment in its place.
    pub(crate) fn finish_rebuild(
        &self,
        dataset: &str,
        damaged: u64,
        rebuilt: Option<FileSegment>,
        lost: Option<LostRows>,
    ) {
        self.change(dataset, |table| {
            table.damaged.retain(|segment| segment.entry.id != damaged);
            table.lost.extend(lost);
            table.replace(&[], rebuilt);
        });
    }
}
