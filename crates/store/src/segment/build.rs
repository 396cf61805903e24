//! Making a segment of rows: sorted by time, each column as narrow as its values allow.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use arrow::array::{
    ArrayRef, DictionaryArray, Float64Array, PrimitiveArray, TimestampNanosecondArray,
};
use arrow::buffer::{NullBuffer, ScalarBuffer};
use arrow::datatypes::{
    ArrowDictionaryKeyType, ArrowPrimitiveType, Int8Type, Int16Type, Int32Type, Int64Type,
    UInt8Type, UInt16Type, UInt32Type,
};
use perflab_model::Kind;

use super::dictionary::{Entries, Joined, Union};
use super::file::{Encoded, Sheet, Sheets, Shelf, list_array};
use super::layout::{Layout, Present};
use super::meta::MetaKind;
use super::source::{ListUnion, NULL, Source, SourceColumn};
use super::{Built, ROWS_MAX, SegmentError, Sparsity};

/// Makes one segment of all rows of the sources; rows with the same time keep their order.
pub fn build(sources: &[Source<'_>]) -> Result<Built, SegmentError> {
    build_with(sources, Sparsity::DEFAULT)
}

/// As [`build`], with other columns sparse.
pub fn build_with(sources: &[Source<'_>], sparsity: Sparsity) -> Result<Built, SegmentError> {
    lay_out(sources, None, sparsity)?.into_bytes()
}

/// As [`build`], but nothing is written yet. With a shelf, only a few columns are in memory at a
/// time, and the sparse ones.
pub(crate) fn lay_out(
    sources: &[Source<'_>],
    shelf: Option<&dyn Shelf>,
    sparsity: Sparsity,
) -> Result<Sheets, SegmentError> {
    let (rows, times) = Rows::new(sources)?;
    let mut layout = Layout::new(times.len(), shelf, sparsity);
    layout.add(encode_times(times))?;
    let mut names = BTreeSet::new();
    sources.iter().for_each(|source| source.add_columns(&mut names));
    let (mut lists, mut list_ids) = (ListUnion::default(), HashMap::new());
    for key in names.iter().filter(|(_, kind)| matches!(kind, Kind::Set | Kind::Vector)) {
        list_ids.insert(key, rows.list_ids(&key.0, key.1, &mut lists)?);
    }
    let has_lists = !list_ids.is_empty();
    layout.add(encode_weights(&rows.weights()?))?;
    for key @ (name, kind) in &names {
        match kind {
            Kind::Int => layout.add_ints(name, rows.ints(name)?)?,
            Kind::Float => layout.add_floats(name, rows.floats(name)?)?,
            Kind::String => {
                let (codes, strings) = rows.strings(name)?;
                layout.add_strings(name, codes, strings)?;
            }
            Kind::Set | Kind::Vector => {
                let ids = list_ids.remove(key).unwrap_or_default();
                layout.add_lists(name, *kind, ids, lists.len())?;
            }
        }
    }
    let ListUnion { items, codes, ends, .. } = lists;
    layout.finish(has_lists.then(|| encode_lists(items, codes, ends)).transpose()?)
}

/// Where the rows of a source are in the segment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Places<'r> {
    /// How many rows other sources have before it.
    before: usize,
    /// Of the rows of all sources; `None` when they are sorted already.
    places: Option<&'r [u32]>,
}

impl Places<'_> {
    #[inline]
    pub(super) fn of(self, row: usize) -> u32 {
        let row = self.before + row;
        // There are fewer than 32 bits count.
        self.places.map_or_else(|| u32::try_from(row).unwrap_or(NULL), |places| places[row])
    }
}

/// What each source has of a column.
struct Parts<'r, 'a>(Vec<(SourceColumn<'a>, Places<'r>)>);

impl Parts<'_, '_> {
    /// How many values there are at most.
    fn values_max(&self) -> usize {
        self.0.iter().map(|(column, _)| column.values_max()).sum()
    }
}

/// The rows of all sources, one source after the other.
struct Rows<'s, 'a> {
    sources: &'s [Source<'a>],
    /// Where each of them is in the segment; `None` when they are sorted already.
    places: Option<Vec<u32>>,
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
        let places = (!times.is_sorted()).then(|| {
            let mut order: Vec<u32> = (0_u32..).take(len).collect();
            order.sort_by_key(|&row| times[row as usize]);
            let mut places = vec![0; len];
            (0..).zip(order).for_each(|(place, row)| places[row as usize] = place);
            places
        });
        times.sort_unstable();
        Ok((Self { sources, places }, times))
    }

    fn weights(&self) -> Result<Vec<f64>, SegmentError> {
        let mut weights = Vec::new();
        for source in self.sources {
            source.append_weights(&mut weights)?;
        }
        let Some(places) = &self.places else { return Ok(weights) };
        let mut sorted = vec![0.0; weights.len()];
        for (weight, &place) in weights.into_iter().zip(places) {
            sorted[place as usize] = weight;
        }
        Ok(sorted)
    }

    /// What each source has of a column, and where the rows of the source go.
    fn parts(&self, name: &str, kind: Kind) -> Result<Parts<'_, 'a>, SegmentError> {
        let (mut parts, mut before) = (Vec::new(), 0);
        for source in self.sources {
            if let Some(column) = source.column(name, kind)? {
                parts.push((column, Places { before, places: self.places.as_deref() }));
            }
            before += source.rows();
        }
        Ok(Parts(parts))
    }

    fn ints(&self, name: &str) -> Result<Present<i64>, SegmentError> {
        let parts = self.parts(name, Kind::Int)?;
        let mut present = Present::with_capacity(parts.values_max());
        for (column, places) in parts.0 {
            column.ints(|row, value| present.push(places.of(row), value));
        }
        Ok(present)
    }

    fn floats(&self, name: &str) -> Result<Present<f64>, SegmentError> {
        let parts = self.parts(name, Kind::Float)?;
        let mut present = Present::with_capacity(parts.values_max());
        for (column, places) in parts.0 {
            column.floats(|row, value| present.push(places.of(row), value));
        }
        Ok(present)
    }

    /// Codes, and the strings they stand for.
    fn strings(&self, name: &str) -> Result<(Present<u32>, Entries), SegmentError> {
        let parts = self.parts(name, Kind::String)?;
        let mut joined = Joined::with_capacity(parts.values_max());
        parts.0.into_iter().for_each(|(column, places)| joined.push(column, places));
        joined.finish()
    }

    fn list_ids(
        &self,
        name: &str,
        kind: Kind,
        lists: &mut ListUnion<'a>,
    ) -> Result<Present<u32>, SegmentError> {
        let parts = self.parts(name, kind)?;
        let mut present = Present::with_capacity(parts.values_max());
        for (column, places) in parts.0 {
            lists.of_column(column, |row, id| present.push(places.of(row), id));
        }
        Ok(present)
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
    let (items, rows) = (dictionary(&codes, items)?, ends.len());
    let column = Encoded::new("items", MetaKind::Vector, list_array(ends, items)?, None);
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

pub(super) fn float_range(values: impl Iterator<Item = f64>) -> Option<(String, String)> {
    let (mut least, mut most, mut any) = (f64::INFINITY, f64::NEG_INFINITY, false);
    for value in values {
        (least, most, any) = (least.min(value), most.max(value), true);
    }
    any.then(|| (format!("{least:?}"), format!("{most:?}")))
}
