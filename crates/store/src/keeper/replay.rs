//! Reading the log where the memory tables lack rows: after a start, and when the store fell
//! behind.

use std::sync::{Arc, PoisonError};

use perflab_log::{ReadError, ReadFrom, ReadItem};

use super::Keeper;
use super::log_rows::LogRows;
use crate::ingest::chain;

impl Keeper {
    /// Reads the log until the store follows it, or until it can't go on for now.
    pub(super) fn catch_up(&self) {
        while let Some(from) = self.tables.behind_from() {
            self.make_room(None);
            if !self.tables.has_room() {
                return;
            }
            let end = self.log.end();
            match self.read_on(from) {
                Ok(Some(read_end)) => {
                    self.tables.follow(read_end.max(end), || self.log.end());
                }
                Ok(None) => return,
                Err(error) => {
                    tracing::error!(error = chain(&error), "the store can't read the log");
                    return;
                }
            }
        }
    }

    /// Reads to the end of the log and returns where that is; `None` when there is no room for
    /// more, or no time.
    fn read_on(&self, from: u64) -> Result<Option<u64>, ReadError> {
        let mut reader = self.log.read(None, ReadFrom::Seq(from));
        // As of now: whatever is written to files from here on was read before.
        let mut rows = self.log_rows(|dataset| Some(self.tables.flushed_end(dataset)));
        while let Some(item) = reader.next_item()? {
            // Damage was told when the log was opened; what is lost there is lost here.
            let ReadItem::Frame(frame) = item else { continue };
            for (group, record) in frame.iter() {
                rows.add(&group, &record);
                if rows.is_full() {
                    self.hand_over(&mut rows, record.seq + 1);
                    if self.tables.is_stopping() || !self.tables.has_room() {
                        return Ok(None);
                    }
                }
            }
        }
        self.hand_over(&mut rows, reader.position());
        Ok(Some(reader.position()))
    }

    /// Puts rows that were read into the memory tables, and what is then too much into files.
    fn hand_over(&self, rows: &mut LogRows<'_>, end_seq: u64) {
        self.tables.deliver_read(rows.take(), end_seq);
        // However old they are: more of them are about to come.
        self.make_room(None);
    }

    pub(super) fn log_rows<'k>(&'k self, wanted: impl Fn(&str) -> Option<u64> + 'k) -> LogRows<'k> {
        let registry = self.registry.read().unwrap_or_else(PoisonError::into_inner);
        LogRows::new(&self.catalog, &self.datasets, Arc::clone(&registry), Box::new(wanted))
    }
}
