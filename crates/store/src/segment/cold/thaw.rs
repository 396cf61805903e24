//! A cold segment as a hot one.

use std::sync::Arc;

use arrow::array::{Array as _, ArrayRef, AsArray as _};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, FieldRef, Float64Type, Int32Type, Int64Type, Schema,
    TimestampNanosecondType, UInt32Type,
};
use bytes::Bytes;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use perflab_model::Kind;

use super::{Described, Description, META_KEY, VERSION};
use crate::segment::build::{encode_lists, encode_times, encode_weights};
use crate::segment::dictionary::Union;
use crate::segment::file::{Sheet, Sheets, Shelf};
use crate::segment::layout::{Layout, Present};
use crate::segment::meta::MetaKind;
use crate::segment::source::NULL;
use crate::segment::{SegmentError, Sparsity, damaged};

/// So many rows of a column are decoded at a time.
const READ_ROWS: usize = 64 << 10;

/// Makes a segment of what [`cool`](super::cool) made of one; its columns are on the shelf, if
/// there is one.
pub(crate) fn thaw(
    rows: Bytes,
    lists: Option<Bytes>,
    shelf: Option<&dyn Shelf>,
    sparsity: Sparsity,
) -> Result<Sheets, SegmentError> {
    let (lists, lists_len) = match lists.map(thaw_lists).transpose()? {
        Some((lists, len)) => (Some(lists), len),
        None => (None, 0),
    };
    let file = File::open(rows)?;
    let mut layout = Layout::new(file.rows(), shelf, sparsity);
    for (place, column) in file.description.columns.iter().enumerate() {
        thaw_column(column, &file.column(place)?, lists_len, &mut layout)?;
    }
    layout.finish(lists)
}

fn thaw_column(
    Described { name, kind }: &Described,
    parts: &[ArrayRef],
    lists: usize,
    layout: &mut Layout<'_>,
) -> Result<(), SegmentError> {
    match kind {
        MetaKind::Time => {
            let times = parts.iter().map(|part| part.as_primitive::<TimestampNanosecondType>());
            let times: Vec<i64> = times.flat_map(|part| part.values().iter().copied()).collect();
            layout.add(encode_times(times))
        }
        MetaKind::Weight => {
            let weights = parts.iter().flat_map(|part| part.as_primitive::<Float64Type>());
            layout.add(encode_weights(&weights.map(Option::unwrap_or_default).collect::<Vec<_>>()))
        }
        MetaKind::Int => layout.add_ints(name, present::<Int64Type>(parts)),
        MetaKind::Float => layout.add_floats(name, present::<Float64Type>(parts)),
        MetaKind::String => {
            let (mut union, mut codes) = (Union::default(), Present::default());
            for (before, part) in with_rows_before(parts) {
                let part = part.as_dictionary::<Int32Type>();
                union.of_array(part, |row, number| codes.push(narrow(before + row), number));
            }
            let strings = union.sort(&mut codes.values)?;
            layout.add_strings(name, codes, strings)
        }
        MetaKind::Set => layout.add_lists(name, Kind::Set, present::<UInt32Type>(parts), lists),
        MetaKind::Vector => {
            layout.add_lists(name, Kind::Vector, present::<UInt32Type>(parts), lists)
        }
        MetaKind::Items => damaged(format!("column `{name}` is of a kind of its own")),
    }
}

/// The values of a column that are there.
fn present<T: ArrowPrimitiveType>(parts: &[ArrayRef]) -> Present<T::Native> {
    let mut present = Present::default();
    for (before, part) in with_rows_before(parts) {
        let part = part.as_primitive::<T>();
        let mut push = |row: usize| present.push(narrow(before + row), part.value(row));
        match part.nulls() {
            Some(nulls) => nulls.valid_indices().for_each(push),
            None => (0..part.len()).for_each(&mut push),
        }
    }
    present
}

/// The parts of a column, with the number of rows before each.
fn with_rows_before(parts: &[ArrayRef]) -> impl Iterator<Item = (usize, &ArrayRef)> {
    parts.iter().scan(0, |rows, part| {
        let before = *rows;
        *rows += part.len();
        Some((before, part))
    })
}

/// Segments have fewer rows than 32 bits count.
fn narrow(row: usize) -> u32 {
    u32::try_from(row).unwrap_or(NULL)
}

/// The table of lists, and how many there are.
fn thaw_lists(lists: Bytes) -> Result<(Sheet, usize), SegmentError> {
    let file = File::open(lists)?;
    let is_items = |column: &Described| column.kind == MetaKind::Items;
    let Some(place) = file.description.columns.iter().position(is_items) else {
        return damaged("its lists are not a table of lists");
    };
    let parts = file.column(place)?;
    let (mut items, mut codes, mut ends) = (Union::default(), Vec::new(), Vec::new());
    for part in &parts {
        let list = part.as_list::<i32>();
        let start = codes.len();
        let lengths = list.offsets().lengths();
        ends.extend(lengths.scan(start, |end, length| {
            *end += length;
            Some(*end)
        }));
        items.of_array(list.values().as_dictionary::<Int32Type>(), |_, code| codes.push(code));
    }
    Ok((encode_lists(items, codes, ends)?, file.rows()))
}

/// A Parquet file that [`cool`](super::cool) made.
struct File {
    bytes: Bytes,
    metadata: ArrowReaderMetadata,
    description: Description,
}

impl File {
    fn open(bytes: Bytes) -> Result<Self, SegmentError> {
        let found = ArrowReaderMetadata::load(&bytes, ArrowReaderOptions::new())?;
        let pairs = found.metadata().file_metadata().key_value_metadata();
        let pair = pairs.into_iter().flatten().find(|pair| pair.key == META_KEY);
        let Some(description) = pair.and_then(|pair| pair.value.as_ref()) else {
            return damaged("it is no file of perflab's");
        };
        let description: Description = serde_json::from_str(description)
            .map_err(|error| SegmentError::Damaged(format!("its description: {error}")))?;
        if description.version != VERSION {
            return damaged(format!("its version is {}, not {VERSION}", description.version));
        }
        let coded: Vec<FieldRef> = found.schema().fields().iter().map(coded_field).collect();
        let options = ArrowReaderOptions::new().with_schema(Arc::new(Schema::new(coded)));
        let metadata = ArrowReaderMetadata::try_new(Arc::clone(found.metadata()), options)?;
        Ok(Self { bytes, metadata, description })
    }

    fn rows(&self) -> usize {
        let rows = self.metadata.metadata().row_groups().iter();
        rows.map(|group| usize::try_from(group.num_rows()).unwrap_or(0)).sum()
    }

    /// A column, in parts.
    fn column(&self, place: usize) -> Result<Vec<ArrayRef>, SegmentError> {
        let mask = ProjectionMask::roots(self.metadata.parquet_schema(), [place]);
        let (bytes, metadata) = (self.bytes.clone(), self.metadata.clone());
        let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(bytes, metadata)
            .with_projection(mask)
            .with_batch_size(READ_ROWS)
            .build()?;
        reader.map(|batch| Ok(Arc::clone(batch?.column(0)))).collect()
    }
}

/// The same field with strings as codes: what a dictionary of the file has is then read once.
fn coded_field(field: &FieldRef) -> FieldRef {
    let coded = if let DataType::List(item) = field.data_type() {
        DataType::List(coded_field(item))
    } else if *field.data_type() == DataType::Utf8 {
        DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
    } else {
        return Arc::clone(field);
    };
    Arc::new(field.as_ref().clone().with_data_type(coded))
}
