//! Sorts entries by category, sends their groups, and keeps account of both.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use perflab_log::{CommitError, Committed, GROUP_BYTES_TARGET, Group, Refusal};
use perflab_model::{CategoryName, Nanos};
use perflab_wire::{Codec, Entry, EntryCode, EntryError, Registry};

use super::landing::Landing;
use super::lane::{Lane, OpenGroup, Refused, Stamp};
use super::outcome::{Answer, Busy, Outcome, chain};
use super::rejected::{self, Sent, is_reserved};
use super::settle::{Parcel, note_fast};
use super::{Checked, Door, Ticket};
use crate::catalog::{CatalogError, Guarantee};
use crate::datasets::DatasetError;
use crate::home::Home;
use crate::tables::Consignment;
use crate::tokens::Access;

/// About how much memory the rows of one request may take until their groups are sent. Beyond it
/// they are let go, and read from the log again later, so that no request holds more.
const ROWS_BYTES_MAX: usize = 64 << 20;

/// Who sends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sender<'s> {
    pub(crate) access: &'s Access,
    pub(crate) door: Door,
}

/// When entries are acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Acknowledge {
    /// As each category's settings say.
    AsConfigured,
    /// Always after they are on disk.
    Durable,
}

/// How much is about to come, as far as that is known: so that buffers need not grow in steps.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Expected {
    pub(crate) entries: usize,
    pub(crate) bytes: usize,
}

/// A category of the request, and what is done with its entries.
type Named = (CategoryName, Result<Lane, Refused>);

fn writable((_, lane): &mut Named) -> Result<&mut Lane, Refused> {
    lane.as_mut().map_err(|refused| refused.clone())
}

/// The entries of one request on their way to the log.
///
/// A request that has sent more than a group's worth keeps to half of the log's queue by waiting
/// for its own groups; small ones never wait and find room in the other half.
#[derive(Debug)]
pub(crate) struct Intake<'h> {
    home: &'h Home,
    sender: Sender<'h>,
    acknowledge: Acknowledge,
    registry: Arc<Registry>,
    lanes: Vec<Named>,
    lane_of: HashMap<CategoryName, usize>,
    /// The lane of the entry before: the next one is usually of the same category.
    last_lane: Option<usize>,
    /// The lane of refused entries. Not in `lane_of`, where it would be found by entries.
    rejected_lane: Option<usize>,
    /// Refused entries that could not be kept.
    lost: u64,
    landing: Landing,
    /// Where fast groups land. Their answer doesn't wait for them, the groups after them do.
    fast_landing: Landing,
    /// One per append; `None` for one that the log refused at once.
    parcels: Vec<Option<Parcel>>,
    answer: Answer,
    arrival: Nanos,
    /// About how many bytes the request's groups will take.
    expected_bytes: usize,
    sent_bytes: usize,
    /// About how much memory the rows of the lanes' open groups take.
    row_bytes: usize,
    /// The producer whose forgotten keys are known to be stored.
    in_order: Option<&'h str>,
    /// Set when the log refused a group: what comes after it is not even tried, so that of each
    /// category the beginning is taken.
    stopped: Option<Refused>,
}

impl<'h> Intake<'h> {
    pub(crate) fn new(
        home: &'h Home,
        sender: Sender<'h>,
        acknowledge: Acknowledge,
        expected: Expected,
    ) -> Self {
        Self {
            home,
            sender,
            acknowledge,
            registry: home.registry(),
            lanes: Vec::new(),
            lane_of: HashMap::new(),
            last_lane: None,
            rejected_lane: None,
            lost: 0,
            landing: Landing::default(),
            fast_landing: Landing::default(),
            parcels: Vec::new(),
            answer: Answer {
                outcomes: Vec::with_capacity(expected.entries),
                fast: Vec::new(),
                busy: None,
            },
            arrival: Nanos(0),
            expected_bytes: expected.bytes,
            sent_bytes: 0,
            row_bytes: 0,
            in_order: None,
            stopped: None,
        }
    }

    /// Says that this producer's entries come in order, each sent until it has landed: then a key
    /// that the log has forgotten is one that it has. Entries are queued in their order too,
    /// whatever their categories: a floor must not pass one that still waits in its lane.
    pub(crate) fn trust_order_of(&mut self, producer: &'h str) {
        self.in_order = Some(producer);
    }

