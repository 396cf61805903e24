//! The strings of a column of a new segment: those of all its sources, each once, sorted.
//!
//! Strings of rows that just came are found by hashing them. Dictionaries of segments are sorted
//! already: they are merged, which takes no memory but for the result.

use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

use arrow::array::{Array as _, ArrayRef, AsArray as _, DictionaryArray, StringArray};
use arrow::buffer::{Buffer, OffsetBuffer};
use arrow::datatypes::Int32Type;
use foldhash::fast::RandomState;
use perflab_model::batch::{Column, Data};

use super::source::{NULL, Translation};
use super::{SegmentError, Strings};

/// Distinct strings, numbered as they come.
#[derive(Debug, Default)]
pub(super) struct Union<'a> {
    ids: HashMap<&'a str, u32, RandomState>,
    strings: Vec<&'a str>,
}

impl<'a> Union<'a> {
    pub(super) fn intern(&mut self, string: &'a str) -> u32 {
        let next = u32::try_from(self.strings.len()).unwrap_or(NULL);
        *self.ids.entry(string).or_insert_with(|| {
            self.strings.push(string);
            next
        })
    }

    /// Appends the codes of a column of strings, translated into numbers.
    pub(super) fn append_column(&mut self, column: &'a Column, into: &mut Vec<u32>) {
        let Data::String(codes, dictionary) = column.data() else { return };
        let mut known = Translation::new(dictionary.len());
        let valid = column.validity();
        into.extend(codes.iter().enumerate().map(|(row, &code)| {
            if !valid.is_valid(row) {
                return NULL;
            }
            known.get(code, || self.intern(dictionary.get(code)))
        }));
    }

    /// Appends the codes of an array, translated into numbers.
    pub(super) fn append_array(
        &mut self,
        array: &'a DictionaryArray<Int32Type>,
        into: &mut Vec<u32>,
    ) {
        let strings = array.values().as_string::<i32>();
        let mut known = Translation::new(strings.len());
        into.extend(array.keys().iter().map(|key| {
            let Some(key) = key.map(i32::cast_unsigned) else { return NULL };
            known.get(key, || self.intern(strings.value(key as usize)))
        }));
    }

    /// The strings sorted; numbers become places in that order.
    pub(super) fn sort(self, numbers: &mut [u32]) -> Result<Entries, SegmentError> {
        let (strings, places) = self.sorted();
        translate(numbers, &places);
        Entries::of(strings)
    }

    /// The strings sorted by their bytes, and the place of each number in that order.
    fn sorted(self) -> (Vec<&'a str>, Vec<u32>) {
        let mut order: Vec<u32> = (0..).take(self.strings.len()).collect();
        order.sort_unstable_by_key(|&id| self.strings[id as usize]);
        let mut places = vec![0; order.len()];
        for (place, &id) in (0..).zip(&order) {
            places[id as usize] = place;
        }
        (order.into_iter().map(|id| self.strings[id as usize]).collect(), places)
    }
}

fn translate(codes: &mut [u32], places: &[u32]) {
    for code in codes.iter_mut().filter(|code| **code != NULL) {
        *code = places[*code as usize];
    }
}

/// Codes of a column, source after source, each into a dictionary of its own so far.
#[derive(Debug, Default)]
pub(super) struct Joined<'a> {
    codes: Vec<u32>,
    /// Of the rows of all batches.
    union: Union<'a>,
    /// Which dictionary the codes are of, up to where.
    parts: Vec<(Whose<'a>, usize)>,
}

#[derive(Debug, Clone, Copy)]
enum Whose<'a> {
    Union,
    Segment(&'a Strings),
}

impl<'a> Joined<'a> {
    pub(super) fn with_capacity(rows: usize) -> Self {
        Self { codes: Vec::with_capacity(rows), ..Self::default() }
    }

    /// The column of a batch, which may have fewer than `rows` rows.
    pub(super) fn push_batch(&mut self, column: &'a Column, rows: usize) {
        let end = self.codes.len() + rows;
        self.union.append_column(column, &mut self.codes);
        self.codes.resize(end, NULL);
        self.parts.push((Whose::Union, end));
    }

    /// Codes of a segment; those that are not of its dictionary are null.
    pub(super) fn push_segment(&mut self, codes: impl Iterator<Item = u32>, strings: &'a Strings) {
        let is_string = |code: &u32| (*code as usize) < strings.len();
        self.codes.extend(codes.map(|code| Some(code).filter(is_string).unwrap_or(NULL)));
        self.parts.push((Whose::Segment(strings), self.codes.len()));
    }

    pub(super) fn push_nulls(&mut self, rows: usize) {
        let end = self.codes.len() + rows;
        self.codes.resize(end, NULL);
        self.parts.push((Whose::Union, end));
    }

