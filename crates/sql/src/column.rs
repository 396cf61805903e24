//! A column of a segment as Arrow arrays.
//!
//! Strings and lists are gathered by their codes from an array of the dictionary's entries, whose
//! text stays where it is in the segment.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Float64Array, Int64Array, ListArray, StringViewArray,
    StringViewBuilder, TimestampNanosecondArray, UInt8Array, UInt16Array, UInt32Array,
    new_null_array,
};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::compute::take;
use arrow::datatypes::{DataType, Field};
use arrow::error::ArrowError;
use bytes::Bytes;
use datafusion::error::{DataFusionError, Result};
use perflab_model::Kind;
use perflab_store::segment::{
    Codes, ColumnData, Ints, ListTable, Segment, SegmentError, Strings, Weights,
};

use crate::columns::Content;

/// Batches share the text of a dictionary up to this size. The engine counts all of it as memory
/// of each batch, so that of a larger one a batch gets a copy of what it has.
const SHARED_TEXT_BYTES_MAX: usize = 1 << 20;

/// A column of one segment, ready to be read.
#[derive(Debug)]
pub(crate) enum Column {
    /// The segment has no such column: everything is null.
    Missing(DataType),
    Time(Arc<Segment>),
    Weight(Weights),
    Int(Option<BooleanBuffer>, Ints),
    /// Integers where there are any, else floats.
    Number(Option<(Option<BooleanBuffer>, Ints)>, Option<ScalarBuffer<f64>>),
    Coded {
        /// What the codes stand for, and null after the last.
        dictionary: ArrayRef,
        codes: Codes,
        is_shared: bool,
    },
}

