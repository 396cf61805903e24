//! The distinct lists of a segment: what the ids in its columns of sets and vectors stand for.

use std::sync::Arc;

use arrow::buffer::{Buffer, ScalarBuffer};

use super::column::{RawColumn, ReadAhead};
use super::image::Image;
use super::meta::MetaKind;
use super::{Codes, SegmentError, Strings, damaged};

/// Lists of strings by their ids.
#[derive(Debug, Clone)]
pub struct ListTable {
    /// Where each list begins in `codes`, and where the last one ends.
    offsets: ScalarBuffer<i32>,
    codes: Codes,
    items: Strings,
    lists_raw: RawColumn,
    items_raw: RawColumn,
}

impl ListTable {
    pub(super) fn open(file: &Buffer) -> Result<Self, SegmentError> {
        let image = Image::open(file)?;
        let mut raw = image.columns()?.into_iter();
        let (Some(lists), Some(items), None) = (raw.next(), raw.next(), raw.next()) else {
            return damaged("its lists are not a table of lists");
        };
        if lists.meta.kind != MetaKind::Vector || items.meta.kind != MetaKind::Items {
            return damaged("its lists are of another kind");
        }
        let offsets: ScalarBuffer<i32> = lists.typed(1, image.rows + 1)?;
        let count = offsets.last().and_then(|&end| usize::try_from(end).ok()).unwrap_or(0);
        let codes = Codes::read(&items, count)?;
        let items_strings = items.strings()?;
        Ok(Self { offsets, codes, items: items_strings, lists_raw: lists, items_raw: items })
    }

    pub(super) fn set_read_ahead(&mut self, file: Option<&Arc<dyn ReadAhead>>) {
        self.lists_raw.ahead = file.cloned();
        self.items_raw.ahead = file.cloned();
    }

    /// Checks the bytes of the table, the first time.
    pub fn check(&self) -> Result<(), SegmentError> {
        self.lists_raw.check()?;
        self.items_raw.check()
    }

    /// How many distinct lists there are.
    pub fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The distinct strings in lists.
    pub fn items(&self) -> &Strings {
        &self.items
    }

    /// The codes of the strings of a list; none for an id that is not of this table.
    pub fn codes(&self, id: u32) -> impl ExactSizeIterator<Item = u32> + DoubleEndedIterator {
        let place = |at: usize| self.offsets.get(at).and_then(|&at| usize::try_from(at).ok());
        let range = match (place(id as usize), place(id as usize + 1)) {
            (Some(start), Some(end)) => start..end,
            _ => 0..0,
        };
        range.map(|at| self.codes.get(at))
    }

    /// The strings of a list.
    pub fn strings(&self, id: u32) -> impl ExactSizeIterator<Item = &str> + DoubleEndedIterator {
        self.codes(id).map(|code| self.items.get(code))
    }
}
