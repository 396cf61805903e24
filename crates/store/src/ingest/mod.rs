//! The way of entries into the log: check → append → deliver → answer.
//!
//! 1. *Check*: each entry is decoded into its category's batch of typed rows, which applies the
//!    schema; what can't be decoded is refused with its reason, its neighbours are not.
//! 2. *Append*: the messages, as they were sent, go to the log in groups of one category. A
//!    category that is `fast` is acknowledged now, the others when their commit has ended.
//! 3. *Deliver*: with the commit, the typed rows go into their datasets' memory tables, so that
//!    whoever has an answer can query what it is about.
//! 4. *Answer*: one outcome per entry. What was refused is kept in [`REJECTED`], for the
//!    operator to see.
//!
//! The log's queue is the only buffer. When it is full the rest of the request is to be sent
//! again later, except that a request of more than one group waits for its own groups to land
//! first (see [`Intake`]): nobody could ever send a body larger than the queue otherwise.

mod intake;
mod keys;
mod landing;
mod lane;
mod outcome;
mod rejected;
mod settle;

pub use keys::{Keys, KeysError, PRODUCER_BYTES_MAX, Sequences};
pub use outcome::{Answer, Busy, Outcome, chain};
pub use rejected::{REJECTED, REJECTED_BYTES_MAX, REJECTED_MESSAGE_BYTES_MAX, is_reserved};

pub(crate) use intake::{Acknowledge, Expected, Intake, Sender};
pub(crate) use lane::{BATCH_ROWS_MAX, Key, Stamp};

use std::sync::atomic::{AtomicU64, Ordering};

use perflab_model::Nanos;
use perflab_wire::{Entry, EntryCode, Request};

use crate::home::Home;
use crate::tokens::Access;
use landing::{Landed, Landing};
use rejected::Sent;
use settle::{Parcel, Settlement};

/// Where entries come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Door {
    ScribeForm,
    ScribeJson,
    Ndjson,
    Arrow,
    Spool,
}

impl Door {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ScribeForm => "scribe_logs form",
            Self::ScribeJson => "scribe_logs json",
            Self::Ndjson => "api/log",
            Self::Arrow => "api/log arrow",
            Self::Spool => "spool",
        }
    }
}

/// Where a request comes from, and what its sender may do.
#[derive(Debug)]
pub struct Origin<'o> {
    pub access: &'o Access,
    pub door: Door,
    pub arrival: Nanos,
    /// By which the log recognises entries that it has; they must fit the request
    /// ([`Keys::check`]).
    pub keys: Option<&'o Keys>,
}

/// Counts since the home was opened.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) rows: AtomicU64,
    pub(crate) fast_lost: AtomicU64,
    pub(crate) rejected_lost: AtomicU64,
}

/// Counts for monitoring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IngestStats {
    /// Rows that were decoded and fit their schemas.
    pub rows: u64,
    /// Entries of fast categories that were acknowledged and then not written.
    pub fast_lost: u64,
    /// Refused entries that could not be kept.
    pub rejected_lost: u64,
}

impl Counters {
    /// Counts refused entries that could not be kept, and says so.
    fn note_lost(&self, entries: u64) {
        if entries > 0 {
            self.rejected_lost.fetch_add(entries, Ordering::Relaxed);
            tracing::warn!(entries, "refused entries could not be kept");
        }
    }

    pub(crate) fn stats(&self) -> IngestStats {
        IngestStats {
            rows: self.rows.load(Ordering::Relaxed),
            fast_lost: self.fast_lost.load(Ordering::Relaxed),
            rejected_lost: self.rejected_lost.load(Ordering::Relaxed),
        }
    }
}

impl Expected {
    fn of(request: &Request) -> Self {
        /// What a record takes besides its message, with a producer's number.
        const RECORD_BYTES: usize = 13;
        let messages = request.entries().filter_map(Result::ok);
        let bytes = messages.map(|entry| entry.message.len() + RECORD_BYTES).sum();
        Self { entries: request.len(), bytes }
    }
}

impl Home {
    /// Checks a request's entries and queues those that are good.
    ///
    /// Blocks only for requests larger than one group
    /// ([`GROUP_BYTES_TARGET`](perflab_log::GROUP_BYTES_TARGET)): call it for those where
    /// blocking is allowed.
    pub fn ingest(&self, request: &Request, origin: &Origin<'_>) -> Ticket {
        let sender = Sender { access: origin.access, door: origin.door };
        let mut intake =
            Intake::new(self, sender, Acknowledge::AsConfigured, Expected::of(request));
        for (index, entry) in request.entries().enumerate() {
            let key = origin.keys.map(|keys| keys.key(index));
            let stamp = Stamp { arrival: origin.arrival, key };
            match entry {
                Ok(entry) => intake.take(&entry, &stamp),
                Err(error) => intake.refuse_unreadable(error, request.refused_text(index), &stamp),
            }
        }
        intake.finish()
    }
}

/// Entries that were checked and queued; wait for it to know what became of them.
#[derive(Debug)]
#[must_use = "entries are acknowledged only once they have landed"]
pub struct Ticket {
    landing: Landing,
    rest: Checked,
}

/// What is known before the appends have ended.
#[derive(Debug)]
struct Checked {
    door: Door,
    arrival: Nanos,
    in_order: Option<Box<str>>,
    answer: Answer,
    /// One per append, in order; `None` where the answer is known.
    parcels: Vec<Option<Parcel>>,
}

/// Entries whose appends have all ended.
#[derive(Debug)]
pub struct Settled {
    landed: Vec<Landed>,
    rest: Checked,
}

impl Ticket {
    pub async fn settled(self) -> Settled {
        Settled { landed: self.landing.await, rest: self.rest }
    }

    /// As [`Ticket::settled`], by blocking.
    pub fn wait(self) -> Settled {
        Settled { landed: self.landing.wait_for_all(), rest: self.rest }
    }
}

impl Settled {
    /// One outcome per entry. Entries that the log refused for their keys are kept in
    /// [`REJECTED`] with the message that `entry` gives for their index; the answer doesn't wait
    /// for that.
    pub fn answer<'e>(self, home: &Home, entry: impl Fn(usize) -> Option<Entry<'e>>) -> Answer {
        let Checked { door, arrival, in_order, mut answer, parcels } = self.rest;
        // Once an append has failed, those after it may be stored and it is not.
        let is_whole = parcels
            .iter()
            .zip(&self.landed)
            .all(|(parcel, landed)| parcel.is_none() || landed.as_ref().is_some_and(Result::is_ok));
        let in_order = in_order.as_deref().filter(|_| is_whole);
        let mut settlement = Settlement::new(&mut answer, in_order);
        for (parcel, landed) in parcels.into_iter().zip(self.landed) {
            if let Some(parcel) = parcel {
                settlement.settle(home, &parcel, landed);
            }
        }
        let too_old = settlement.into_too_old();
        if !too_old.is_empty() {
            let sender = Sender { access: &Access::Everything, door };
            let mut intake =
                Intake::new(home, sender, Acknowledge::AsConfigured, Expected::default());
            for index in too_old {
                let outcome = &answer.outcomes[index];
                let reason = outcome.reason.as_deref().unwrap_or_default();
                let sent = entry(index).map_or(Sent::Unreadable(&[]), Sent::Entry);
                intake.keep(index, sent, EntryCode::Error, reason, arrival);
            }
            drop(intake.finish());
        }
        answer
    }
}
