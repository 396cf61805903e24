//! What became of groups that were sent, told per entry.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use perflab_log::{CommitError, Committed, KeyFate};
use perflab_wire::EntryCode;

use super::Counters;
use super::landing::Landed;
use super::outcome::{Answer, Busy, Outcome, chain};
use crate::home::Home;

/// One group that was sent.
#[derive(Debug)]
pub(super) struct Parcel {
    pub(super) producer: Box<str>,
    /// Which entries its records are; none for refused entries that are kept.
    pub(super) entries: Vec<usize>,
    /// The producer's numbers for them, if it has any.
    pub(super) sequences: Vec<u64>,
    pub(super) records: u32,
}

impl Parcel {
    /// How many of its records are refused entries that are kept.
    pub(super) fn kept(&self) -> u64 {
        u64::from(self.records) - self.entries.len() as u64
    }

    fn sequence(&self, place: u32) -> u64 {
        self.sequences.get(place as usize).copied().unwrap_or_default()
    }
}

/// Turns the ends of appends into outcomes.
#[derive(Debug)]
pub(super) struct Settlement<'a> {
    answer: &'a mut Answer,
    in_order: Option<&'a str>,
    too_old: Vec<usize>,
}

impl<'a> Settlement<'a> {
    pub(super) fn new(answer: &'a mut Answer, in_order: Option<&'a str>) -> Self {
        Self { answer, in_order, too_old: Vec::new() }
    }

    /// The entries whose keys the log has forgotten.
    pub(super) fn into_too_old(self) -> Vec<usize> {
        self.too_old
    }

    pub(super) fn settle(&mut self, home: &Home, parcel: &Parcel, landed: Landed) {
        match landed {
            Some(Ok(committed)) => self.settle_committed(parcel, &committed),
            Some(Err(error)) => {
                let busy = match error {
                    CommitError::NoSpace(_) => Busy::DiskFull,
                    CommitError::Write(_) => Busy::WriteFailed,
                };
                self.settle_failed(home, parcel, busy, chain(&error));
            }
            None => {
                let reason = "the log ended before it had written this".to_owned();
                self.settle_failed(home, parcel, Busy::Closing, reason);
            }
        }
    }

    fn settle_committed(&mut self, parcel: &Parcel, committed: &Committed) {
        let mut not_appended = committed.not_appended.iter().peekable();
        let mut offset = committed.first_seq;
        for (place, &index) in (0..).zip(&parcel.entries) {
            let outcome = &mut self.answer.outcomes[index];
            match not_appended.next_if(|(at, _)| *at == place) {
                None => {
                    outcome.offset = Some(offset);
                    offset += 1;
                }
                Some((_, KeyFate::TooOld { floor }))
                    if self.in_order != Some(&*parcel.producer) =>
                {
                    let Parcel { producer, .. } = parcel;
                    let sequence = parcel.sequence(place);
                    let reason = format!(
                        "sequence {sequence} of producer `{producer}` is older than the \
                         deduplication window: everything up to {floor} is forgotten; it may be \
                         stored already"
                    );
                    *outcome = Outcome::refused(EntryCode::Error, reason.into());
                    self.too_old.push(index);
                }
                Some(_) => outcome.is_duplicate = true,
            }
        }
    }

    fn settle_failed(&mut self, home: &Home, parcel: &Parcel, busy: Busy, reason: String) {
        home.counters.note_lost(parcel.kept());
        if !parcel.entries.is_empty() {
            self.answer.busy = Some(busy);
        }
        let reason: Arc<str> = reason.into();
        for &index in &parcel.entries {
            self.answer.outcomes[index] =
                Outcome::refused(EntryCode::TryLater, Arc::clone(&reason));
        }
    }
}

/// A fast entry's sender has had its answer: all that is left is to say that it was wrong.
pub(super) fn note_fast(
    counters: &Counters,
    records: u32,
    landed: &Result<Committed, CommitError>,
) {
    let too_old = |fates: &[(u32, KeyFate)]| {
        fates.iter().filter(|(_, fate)| *fate != KeyFate::Duplicate).count() as u64
    };
    let lost = match landed {
        Ok(committed) => too_old(&committed.not_appended),
        Err(error) => {
            tracing::error!(records, error = chain(error), "fast entries were not written");
            u64::from(records)
        }
    };
    counters.fast_lost.fetch_add(lost, Ordering::Relaxed);
}