    /// Checks the next entry of the request and queues it.
    pub(crate) fn take(&mut self, entry: &Entry<'_>, stamp: &Stamp<'_>) {
        self.arrival = stamp.arrival;
        let index = self.answer.outcomes.len();
        let before = self.last_lane;
        let lane = self.lane(entry.category);
        if let Some(before) = before
            && before != lane
            && self.in_order.is_some()
        {
            self.send(before);
        }
        self.answer.outcomes.push(Outcome::TAKEN);
        if let Err(refused) = self.put(lane, Some(index), (entry.codec, entry.message), stamp) {
            self.refuse(index, Sent::Entry(*entry), &refused);
        }
    }

    /// Notes that the next entry of the request could not even be read.
    pub(crate) fn refuse_unreadable(&mut self, error: &EntryError, text: &[u8], stamp: &Stamp<'_>) {
        self.arrival = stamp.arrival;
        let index = self.answer.outcomes.len();
        self.answer.outcomes.push(Outcome::TAKEN);
        self.refuse(index, Sent::Unreadable(text), &Refused::new(error.code(), chain(error)));
    }

    /// Sends what is left. Entries are queued or refused when this returns, not yet on disk.
    pub(crate) fn finish(mut self) -> Ticket {
        for lane in 0..self.lanes.len() {
            self.send(lane);
        }
        let mut rows = 0;
        for (index, (category, lane)) in self.lanes.into_iter().enumerate() {
            let rows_of_lane = lane.map_or(0, Lane::finish);
            if rows_of_lane == 0 && self.rejected_lane != Some(index) {
                self.home.forget_unused_dataset(category.dataset());
            }
            rows += rows_of_lane;
        }
        self.home.counters.rows.fetch_add(rows, Ordering::Relaxed);
        self.home.counters.note_lost(self.lost);
        let rest = Checked {
            door: self.sender.door,
            arrival: self.arrival,
            in_order: self.in_order.map(Box::from),
            answer: self.answer,
            parcels: self.parcels,
        };
        Ticket { landing: self.landing, rest }
    }

    /// Keeps a refused entry where the operator can see it.
    pub(super) fn keep(
        &mut self,
        index: usize,
        sent: Sent<'_>,
        code: EntryCode,
        reason: &str,
        arrival: Nanos,
    ) {
        let row = rejected::row(index, sent, (code, reason), self.sender.door, arrival);
        let lane = self.rejected_lane();
        let stamp = Stamp { arrival, key: None };
        if self.put(lane, None, (Codec::Message, &row), &stamp).is_err() {
            self.lost += 1;
        }
    }

    fn refuse(&mut self, index: usize, sent: Sent<'_>, refused: &Refused) {
        self.set_refused(index, refused);
        // What is to be sent again is not lost, and not worth keeping twice.
        if refused.code != EntryCode::TryLater {
            self.keep(index, sent, refused.code, &refused.reason, self.arrival);
        }
    }

    fn set_refused(&mut self, index: usize, refused: &Refused) {
        let Refused { code, reason, busy } = refused;
        self.answer.outcomes[index] = Outcome::refused(*code, Arc::clone(reason));
        self.answer.busy = busy.or(self.answer.busy);
    }

    fn put(
        &mut self,
        lane: usize,
        entry: Option<usize>,
        message: (Codec, &[u8]),
        stamp: &Stamp<'_>,
    ) -> Result<(), Refused> {
        if let Some(stopped) = &self.stopped {
            return Err(stopped.clone());
        }
        if writable(&mut self.lanes[lane])?.must_close_before(stamp, message.1.len()) {
            self.send(lane);
        }
        let open = writable(&mut self.lanes[lane])?;
        let before = open.row_bytes();
        open.take(entry, message, stamp, &self.registry)?;
        self.row_bytes = self.row_bytes.saturating_sub(before) + open.row_bytes();
        if open.has_just_opened() && lane == 0 {
            let rest = self.expected_bytes.saturating_sub(self.sent_bytes);
            open.reserve(rest.min(GROUP_BYTES_TARGET));
        }
        if open.is_full() {
            self.send(lane);
        }
        if self.row_bytes > ROWS_BYTES_MAX {
            self.forget_rows();
        }
        Ok(())
    }

    fn forget_rows(&mut self) {
        let lanes = self.lanes.iter_mut().filter_map(|(_, lane)| lane.as_mut().ok());
        lanes.for_each(Lane::forget_rows);
        self.row_bytes = 0;
    }

    fn lane(&mut self, category: &CategoryName) -> usize {
        if let Some(last) = self.last_lane
            && self.lanes[last].0 == *category
        {
            return last;
        }
        let lane = match self.lane_of.get(category) {
            Some(&lane) => lane,
            None => {
                let lane = self.open_lane(category);
                self.add_lane(category.clone(), lane)
            }
        };
        *self.last_lane.insert(lane)
    }

