//! The window of producers' sequence numbers by which a repeated append is recognised.
//!
//! A key is (producer, producer's sequence). It is remembered for [`WindowLimits::age_ns`] or
//! until there are more than [`WindowLimits::keys`], whichever ends first. Forgotten keys raise
//! their producer's *floor*: a sequence at or below it can no longer be judged and is refused,
//! because storing it might store it twice. Floors of producers with no key left are kept too,
//! the [`WindowLimits::producers`] most recent ones.
//!
//! Age is counted from the append, not from the arrival: a spool that is drained days later has
//! old arrivals, and its keys are needed from now on. The callers say what time it is, and it
//! never goes back. Keys that are found in frames at a start count as appended at the start,
//! which remembers them for longer than need be and never for less.
//!
//! Producers count upwards, so neighbouring keys are kept as runs: a steady producer costs one
//! run for every [`RUN_KEYS_MAX`] keys, a random one about 60 bytes per key.
//!
//! Ten million runs take seconds to encode and write. So a checkpoint is made of a [`Snapshot`],
//! which shares everything with the window until the window changes: producers lie in [`SHARDS`]
//! shards, a producer's runs in chunks of at most [`CHUNK_RUNS_MAX`], and a change copies no more
//! than the one shard and the one chunk that it touches first.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use crate::bytes::{Cursor, Put};

/// Longest run, so that the oldest keys can be forgotten in small steps.
const RUN_KEYS_MAX: u64 = 4096;
/// Keys whose appends are further apart than this do not share a run.
const RUN_AGE_NS_MAX: i64 = 60_000_000_000;
/// Into how many parts the producers are divided.
const SHARDS: usize = 256;
/// How many runs lie together.
const CHUNK_RUNS_MAX: usize = 1024;

/// How much the window remembers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowLimits {
    /// Keys that were appended longer ago than this are forgotten.
    pub age_ns: i64,
    /// More keys than this are forgotten, the oldest first.
    pub keys: u64,
    /// Floors of more producers than this are forgotten, the least recent first.
    pub producers: usize,
}

impl WindowLimits {
    /// 24 hours or 10 million keys; a million producers.
    pub const DEFAULT: Self =
        Self { age_ns: 24 * 3600 * 1_000_000_000, keys: 10_000_000, producers: 1_000_000 };
}

/// What the window knows of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyFate {
    /// Never seen: append it.
    New,
    /// Appended before: acknowledge, do not append.
    Duplicate,
    /// Older than the window: it cannot be told whether it was appended before.
    TooOld {
        /// The producer's sequences up to this one are forgotten.
        floor: u64,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    last: u64,
    since_ns: i64,
}

/// A producer's runs by their first sequence.
#[derive(Debug, Clone, Default)]
struct Runs {
    /// By a sequence that is not after the first run's in it. None is empty.
    chunks: BTreeMap<u64, Arc<BTreeMap<u64, Run>>>,
}

impl Runs {
    fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    fn len(&self) -> usize {
        self.chunks.values().map(|chunk| chunk.len()).sum()
    }

    fn iter(&self) -> impl Iterator<Item = (&u64, &Run)> {
        self.chunks.values().flat_map(|chunk| chunk.iter())
    }

    /// The last run that starts at or before `seq`.
    fn last_from(&self, seq: u64) -> Option<(u64, Run)> {
        // The last chunk's runs may all start later; the one before it has no such run.
        let mut chunks = self.chunks.range(..=seq).rev();
        let found = chunks.find_map(|(_, chunk)| chunk.range(..=seq).next_back());
        found.map(|(first, run)| (*first, *run))
    }

    /// Adds a run or replaces the one with the same first sequence.
    fn insert(&mut self, first: u64, run: Run) {
        // A new chunk starts at 0, not at `first`: one that counts downwards would get a chunk for
        // each of its runs.
        let start = self.chunks.range(..=first).next_back().map_or(0, |(start, _)| *start);
        let chunk = Arc::make_mut(self.chunks.entry(start).or_default());
        chunk.insert(first, run);
        if chunk.len() > CHUNK_RUNS_MAX
            && let Some(middle) = chunk.keys().nth(CHUNK_RUNS_MAX / 2).copied()
        {
            let upper = chunk.split_off(&middle);
            self.chunks.insert(middle, Arc::new(upper));
        }
    }

    /// Makes the run that starts at `first` end at `last`.
    fn extend(&mut self, first: u64, last: u64) {
        let chunk = self.chunks.range_mut(..=first).next_back();
        if let Some(run) = chunk.and_then(|(_, chunk)| Arc::make_mut(chunk).get_mut(&first)) {
            run.last = last;
        }
    }

