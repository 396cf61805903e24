//! What segments had to say to questions before. Segments never change, so that a dashboard that
//! is refreshed has to look at those only that came since.

use std::fmt::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use foldhash::fast::RandomState;
use hashlink::LruCache;
use perflab_model::Kind;
use perflab_store::segment::{Segment, Snapshot, Vocabulary};

use crate::algebra::{Aggregate, Dimension, Question};
use crate::states::States;

/// What all results together may take where nothing else is said.
pub const CACHE_BYTES_DEFAULT: usize = 64 << 20;
/// A result that takes more than this part of it is not kept.
const LARGEST_PART: usize = 16;

/// Results of segments, those that were used last.
pub struct Cache {
    bytes_max: usize,
    kept: Mutex<Kept>,
}

struct Kept {
    results: LruCache<Key, Arc<Found>, RandomState>,
    bytes: usize,
}

/// A segment, and what was asked of it.
type Key = (u64, Arc<str>);

/// The groups of a segment.
#[derive(Debug)]
pub(crate) struct Found {
    /// Whose numbers the values have.
    vocabularies: Vec<Arc<Vocabulary>>,
    /// Of each group the number of its value in each dimension; buckets of time are counted from
    /// the segment's first.
    ids: Vec<u32>,
    groups: usize,
    pub(crate) states: Vec<States>,
}

impl Found {
    fn bytes(&self) -> usize {
        self.ids.len() * size_of::<u32>()
            + self.states.iter().map(States::held_bytes).sum::<usize>()
    }

    /// The numbers of each group: as many as there are dimensions.
    pub(crate) fn groups(&self) -> impl Iterator<Item = &[u32]> {
        let dimensions = self.ids.len() / self.groups.max(1);
        (0..self.groups).map(move |group| &self.ids[group * dimensions..][..dimensions])
    }
}

impl Cache {
    pub fn new(bytes_max: usize) -> Self {
        let results = LruCache::with_hasher(usize::MAX, RandomState::default());
        Self { bytes_max, kept: Mutex::new(Kept { results, bytes: 0 }) }
    }

    fn get(&self, key: &Key) -> Option<Arc<Found>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.results.get(key).map(Arc::clone)
    }

    fn put(&self, key: Key, found: Found) {
        let bytes = found.bytes();
        if bytes > self.bytes_max / LARGEST_PART {
            return;
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let before = kept.results.insert(key, Arc::new(found));
        kept.bytes += bytes;
        kept.bytes -= before.map_or(0, |before| before.bytes());
        while kept.bytes > self.bytes_max
            && let Some((_, oldest)) = kept.results.remove_lru()
        {
            kept.bytes -= oldest.bytes();
        }
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache").field("bytes_max", &self.bytes_max).finish_non_exhaustive()
    }
}

/// A question whose results are kept.
#[derive(Debug)]
pub(crate) struct Recall<'q> {
    cache: &'q Cache,
    question: &'q Question,
    /// All of it but times and what is done once all groups are known.
    text: String,
    vocabularies: Vec<Arc<Vocabulary>>,
}

/// Where the result of a segment is kept.
#[derive(Debug)]
pub(crate) struct Spot {
    key: Key,
    /// For each dimension, the number that the segment's begin with: its first bucket of time.
    pub(crate) firsts: Vec<u32>,
}

impl<'q> Recall<'q> {
    /// `None` where values have numbers of which other questions know nothing: only strings have
    /// such of their dataset.
    pub(crate) fn new(
        cache: &'q Cache,
        question: &'q Question,
        snapshot: &Snapshot,
    ) -> Option<Self> {
        let mut vocabularies = Vec::new();
        for name in numbered(question) {
            let mut columns =
                snapshot.segments.iter().flat_map(|segment| segment.columns_named(name));
            if columns.any(|column| column.kind() != Kind::String) {
                return None;
            }
            let vocabulary = snapshot.vocabularies.of(name);
            if vocabulary.is_given_up() {
                return None;
            }
            vocabularies.push(vocabulary);
        }
        let columns: Vec<Option<&str>> = question.group_by.iter().map(Dimension::column).collect();
        let text = format!("{:?}", (&question.any_of, columns, &question.aggregates));
        Some(Self { cache, question, text, vocabularies })
    }

    /// Whether values lost their numbers meanwhile.
    pub(crate) fn is_outdated(&self) -> bool {
        self.vocabularies.iter().any(|vocabulary| vocabulary.is_given_up())
    }

    /// Where the result of a segment is kept; `None` when not all of its rows are asked for.
    pub(crate) fn spot(&self, segment: &Segment) -> Option<Spot> {
        let (number, (least, most)) = segment.number().zip(segment.time_ends())?;
        if self.question.range.is_some_and(|(start, end)| least < start || most >= end) {
            return None;
        }
        let (mut text, mut firsts) = (self.text.clone(), Vec::new());
        for dimension in &self.question.group_by {
            let Dimension::Time(starts) = dimension else {
                firsts.push(0);
                continue;
            };
            let through = |time: i64| starts.partition_point(|start| *start <= time);
            let (first, last) = (through(least), through(most));
            // Which buckets its rows are in is decided by the starts among them.
            let _never_fails = write!(text, "{:?}{}", &starts[first..last], first == 0);
            firsts.push(u32::try_from(first).unwrap_or(u32::MAX));
        }
        Some(Spot { key: (number, text.into()), firsts })
    }

    pub(crate) fn get(&self, spot: &Spot) -> Option<Arc<Found>> {
        let found = self.cache.get(&spot.key)?;
        let mut pairs = found.vocabularies.iter().zip(&self.vocabularies);
        pairs.all(|(theirs, ours)| Arc::ptr_eq(theirs, ours)).then_some(found)
    }

    /// `groups`: the numbers of each.
    pub(crate) fn keep(
        &self,
        spot: &Spot,
        groups: impl Iterator<Item = impl Iterator<Item = u32>>,
        states: Vec<States>,
    ) {
        let (mut ids, mut count) = (Vec::new(), 0);
        for group in groups {
            let local = group.zip(&spot.firsts).map(|(id, first)| id - first);
            ids.extend(local);
            count += 1;
        }
        let vocabularies = self.vocabularies.clone();
        self.cache.put(spot.key.clone(), Found { vocabularies, ids, groups: count, states });
    }
}

/// The columns whose values a question numbers.
fn numbered(question: &Question) -> impl Iterator<Item = &str> {
    let counted = question.aggregates.iter().filter_map(|aggregate| match aggregate {
        Aggregate::Distinct(column) => Some(column.as_str()),
        Aggregate::Count
        | Aggregate::Samples
        | Aggregate::Sum(_)
        | Aggregate::Avg(_)
        | Aggregate::Min(_)
        | Aggregate::Max(_)
        | Aggregate::Stddev(_)
        | Aggregate::EffectiveSize(_)
        | Aggregate::Percentile(..) => None,
    });
    question.group_by.iter().filter_map(Dimension::column).chain(counted)
}
