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

use super::build::Places;
use super::layout::Present;
use super::source::{NULL, SourceColumn, Translation};
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

    /// Shows each row of a column of strings that has a value, and its number.
    pub(super) fn of_column(&mut self, column: &'a Column, mut see: impl FnMut(usize, u32)) {
        let Data::String(codes, dictionary) = column.data() else { return };
        let mut known = Translation::new(dictionary.len());
        for row in column.validity().valid() {
            let code = codes[row];
            see(row, known.get(code, || self.intern(dictionary.get(code))));
        }
    }

    /// Shows each row of an array that has a value, and its number.
    pub(super) fn of_array(
        &mut self,
        array: &'a DictionaryArray<Int32Type>,
        mut see: impl FnMut(usize, u32),
    ) {
        let strings = array.values().as_string::<i32>();
        let mut known = Translation::new(strings.len());
        for (row, key) in array.keys().iter().enumerate() {
            if let Some(key) = key.map(i32::cast_unsigned) {
                see(row, known.get(key, || self.intern(strings.value(key as usize))));
            }
        }
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
    codes.iter_mut().for_each(|code| *code = places[*code as usize]);
}

/// The values of a column of strings, source after source, each as codes of a dictionary of its
/// own so far.
#[derive(Debug, Default)]
pub(super) struct Joined<'a> {
    present: Present<u32>,
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
    pub(super) fn with_capacity(values: usize) -> Self {
        Self { present: Present::with_capacity(values), ..Self::default() }
    }

    /// The column of a source, whose rows are at these places.
    pub(super) fn push(&mut self, column: SourceColumn<'a>, places: Places<'_>) {
        let Self { present, union, parts } = self;
        let whose = match column {
            SourceColumn::Batch(column) => {
                union.of_column(column, |row, number| present.push(places.of(row), number));
                Whose::Union
            }
            SourceColumn::Segment { .. } => {
                let Some(strings) = column.codes(|row, code| present.push(places.of(row), code))
                else {
                    return;
                };
                Whose::Segment(strings)
            }
        };
        parts.push((whose, present.values.len()));
    }

    /// One code for each value, and the strings that they stand for.
    pub(super) fn finish(self) -> Result<(Present<u32>, Entries), SegmentError> {
        let Self { mut present, union, parts } = self;
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
            let codes = &mut present.values[start..end];
            match whose {
                Whose::Union => translate(codes, &union_to),
                Whose::Segment(_) => translate(codes, &segments.next().unwrap_or_default()),
            }
            start = end;
        }
        Ok((present, entries))
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
    let mut entries = Entries::default();
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

/// The entries of a dictionary: distinct strings, sorted by their bytes; or of several, one after
/// the other.
#[derive(Debug)]
pub(super) struct Entries {
    /// Where each begins in `text`, and where the last one ends.
    offsets: Vec<i32>,
    text: Vec<u8>,
}

impl Default for Entries {
    fn default() -> Self {
        Self { offsets: vec![0], text: Vec::new() }
    }
}

impl Entries {
    /// Of strings that are sorted and different from each other.
    pub(super) fn of<'a>(strings: impl IntoIterator<Item = &'a str>) -> Result<Self, SegmentError> {
        let mut entries = Self::default();
        strings.into_iter().try_for_each(|string| entries.push(string.as_bytes()))?;
        Ok(entries)
    }

    fn push(&mut self, string: &[u8]) -> Result<(), SegmentError> {
        let end = i32::try_from(self.text.len() + string.len());
        self.offsets.push(end.map_err(|_too_large| SegmentError::TooMuchText)?);
        self.text.extend_from_slice(string);
        Ok(())
    }

    /// Adds the entries of another dictionary.
    pub(super) fn append(&mut self, other: &Self) -> Result<(), SegmentError> {
        (0..other.len()).filter_map(|place| other.get(place)).try_for_each(|one| self.push(one))
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