    fn remove(&mut self, first: u64) -> Option<Run> {
        let (&start, chunk) = self.chunks.range_mut(..=first).next_back()?;
        let removed = Arc::make_mut(chunk).remove(&first);
        if chunk.is_empty() {
            self.chunks.remove(&start);
        }
        removed
    }
}

#[derive(Debug, Clone, Default)]
struct Producer {
    floor: Option<u64>,
    runs: Runs,
    latest_ns: i64,
}

impl Producer {
    fn holds(&self, seq: u64) -> bool {
        self.runs.last_from(seq).is_some_and(|(_, run)| seq <= run.last)
    }
}

type Shard = HashMap<Arc<str>, Producer>;

/// All producers by name.
#[derive(Debug, Clone)]
struct Producers {
    shards: Vec<Arc<Shard>>,
}

impl Producers {
    fn new() -> Self {
        Self { shards: (0..SHARDS).map(|_| Arc::default()).collect() }
    }

    fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.len()).sum()
    }

    fn values(&self) -> impl Iterator<Item = &Producer> {
        self.shards.iter().flat_map(|shard| shard.values())
    }

    fn shard(&self, producer: &str) -> &Shard {
        &self.shards[shard_of(producer)]
    }

    fn shard_mut(&mut self, producer: &str) -> &mut Shard {
        Arc::make_mut(&mut self.shards[shard_of(producer)])
    }
}

/// Cheap, and good enough: names that all lie in one shard merely make it larger. FNV-1a.
fn shard_of(producer: &str) -> usize {
    const PRIME: usize = 0x0100_0193;
    let hash = producer
        .bytes()
        .fold(0x811c_9dc5, |hash: usize, byte| (hash ^ usize::from(byte)).wrapping_mul(PRIME));
    (hash ^ (hash >> 16)) % SHARDS
}

/// The window as it was at one moment.
#[derive(Debug)]
pub(crate) struct Snapshot(Producers);

/// All remembered keys.
#[derive(Debug)]
pub(crate) struct Window {
    limits: WindowLimits,
    producers: Producers,
    /// The latest time that anyone told.
    now_ns: i64,
    /// Every run in the order of appending: producer and first sequence.
    ages: VecDeque<(i64, Arc<str>, u64)>,
    keys: u64,
    idle: usize,
}

impl Window {
    pub(crate) fn new(limits: WindowLimits, now_ns: i64) -> Self {
        let (producers, ages) = (Producers::new(), VecDeque::new());
        Self { limits, producers, now_ns, ages, keys: 0, idle: 0 }
    }

    /// Tells the time; one that is earlier than another does not count.
    pub(crate) fn advance(&mut self, now_ns: i64) {
        self.now_ns = self.now_ns.max(now_ns);
    }

    pub(crate) fn keys(&self) -> u64 {
        self.keys
    }

    pub(crate) fn fate(&self, producer: &str, seq: u64) -> KeyFate {
        let Some(known) = self.producers.shard(producer).get(producer) else {
            return KeyFate::New;
        };
        match known.floor {
            _ if known.holds(seq) => KeyFate::Duplicate,
            Some(floor) if seq <= floor => KeyFate::TooOld { floor },
            _ => KeyFate::New,
        }
    }

    /// Remembers a key that was appended now, then forgets what is past the limits.
    pub(crate) fn insert(&mut self, producer: &str, seq: u64) {
        let now_ns = self.now_ns;
        let shard = self.producers.shard_mut(producer);
        let (name, before) = match shard.get_key_value(producer) {
            Some((name, known)) => (Arc::clone(name), known.runs.last_from(seq)),
            None => {
                self.idle += 1;
                (Arc::from(producer), None)
            }
        };
        if before.is_some_and(|(_, run)| seq <= run.last) {
            return;
        }
        let known = shard.entry(Arc::clone(&name)).or_default();
        if known.runs.is_empty() {
            self.idle -= 1;
        }
        known.latest_ns = now_ns;
        self.keys += 1;
        match before {
            Some((first, run))
                if run.last.checked_add(1) == Some(seq)
                    && seq - first < RUN_KEYS_MAX
                    && now_ns.saturating_sub(run.since_ns) <= RUN_AGE_NS_MAX =>
            {
                known.runs.extend(first, seq);
            }
            _ => {
                known.runs.insert(seq, Run { last: seq, since_ns: now_ns });
                self.ages.push_back((now_ns, name, seq));
            }
        }
        self.forget();
    }

    fn forget(&mut self) {
        while let Some((since_ns, _, _)) = self.ages.front() {
            // A run counts as old when its last possible key is.
            let expired = self.now_ns.saturating_sub(*since_ns)
                > self.limits.age_ns.saturating_add(RUN_AGE_NS_MAX);
            if !expired && self.keys <= self.limits.keys {
                break;
            }
            let Some((_, producer, first)) = self.ages.pop_front() else {
                break;
            };
            self.forget_run(&producer, first);
        }
        if self.idle > self.limits.producers {
            self.forget_floors();
        }
    }

