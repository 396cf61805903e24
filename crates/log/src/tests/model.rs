//! The log against a model that is a plain list.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;

use super::sim_disk::SimDisk;
use super::{DIR, SMALL, group};
use crate::{Keep, Log, ReadFrom, ReadItem};

#[derive(Debug, Clone)]
enum Step {
    Append {
        category: u8,
        len: usize,
    },
    AppendKeyed {
        producer: u8,
        seq: u64,
    },
    /// A clean end and a new start.
    Reopen,
    Retain {
        category: u8,
        keep_seconds: i64,
    },
    ReadFromSeq {
        percent: u64,
        category: Option<u8>,
    },
    ReadFromTime {
        percent: u64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..3u8, 0..900usize).prop_map(|(category, len)| Step::Append { category, len }),
        4 => (0..2u8, 0..30u64).prop_map(|(producer, seq)| Step::AppendKeyed { producer, seq }),
        1 => Just(Step::Reopen),
        1 => (0..3u8, 0..40i64)
            .prop_map(|(category, keep_seconds)| Step::Retain { category, keep_seconds }),
        2 => (0..120u64, proptest::option::of(0..3u8))
            .prop_map(|(percent, category)| Step::ReadFromSeq { percent, category }),
        2 => (0..120u64).prop_map(|percent| Step::ReadFromTime { percent }),
    ]
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    seq: u64,
    second: i64,
    category: String,
    payload: Vec<u8>,
}

struct Model {
    log: Log,
    disk: SimDisk,
    entries: Vec<Entry>,
    keys: BTreeSet<(u8, u64)>,
    second: i64,
    /// Records of a category before this may be gone.
    may_be_gone: BTreeMap<String, i64>,
}

fn open(disk: &SimDisk) -> Log {
    Log::open(Arc::new(disk.clone()), Path::new(DIR), SMALL, 0).unwrap().0
}

impl Model {
    fn new() -> Self {
        let disk = SimDisk::default();
        let (entries, keys, may_be_gone) = Default::default();
        Self { log: open(&disk), disk, entries, keys, second: 0, may_be_gone }
    }

    fn append(&mut self, category: &str, key: Option<(u8, u64)>, payload: Vec<u8>) {
        self.second += 1;
        let producer = key.map(|(producer, seq)| (format!("p{producer}"), seq));
        let producer = producer.as_ref().map(|(name, seq)| (name.as_str(), *seq));
        let group = group(category, producer, self.second * 1_000_000_000, &payload);
        let committed = self.log.append_and_wait(group).unwrap();
        let is_new = key.is_none_or(|key| self.keys.insert(key));
        assert_eq!(committed.appended, u32::from(is_new), "{key:?}");
        if is_new {
            let (seq, second, category) = (committed.first_seq, self.second, category.to_owned());
            assert!(self.entries.last().is_none_or(|last| last.seq < seq));
            self.entries.push(Entry { seq, second, category, payload });
        }
    }

    fn apply(&mut self, step: &Step) {
        match step {
            Step::Append { category, len } => {
                self.append(&format!("c{category}"), None, vec![*category; *len]);
            }
            Step::AppendKeyed { producer, seq } => {
                self.append("keyed", Some((*producer, *seq)), seq.to_le_bytes().to_vec());
            }
            Step::Reopen => {
                self.log.close();
                self.log = open(&self.disk);
            }
            Step::Retain { category, keep_seconds } => self.retain(*category, *keep_seconds),
            Step::ReadFromSeq { percent, category } => {
                let seq = self.log.end() * percent / 100;
                let wanted = category.map(|category| format!("c{category}"));
                let filter = wanted.clone().map(|name| HashSet::from([name]));
                let found = self.read(filter, ReadFrom::Seq(seq));
                self.compare(&found, |entry| {
                    entry.seq >= seq && wanted.as_ref().is_none_or(|name| entry.category == *name)
                });
            }
            Step::ReadFromTime { percent } => {
                let second = self.second * i64::try_from(*percent).unwrap() / 100;
                let found = self.read(None, ReadFrom::Time(second * 1_000_000_000));
                self.compare(&found, |entry| entry.second >= second);
            }
        }
    }

    fn retain(&mut self, category: u8, keep_seconds: i64) {
        let name = format!("c{category}");
        let age_ns = Some(keep_seconds * 1_000_000_000);
        let keep = |c: &str| {
            if c == name { Keep { age_ns, bytes: None } } else { Keep::default() }
        };
        self.log.retain(self.second * 1_000_000_000, &keep, u64::MAX).unwrap();
        let before = self.second - keep_seconds;
        let gone = self.may_be_gone.entry(name).or_insert(before);
        *gone = before.max(*gone);
    }

    fn read(&self, categories: Option<HashSet<String>>, from: ReadFrom) -> Vec<Entry> {
        let mut reader = self.log.read(categories, from);
        let mut found = Vec::new();
        while let Some(item) = reader.next_item().unwrap() {
            let ReadItem::Frame(records) = item else { panic!("no damage here") };
            found.extend(records.iter().map(|(group, record)| Entry {
                seq: record.seq,
                second: group.arrival_ns / 1_000_000_000,
                category: group.category.to_owned(),
                payload: record.payload.to_vec(),
            }));
        }
        found
    }

    /// The log holds what the model holds, in order, less what retention was allowed to take.
    fn compare(&self, found: &[Entry], wanted: impl Fn(&Entry) -> bool) {
        let mut found = found.iter().peekable();
        for entry in self.entries.iter().filter(|entry| wanted(entry)) {
            let may_be_gone =
                self.may_be_gone.get(&entry.category).is_some_and(|before| entry.second < *before);
            if found.next_if(|found| *found == entry).is_none() {
                assert!(may_be_gone, "{entry:?} is missing; next is {:?}", found.peek());
            }
        }
        assert_eq!(found.next(), None, "more than was appended");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_log_agrees_with_a_list(steps in proptest::collection::vec(step(), 1..120)) {
        let mut model = Model::new();
        for step in &steps {
            model.apply(step);
        }
        let found = model.read(None, ReadFrom::Oldest);
        model.compare(&found, |_| true);
        prop_assert!(model.log.check(None).unwrap().is_clean());
    }
}
