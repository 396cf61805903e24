//! Drains the spool: what local writers left goes through the same door as everything else,
//! exactly once.
//!
//! 1. A spool file is claimed; its records are read in order, a batch at a time.
//! 2. Those up to the file's position in the catalog are skipped: the log has them.
//! 3. A batch is sent under the key (file, sequence), or under its own key where its writer gave
//!    it one, and waited for. What the log knows already is recognised by the key: that is the
//!    batch which a crash left between the append and the position.
//! 4. The position moves on; after the last batch the file is removed.
//!
//! Since a file's records are sent in order and each until it has landed, a key that the log has
//! forgotten is one that it has. That is no longer sure once an append of a batch has failed while
//! later ones may have landed: the failed ones are sent again at once, while the log still knows
//! the others, and if it has forgotten them nevertheless they are refused, not taken for stored.

use std::sync::PoisonError;
use std::thread;
use std::time::Duration;

use perflab_log::{Drain, GroupView, RecordView, SpoolError};
use perflab_model::{CategoryName, Nanos};
use perflab_wire::{Codec, Entry, EntryCode, EntryError};

use crate::catalog::CatalogError;
use crate::home::Home;
use crate::ingest::{Acknowledge, Answer, Busy, Door, Expected, Intake, Key, Sender, Stamp};
use crate::tokens::Access;

/// A batch is sent when it has this many bytes,
const BATCH_BYTES_MAX: usize = 1 << 20;
/// or this many records.
const BATCH_RECORDS_MAX: usize = 10_000;
/// How often a batch is offered to a full queue, or to a log that fails to write it, before the
/// drain gives up until next time,
const BUSY_RETRIES_MAX: u32 = 100;
/// and how long it waits in between.
const BUSY_WAIT: Duration = Duration::from_millis(50);

/// Why a drain stopped. What is not drained stays in the spool.
#[derive(Debug, thiserror::Error)]
pub enum DrainError {
    #[error(transparent)]
    Spool(#[from] SpoolError),
    #[error("failed to note how far the spool is drained")]
    Catalog(#[from] CatalogError),
    #[error("the log takes nothing at the moment: {reason}")]
    Busy { reason: String },
}

/// What a drain did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DrainReport {
    /// Files that were drained and removed.
    pub files: u64,
    /// Records that are in the log now, and were not before.
    pub records: u64,
    /// Records that the log had already.
    pub duplicates: u64,
    /// Records that were refused: see [`REJECTED`](crate::REJECTED).
    pub refused: u64,
}

impl Home {
    /// Brings what waits in the spool into the log. Blocks until it is there.
    pub fn drain_spool(&self) -> Result<DrainReport, DrainError> {
        let _draining = self.draining.lock().unwrap_or_else(PoisonError::into_inner);
        let mut report = DrainReport::default();
        for drain in self.spool().drain()? {
            self.drain_file(drain, &mut report)?;
            report.files += 1;
        }
        Ok(report)
    }

    fn drain_file(&self, mut drain: Drain, report: &mut DrainReport) -> Result<(), DrainError> {
        let producer = drain.producer();
        let position = self.catalog().spool_position(&producer)?;
        let mut batch = Batch::default();
        loop {
            let has_more = drain.next(|group| batch.add(&group, position))?;
            if !has_more || batch.is_full() {
                self.send_batch(&producer, &batch, report)?;
                if let Some(last) = batch.records.last() {
                    self.catalog().set_spool_position(&producer, last.spool_seq)?;
                }
                batch = Batch::default();
            }
            if !has_more {
                return Ok(drain.finish()?);
            }
        }
    }

    /// Sends a batch until all of it has landed or been refused.
    fn send_batch(
        &self,
        producer: &str,
        batch: &Batch,
        report: &mut DrainReport,
    ) -> Result<(), DrainError> {
        let mut waiting: Vec<&Record> = batch.records.iter().collect();
        let mut is_in_order = true;
        let mut reason = String::new();
        for _ in 0..=BUSY_RETRIES_MAX {
            let answer = self.offer(producer, &waiting, is_in_order);
            let busy = answer.busy;
            waiting = settle(&waiting, &answer, report);
            if waiting.is_empty() {
                return Ok(());
            }
            reason = reason_of(&answer);
            match busy {
                Some(Busy::QueueFull) => {}
                Some(Busy::WriteFailed) => is_in_order = false,
                Some(Busy::DiskFull | Busy::CatalogFailed | Busy::Closing) | None => break,
            }
            thread::sleep(BUSY_WAIT);
        }
        Err(DrainError::Busy { reason })
    }

