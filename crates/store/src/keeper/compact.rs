//! Small segments become few.
//!
//! Neighbours in the order of the log are merged when the largest of them is at most half of what
//! they make together: a row is then in a segment at least twice as large after each merge, and so
//! is copied a few times only, however many small segments come.

use std::ops::Range;
use std::sync::Arc;

use super::steps::{COMPACT, COMPACT_REMOVED};
use super::{KeepError, Keeper};
use crate::catalog::{SegmentChange, SegmentEntry};
use crate::segment::{SegmentError, Source};
use crate::tables::{FileSegment, TableLimits};

/// At least so many segments are merged at once.
const MERGE_MIN: usize = 4;

impl Keeper {
    /// Merges segments of one dataset, where that is worth it; false when it is nowhere.
    pub(super) fn compact_next(&self) -> bool {
        let damaged = self.tables.damaged();
        for (dataset, files) in self.tables.files() {
            let entries: Vec<SegmentEntry> = files.iter().map(|file| file.entry).collect();
            let damaged = damaged.iter().filter(|(other, _)| *other == dataset);
            let damaged = damaged.map(|(_, segment)| segment.entry);
            let cold = self.tables.entries(&dataset).into_iter();
            let cold = cold.filter(|entry| entry.cold.is_some());
            let gaps: Vec<u64> = damaged.chain(cold).map(|entry| entry.first_seq).collect();
            let Some(run) = plan(&entries, &gaps, self.tables.limits()) else { continue };
            match self.compact(&dataset, &files[run]) {
                Ok(()) => return true,
                Err(error) => self.tell(&error, "small segments could not be merged"),
            }
        }
        false
    }

    fn compact(&self, dataset: &Arc<str>, files: &[Arc<FileSegment>]) -> Result<(), KeepError> {
        let (Some(first), Some(last)) = (files.first(), files.last()) else { return Ok(()) };
        let sources: Vec<_> = files.iter().map(|file| Source::Segment(&file.segment)).collect();
        let span = (first.entry.first_seq, last.entry.end_seq);
        let written = self.write_segment(dataset, &sources, span, &COMPACT);
        if let Err(KeepError::Segment { error: SegmentError::Damaged(_), .. }) = &written {
            for file in files {
                self.report_damage(dataset, &file.segment);
            }
        }
        let file = written?;
        let removed: Vec<u64> = files.iter().map(|file| file.entry.id).collect();
        let added = Some(&file.entry);
        let change = SegmentChange { removed: &removed, added, ..SegmentChange::default() };
        self.record(dataset, &change, COMPACT.recorded)?;
        self.tables.replace(dataset, &removed, Some(file));
        (self.fault)(COMPACT.swapped);
        for id in removed {
            self.remove_files(dataset, &[id]);
            (self.fault)(COMPACT_REMOVED);
        }
        Ok(())
    }
}

/// Which neighbours to merge next, if any. Segments that can't be merged, damaged or cold, start at
/// `gaps`: those around them are no neighbours.
fn plan(entries: &[SegmentEntry], gaps: &[u64], limits: &TableLimits) -> Option<Range<usize>> {
    let (rows_max, bytes_max) = (limits.segment_rows as u64, limits.segment_bytes as u64);
    for start in 0..entries.len() {
        let (mut rows, mut bytes, mut largest, mut found) = (0, 0, 0, None);
        for (place, entry) in entries.iter().enumerate().skip(start) {
            let is_apart = place > start
                && gaps
                    .iter()
                    .any(|gap| (entries[place - 1].end_seq..entry.first_seq).contains(gap));
            rows += entry.rows;
            bytes += entry.bytes();
            largest = entry.rows.max(largest);
            if is_apart || rows > rows_max || bytes > bytes_max {
                break;
            }
            if place + 1 - start >= MERGE_MIN && largest * 2 <= rows {
                found = Some(start..place + 1);
            }
        }
        if found.is_some() {
            return found;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(rows: &[u64]) -> Vec<SegmentEntry> {
        let entry = |(n, &rows): (u64, &u64)| SegmentEntry {
            id: n,
            rows,
            row_bytes: rows,
            list_bytes: None,
            sparse_bytes: None,
            min_ns: 0,
            max_ns: 0,
            first_seq: n * 10,
            end_seq: n * 10 + 5,
            cold: None,
        };
        (0..).zip(rows).map(entry).collect()
    }

    fn planned(rows: &[u64], gaps: &[u64]) -> Option<Range<usize>> {
        let limits = TableLimits { segment_rows: 1000, ..TableLimits::DEFAULT };
        plan(&entries(rows), gaps, &limits)
    }

    #[test]
    fn neighbours_of_like_size_are_merged() {
        assert_eq!(planned(&[1, 1, 1], &[]), None, "too few");
        assert_eq!(planned(&[1, 1, 1, 1], &[]), Some(0..4));
        assert_eq!(planned(&[900, 1, 1, 1, 1], &[]), Some(1..5), "the large one stays");
        assert_eq!(planned(&[4, 1, 1, 1], &[]), None, "not worth copying four");
        assert_eq!(planned(&[4, 1, 1, 1, 1], &[]), Some(0..5));
        assert_eq!(planned(&[300, 300, 300, 300], &[]), None, "they would be too large");
        assert_eq!(planned(&[200, 200, 200, 200, 300], &[]), Some(0..4));
        assert_eq!(planned(&[1, 1, 1, 1], &[17]), None, "one is missing among them");
        assert_eq!(planned(&[1, 1, 1, 1, 1], &[7]), Some(1..5));
    }

    #[test]
    fn however_many_come_few_stay_and_rows_are_copied_rarely() {
        let (mut rows, mut copied): (Vec<u64>, u64) = (Vec::new(), 0);
        for new in std::iter::repeat_n(1, 900) {
            rows.push(new);
            while let Some(run) = planned(&rows, &[]) {
                let merged = rows[run.clone()].iter().sum();
                copied += merged;
                rows.splice(run, [merged]);
            }
        }
        assert!(rows.len() < 20, "{rows:?}");
        assert!(copied < 900 * 10, "{copied}");
    }
}
