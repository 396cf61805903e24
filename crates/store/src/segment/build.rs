//! Making a segment of rows: sorted by time, each column as narrow as its values allow.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, DictionaryArray, Float64Array, ListArray, PrimitiveArray,
    TimestampNanosecondArray,
};
use arrow::buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{
    ArrowDictionaryKeyType, ArrowPrimitiveType, Field, Int8Type, Int16Type, Int32Type, Int64Type,
    UInt8Type, UInt16Type, UInt32Type,
};
use perflab_model::Kind;

use super::dictionary::{Entries, Joined, Union};
use super::file::{Encoded, Sheet, Shelf};
use super::meta::MetaKind;
use super::source::{ListUnion, NULL, Source, SourceColumn};
use super::{ColumnData, ROWS_MAX, SegmentError};

/// The bytes of a segment that was made.
#[derive(Debug, Clone)]
pub struct Built {
    pub rows: Buffer,
    /// Where it has columns of lists.
    pub lists: Option<Buffer>,
}

/// The files of a segment, ready to be written.
#[derive(Debug, PartialEq)]
pub(crate) struct Sheets {
    pub(crate) rows: Sheet,
    /// Where it has columns of lists.
    pub(crate) lists: Option<Sheet>,
}

impl Sheets {
    pub(crate) fn into_bytes(self) -> Result<Built, SegmentError> {
        let lists = self.lists.map(Sheet::into_bytes).transpose()?;
        Ok(Built { rows: self.rows.into_bytes()?, lists })
    }
}