    fn offer(&self, producer: &str, records: &[&Record], is_in_order: bool) -> Answer {
        let sender = Sender { access: &Access::Everything, door: Door::Spool };
        let expected = Expected { entries: records.len(), bytes: 0 };
        // Durable, whatever the category: the spool's copy is about to be removed.
        let mut intake = Intake::new(self, sender, Acknowledge::Durable, expected);
        if is_in_order {
            intake.trust_order_of(producer);
        }
        let now = self.now();
        for record in records {
            let stamp = record.stamp(producer, now);
            match record.entry() {
                Ok(entry) => intake.take(&entry, &stamp),
                Err(error) => intake.refuse_unreadable(error, &record.payload, &stamp),
            }
        }
        intake.finish().wait().answer(self, |index| records.get(index)?.entry().ok())
    }
}

/// Counts what is done; returns what is to be sent again.
fn settle<'b>(sent: &[&'b Record], answer: &Answer, report: &mut DrainReport) -> Vec<&'b Record> {
    let mut again = Vec::new();
    for (record, outcome) in sent.iter().zip(&answer.outcomes) {
        match outcome.code {
            EntryCode::TryLater => again.push(*record),
            EntryCode::Ok if outcome.is_duplicate => report.duplicates += 1,
            EntryCode::Ok => report.records += 1,
            EntryCode::Error | EntryCode::Denied | EntryCode::TooLarge => report.refused += 1,
        }
    }
    again
}

fn reason_of(answer: &Answer) -> String {
    let reason = answer.outcomes.iter().find_map(|outcome| outcome.reason.as_deref());
    reason.unwrap_or("no reason is known").to_owned()
}

/// Records of a spool file that are sent together.
#[derive(Debug, Default)]
struct Batch {
    records: Vec<Record>,
    bytes: usize,
}

/// One spooled message.
#[derive(Debug)]
struct Record {
    category: Result<CategoryName, EntryError>,
    payload: Vec<u8>,
    arrival: Nanos,
    /// The key its writer gave it.
    own_key: Option<(String, u64)>,
    spool_seq: u64,
}

impl Batch {
    fn is_full(&self) -> bool {
        self.bytes >= BATCH_BYTES_MAX || self.records.len() >= BATCH_RECORDS_MAX
    }

    /// Adds the records of a group that come after `position`.
    fn add(&mut self, group: &GroupView<'_>, position: Option<u64>) {
        let category = CategoryName::new(group.category).map_err(EntryError::Category);
        let is_new = |record: &RecordView<'_>| position.is_none_or(|last| record.seq > last);
        for record in group.records().filter(is_new) {
            self.bytes += record.payload.len();
            let own_key = record.producer_seq.map(|seq| (group.producer.to_owned(), seq));
            self.records.push(Record {
                category: category.clone(),
                payload: record.payload.to_vec(),
                arrival: Nanos(group.arrival_ns),
                own_key,
                spool_seq: record.seq,
            });
        }
    }
}

impl Record {
    fn entry(&self) -> Result<Entry<'_>, &EntryError> {
        let category = self.category.as_ref()?;
        // An unknown codec becomes a message that can't be decoded, and is refused as such.
        let (codec, message) =
            Codec::split(&self.payload).unwrap_or((Codec::Message, &self.payload));
        Ok(Entry { category, category_index: 0, codec, message })
    }

    /// A writer's clock may be ahead; nothing arrives in the future.
    fn stamp<'r>(&'r self, spool: &'r str, now: Nanos) -> Stamp<'r> {
        let key = match &self.own_key {
            Some((producer, sequence)) => Key { producer, sequence: *sequence },
            None => Key { producer: spool, sequence: self.spool_seq },
        };
        Stamp { arrival: self.arrival.min(now), key: Some(key) }
    }
}
