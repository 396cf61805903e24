//! What rows of a segment are grouped by: codes per dimension, and what they stand for.

use std::ops::{AddAssign, Mul, Range};
use std::sync::Arc;

use arrow::buffer::BooleanBuffer;
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use perflab_model::Kind;
use perflab_store::segment::{Codes, ColumnData, Ints, ListTable, Segment, SegmentColumn, Strings};

use crate::algebra::Dimension;
use crate::{QueryError, Value};

/// What the codes of several dimensions are put together in: the narrower, the faster.
pub(crate) trait Number: Copy + AddAssign + Mul<Output = Self> + From<u32> {}

impl Number for u32 {}
impl Number for u64 {}

/// The values of a dimension in all segments so far, numbered as they come.
#[derive(Debug, Default)]
pub(crate) struct Interner {
    strings: HashMap<String, u32, RandomState>,
    others: HashMap<CellKey, u32, RandomState>,
    values: Vec<Value>,
}

impl Interner {
    fn string(&mut self, string: &str) -> u32 {
        let values = &mut self.values;
        *self.strings.entry_ref(string).or_insert_with(|| {
            values.push(Value::String(string.to_owned()));
            u32::try_from(values.len() - 1).unwrap_or(u32::MAX)
        })
    }

    pub(crate) fn value(&mut self, value: Value) -> u32 {
        if let Value::String(string) = &value {
            return self.string(string);
        }
        let values = &mut self.values;
        *self.others.entry(CellKey::of(&value)).or_insert_with(|| {
            values.push(value);
            u32::try_from(values.len() - 1).unwrap_or(u32::MAX)
        })
    }

    pub(crate) fn get(&self, number: u32) -> &Value {
        &self.values[number as usize]
    }

    pub(crate) fn into_values(self) -> Vec<Value> {
        self.values
    }
}

/// Integers that lie this close together are their own codes.
const DIRECT_INTS_MAX: u64 = 1 << 16;

/// A dimension of a segment.
#[derive(Debug)]
pub(crate) struct LocalDimension<'s> {
    codes: LocalCodes<'s>,
    /// Integers are shown as floats: somewhere in the dataset the name is both.
    widens: bool,
}

#[derive(Debug)]
enum LocalCodes<'s> {
    /// The segment has no such column: everything is null.
    Missing,
    Strings {
        codes: &'s Codes,
        strings: &'s Strings,
    },
    Lists {
        ids: &'s Codes,
        lists: &'s ListTable,
    },
    Ints {
        values: &'s Ints,
        valid: Option<&'s BooleanBuffer>,
        least: i64,
        count: u32,
    },
    /// Codes made for the question; null is the last value.
    Made {
        codes: Vec<u32>,
        values: Vec<Value>,
    },
    Time {
        times: &'s [i64],
        starts: &'s [i64],
    },
}

impl<'s> LocalDimension<'s> {
    pub(crate) fn new(
        dimension: &'s Dimension,
        segment: &'s Segment,
        widens: bool,
    ) -> Result<Self, QueryError> {
        let codes = match dimension {
            Dimension::Time(starts) => LocalCodes::Time { times: segment.times()?, starts },
            Dimension::Column(name) => LocalCodes::of_name(name, segment)?,
        };
        Ok(Self { codes, widens })
    }

    /// How many codes there are, that of null included.
    pub(crate) fn count(&self) -> usize {
        self.codes.count()
    }

    /// Adds `stride` times the code of each row of a block to its place.
    pub(crate) fn add_codes<N: Number>(&self, rows: Range<usize>, stride: N, into: &mut [N]) {
        self.codes.add(rows, stride, into);
    }

    /// The number of a code's value among those of all segments.
    pub(crate) fn intern(&self, code: usize, values: &mut Interner) -> u32 {
        if let LocalCodes::Strings { strings, .. } = &self.codes
            && code < strings.len()
        {
            return values.string(strings.get(u32::try_from(code).unwrap_or(u32::MAX)));
        }
        values.value(self.value(code))
    }

