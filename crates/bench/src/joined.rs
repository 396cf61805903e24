//! Byte strings one after the other in one buffer, with a separator between them: any run of
//! neighbours is one slice, and so a request body that needs no work when it is sent.

/// Strings joined by a separator.
#[derive(Debug)]
pub(crate) struct Joined {
    bytes: Vec<u8>,
    starts: Vec<usize>,
    separator: &'static [u8],
}

impl Joined {
    pub(crate) fn new(separator: &'static str) -> Self {
        Self { bytes: Vec::new(), starts: Vec::new(), separator: separator.as_bytes() }
    }

    /// Adds the string that `write` appends to the buffer.
    pub(crate) fn push_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        if !self.starts.is_empty() {
            self.bytes.extend_from_slice(self.separator);
        }
        self.starts.push(self.bytes.len());
        write(&mut self.bytes);
    }

    pub(crate) fn len(&self) -> usize {
        self.starts.len()
    }

    /// The `count` strings from the `first` on, with the separators between them.
    pub(crate) fn run(&self, first: usize, count: usize) -> &[u8] {
        let end = match self.starts.get(first + count) {
            Some(next) => next - self.separator.len(),
            None => self.bytes.len(),
        };
        &self.bytes[self.starts[first]..end]
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|index| self.run(index, 1))
    }

    /// All strings with the separators between them.
    pub(crate) fn all(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_have_separators_only_between_strings() {
        let mut joined = Joined::new(", ");
        for string in ["a", "", "bcd"] {
            joined.push_with(|out| out.extend_from_slice(string.as_bytes()));
        }
        assert_eq!(joined.len(), 3);
        assert_eq!(joined.run(0, 1), b"a");
        assert_eq!(joined.run(0, 2), b"a, ");
        assert_eq!(joined.run(1, 2), b", bcd");
        assert_eq!(joined.all(), b"a, , bcd");
        assert_eq!(joined.iter().collect::<Vec<_>>(), [&b"a"[..], b"", b"bcd"]);
    }
}
