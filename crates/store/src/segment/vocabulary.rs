//! Strings of a dataset numbered once, so that questions never hash those of segments that were
//! asked about before.
//!
//! A vocabulary only grows, as segments come whose strings it does not know, up to `ENTRIES_MAX`
//! strings (or lists) and `COLUMN_BYTES_MAX` bytes per column, and `BYTES_MAX` bytes per dataset. A
//! column beyond is given up: it has no numbers any more, and every question numbers its values
//! anew.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use perflab_model::Kind;

use super::{SharedTrie, Strings, Way};

/// The most strings, or lists, of one column that are numbered.
const ENTRIES_MAX: usize = 1 << 21;
/// The most bytes that the numbered strings of one column take, their numbers included.
const COLUMN_BYTES_MAX: usize = 64 << 20;
/// The same for the strings and lists of all columns of a dataset.
pub(super) const BYTES_MAX: usize = 256 << 20;
/// What a string takes beside its text: its end, and its place in the table.
const ENTRY_BYTES: usize = 16;
/// The number of null.
pub const NULL_ID: u32 = 0;

/// The vocabularies of a dataset, one per column that was asked about.
#[derive(Debug)]
pub struct Vocabularies {
    columns: RwLock<HashMap<String, Arc<Vocabulary>>>,
    /// Of the items of all lists.
    items: Arc<Vocabulary>,
    /// The lists of columns, by name and kind.
    tries: RwLock<BTreeMap<(String, Kind, Way), Arc<SharedTrie>>>,
    bytes: Arc<AtomicUsize>,
    entries_max: usize,
    /// The only columns that it is for, and whose the others are.
    beside: Option<(HashSet<String>, Arc<Self>)>,
}

impl Default for Vocabularies {
    fn default() -> Self {
        Self::with_entries_max(ENTRIES_MAX)
    }
}

impl Vocabularies {
    /// With another limit of strings for each column.
    pub fn with_entries_max(entries_max: usize) -> Self {
        let bytes = Arc::<AtomicUsize>::default();
        Self {
            columns: RwLock::default(),
            items: Arc::new(Vocabulary::new(Arc::clone(&bytes), entries_max)),
            tries: RwLock::default(),
            bytes,
            entries_max,
            beside: None,
        }
    }

    /// Beside others: of its own for these columns, and the others' for the rest. So that what is
    /// computed for one question is forgotten with it.
    pub fn beside(others: Arc<Self>, columns: impl IntoIterator<Item = String>) -> Self {
        let new = Self::with_entries_max(others.entries_max);
        Self { beside: Some((columns.into_iter().collect(), others)), ..new }
    }

    /// That of a column's strings.
    pub fn of(&self, column: &str) -> Arc<Vocabulary> {
        if let Some((own, others)) = &self.beside
            && !own.contains(column)
        {
            return others.of(column);
        }
        let columns = self.columns.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(vocabulary) = columns.get(column) {
            return Arc::clone(vocabulary);
        }
        drop(columns);
        let mut columns = self.columns.write().unwrap_or_else(PoisonError::into_inner);
        let new = || Arc::new(Vocabulary::new(Arc::clone(&self.bytes), self.entries_max));
        Arc::clone(columns.entry(column.to_owned()).or_insert_with(new))
    }
}

impl Vocabularies {
    /// The lists of a column. None are ever computed, so that they are always the dataset's.
    pub fn lists(&self, column: &str, kind: Kind, way: Way) -> Arc<SharedTrie> {
        if let Some((_, others)) = &self.beside {
            return others.lists(column, kind, way);
        }
        let mut tries = self.tries.write().unwrap_or_else(PoisonError::into_inner);
        let trie = tries.entry((column.to_owned(), kind, way)).or_insert_with(|| {
            let (items, bytes) = (Arc::clone(&self.items), Arc::clone(&self.bytes));
            Arc::new(SharedTrie::new(way, items, bytes, self.entries_max))
        });
        Arc::clone(trie)
    }
}