/// Makes one segment of all rows of the sources; rows with the same time keep their order.
pub fn build(sources: &[Source<'_>]) -> Result<Built, SegmentError> {
    lay_out(sources, None)?.into_bytes()
}

/// As [`build`], but nothing is written yet. With a shelf, only a few columns are in memory at a
/// time.
pub(crate) fn lay_out(
    sources: &[Source<'_>],
    shelf: Option<&dyn Shelf>,
) -> Result<Sheets, SegmentError> {
    let (rows, times) = Rows::new(sources)?;
    let mut columns = vec![encode_times(times).shelved(shelf)?];
    let mut names = BTreeSet::new();
    sources.iter().for_each(|source| source.add_columns(&mut names));
    let (mut lists, mut list_ids) = (ListUnion::default(), HashMap::new());
    for key in names.iter().filter(|(_, kind)| matches!(kind, Kind::Set | Kind::Vector)) {
        list_ids.insert(key, rows.list_ids(&key.0, key.1, &mut lists)?);
    }
    columns.push(encode_weights(&rows.weights()?).shelved(shelf)?);
    for key @ (name, kind) in &names {
        let column = match kind {
            Kind::Int => {
                let (values, valid) = rows.ints(name)?;
                encode_ints(name, &values, &valid)
            }
            Kind::Float => encode_floats(name, rows.floats(name)?),
            Kind::String => {
                let (codes, strings) = rows.strings(name)?;
                encode_strings(name, &codes, strings)?
            }
            Kind::Set | Kind::Vector => encode_list_ids(name, *kind, &list_ids[key], lists.len()),
        };
        columns.push(column.shelved(shelf)?);
    }
    let ListUnion { items, codes, ends, .. } = lists;
    let lists = (!list_ids.is_empty()).then(|| encode_lists(items, codes, ends)).transpose()?;
    Ok(Sheets { rows: Sheet::new(rows.len(), columns), lists })
}

/// The rows of all sources, one source after the other.
struct Rows<'s, 'a> {
    sources: &'s [Source<'a>],
    len: usize,
    /// Where the rows of the segment are among them; `None` when they are sorted already.
    order: Option<Vec<u32>>,
}

impl<'s, 'a> Rows<'s, 'a> {
    /// The rows, and their times sorted.
    fn new(sources: &'s [Source<'a>]) -> Result<(Self, Vec<i64>), SegmentError> {
        let len = sources.iter().map(|source| source.rows()).sum();
        if len > ROWS_MAX {
            return Err(SegmentError::TooManyRows { rows: len });
        }
        let mut times = Vec::with_capacity(len);
        for source in sources {
            times.extend_from_slice(source.times()?);
        }
        let order = (!times.is_sorted()).then(|| {
            let mut order: Vec<u32> = (0_u32..).take(len).collect();
            order.sort_by_key(|&row| times[row as usize]);
            order
        });
        times.sort_unstable();
        Ok((Self { sources, len, order }, times))
    }

    fn len(&self) -> usize {
        self.len
    }

    fn sorted<T: Copy>(&self, values: Vec<T>) -> Vec<T> {
        match &self.order {
            None => values,
            Some(order) => order.iter().map(|&row| values[row as usize]).collect(),
        }
    }

    fn weights(&self) -> Result<Vec<f64>, SegmentError> {
        let mut weights = Vec::with_capacity(self.len());
        for source in self.sources {
            source.append_weights(&mut weights)?;
        }
        Ok(self.sorted(weights))
    }

    /// What each source has of a column, with its number of rows.
    fn parts(
        &self,
        name: &str,
        kind: Kind,
    ) -> Result<Vec<(usize, Option<SourceColumn<'a>>)>, SegmentError> {
        let parts = self.sources.iter();
        parts.map(|source| Ok((source.rows(), source.column(name, kind)?))).collect()
    }

    /// Values, and which of them are not null.
    fn ints(&self, name: &str) -> Result<(Vec<i64>, Vec<bool>), SegmentError> {
        let mut values = Vec::with_capacity(self.len());
        let mut valid = Vec::with_capacity(self.len());
        for (rows, column) in self.parts(name, Kind::Int)? {
            for row in 0..rows {
                let value = column.and_then(|column| column.int(row));
                values.push(value.unwrap_or(0));
                valid.push(value.is_some());
            }
        }
        Ok((self.sorted(values), self.sorted(valid)))
    }

    /// NaN for null.
    fn floats(&self, name: &str) -> Result<Vec<f64>, SegmentError> {
        let mut values = Vec::with_capacity(self.len());
        for (rows, column) in self.parts(name, Kind::Float)? {
            values.extend((0..rows).map(|row| column.map_or(f64::NAN, |c| c.float(row))));
        }
        Ok(self.sorted(values))
    }

    /// Codes, and the strings they stand for.
    fn strings(&self, name: &str) -> Result<(Vec<u32>, Entries), SegmentError> {
        let mut joined = Joined::with_capacity(self.len());
        for (rows, column) in self.parts(name, Kind::String)? {
            match column {
                Some(SourceColumn::Batch(column)) => joined.push_batch(column, rows),
                Some(SourceColumn::Segment(ColumnData::String { codes, strings }, _)) => {
                    joined.push_segment((0..rows).map(|row| codes.get(row)), strings);
                }
                Some(SourceColumn::Segment(..)) | None => joined.push_nulls(rows),
            }
        }
        let (codes, strings) = joined.finish()?;
        Ok((self.sorted(codes), strings))
    }

    fn list_ids(
        &self,
        name: &str,
        kind: Kind,
        lists: &mut ListUnion<'a>,
    ) -> Result<Vec<u32>, SegmentError> {
        let mut ids = Vec::with_capacity(self.len());
        for (rows, column) in self.parts(name, kind)? {
            match column {
                Some(column) => lists.append(column, rows, &mut ids),
                None => ids.resize(ids.len() + rows, NULL),
            }
        }
        Ok(self.sorted(ids))
    }
}

pub(super) fn encode_times(times: Vec<i64>) -> Encoded {
    let range = times.first().zip(times.last()).map(|(a, b)| (a.to_string(), b.to_string()));
    let array = TimestampNanosecondArray::from(times).with_timezone("UTC");
    Encoded::new("time", MetaKind::Time, Arc::new(array), range)
}

