//! The keys by which a repeated entry is recognised.

use super::lane::Key;

/// The longest name of a producer.
pub const PRODUCER_BYTES_MAX: usize = perflab_log::NAME_BYTES_MAX;

/// The numbers that a producer gave its entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sequences {
    /// The first entry has this one, the others follow.
    From(u64),
    /// One per entry.
    Listed(Vec<u64>),
}

/// A producer and its entries' numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keys {
    pub producer: String,
    pub sequences: Sequences,
}

/// Why keys can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeysError {
    #[error("a producer's name has 1 to {PRODUCER_BYTES_MAX} bytes, this one has {bytes}")]
    Producer { bytes: usize },
    #[error("{sequences} sequences were given for {entries} entries")]
    Count { sequences: usize, entries: usize },
    #[error("the sequences of {entries} entries from {first} on do not fit into 64 bits")]
    Overflow { first: u64, entries: usize },
}

impl Keys {
    /// Whether each of so many entries has a key.
    pub fn check(&self, entries: usize) -> Result<(), KeysError> {
        let bytes = self.producer.len();
        if !(1..=PRODUCER_BYTES_MAX).contains(&bytes) {
            return Err(KeysError::Producer { bytes });
        }
        match &self.sequences {
            Sequences::From(first) => match first.checked_add(entries as u64) {
                Some(_) => Ok(()),
                None => Err(KeysError::Overflow { first: *first, entries }),
            },
            Sequences::Listed(listed) if listed.len() == entries => Ok(()),
            Sequences::Listed(listed) => Err(KeysError::Count { sequences: listed.len(), entries }),
        }
    }

    /// The key of the entry at `index`.
    pub(super) fn key(&self, index: usize) -> Key<'_> {
        let sequence = match &self.sequences {
            Sequences::From(first) => first.wrapping_add(index as u64),
            Sequences::Listed(listed) => listed.get(index).copied().unwrap_or_default(),
        };
        Key { producer: &self.producer, sequence }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(sequences: Sequences, entries: usize) -> Result<(), String> {
        let keys = Keys { producer: "p".to_owned(), sequences };
        keys.check(entries).map_err(|error| error.to_string())
    }

    #[test]
    fn keys_must_fit_their_entries() {
        assert_eq!(check(Sequences::From(u64::MAX - 3), 3), Ok(()));
        assert!(check(Sequences::From(u64::MAX), 1).is_err());
        assert_eq!(check(Sequences::Listed(vec![5, 9]), 2), Ok(()));
        assert_eq!(
            check(Sequences::Listed(vec![5]), 2),
            Err("1 sequences were given for 2 entries".to_owned())
        );
        let nameless = Keys { producer: String::new(), sequences: Sequences::From(1) };
        assert_eq!(nameless.check(1), Err(KeysError::Producer { bytes: 0 }));
    }
}
