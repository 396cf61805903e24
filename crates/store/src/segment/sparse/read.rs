//! Reading the file of sparse columns where it lies.

use std::ops::Range;

use arrow::buffer::Buffer;

use super::Sparse;
use crate::segment::column::{RawColumn, Stored, Strings, of_its_own_kind};
use crate::segment::image::{Image, Messages};
use crate::segment::meta::MetaKind;
use crate::segment::{Codes, ColumnData, Ints, SegmentColumn, SegmentError, damaged};

/// The parts of a column, in the order in which [`parts`] finds them.
const ROWS: usize = 0;
const INTS: usize = 1;
const FLOATS: usize = 2;
const CODES: usize = 3;
const OFFSETS: usize = 4;
const TEXT: usize = 5;

/// Opens the sparse columns of a segment of so many rows and lists. Nothing is read but where each
/// begins.
pub(in crate::segment) fn open(
    file: &Buffer,
    rows: usize,
    lists: usize,
) -> Result<Vec<SegmentColumn>, SegmentError> {
    let image = Image::open(file)?;
    let columns = image.sparse_columns()?.into_iter();
    columns.map(|raw| read_sparse(raw, rows, lists)).collect()
}

fn read_sparse(raw: RawColumn, rows: usize, lists: usize) -> Result<SegmentColumn, SegmentError> {
    let count = raw.ranges[ROWS].len() / size_of::<u32>();
    if count + raw.meta.nulls != rows {
        return damaged(format!("column `{}` has values of other rows", raw.meta.name));
    }
    let codes = || raw.typed(CODES, count).map(Codes::U32);
    let values = match raw.meta.kind {
        MetaKind::Int => {
            ColumnData::Int { values: Ints::I64(raw.typed(INTS, count)?), validity: None }
        }
        MetaKind::Float => ColumnData::Float { values: raw.typed(FLOATS, count)? },
        MetaKind::String => ColumnData::String { codes: codes()?, strings: strings(&raw)? },
        MetaKind::Set | MetaKind::Vector => ColumnData::List { ids: codes()? },
        MetaKind::Time | MetaKind::Weight | MetaKind::Items => return of_its_own_kind(&raw),
    };
    let rows = Sparse { rows: raw.typed(ROWS, count)?, values, segment_rows: rows, lists };
    SegmentColumn::new(raw, Stored::Sparse(rows))
}

/// Offsets count from where the text of the first column begins.
fn strings(raw: &RawColumn) -> Result<Strings, SegmentError> {
    let offsets = raw.typed::<i32>(OFFSETS, raw.ranges[OFFSETS].len() / size_of::<i32>())?;
    let before = offsets.first().and_then(|&first| usize::try_from(first).ok()).unwrap_or(0);
    let text = &raw.ranges[TEXT];
    match text.start.checked_sub(before) {
        Some(start) => {
            Ok(Strings::new(offsets, raw.file.slice_with_length(start, text.end - start)))
        }
        None => damaged(format!("the text of column `{}` is cut off", raw.meta.name)),
    }
}

/// The bytes of each of so many columns: rows, integers, floats, codes, and where strings begin
/// and their text. What a column's kind does not have is empty.
pub(in crate::segment) fn parts(
    bytes: &[u8],
    messages: &Messages,
    columns: usize,
) -> Result<Vec<Vec<Range<usize>>>, SegmentError> {
    let fields = messages.buffers()?;
    let [_, _, rows, row, ints, int, floats, float, codes, code, strings, string] = &fields[..]
    else {
        return damaged("its sparse columns are not a table of columns");
    };
    let lists = Lists { bytes, columns };
    let rows = lists.items(rows, &row[1], size_of::<u32>())?;
    let ints = lists.items(ints, &int[1], size_of::<i64>())?;
    let floats = lists.items(floats, &float[1], size_of::<f64>())?;
    let codes = lists.items(codes, &code[1], size_of::<u32>())?;
    // As places of strings, not of bytes.
    let strings = lists.items(strings, &(0..usize::MAX), 1)?;
    let values = rows.into_iter().zip(ints).zip(floats).zip(codes).zip(strings);
    values
        .map(|((((rows, ints), floats), codes), strings)| {
            let (offsets, text) = text_of(bytes, string, strings)?;
            Ok(vec![rows, ints, floats, codes, offsets, text])
        })
        .collect()
}

/// A list for each column.
struct Lists<'b> {
    bytes: &'b [u8],
    columns: usize,
}

impl Lists<'_> {
    /// Where the items of each list are among `items`, which are so many bytes wide.
    fn items(
        &self,
        list: &[Range<usize>],
        items: &Range<usize>,
        width: usize,
    ) -> Result<Vec<Range<usize>>, SegmentError> {
        let end = |at| {
            let place = offset(self.bytes, &list[1], at)?.checked_mul(width)?;
            items.start.checked_add(place).filter(|&end| end <= items.end)
        };
        let ends: Option<Vec<usize>> = (0..=self.columns).map(end).collect();
        match ends.filter(|ends| ends.is_sorted()) {
            Some(ends) => Ok(ends.windows(2).map(|ends| ends[0]..ends[1]).collect()),
            None => damaged("a sparse column is cut off"),
        }
    }
}

/// Where the offsets of some strings are, and their text.
fn text_of(
    bytes: &[u8],
    string: &[Range<usize>],
    strings: Range<usize>,
) -> Result<(Range<usize>, Range<usize>), SegmentError> {
    let [_, offsets, text] = string else {
        return damaged("its sparse columns are not a table of columns");
    };
    if strings.is_empty() {
        return Ok((offsets.start..offsets.start, text.start..text.start));
    }
    let end = |at| {
        let end = text.start.checked_add(offset(bytes, offsets, at)?)?;
        (end <= text.end).then_some(end)
    };
    match (end(strings.start), end(strings.end)) {
        (Some(start), Some(end)) if start <= end => {
            let place = |at: usize| offsets.start + at * size_of::<i32>();
            Ok((place(strings.start)..place(strings.end + 1), start..end))
        }
        _ => damaged("the text of a sparse column is cut off"),
    }
}

/// One of the offsets that are in a range; `None` past their end.
fn offset(bytes: &[u8], offsets: &Range<usize>, at: usize) -> Option<usize> {
    let start = offsets.start.checked_add(at.checked_mul(size_of::<i32>())?)?;
    let offset = bytes.get(start..offsets.end)?.first_chunk()?;
    usize::try_from(i32::from_le_bytes(*offset)).ok()
}