    pub(crate) fn value(&self, code: usize) -> Value {
        let value = self.codes.value(code);
        if let Value::Int(value) = value
            && self.widens
        {
            #[expect(clippy::cast_precision_loss, reason = "widened, as rows of both kinds are")]
            return Value::Float(value as f64);
        }
        value
    }
}

/// Whether a name holds both integers and floats, in whichever of the segments.
pub(crate) fn widens(dimension: &Dimension, segments: &[Arc<Segment>]) -> bool {
    let Dimension::Column(name) = dimension else { return false };
    let has = |kind| segments.iter().any(|segment| segment.column(name, kind).is_some());
    has(Kind::Int) && has(Kind::Float)
}

impl<'s> LocalCodes<'s> {
    fn of_name(name: &str, segment: &'s Segment) -> Result<Self, QueryError> {
        let columns: Vec<_> = segment.columns_named(name).collect();
        match columns[..] {
            [] => Ok(Self::Missing),
            [column] => Self::of_column(column, segment),
            _ => Self::made(&columns, segment),
        }
    }

    fn of_column(column: &'s SegmentColumn, segment: &'s Segment) -> Result<Self, QueryError> {
        match (column.data()?, segment.lists()) {
            (ColumnData::String { codes, strings }, _) => Ok(Self::Strings { codes, strings }),
            (ColumnData::List { ids }, Some(lists)) => {
                lists.check()?;
                Ok(Self::Lists { ids, lists })
            }
            (ColumnData::Int { values, validity }, _) => {
                if let Some((least, most)) = column.int_range()
                    && most.abs_diff(least) < DIRECT_INTS_MAX
                    && let Ok(count) = u32::try_from(most.abs_diff(least) + 1)
                {
                    return Ok(Self::Ints { values, valid: validity.as_ref(), least, count });
                }
                Self::made(&[column], segment)
            }
            _ => Self::made(&[column], segment),
        }
    }