/// As small integers where they are, which weights mostly are.
pub(super) fn encode_weights(weights: &[f64]) -> Encoded {
    let range = float_range(weights.iter().copied());
    let most = weights.iter().copied().fold(0.0, f64::max);
    let are_whole = weights.iter().all(|weight| *weight >= 0.0 && weight.fract() == 0.0);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "whole, not negative, and not above the most that fits"
    )]
    let array: ArrayRef = if are_whole && most <= f64::from(u8::MAX) {
        primitive::<UInt8Type>(weights.iter().map(|&weight| weight as u8), None)
    } else if are_whole && most <= f64::from(u16::MAX) {
        primitive::<UInt16Type>(weights.iter().map(|&weight| weight as u16), None)
    } else {
        Arc::new(Float64Array::from(weights.to_vec()))
    };
    Encoded::new("weight", MetaKind::Weight, array, range)
}

/// Values are 0 where they are null.
pub(super) fn encode_ints(name: &str, values: &[i64], valid: &[bool]) -> Encoded {
    let nulls = nulls(valid.iter().copied());
    let present = || values.iter().zip(valid).filter(|(_, valid)| **valid).map(|(value, _)| *value);
    let (least, most) = (present().min(), present().max());
    let fits = |low: i64, high: i64| {
        least.is_none_or(|least| least >= low) && most.is_none_or(|most| most <= high)
    };
    let values = values.iter().copied();
    #[expect(clippy::cast_possible_truncation, reason = "the width was chosen so that all fit")]
    let array = if fits(i8::MIN.into(), i8::MAX.into()) {
        primitive::<Int8Type>(values.map(|value| value as i8), nulls)
    } else if fits(i16::MIN.into(), i16::MAX.into()) {
        primitive::<Int16Type>(values.map(|value| value as i16), nulls)
    } else if fits(i32::MIN.into(), i32::MAX.into()) {
        primitive::<Int32Type>(values.map(|value| value as i32), nulls)
    } else {
        primitive::<Int64Type>(values, nulls)
    };
    let range = least.zip(most).map(|(least, most)| (least.to_string(), most.to_string()));
    Encoded::new(name, MetaKind::Int, array, range)
}

pub(super) fn encode_floats(name: &str, mut values: Vec<f64>) -> Encoded {
    // One of many NaNs, so that the same rows are the same bytes.
    values.iter_mut().filter(|value| value.is_nan()).for_each(|value| *value = f64::NAN);
    let nulls = nulls(values.iter().map(|value| !value.is_nan()));
    let range = float_range(values.iter().copied().filter(|value| !value.is_nan()));
    let array = Float64Array::new(ScalarBuffer::from(values), nulls);
    Encoded::new(name, MetaKind::Float, Arc::new(array), range)
}

pub(super) fn encode_strings(
    name: &str,
    codes: &[u32],
    strings: Entries,
) -> Result<Encoded, SegmentError> {
    let range = strings.range();
    Ok(Encoded::new(name, MetaKind::String, dictionary(codes, strings)?, range))
}

pub(super) fn encode_list_ids(name: &str, kind: Kind, ids: &[u32], lists: usize) -> Encoded {
    let kind = if kind == Kind::Set { MetaKind::Set } else { MetaKind::Vector };
    let array = match Width::of(ids, lists) {
        Width::U8 => coded::<UInt8Type>(ids, lists),
        Width::U16 => coded::<UInt16Type>(ids, lists),
        Width::U32 => coded::<UInt32Type>(ids, lists),
    };
    Encoded::new(name, kind, array, None)
}

