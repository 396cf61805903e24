//! Memory tables to files.

use std::sync::Arc;
use std::time::Duration;

use perflab_model::Nanos;

use super::steps::FLUSH;
use super::{KeepError, Keeper};
use crate::catalog::SegmentChange;
use crate::ingest::chain;
use crate::segment::Source;
use crate::tables::Flush;

/// How long it may take at the end to write memory tables to files.
const PUT_AWAY: Duration = Duration::from_secs(5);

impl Keeper {
    /// At the end: writes memory tables to files if they are so large that the next start would
    /// need long to read their rows from the log again.
    pub(super) fn put_away(&self) {
        if self.tables.memory_rows() < self.tables.limits().freeze_rows {
            return;
        }
        let end = self.clock.now().saturating_add(PUT_AWAY);
        while self.clock.now() < end
            && let Some(dataset) = self.tables.next_to_flush(Some(end))
        {
            if let Err(error) = self.flush(&dataset) {
                tracing::warn!(
                    error = chain(&error),
                    "rows are in the log only, where the next start reads them: they could not be \
                     written to a file"
                );
                return;
            }
        }
    }

    /// Makes images of what waits, where that is much, and writes memory tables to files that are
    /// full, or whose rows came before `before`, or that must go because all together are large.
    pub(super) fn make_room(&self, before: Option<Nanos>) {
        for dataset in self.tables.to_freeze() {
            if let Err(error) = self.tables.freeze(&dataset) {
                let error = KeepError::Segment { dataset: dataset.to_string(), error };
                self.tell(&error, "rows could not be made ready for queries");
            }
        }
        while !self.tables.is_stopping()
            && let Some(dataset) = self.tables.next_to_flush(before)
        {
            if let Err(error) = self.flush(&dataset) {
                self.tell(&error, "rows stay in memory: they could not be written to a file");
                return;
            }
        }
    }

    /// Writes a memory table, or as much of it as one segment takes, to a file.
    fn flush(&self, dataset: &Arc<str>) -> Result<(), KeepError> {
        let begun = self.tables.begin_flush(dataset);
        let segment_failed = |error| KeepError::Segment { dataset: dataset.to_string(), error };
        let Some(flush) = begun.map_err(segment_failed)? else { return Ok(()) };
        let written = self.write_flush(&flush);
        if written.is_err() {
            self.tables.give_up_flush(dataset);
        }
        written
    }

    fn write_flush(&self, flush: &Flush) -> Result<(), KeepError> {
        let Flush { dataset, images, replay_from } = flush;
        let (Some(first), Some(last)) = (images.first(), images.last()) else { return Ok(()) };
        let sources: Vec<_> = images.iter().map(|image| Source::Segment(&image.segment)).collect();
        let file =
            self.write_segment(dataset, &sources, (first.first_seq, last.end_seq), &FLUSH)?;
        let change = SegmentChange {
            added: Some(&file.entry),
            replay_from: Some(*replay_from),
            ..SegmentChange::default()
        };
        self.record(dataset, &change, FLUSH.recorded)?;
        self.tables.finish_flush(dataset, file);
        (self.fault)(FLUSH.swapped);
        Ok(())
    }
}