    fn rejected_lane(&mut self) -> usize {
        if let Some(lane) = self.rejected_lane {
            return lane;
        }
        let category = self.home.rejected_category();
        self.lanes.push((category.clone(), self.open_dataset(category)));
        *self.rejected_lane.insert(self.lanes.len() - 1)
    }

    fn add_lane(&mut self, category: CategoryName, lane: Result<Lane, Refused>) -> usize {
        if lane.as_ref().is_ok_and(|lane| lane.guarantee == Guarantee::Fast) {
            self.answer.fast.push(category.clone());
        }
        self.lanes.push((category.clone(), lane));
        self.lane_of.insert(category, self.lanes.len() - 1);
        self.lanes.len() - 1
    }

    fn open_lane(&self, category: &CategoryName) -> Result<Lane, Refused> {
        if is_reserved(category) {
            let reason =
                format!("category `{category}` is perflab's own: nobody else writes to it");
            return Err(Refused::new(EntryCode::Denied, reason));
        }
        if let Access::Token(token) = self.sender.access
            && !self.sender.access.may_write(category)
        {
            let reason = format!("token `{}` may not write to category `{category}`", token.name);
            return Err(Refused::new(EntryCode::Denied, reason));
        }
        self.open_dataset(category)
    }

    fn open_dataset(&self, category: &CategoryName) -> Result<Lane, Refused> {
        let guarantee = match self.acknowledge {
            Acknowledge::AsConfigured => self.home.category_settings(category).guarantee,
            Acknowledge::Durable => Guarantee::Durable,
        };
        match self.home.dataset(category.dataset()) {
            Ok(dataset) => Ok(Lane::new(category.clone(), guarantee, dataset)),
            Err(DatasetError::Catalog(CatalogError::Closed)) => {
                Err(Refused::busy(Busy::Closing, CatalogError::Closed.to_string()))
            }
            Err(error @ DatasetError::Catalog(_)) => {
                Err(Refused::busy(Busy::CatalogFailed, chain(&error)))
            }
            Err(error) => Err(Refused::new(EntryCode::Error, chain(&error))),
        }
    }

    /// Queues a lane's open group, if there is one.
    fn send(&mut self, lane: usize) {
        let (_, Ok(lane)) = &mut self.lanes[lane] else { return };
        self.row_bytes = self.row_bytes.saturating_sub(lane.row_bytes());
        let Some(open) = lane.close() else { return };
        if open.group.is_empty() {
            return;
        }
        let (guarantee, dataset) = (lane.guarantee, Arc::clone(&lane.dataset().name));
        self.wait_for_room();
        self.sent_bytes += open.group.encoded_bytes();
        let OpenGroup { mut group, producer, entries, sequences, rows, .. } = open;
        let now = self.home.now();
        group.set_appended(now.as_i64());
        let rows = self.home.tables().announce(dataset, now, rows);
        let parcel = Parcel { producer, entries, sequences, records: group.len() };
        let sent = match (&self.stopped, guarantee) {
            (Some(stopped), _) => Err((stopped.clone(), parcel)),
            (None, Guarantee::Durable) => self.append_durable(group, rows, parcel),
            (None, Guarantee::Fast) => self.append_fast(group, rows, parcel),
        };
        if let Err((refused, parcel)) = sent {
            self.refuse_parcel(&parcel, &refused);
        }
    }

    fn append_durable(
        &mut self,
        group: Group,
        rows: Consignment,
        parcel: Parcel,
    ) -> Result<(), (Refused, Parcel)> {
        let arrival = self.landing.announce();
        let done = move |landed: Result<Committed, CommitError>| {
            // First, so that whoever has the answer finds the rows.
            if let Ok(committed) = &landed {
                rows.deliver(committed);
            }
            arrival.land(landed);
        };
        match self.home.log().append(group, done) {
            Ok(()) => {
                self.parcels.push(Some(parcel));
                Ok(())
            }
            Err(refusal) => {
                // The landing has a place for it all the same.
                self.parcels.push(None);
                Err((self.note_refusal(&refusal), parcel))
            }
        }
    }

    fn append_fast(
        &mut self,
        group: Group,
        rows: Consignment,
        parcel: Parcel,
    ) -> Result<(), (Refused, Parcel)> {
        let counters = Arc::clone(&self.home.counters);
        let records = group.len();
        let arrival = self.fast_landing.announce();
        let done = move |landed: Result<Committed, CommitError>| {
            note_fast(&counters, records, &landed);
            if let Ok(committed) = &landed {
                rows.deliver(committed);
            }
            drop(arrival);
        };
        match self.home.log().append(group, done) {
            Ok(()) => Ok(()),
            Err(refusal) => Err((self.note_refusal(&refusal), parcel)),
        }
    }