pub(crate) fn damaged(error: SegmentError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

impl Column {
    pub(crate) fn open(content: &Content, segment: &Arc<Segment>) -> Result<Self> {
        let data = |name: &str, kind| {
            let column = segment.column(name, kind);
            column.map(|column| column.data().map_err(damaged)).transpose()
        };
        match content {
            Content::Time => Ok(Self::Time(Arc::clone(segment))),
            Content::Weight => Ok(Self::Weight(segment.weights().map_err(damaged)?.clone())),
            Content::Kind(name, kind) => match data(name, *kind)? {
                Some(data) => Self::of_data(data, segment),
                None => Ok(Self::Missing(content.data_type())),
            },
            Content::Number(name) => {
                let (mut ints, mut floats) = (None, None);
                if let Some(ColumnData::Int { values, validity }) = data(name, Kind::Int)? {
                    ints = Some((validity, values));
                }
                if let Some(ColumnData::Float { values }) = data(name, Kind::Float)? {
                    floats = Some(values);
                }
                Ok(Self::Number(ints, floats))
            }
        }
    }

    fn of_data(data: ColumnData, segment: &Segment) -> Result<Self> {
        match data {
            ColumnData::Int { values, validity } => Ok(Self::Int(validity, values)),
            ColumnData::Float { values } => Ok(Self::Number(None, Some(values))),
            ColumnData::String { codes, strings } => Ok(Self::Coded {
                dictionary: Arc::new(string_views(&strings)?),
                codes,
                is_shared: is_shared(&strings),
            }),
            ColumnData::List { ids } => {
                let Some(lists) = segment.lists() else {
                    return Ok(Self::Missing(DataType::new_list(DataType::Utf8View, true)));
                };
                lists.check().map_err(damaged)?;
                Ok(Self::Coded {
                    dictionary: Arc::new(list_views(lists)?),
                    codes: ids,
                    is_shared: is_shared(lists.items()),
                })
            }
        }
    }

    pub(crate) fn read(&self, rows: Range<usize>) -> Result<ArrayRef> {
        Ok(match self {
            Self::Missing(data_type) => new_null_array(data_type, rows.len()),
            Self::Time(segment) => {
                let times = segment.times().map_err(damaged)?;
                let times = TimestampNanosecondArray::from(times[rows].to_vec());
                Arc::new(times.with_timezone("UTC"))
            }
            Self::Weight(weights) => {
                Arc::new(rows.map(|row| weights.get(row)).collect::<Float64Array>())
            }
            Self::Int(validity, ints) => {
                let nulls = validity.as_ref().map(|valid| valid.slice(rows.start, rows.len()));
                Arc::new(Int64Array::new(widened(ints, rows), nulls.map(NullBuffer::new)))
            }
            Self::Number(ints, floats) => Arc::new(numbers(ints.as_ref(), floats.as_ref(), rows)),
            Self::Coded { dictionary, codes, is_shared } => {
                let values = gather(dictionary, codes, rows)?;
                if *is_shared { values } else { with_own_text(&values)? }
            }
        })
    }
}

fn widened(ints: &Ints, rows: Range<usize>) -> ScalarBuffer<i64> {
    fn widen<T: Copy + Into<i64>>(values: &[T]) -> ScalarBuffer<i64> {
        values.iter().map(|&value| value.into()).collect()
    }
    match ints {
        Ints::I8(values) => widen(&values[rows]),
        Ints::I16(values) => widen(&values[rows]),
        Ints::I32(values) => widen(&values[rows]),
        Ints::I64(values) => widen(&values[rows]),
    }
}

fn numbers(
    ints: Option<&(Option<BooleanBuffer>, Ints)>,
    floats: Option<&ScalarBuffer<f64>>,
    rows: Range<usize>,
) -> Float64Array {
    let mut numbers = match floats {
        Some(floats) => floats[rows.clone()].to_vec(),
        None => vec![f64::NAN; rows.len()],
    };
    if let Some((validity, ints)) = ints {
        for (row, number) in rows.zip(&mut numbers) {
            if validity.as_ref().is_none_or(|valid| valid.value(row)) {
                #[expect(clippy::cast_precision_loss, reason = "widened, as in the algebra")]
                let widened = ints.get(row) as f64;
                *number = widened;
            }
        }
    }
    // In segments, null is NaN and no other value is.
    let valid = BooleanBuffer::collect_bool(numbers.len(), |at| !numbers[at].is_nan());
    let nulls = NullBuffer::new(valid);
    Float64Array::new(numbers.into(), (nulls.null_count() > 0).then_some(nulls))
}

fn gather(dictionary: &ArrayRef, codes: &Codes, rows: Range<usize>) -> Result<ArrayRef> {
    let (start, len) = (rows.start, rows.len());
    let codes: ArrayRef = match codes {
        Codes::U8(codes) => Arc::new(UInt8Array::new(codes.slice(start, len), None)),
        Codes::U16(codes) => Arc::new(UInt16Array::new(codes.slice(start, len), None)),
        Codes::U32(codes) => Arc::new(UInt32Array::new(codes.slice(start, len), None)),
    };
    Ok(take(dictionary, &codes, None)?)
}

/// Part of a segment that looks like memory of its own size, and not like all of the segment.
struct Part(Buffer);

impl AsRef<[u8]> for Part {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

fn is_shared(strings: &Strings) -> bool {
    strings.text().len() <= SHARED_TEXT_BYTES_MAX
}

/// The strings of a dictionary, and null after the last.
fn string_views(strings: &Strings) -> Result<StringViewArray> {
    let mut views = StringViewBuilder::with_capacity(strings.len() + 1);
    let block = views.append_block(Bytes::from_owner(Part(strings.text())).into());
    let mut start = 0;
    for end in strings.offsets().skip(1) {
        let len = end.checked_sub(start).and_then(|len| u32::try_from(len).ok());
        let (Ok(at), Some(len)) = (u32::try_from(start), len) else {
            let what = "the strings of a dictionary overlap".to_owned();
            return Err(damaged(SegmentError::Damaged(what)));
        };
        views.try_append_view(block, at, len)?;
        start = end;
    }
    views.append_null();
    Ok(views.finish())
}

/// The lists of a table, and null after the last.
fn list_views(lists: &ListTable) -> Result<ListArray> {
    let ids = 0..u32::try_from(lists.len()).unwrap_or(u32::MAX);
    let codes: UInt32Array = ids.clone().flat_map(|id| lists.codes(id)).map(Some).collect();
    let items = take(&string_views(lists.items())?, &codes, None)?;
    let lengths = ids.map(|id| lists.codes(id).len()).chain([0]);
    let nulls = NullBuffer::from_iter((0..=lists.len()).map(|id| id < lists.len()));
    let offsets = OffsetBuffer::from_lengths(lengths);
    Ok(ListArray::try_new(item_field(), offsets, items, Some(nulls))?)
}

fn item_field() -> Arc<Field> {
    Arc::new(Field::new_list_field(DataType::Utf8View, true))
}

/// The same values, with a copy of their text.
fn with_own_text(values: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    if let Some(strings) = values.as_string_view_opt() {
        return Ok(Arc::new(strings.gc()));
    }
    let Some(lists) = values.as_list_opt::<i32>() else { return Ok(Arc::clone(values)) };
    let items = Arc::new(lists.values().as_string_view().gc());
    let (offsets, nulls) = (lists.offsets().clone(), lists.nulls().cloned());
    Ok(Arc::new(ListArray::try_new(item_field(), offsets, items, nulls)?))
}