/// The table of lists: one row per list, with items up to each of `ends`.
pub(super) fn encode_lists(
    items: Union<'_>,
    mut codes: Vec<u32>,
    ends: Vec<usize>,
) -> Result<Sheet, SegmentError> {
    let items = items.sort(&mut codes)?;
    let items = dictionary(&codes, items)?;
    let starts = std::iter::once(0).chain(ends);
    let offsets: Option<Vec<i32>> = starts.map(|end| i32::try_from(end).ok()).collect();
    let offsets = offsets.ok_or(SegmentError::TooMuchText)?;
    let rows = offsets.len() - 1;
    let field = Arc::new(Field::new("item", items.data_type().clone(), false));
    let array = ListArray::new(field, OffsetBuffer::new(offsets.into()), Arc::clone(&items), None);
    let column = Encoded::new("items", MetaKind::Vector, Arc::new(array), None);
    Ok(Sheet::new(rows, vec![column.with_child("item", MetaKind::Items)]))
}

/// How wide codes are.
enum Width {
    U8,
    U16,
    U32,
}

impl Width {
    /// Null has the code after the last.
    fn of(codes: &[u32], distinct: usize) -> Self {
        let has_nulls = codes.contains(&NULL);
        let most = if has_nulls { distinct } else { distinct.saturating_sub(1) };
        match most {
            0..=0xff => Self::U8,
            0x100..=0xffff => Self::U16,
            _ => Self::U32,
        }
    }
}

fn dictionary(codes: &[u32], strings: Entries) -> Result<ArrayRef, SegmentError> {
    let width = Width::of(codes, strings.len());
    let values = strings.into_array(codes.contains(&NULL))?;
    match width {
        Width::U8 => dictionary_of::<UInt8Type>(codes, values),
        Width::U16 => dictionary_of::<UInt16Type>(codes, values),
        Width::U32 => dictionary_of::<UInt32Type>(codes, values),
    }
}

fn dictionary_of<K: ArrowDictionaryKeyType>(
    codes: &[u32],
    values: ArrayRef,
) -> Result<ArrayRef, SegmentError>
where
    K::Native: TryFrom<u32>,
{
    let has_placeholder = codes.contains(&NULL);
    let keys = keys::<K>(codes, values.len() - usize::from(has_placeholder));
    Ok(Arc::new(DictionaryArray::try_new(keys, values)?))
}

fn coded<K: ArrowPrimitiveType>(codes: &[u32], distinct: usize) -> ArrayRef
where
    K::Native: TryFrom<u32>,
{
    Arc::new(keys::<K>(codes, distinct))
}

fn keys<K: ArrowPrimitiveType>(codes: &[u32], distinct: usize) -> PrimitiveArray<K>
where
    K::Native: TryFrom<u32>,
{
    let null = u32::try_from(distinct).unwrap_or(NULL);
    let narrow = |&code: &u32| {
        let code = if code == NULL { null } else { code };
        // The width was chosen so that all fit.
        K::Native::try_from(code).unwrap_or_default()
    };
    let values: Vec<K::Native> = codes.iter().map(narrow).collect();
    PrimitiveArray::new(values.into(), nulls(codes.iter().map(|&code| code != NULL)))
}

fn primitive<T: ArrowPrimitiveType>(
    values: impl Iterator<Item = T::Native>,
    nulls: Option<NullBuffer>,
) -> ArrayRef {
    let values: Vec<T::Native> = values.collect();
    Arc::new(PrimitiveArray::<T>::new(values.into(), nulls))
}

/// `None` when nothing is null.
fn nulls(valid: impl ExactSizeIterator<Item = bool>) -> Option<NullBuffer> {
    let nulls: NullBuffer = valid.collect::<Vec<_>>().into();
    (nulls.null_count() > 0).then_some(nulls)
}

fn float_range(values: impl Iterator<Item = f64>) -> Option<(String, String)> {
    let (mut least, mut most, mut any) = (f64::INFINITY, f64::NEG_INFINITY, false);
    for value in values {
        (least, most, any) = (least.min(value), most.max(value), true);
    }
    any.then(|| (format!("{least:?}"), format!("{most:?}")))
}