    fn forget_run(&mut self, producer: &str, first: u64) {
        let Some(known) = self.producers.shard_mut(producer).get_mut(producer) else {
            return;
        };
        let Some(run) = known.runs.remove(first) else {
            return;
        };
        self.keys -= run.last - first + 1;
        known.floor = known.floor.max(Some(run.last));
        if known.runs.is_empty() {
            self.idle += 1;
        }
    }

    /// Drops the least recent half of the floors of producers that have no key left: rarely, and
    /// many at once, so that its cost is spread.
    fn forget_floors(&mut self) {
        let mut ages: Vec<i64> = self
            .producers
            .values()
            .filter(|producer| producer.runs.is_empty())
            .map(|producer| producer.latest_ns)
            .collect();
        let half = ages.len() / 2;
        let (_, &mut cut_ns, _) = ages.select_nth_unstable(half);
        for shard in &mut self.producers.shards {
            Arc::make_mut(shard)
                .retain(|_, producer| !producer.runs.is_empty() || producer.latest_ns > cut_ns);
        }
        self.idle = self.producers.values().filter(|producer| producer.runs.is_empty()).count();
    }

    /// What the window holds now, to be encoded by whom and when it suits.
    pub(crate) fn snapshot(&self) -> Snapshot {
        Snapshot(self.producers.clone())
    }

    /// How many runs there are.
    pub(crate) fn runs(&self) -> usize {
        self.ages.len()
    }

    pub(crate) fn decode(limits: WindowLimits, now_ns: i64, rest: &mut Cursor<'_>) -> Option<Self> {
        let mut window = Self::new(limits, now_ns);
        let mut ages = Vec::new();
        for _ in 0..rest.take_u64()? {
            let name: Arc<str> = Arc::from(rest.take_str()?);
            let has_floor = rest.take_u64()? != 0;
            let floor = rest.take_u64()?;
            let mut producer = Producer {
                floor: has_floor.then_some(floor),
                latest_ns: rest.take_i64()?,
                runs: Runs::default(),
            };
            for _ in 0..rest.take_u64()? {
                let (first, last) = (rest.take_u64()?, rest.take_u64()?);
                let since_ns = rest.take_i64()?;
                window.keys += last.checked_sub(first)? + 1;
                producer.runs.insert(first, Run { last, since_ns });
                ages.push((since_ns, Arc::clone(&name), first));
            }
            window.idle += usize::from(producer.runs.is_empty());
            window.producers.shard_mut(&name).insert(Arc::clone(&name), producer);
        }
        ages.sort_unstable();
        window.advance(ages.last().map_or(now_ns, |(since_ns, _, _)| *since_ns));
        window.ages = ages.into();
        Some(window)
    }
}

