//! The distinct strings of one column, each with a code.

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use std::hash::{BuildHasher, Hasher};

/// The most bytes of distinct strings that one column of a batch may hold.
pub const DICTIONARY_BYTES_MAX: usize = u32::MAX as usize;

/// Strings in the order in which they first came; a string's code is its position.
///
/// One arena instead of a `String` each: a batch of a million distinct names is three
/// allocations, and finding a name touches memory that lies together.
#[derive(Debug, Clone, Default)]
pub struct Dictionary {
    text: String,
    /// Where each string ends in `text`; it starts where the one before it ends.
    ends: Vec<u32>,
    codes: HashTable<u32>,
    hasher: RandomState,
}

/// What [`Dictionary::intern`] did.
pub(super) enum Interned {
    Known(u32),
    New(u32),
}

impl Dictionary {
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// # Panics
    /// When the code isn't of this dictionary.
    pub fn get(&self, code: u32) -> &str {
        text_of(&self.text, &self.ends, code)
    }

    /// The code of a string that is in the dictionary.
    #[cfg(test)]
    fn code(&self, string: &str) -> Option<u32> {
        self.find(self.hash(string), string)
    }

    /// In the order of their codes.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        #[expect(clippy::cast_possible_truncation, reason = "`add` checks that codes fit")]
        let codes = 0..self.ends.len() as u32;
        codes.map(|code| self.get(code))
    }

    /// `None` when the dictionary is full.
    pub(super) fn intern(&mut self, string: &str) -> Option<Interned> {
        let hash = self.hash(string);
        match self.find(hash, string) {
            Some(code) => Some(Interned::Known(code)),
            None => self.add(hash, string).map(Interned::New),
        }
    }

    /// Removes the string that was added last.
    pub(super) fn forget_last(&mut self) {
        let Some(code) = self.ends.len().checked_sub(1).and_then(|code| u32::try_from(code).ok())
        else {
            return;
        };
        let hash = self.hash(self.get(code));
        if let Ok(entry) = self.codes.find_entry(hash, |&other| other == code) {
            entry.remove();
        }
        self.ends.pop();
        self.text.truncate(self.ends.last().map_or(0, |&end| end as usize));
    }

    fn add(&mut self, hash: u64, string: &str) -> Option<u32> {
        let code = u32::try_from(self.ends.len()).ok()?;
        let end = self.text.len() + string.len();
        if end > DICTIONARY_BYTES_MAX {
            return None;
        }
        let end = u32::try_from(end).ok()?;
        self.text.push_str(string);
        self.ends.push(end);
        let (text, ends, hasher) = (&self.text, &self.ends, &self.hasher);
        self.codes
            .insert_unique(hash, code, |&code| string_hash(hasher, text_of(text, ends, code)));
        Some(code)
    }

    fn find(&self, hash: u64, string: &str) -> Option<u32> {
        let is_wanted = |&code: &u32| self.get(code) == string;
        self.codes.find(hash, is_wanted).copied()
    }

    fn hash(&self, string: &str) -> u64 {
        string_hash(&self.hasher, string)
    }
}

fn text_of<'d>(text: &'d str, ends: &[u32], code: u32) -> &'d str {
    let code = code as usize;
    let start = if code == 0 { 0 } else { ends[code - 1] };
    &text[start as usize..ends[code] as usize]
}

fn string_hash(hasher: &RandomState, string: &str) -> u64 {
    let mut hasher = hasher.build_hasher();
    hasher.write(string.as_bytes());
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_codes_like_a_list_of_distinct_strings(
            steps in proptest::collection::vec(proptest::option::weighted(0.8, "[ab\u{e9}]{0,3}"), 0..60),
        ) {
            let mut dictionary = Dictionary::default();
            let mut model: Vec<String> = Vec::new();
            for step in steps {
                let Some(string) = step else {
                    dictionary.forget_last();
                    model.pop();
                    continue;
                };
                let known = model.iter().position(|other| *other == string);
                match dictionary.intern(&string).unwrap() {
                    Interned::Known(code) => prop_assert_eq!(Some(code as usize), known),
                    Interned::New(code) => {
                        prop_assert_eq!((known, code as usize), (None, model.len()));
                        model.push(string);
                    }
                }
            }
            prop_assert!(dictionary.iter().eq(model.iter()));
            for (code, string) in model.iter().enumerate() {
                prop_assert_eq!(dictionary.code(string).map(|code| code as usize), Some(code));
            }
        }
    }
}