/// The numbered strings of one column: from 1 on, as they came; 0 is null.
#[derive(Debug)]
pub struct Vocabulary {
    entries: RwLock<Entries>,
    /// Of all vocabularies of the dataset.
    bytes: Arc<AtomicUsize>,
    entries_max: usize,
}

impl Vocabulary {
    fn new(bytes: Arc<AtomicUsize>, entries_max: usize) -> Self {
        Self { entries: RwLock::default(), bytes, entries_max }
    }

    /// The number of each code of a dictionary, and last that of null; `None` when they are too
    /// many to be numbered.
    pub(super) fn ids(&self, strings: &Strings) -> Option<Arc<[u32]>> {
        let known = self.read();
        if known.is_given_up {
            return None;
        }
        let mut ids: Vec<u32> =
            strings.iter().map(|string| known.find(string).unwrap_or(NULL_ID)).collect();
        drop(known);
        if ids.contains(&NULL_ID) {
            let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
            for (id, string) in ids.iter_mut().zip(strings.iter()) {
                if *id == NULL_ID {
                    *id = self.number(&mut entries, string)?;
                }
            }
        }
        ids.push(NULL_ID);
        Some(ids.into())
    }

    fn number(&self, entries: &mut Entries, string: &str) -> Option<u32> {
        if let Some(id) = entries.find(string) {
            return Some(id);
        }
        let bytes = string.len() + ENTRY_BYTES;
        let fits = entries.ends.len() < self.entries_max
            && entries.bytes() + bytes <= COLUMN_BYTES_MAX
            && self.bytes.load(Ordering::Relaxed) + bytes <= BYTES_MAX;
        if !fits || entries.is_given_up {
            entries.is_given_up = true;
            return None;
        }
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        Some(entries.add(string))
    }

    /// Whether its column has no numbers any more.
    pub fn is_given_up(&self) -> bool {
        self.read().is_given_up
    }

    /// The strings by their numbers.
    pub fn strings(&self) -> VocabularyStrings<'_> {
        VocabularyStrings(self.read())
    }

    fn read(&self) -> RwLockReadGuard<'_, Entries> {
        self.entries.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The strings of a vocabulary, which does not grow while one looks at them.
#[derive(Debug)]
pub struct VocabularyStrings<'v>(RwLockReadGuard<'v, Entries>);

impl VocabularyStrings<'_> {
    /// How many numbers there are, that of null included.
    pub fn count(&self) -> usize {
        self.0.ends.len() + 1
    }

    /// The number of a string, if it has one.
    pub fn find(&self, string: &str) -> Option<u32> {
        self.0.find(string)
    }

    /// `None` for null, and for a number that it has not given.
    pub fn get(&self, id: u32) -> Option<&str> {
        let entry = (id as usize).checked_sub(1)?;
        (entry < self.0.ends.len()).then(|| self.0.string(entry))
    }
}

#[derive(Debug, Default)]
struct Entries {
    text: String,
    /// Where each string ends in `text`.
    ends: Vec<usize>,
    /// Numbers, by their strings.
    ids: HashTable<u32>,
    hasher: RandomState,
    is_given_up: bool,
}

impl Entries {
    fn bytes(&self) -> usize {
        self.text.len() + self.ends.len() * ENTRY_BYTES
    }

    fn string(&self, entry: usize) -> &str {
        &self.text[entry.checked_sub(1).map_or(0, |before| self.ends[before])..self.ends[entry]]
    }

    fn find(&self, string: &str) -> Option<u32> {
        let is_same = |&id: &u32| self.string(id as usize - 1) == string;
        self.ids.find(self.hasher.hash_one(string), is_same).copied()
    }