impl Snapshot {
    pub(crate) fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.put_u64(self.0.len() as u64);
        for (name, producer) in self.0.shards.iter().flat_map(|shard| shard.iter()) {
            bytes.put_str(name);
            bytes.put_u64(u64::from(producer.floor.is_some()));
            bytes.put_u64(producer.floor.unwrap_or(0));
            bytes.put_i64(producer.latest_ns);
            bytes.put_u64(producer.runs.len() as u64);
            for (first, run) in producer.runs.iter() {
                bytes.put_u64(*first);
                bytes.put_u64(run.last);
                bytes.put_i64(run.since_ns);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HOUR: i64 = 3_600_000_000_000;

    fn window(keys: u64) -> Window {
        Window::new(WindowLimits { keys, ..WindowLimits::DEFAULT }, 0)
    }

    fn insert(window: &mut Window, producer: &str, seq: u64, now_ns: i64) {
        window.advance(now_ns);
        window.insert(producer, seq);
    }

    #[test]
    fn a_repeated_key_is_a_duplicate_and_a_gap_is_not() {
        let mut window = window(100);
        for seq in [1, 2, 3, 7] {
            window.insert("p", seq);
        }
        assert_eq!(window.fate("p", 2), KeyFate::Duplicate);
        assert_eq!(window.fate("p", 5), KeyFate::New);
        assert_eq!(window.fate("q", 2), KeyFate::New);
        window.insert("p", 5);
        assert_eq!(window.fate("p", 5), KeyFate::Duplicate);
        assert_eq!(window.keys(), 5);
    }

    #[test]
    fn keys_older_than_a_day_are_refused_not_taken_again() {
        let mut window = window(100);
        insert(&mut window, "p", 1, 0);
        insert(&mut window, "q", 1, 25 * HOUR);
        assert_eq!(window.fate("p", 1), KeyFate::TooOld { floor: 1 });
        assert_eq!(window.fate("p", 2), KeyFate::New);
        assert_eq!(window.fate("q", 1), KeyFate::Duplicate);
    }

    #[test]
    fn arrivals_at_the_ends_of_time_are_no_problem() {
        let mut window = window(100);
        for (seq, now_ns) in [(1, i64::MIN), (2, i64::MAX), (3, i64::MIN), (4, 0)] {
            insert(&mut window, "p", seq, now_ns);
        }
        assert_eq!(window.fate("p", 4), KeyFate::Duplicate);
        assert_eq!(window.fate("p", 5), KeyFate::New);
    }

    #[test]
    fn time_never_goes_back() {
        let mut window = window(100);
        insert(&mut window, "p", 1, 50 * HOUR);
        insert(&mut window, "p", 2, HOUR);
        insert(&mut window, "p", 3, 60 * HOUR);
        assert_eq!(window.fate("p", 2), KeyFate::Duplicate, "it was appended after 50 hours");
    }

    #[test]
    fn the_number_of_keys_is_limited() {
        let mut window = window(10);
        for seq in (0..100).step_by(2) {
            window.insert("p", seq);
        }
        assert_eq!(window.keys(), 10);
        assert_eq!(window.fate("p", 98), KeyFate::Duplicate);
        assert_eq!(window.fate("p", 70), KeyFate::TooOld { floor: 78 });
    }

    #[test]
    fn floors_of_idle_producers_are_limited_too() {
        let limits = WindowLimits { keys: 1, producers: 8, ..WindowLimits::DEFAULT };
        let mut window = Window::new(limits, 0);
        for n in 0..1000 {
            insert(&mut window, &format!("p{n}"), 5, n);
        }
        assert!(window.producers.len() <= 9, "{}", window.producers.len());
        assert_eq!(window.fate("p998", 5), KeyFate::TooOld { floor: 5 });
    }

    #[test]
    fn what_is_encoded_decodes() {
        let mut window = window(50);
        for seq in 0..80 {
            insert(&mut window, "p", seq, seq.cast_signed());
            insert(&mut window, "q", seq * 3, seq.cast_signed());
        }
        let mut bytes = Vec::new();
        window.snapshot().encode(&mut bytes);
        let again = Window::decode(window.limits, 0, &mut Cursor(&bytes)).unwrap();
        assert_eq!(again.now_ns, window.now_ns);
        assert_eq!(again.keys, window.keys);
        assert_eq!(content(&again.producers), content(&window.producers));
    }

    type Known = (Option<u64>, i64, Vec<(u64, Run)>);

    fn content(producers: &Producers) -> BTreeMap<String, Known> {
        let all = producers.shards.iter().flat_map(|shard| shard.iter());
        all.map(|(name, known)| {
            let runs = known.runs.iter().map(|(first, run)| (*first, *run)).collect();
            (name.to_string(), (known.floor, known.latest_ns, runs))
        })
        .collect()
    }

    #[test]
    fn a_snapshot_stays_as_it_was() {
        let mut window = window(5000);
        for seq in 0..10_000 {
            insert(&mut window, "p", seq * 2, 0);
            window.insert(&format!("p{seq}"), 1);
        }
        let snapshot = window.snapshot();
        let before = content(&snapshot.0);
        for seq in 0..10_000 {
            insert(&mut window, "p", seq * 2 + 1, HOUR);
            window.insert(&format!("p{seq}"), 2);
        }
        assert_eq!(content(&snapshot.0), before);
        assert_ne!(content(&window.producers), before);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// In chunks or in one map: the same runs.
        #[test]
        fn runs_are_a_map(steps in proptest::collection::vec((0..5000u64, 0..4u8), 0..6000)) {
            let mut runs = Runs::default();
            let mut map = BTreeMap::new();
            for (first, step) in steps {
                if step == 0 {
                    prop_assert_eq!(runs.remove(first), map.remove(&first));
                } else if let (1, Some(run)) = (step, map.get_mut(&first)) {
                    run.last += 1;
                    runs.extend(first, run.last);
                } else {
                    let run = Run { last: first, since_ns: i64::from(step) };
                    runs.insert(first, run);
                    map.insert(first, run);
                }
                let last = map.range(..=first).next_back().map(|(first, run)| (*first, *run));
                prop_assert_eq!(runs.last_from(first), last);
            }
            prop_assert!(runs.iter().eq(map.iter()));
            prop_assert_eq!((runs.len(), runs.is_empty()), (map.len(), map.is_empty()));
            prop_assert!(runs.chunks.values().all(|c| (1..=CHUNK_RUNS_MAX).contains(&c.len())));
        }
    }
}