    /// One code for each row, and the strings that they stand for.
    pub(super) fn finish(self) -> Result<(Vec<u32>, Entries), SegmentError> {
        let Self { mut codes, union, parts } = self;
        let (strings, union_places) = union.sorted();
        let segments = parts.iter().filter_map(|(whose, _)| match whose {
            Whose::Segment(strings) => Some(Sorted::Segment(strings)),
            Whose::Union => None,
        });
        let sources: Vec<_> = segments.chain([Sorted::Union(&strings)]).collect();
        let (entries, mut places) = merge(&sources)?;
        let mut union_to: Vec<u32> = union_places;
        translate(&mut union_to, &places.pop().unwrap_or_default());
        let (mut start, mut segments) = (0, places.into_iter());
        for (whose, end) in parts {
            match whose {
                Whose::Union => translate(&mut codes[start..end], &union_to),
                Whose::Segment(_) => {
                    translate(&mut codes[start..end], &segments.next().unwrap_or_default());
                }
            }
            start = end;
        }
        Ok((codes, entries))
    }
}

/// Sorted strings to be merged.
#[derive(Debug, Clone, Copy)]
enum Sorted<'a> {
    Segment(&'a Strings),
    Union(&'a [&'a str]),
}

impl<'a> Sorted<'a> {
    fn len(self) -> usize {
        match self {
            Self::Segment(strings) => strings.len(),
            Self::Union(strings) => strings.len(),
        }
    }

    fn get(self, place: usize) -> Option<&'a [u8]> {
        match self {
            Self::Segment(strings) => {
                let code = u32::try_from(place).ok().filter(|_| place < strings.len())?;
                Some(strings.bytes(code))
            }
            Self::Union(strings) => strings.get(place).map(|string| string.as_bytes()),
        }
    }
}

/// Each string once, and for each source the places of its strings among them.
fn merge(sources: &[Sorted<'_>]) -> Result<(Entries, Vec<Vec<u32>>), SegmentError> {
    let mut entries = Entries::new();
    let mut places: Vec<_> =
        sources.iter().map(|source| Vec::<u32>::with_capacity(source.len())).collect();
    let firsts = sources.iter().enumerate();
    let mut next: BinaryHeap<_> =
        firsts.filter_map(|(at, source)| Some(Reverse((source.get(0)?, at)))).collect();
    while let Some(mut least) = next.peek_mut() {
        let Reverse((string, at)) = *least;
        if entries.last() != Some(string) {
            entries.push(string)?;
        }
        places[at].push(u32::try_from(entries.len() - 1).unwrap_or(NULL));
        match sources[at].get(places[at].len()) {
            Some(string) => *least = Reverse((string, at)),
            None => drop(PeekMut::pop(least)),
        }
    }
    Ok((entries, places))
}

/// The entries of a dictionary: distinct strings, sorted by their bytes.
#[derive(Debug)]
pub(super) struct Entries {
    /// Where each begins in `text`, and where the last one ends.
    offsets: Vec<i32>,
    text: Vec<u8>,
}

impl Entries {
    fn new() -> Self {
        Self { offsets: vec![0], text: Vec::new() }
    }

    /// Of strings that are sorted and different from each other.
    pub(super) fn of<'a>(strings: impl IntoIterator<Item = &'a str>) -> Result<Self, SegmentError> {
        let mut entries = Self::new();
        strings.into_iter().try_for_each(|string| entries.push(string.as_bytes()))?;
        Ok(entries)
    }

    fn push(&mut self, string: &[u8]) -> Result<(), SegmentError> {
        let end = i32::try_from(self.text.len() + string.len());
        self.offsets.push(end.map_err(|_too_large| SegmentError::TooMuchText)?);
        self.text.extend_from_slice(string);
        Ok(())
    }

    pub(super) fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    fn get(&self, place: usize) -> Option<&[u8]> {
        let at = |place: usize| usize::try_from(*self.offsets.get(place)?).ok();
        self.text.get(at(place)?..at(place + 1)?)
    }

    fn last(&self) -> Option<&[u8]> {
        self.get(self.len().checked_sub(1)?)
    }

    /// The first and the last.
    pub(super) fn range(&self) -> Option<(String, String)> {
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        Some((text(self.get(0)?), text(self.last()?)))
    }

    /// As an array; with nulls, one more entry after the last, for their code: some readers insist
    /// that every code, even below a null, has an entry, and that entries differ.
    pub(super) fn into_array(mut self, has_nulls: bool) -> Result<ArrayRef, SegmentError> {
        if has_nulls {
            let mut placeholder = "(null)".to_owned();
            while self.contains(placeholder.as_bytes()) {
                placeholder.push('\'');
            }
            self.push(placeholder.as_bytes())?;
        }
        let offsets = OffsetBuffer::new(self.offsets.into());
        Ok(Arc::new(StringArray::try_new(offsets, Buffer::from_vec(self.text), None)?))
    }

    fn contains(&self, string: &[u8]) -> bool {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low.midpoint(high);
            if self.get(middle) < Some(string) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        self.get(low) == Some(string)
    }
}
