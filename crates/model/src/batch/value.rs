//! Kinds of columns, and single values read back from them.

use super::Dictionary;
use std::fmt;

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Int,
    Float,
    String,
    /// Strings, sorted and unique (tags).
    Set,
    /// Strings in order, duplicates kept (stacks).
    Vector,
}

impl Kind {
    pub const ALL: [Self; 5] = [Self::Int, Self::Float, Self::String, Self::Set, Self::Vector];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Int => "int",
            Self::Float => "float",
            Self::String => "string",
            Self::Set => "set",
            Self::Vector => "vector",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A value that isn't null.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'b> {
    Int(i64),
    Float(f64),
    String(&'b str),
    Set(Strings<'b>),
    Vector(Strings<'b>),
}

/// The strings of one set or vector.
#[derive(Clone)]
pub struct Strings<'b> {
    codes: std::slice::Iter<'b, u32>,
    dictionary: &'b Dictionary,
}

impl<'b> Strings<'b> {
    pub(super) fn new(codes: &'b [u32], dictionary: &'b Dictionary) -> Self {
        Self { codes: codes.iter(), dictionary }
    }
}

impl<'b> Iterator for Strings<'b> {
    type Item = &'b str;

    fn next(&mut self) -> Option<&'b str> {
        self.codes.next().map(|&code| self.dictionary.get(code))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.codes.size_hint()
    }
}

impl ExactSizeIterator for Strings<'_> {}

impl fmt::Debug for Strings<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}

/// Equal when the strings are: the codes of two batches can't be compared.
impl PartialEq for Strings<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.clone().eq(other.clone())
    }
}
