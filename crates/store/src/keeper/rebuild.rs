//! Segments whose files can't be used, made again from the log.

use std::sync::Arc;

use perflab_log::{ReadFrom, ReadItem};

use super::log_rows::LogRows;
use super::steps::REBUILD;
use super::{KeepError, Keeper};
use crate::catalog::{LostRows, SegmentChange, SegmentEntry};
use crate::ingest::chain;
use crate::segment::{Segment, SegmentError, Source, build};
use crate::tables::DamagedSegment;

impl Keeper {
    /// Takes a segment out of use if it is a file of this dataset and its bytes are damaged; it is
    /// made again then. Returns whether that is so.
    pub(crate) fn report_damage(&self, dataset: &str, segment: &Segment) -> bool {
        let Err(error) = segment.check() else { return false };
        // What is thawed is no data: it is thawed again.
        self.thawed.forget(segment) || self.take_out(dataset, segment, &error.to_string())
    }

    /// Takes a segment that is damaged out of use; false when it is no file of this dataset.
    pub(super) fn take_out(&self, dataset: &str, segment: &Segment, why: &str) -> bool {
        let file = self.tables.mark_damaged(dataset, segment, why);
        file.map(|file| self.put_aside(dataset, &file.entry, why)).is_some()
    }

    /// The same for a cold segment; false when it has just been removed.
    pub(super) fn take_out_cold(&self, dataset: &str, entry: &SegmentEntry, why: &str) -> bool {
        let is_there = self.tables.mark_cold_damaged(dataset, entry.id, why);
        if is_there {
            self.put_aside(dataset, entry, why);
        }
        is_there
    }

    fn put_aside(&self, dataset: &str, entry: &SegmentEntry, why: &str) {
        match self.catalog.dataset_folder(dataset) {
            Ok(folder) => self.set_aside(dataset, folder, entry, why),
            // It is found again at the next start.
            Err(error) => tracing::error!(dataset, %error, why, "a segment is damaged"),
        }
        self.tables.wake_keeper();
    }

    pub(super) fn set_aside(&self, dataset: &str, folder: u64, entry: &SegmentEntry, why: &str) {
        let id = entry.id;
        let moved = if entry.cold.is_some() {
            let moved = self.cold.set_aside(folder, id).map(|path| path.to_string());
            moved.map_err(|error| chain(&error))
        } else {
            let moved = self.files.set_aside(folder, id).map(|path| path.display().to_string());
            moved.map_err(|error| chain(&error))
        };
        match moved {
            Ok(moved_to) => tracing::error!(dataset, id, why, moved_to, "a segment is damaged"),
            Err(error) => {
                tracing::error!(dataset, id, why, error, "a segment is damaged and still in place");
            }
        }
    }

    /// Makes damaged segments again, as far as the log still holds what was in them.
    pub(super) fn rebuild_damaged(&self) {
        for (dataset, damaged) in self.tables.damaged() {
            if self.tables.is_stopping() {
                return;
            }
            if let Err(error) = self.rebuild(&dataset, &damaged) {
                self.tell(&error, "a damaged segment could not be rebuilt from the log");
            }
        }
    }

    fn rebuild(&self, dataset: &Arc<str>, damaged: &DamagedSegment) -> Result<(), KeepError> {
        let entry = &damaged.entry;
        let read = self.read_span(dataset, entry)?;
        let sources: Vec<_> = read.iter().map(Source::Segment).collect();
        let rows = read.iter().map(Segment::rows).sum();
        let file = if rows == 0 {
            None
        } else {
            Some(self.write_segment(
                dataset,
                &sources,
                (entry.first_seq, entry.end_seq),
                &REBUILD,
            )?)
        };
        let lost = lost_rows(entry, rows);
        let change = SegmentChange {
            removed: &[entry.id],
            added: file.as_ref().map(|file| &file.entry),
            lost: lost.as_ref(),
            ..SegmentChange::default()
        };
        self.record(dataset, &change, REBUILD.recorded)?;
        match &lost {
            None => tracing::info!(%dataset, rows, "a damaged segment was rebuilt from the log"),
            Some(lost) => {
                tracing::error!(%dataset, rows, %lost, "a damaged segment was not rebuilt whole");
            }
        }
        self.tables.finish_rebuild(dataset, entry.id, file, lost);
        (self.fault)(REBUILD.swapped);
        Ok(())
    }

    /// The rows of a dataset that the log still holds of a segment's span. As segments in memory:
    /// as they are read, sparse ones take many times that.
    fn read_span(&self, dataset: &str, entry: &SegmentEntry) -> Result<Vec<Segment>, KeepError> {
        let segment_failed = |error| KeepError::Segment { dataset: dataset.to_owned(), error };
        let mut reader = self.log.read(None, ReadFrom::Seq(entry.first_seq));
        let mut rows = self.log_rows(|name| (name == dataset).then_some(entry.first_seq));
        let mut read = Vec::new();
        while reader.position() < entry.end_seq
            && let Some(item) = reader.next_item()?
        {
            let ReadItem::Frame(frame) = item else { continue };
            for (group, record) in frame.iter().filter(|(_, record)| record.seq < entry.end_seq) {
                rows.add(&group, &record);
                if rows.is_full() {
                    read.extend(segment_of(&mut rows).map_err(segment_failed)?);
                }
            }
        }
        read.extend(segment_of(&mut rows).map_err(segment_failed)?);
        Ok(read)
    }
}

/// What was read since the last time, all of one dataset.
fn segment_of(rows: &mut LogRows<'_>) -> Result<Option<Segment>, SegmentError> {
    let Some((_, rows)) = rows.take().next() else { return Ok(None) };
    let batches = rows.batches();
    let sources: Vec<_> = batches.iter().map(|batch| Source::Batch(batch)).collect();
    Segment::open(&build(&sources)?).map(Some)
}

/// What is missing when fewer rows could be had back than there were.
fn lost_rows(entry: &SegmentEntry, rebuilt: usize) -> Option<LostRows> {
    let rows = entry.rows.saturating_sub(rebuilt as u64);
    let SegmentEntry { rows: of_rows, min_ns, max_ns, first_seq, end_seq, .. } = *entry;
    (rows > 0).then_some(LostRows { rows, of_rows, min_ns, max_ns, first_seq, end_seq })
}