    fn add(&mut self, string: &str) -> u32 {
        self.text.push_str(string);
        self.ends.push(self.text.len());
        let id = u32::try_from(self.ends.len()).unwrap_or(u32::MAX);
        let Self { text, ends, ids, hasher, .. } = self;
        let hash_of = |&id: &u32| {
            let entry = id as usize - 1;
            let start = entry.checked_sub(1).map_or(0, |before| ends[before]);
            hasher.hash_one(&text[start..ends[entry]])
        };
        ids.insert_unique(hasher.hash_one(string), id, hash_of);
        id
    }
}

#[cfg(test)]
mod tests {
    use perflab_model::{Batch, Nanos, Schema, SchemaState};

    use super::*;
    use crate::segment::{Segment, Source, build};

    fn segment(strings: &[Option<&str>]) -> Segment {
        let mut batch = Batch::new(Arc::new(SchemaState::new(Schema::default())));
        for string in strings {
            let mut row = batch.begin_row();
            if let Some(string) = string {
                row.string("s", string).unwrap();
            }
            row.commit(Nanos(0), 1.0).unwrap();
        }
        Segment::open(&build(&[Source::Batch(&batch)]).unwrap()).unwrap()
    }

    fn ids(segment: &Segment, vocabulary: &Arc<Vocabulary>) -> Option<Vec<u32>> {
        let column = segment.column("s", Kind::String).unwrap();
        column.ids(vocabulary).unwrap().map(|ids| ids.to_vec())
    }

    #[test]
    fn a_string_has_the_same_number_in_every_segment() {
        let vocabularies = Vocabularies::default();
        let vocabulary = vocabularies.of("s");
        let first = segment(&[Some("b"), Some("c"), None]);
        assert_eq!(ids(&first, &vocabulary), Some(vec![1, 2, 0]));
        let second = segment(&[Some("c"), Some("a"), Some("")]);
        assert_eq!(ids(&second, &vocabularies.of("s")), Some(vec![3, 4, 2, 0]));
        let strings = vocabulary.strings();
        let all: Vec<_> = (0..6).map(|id| strings.get(id)).collect();
        assert_eq!(all, [None, Some("b"), Some("c"), Some(""), Some("a"), None]);
        assert_eq!(strings.count(), 5);
    }

    #[test]
    fn a_segment_that_moves_to_another_dataset_is_numbered_anew() {
        let (segment, other_segment) = (segment(&[Some("x"), Some("y")]), segment(&[Some("y")]));
        let (one, other) = (Vocabularies::default().of("s"), Vocabularies::default().of("s"));
        assert_eq!(ids(&segment, &one), Some(vec![1, 2, 0]));
        assert_eq!(ids(&other_segment, &other), Some(vec![1, 0]));
        assert_eq!(ids(&segment, &other), Some(vec![2, 1, 0]));
        assert_eq!(ids(&segment, &one), Some(vec![1, 2, 0]));
    }

    #[test]
    fn a_column_with_too_many_strings_has_no_numbers_any_more() {
        let vocabulary = Vocabularies::with_entries_max(3).of("s");
        let small = segment(&[Some("a"), Some("b")]);
        assert_eq!(ids(&small, &vocabulary), Some(vec![1, 2, 0]));
        assert_eq!(ids(&segment(&[Some("c"), Some("d")]), &vocabulary), None);
        assert!(vocabulary.is_given_up());
        assert_eq!(ids(&segment(&[Some("a")]), &vocabulary), None);
        assert_eq!(vocabulary.strings().count(), 4, "no more is kept than the limit");
    }

    #[test]
    fn what_stands_beside_others_numbers_its_own_columns() {
        let dataset = Arc::new(Vocabularies::default());
        let beside = Vocabularies::beside(Arc::clone(&dataset), ["s".to_owned()]);
        assert_eq!(ids(&segment(&[Some("x")]), &beside.of("s")), Some(vec![1, 0]));
        assert_eq!(dataset.of("s").strings().count(), 1, "only null");
        assert!(Arc::ptr_eq(&beside.of("t"), &dataset.of("t")));
    }
}
