//! Old segments become cold: Parquet, which takes a fraction of the space.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use perflab_model::Nanos;

use super::scratch::Scratch;
use super::steps::{COOL_RECORDED, COOL_REMOVED, COOL_SWAPPED, COOL_VERIFIED};
use super::{KeepError, Keeper};
use crate::catalog::{ColdEntry, SegmentChange, SegmentEntry};
use crate::segment::{Cooled, Segment, SegmentError, Sheets, Source, Sparsity, cool, lay_out};
use crate::tables::{FileSegment, TableLimits};

/// Segments of less than this part of the largest that merging makes wait to be merged.
const WORTH_COOLING: u64 = 4;

impl Keeper {
    /// Makes one segment cold that was hot for long enough; false when there is none.
    pub(super) fn cool_next(&self) -> bool {
        // Not before what an earlier process left is gone: it may have the numbers of new ones.
        if self.cold_is_untidy.load(Ordering::Relaxed) || !self.cold.is_writable() {
            return false;
        }
        for (dataset, files) in self.tables.files() {
            let hot = self.settings(&dataset).hot_seconds.map(Duration::from_secs);
            let Some(hot) = hot else { continue };
            let before = self.clock.now().saturating_sub(hot);
            let entries = self.tables.entries(&dataset);
            let Some(id) = next_to_cool(&entries, before, self.tables.limits()) else { continue };
            let Some(file) = files.iter().find(|file| file.entry.id == id) else { continue };
            match self.cool(&dataset, file) {
                Ok(()) => return true,
                Err(error) => self.tell(&error, "an old segment could not be made cold"),
            }
        }
        false
    }

    fn cool(&self, dataset: &Arc<str>, file: &FileSegment) -> Result<(), KeepError> {
        let segment_failed = |error| KeepError::Segment { dataset: dataset.to_string(), error };
        if let Err(error) = file.segment.check() {
            self.report_damage(dataset, &file.segment);
            return Err(segment_failed(error));
        }
        let cooled = cool(&file.segment).map_err(segment_failed)?;
        let entry = self.write_cold(dataset, cooled, &file.entry)?;
        let removed = [file.entry.id];
        let verified = self.verify(dataset, &entry, &file.segment);
        if verified.is_err() {
            self.remove_cold(dataset, entry.id);
        }
        verified?;
        (self.fault)(COOL_VERIFIED);
        let added = Some(&entry);
        let change = SegmentChange { removed: &removed, added, ..SegmentChange::default() };
        self.record(dataset, &change, COOL_RECORDED)?;
        self.tables.replace_by_cold(dataset, file.entry.id, entry);
        (self.fault)(COOL_SWAPPED);
        self.remove_files(dataset, &removed);
        (self.fault)(COOL_REMOVED);
        Ok(())
    }

    /// Writes a cold segment to where it is kept; nobody knows of it yet.
    fn write_cold(
        &self,
        dataset: &str,
        cooled: Cooled,
        hot: &SegmentEntry,
    ) -> Result<SegmentEntry, KeepError> {
        let (rows, lists) = (Bytes::from(cooled.rows), cooled.lists.map(Bytes::from));
        let folder = self.catalog.dataset_folder(dataset)?;
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        if let Err(error) = self.cold.write((folder, id), (&rows, lists.as_ref())) {
            self.remove_cold(dataset, id);
            return Err(KeepError::WriteCold { dataset: dataset.to_owned(), error });
        }
        Ok(SegmentEntry {
            id,
            row_bytes: rows.len() as u64,
            list_bytes: lists.as_ref().map(|lists| lists.len() as u64),
            // Null among others takes next to nothing in Parquet.
            sparse_bytes: None,
            cold: Some(ColdEntry {
                row_crc: crc32c::crc32c(&rows),
                list_crc: lists.as_deref().map(crc32c::crc32c),
                thawed_bytes: hot.bytes(),
            }),
            ..*hot
        })
    }

    /// Reads what was written, and compares it with the segment that it was made of.
    fn verify(
        &self,
        dataset: &str,
        entry: &SegmentEntry,
        segment: &Segment,
    ) -> Result<(), KeepError> {
        let segment_failed = |error| KeepError::Segment { dataset: dataset.to_owned(), error };
        let folder = self.catalog.dataset_folder(dataset)?;
        let thawed = self.read_cold(folder, entry)?;
        let is_same = self.has_rows_of(thawed, segment).map_err(segment_failed)?;
        if is_same {
            return Ok(());
        }
        let what = "its rows are not what they were before it was cold".to_owned();
        Err(segment_failed(SegmentError::Damaged(what)))
    }

    /// Whether these are the rows of a segment, bit by bit. A segment that an earlier version wrote
    /// may have them in other bytes, so both are made anew.
    fn has_rows_of(&self, thawed: Sheets, segment: &Segment) -> Result<bool, SegmentError> {
        let scratch = self.files.scratch()?;
        let thawed = Scratch::open(self.files.dir(), thawed)?;
        let anew = |one| lay_out(&[Source::Segment(one)], Some(&scratch), Sparsity::DEFAULT);
        Ok(anew(&thawed)? == anew(segment)?)
    }
}

/// The first hot segment whose newest row is older than `before`, unless it is among the small
/// ones at the end of the log, which are still being merged.
fn next_to_cool(entries: &[SegmentEntry], before: Nanos, limits: &TableLimits) -> Option<u64> {
    let (rows, bytes) = (limits.segment_rows as u64, limits.segment_bytes as u64);
    let is_large = |entry: &SegmentEntry| {
        let entry_bytes = entry.cold.map_or(entry.bytes(), |cold| cold.thawed_bytes);
        entry.rows >= rows / WORTH_COOLING || entry_bytes >= bytes / WORTH_COOLING
    };
    let last_large = entries.iter().rposition(is_large)?;
    let is_due = |entry: &&SegmentEntry| entry.cold.is_none() && entry.max_ns < before.as_i64();
    entries[..=last_large].iter().find(is_due).map(|entry| entry.id)
}