    /// Looks at every row: for numbers that lie far apart, and names of several kinds.
    fn made(columns: &[&'s SegmentColumn], segment: &'s Segment) -> Result<Self, QueryError> {
        let cells = Cells::new(columns, segment)?;
        let mut known: HashMap<CellKey, u32, RandomState> = HashMap::default();
        let mut values = Vec::new();
        let codes = (0..segment.rows())
            .map(|row| {
                let value = cells.value(row);
                *known.entry(CellKey::of(&value)).or_insert_with(|| {
                    values.push(value);
                    u32::try_from(values.len() - 1).unwrap_or(u32::MAX)
                })
            })
            .collect();
        Ok(Self::Made { codes, values })
    }

    fn count(&self) -> usize {
        match self {
            Self::Missing => 1,
            Self::Strings { strings, .. } => strings.len() + 1,
            Self::Lists { lists, .. } => lists.len() + 1,
            Self::Ints { count, .. } => *count as usize + 1,
            Self::Made { values, .. } => values.len(),
            Self::Time { starts, .. } => starts.len() + 1,
        }
    }

    fn add<N: Number>(&self, rows: Range<usize>, stride: N, into: &mut [N]) {
        match self {
            Self::Missing => {}
            Self::Strings { codes, .. } | Self::Lists { ids: codes, .. } => match codes {
                Codes::U8(codes) => add(&codes[rows], stride, into),
                Codes::U16(codes) => add(&codes[rows], stride, into),
                Codes::U32(codes) => add(&codes[rows], stride, into),
            },
            Self::Ints { values, valid, least, count } => {
                for (row, into) in rows.zip(into) {
                    let is_valid = valid.is_none_or(|valid| valid.value(row));
                    let above = values.get(row).abs_diff(*least);
                    let code =
                        if is_valid { u32::try_from(above).unwrap_or(*count) } else { *count };
                    *into += N::from(code) * stride;
                }
            }
            Self::Made { codes, .. } => add(&codes[rows], stride, into),
            Self::Time { times, starts } => {
                add_buckets(&times[rows], starts, stride, into);
            }
        }
    }

    fn value(&self, code: usize) -> Value {
        let narrow = u32::try_from(code).unwrap_or(u32::MAX);
        match self {
            Self::Missing => Value::Null,
            Self::Strings { strings, .. } if code < strings.len() => {
                Value::String(strings.get(narrow).to_owned())
            }
            Self::Lists { lists, .. } if code < lists.len() => {
                Value::List(lists.strings(narrow).map(str::to_owned).collect())
            }
            Self::Ints { least, count, .. } if narrow < *count => {
                Value::Int(least.wrapping_add_unsigned(narrow.into()))
            }
            Self::Made { values, .. } => values[code].clone(),
            Self::Time { starts, .. } if code < starts.len() => Value::Time(starts[code]),
            Self::Strings { .. } | Self::Lists { .. } | Self::Ints { .. } | Self::Time { .. } => {
                Value::Null
            }
        }
    }
}

fn add<C: Copy + Into<u32>, N: Number>(codes: &[C], stride: N, into: &mut [N]) {
    for (into, &code) in into.iter_mut().zip(codes) {
        *into += N::from(code.into()) * stride;
    }
}

/// Times ascend, so that a bucket is a run of rows. Before the first bucket is no bucket.
fn add_buckets<N: Number>(times: &[i64], starts: &[i64], stride: N, into: &mut [N]) {
    let mut row = 0;
    while row < times.len() {
        let next = starts.partition_point(|&start| start <= times[row]);
        let end = match starts.get(next) {
            Some(&start) => row + times[row..].partition_point(|&time| time < start),
            None => times.len(),
        };
        let code = u32::try_from(next.checked_sub(1).unwrap_or(starts.len())).unwrap_or(u32::MAX);
        into[row..end].iter_mut().for_each(|into| *into += N::from(code) * stride);
        row = end;
    }
}

/// The values of a name, whatever its kinds.
#[derive(Debug)]
pub(crate) struct Cells<'s> {
    /// In the order of kinds; a row has the value of the first that is not null.
    columns: Vec<(Kind, &'s ColumnData)>,
    lists: Option<&'s ListTable>,
}

impl<'s> Cells<'s> {
    pub(crate) fn new(
        columns: &[&'s SegmentColumn],
        segment: &'s Segment,
    ) -> Result<Self, QueryError> {
        let mut data = Vec::new();
        for column in columns {
            data.push((column.kind(), column.data()?));
        }
        data.sort_by_key(|(kind, _)| *kind);
        if let Some(lists) = segment.lists() {
            lists.check()?;
        }
        Ok(Self { columns: data, lists: segment.lists() })
    }

    pub(crate) fn value(&self, row: usize) -> Value {
        let mut values = self.columns.iter().map(|(_, data)| self.one(data, row));
        values.find(|value| *value != Value::Null).unwrap_or(Value::Null)
    }

    fn one(&self, data: &ColumnData, row: usize) -> Value {
        match data {
            ColumnData::Int { values, validity } => {
                let is_valid = validity.as_ref().is_none_or(|valid| valid.value(row));
                if is_valid { Value::Int(values.get(row)) } else { Value::Null }
            }
            ColumnData::Float { values } if values[row].is_nan() => Value::Null,
            ColumnData::Float { values } => Value::Float(values[row]),
            ColumnData::String { codes, strings } => {
                let code = codes.get(row);
                let is_null = code as usize >= strings.len();
                if is_null { Value::Null } else { Value::String(strings.get(code).to_owned()) }
            }
            ColumnData::List { ids } => match self.lists {
                Some(lists) if (ids.get(row) as usize) < lists.len() => {
                    Value::List(lists.strings(ids.get(row)).map(str::to_owned).collect())
                }
                _ => Value::Null,
            },
        }
    }
}

/// A value that can be compared for being the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum CellKey {
    Null,
    Int(i64),
    Float(u64),
    String(String),
    List(Vec<String>),
}

impl CellKey {
    pub(crate) fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Int(value) | Value::Time(value) => Self::Int(*value),
            // Zero is zero, whatever its sign.
            Value::Float(value) => Self::Float((value + 0.0).to_bits()),
            Value::String(value) => Self::String(value.clone()),
            Value::List(items) => Self::List(items.clone()),
        }
    }
}