    fn note_refusal(&mut self, refusal: &Refusal) -> Refused {
        let busy = match refusal {
            Refusal::QueueFull { .. } => Busy::QueueFull,
            Refusal::DiskFull => Busy::DiskFull,
            Refusal::Closed => Busy::Closing,
            Refusal::TooLarge { .. } => {
                return Refused::new(EntryCode::TooLarge, refusal.to_string());
            }
        };
        let refused = Refused::busy(busy, refusal.to_string());
        self.stopped = Some(refused.clone());
        refused
    }

    fn refuse_parcel(&mut self, parcel: &Parcel, refused: &Refused) {
        self.lost += parcel.kept();
        for &index in &parcel.entries {
            self.set_refused(index, refused);
        }
    }

    /// A large request's groups wait for those before them, rather than fill the queue.
    fn wait_for_room(&self) {
        let share = self.home.queue_bytes_max() / 2;
        while self.sent_bytes >= GROUP_BYTES_TARGET
            && self.home.log().stats().queue_bytes >= share
            && (self.landing.wait_for_one() || self.fast_landing.wait_for_one())
        {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::home::HomeSettings;
    use perflab_model::ManualClock;
    use std::time::Duration;
    use tempfile::TempDir;

    const NOW: Nanos = Nanos(1_700_000_000_000_000_000);

    fn new_home() -> (TempDir, Arc<Home>) {
        let dir = TempDir::new().unwrap();
        let clock = Arc::new(ManualClock::new(NOW));
        let home = Home::open(dir.path(), HomeSettings::default(), clock).unwrap();
        (dir, home)
    }

    fn intake(home: &Home) -> Intake<'_> {
        let sender = Sender { access: &Access::Everything, door: Door::Ndjson };
        Intake::new(home, sender, Acknowledge::AsConfigured, Expected::default())
    }

    fn take(intake: &mut Intake<'_>, category: &CategoryName, message: &str) {
        let entry = Entry {
            category,
            category_index: 0,
            codec: Codec::Message,
            message: message.as_bytes(),
        };
        intake.take(&entry, &Stamp { arrival: NOW, key: None });
    }

    fn rows(home: &Home, dataset: &str) -> usize {
        home.snapshot(dataset).unwrap().segments.iter().map(|segment| segment.rows()).sum()
    }

    /// Short rows, and after each thousand of them one of very many columns.
    #[test]
    fn a_late_row_of_many_columns_costs_no_more_than_a_few_rows_of_them() {
        let (_dir, home) = new_home();
        let mut intake = intake(&home);
        let fields: Vec<_> = (0..4095).map(|n| format!("\"{n}\":1")).collect();
        let wide = format!("{{{}}}", fields.join(","));
        let mut bytes_max = 0;
        for category in ["a", "b", "c", "d", "e", "f"] {
            let category = CategoryName::new(category).unwrap();
            for _ in 0..1020 {
                take(&mut intake, &category, "a");
            }
            take(&mut intake, &category, &wide);
            let held = |(_, lane): &Named| lane.as_ref().map_or(0, Lane::row_bytes);
            let bytes: usize = intake.lanes.iter().map(held).sum();
            assert_eq!(intake.row_bytes, bytes);
            bytes_max = bytes_max.max(bytes);
        }
        let one = 1021 * 4098 * 8;
        assert!((one..ROWS_BYTES_MAX + one).contains(&bytes_max), "{bytes_max}");
        let answer = intake.finish().wait().answer(&home, |_| None);
        assert_eq!(answer.count(EntryCode::Ok), 6 * 1021);
        assert_eq!(home.ingest_stats().rows, 6 * 1021);
        assert!(home.wait_until_current(Duration::from_secs(60)), "rows are read from the log");
        assert_eq!(rows(&home, "a"), 1021);
    }

    #[test]
    fn rows_of_many_batches_are_all_counted_and_delivered() {
        let (_dir, home) = new_home();
        let mut intake = intake(&home);
        let category = CategoryName::new("c").unwrap();
        for n in 0..2500 {
            take(&mut intake, &category, &format!("{{\"n\":{n}}}"));
            assert_eq!(intake.row_bytes, (n + 1) * 3 * 8);
        }
        drop(intake.finish().wait());
        assert_eq!(home.ingest_stats().rows, 2500);
        assert_eq!(rows(&home, "c"), 2500);
    }
}
