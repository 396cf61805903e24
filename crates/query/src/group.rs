//! What rows of a segment are grouped by: codes per dimension, and what they stand for.

use std::ops::Range;
use std::sync::Arc;

use arrow::buffer::BooleanBuffer;
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use perflab_model::Kind;
use perflab_store::segment::{
    Codes, ColumnData, Ints, ListTable, Segment, SegmentColumn, Stored, Strings,
};

use crate::kernels::CodeSlice;
use crate::{QueryError, Value};

/// Integers that lie this close together are their own codes.
const DIRECT_INTS_MAX: u64 = 1 << 16;

/// A dimension of a segment.
#[derive(Debug)]
pub(crate) struct LocalDimension<'s> {
    pub(crate) codes: LocalCodes<'s>,
    /// The number of each code's value among those of all segments.
    pub(crate) ids: Arc<[u32]>,
}

impl LocalDimension<'_> {
    /// Adds `stride` times the number of each row's value to its place.
    pub(crate) fn add_ids(&self, rows: Range<usize>, stride: u64, into: &mut [u64]) {
        let add = |into: &mut u64, code: u32| *into += u64::from(self.ids[code as usize]) * stride;
        self.codes.for_each(rows, into, add);
    }
}

/// The codes of a segment's rows in one dimension.
#[derive(Debug)]
pub(crate) enum LocalCodes<'s> {
    /// The segment has no such column: everything is null.
    Missing,
    Strings {
        codes: Codes,
        strings: Strings,
        has_nulls: bool,
    },
    Lists {
        ids: Codes,
        lists: &'s ListTable,
    },
    Ints {
        values: Ints,
        valid: Option<BooleanBuffer>,
        least: i64,
        count: u32,
    },
    /// Codes made for the question; null is the last value.
    Made {
        codes: Vec<u32>,
        values: Vec<Value>,
    },
    Time(Buckets<'s>),
}

/// The buckets that the rows of a segment are in. As a number over all segments, a bucket is how
/// many buckets start up to its start, so that 0 is what lies before all of them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Buckets<'s> {
    times: &'s [i64],
    starts: &'s [i64],
    /// The numbers of the first and the last.
    pub(crate) first: usize,
    pub(crate) last: usize,
}

impl<'s> Buckets<'s> {
    /// Times ascend.
    pub(crate) fn new(times: &'s [i64], rows: Range<usize>, starts: &'s [i64]) -> Self {
        let number = |row: usize| starts.partition_point(|&start| start <= times[row]);
        let (first, last) =
            if rows.is_empty() { (0, 0) } else { (number(rows.start), number(rows.end - 1)) };
        Self { times, starts, first, last }
    }

    pub(crate) fn count(&self) -> usize {
        self.last - self.first + 1
    }

    /// The code of a row, and where the run of rows in its bucket ends.
    pub(crate) fn run(&self, rows: Range<usize>) -> (usize, usize) {
        let times = &self.times[rows.clone()];
        let number = self.starts.partition_point(|&start| start <= times[0]);
        let end = match self.starts.get(number) {
            Some(&start) => rows.start + times.partition_point(|&time| time < start),
            None => rows.end,
        };
        (number - self.first, end)
    }
}

impl<'s> LocalCodes<'s> {
    pub(crate) fn of_name(name: &str, segment: &'s Segment) -> Result<Self, QueryError> {
        let columns: Vec<_> = segment.columns_named(name).collect();
        match columns[..] {
            [] => Ok(Self::Missing),
            [column] => Self::of_column(column, segment),
            _ => Self::made(&columns, segment),
        }
    }

    pub(crate) fn of_column(
        column: &'s SegmentColumn,
        segment: &'s Segment,
    ) -> Result<Self, QueryError> {
        match (column.data()?, segment.lists()) {
            (ColumnData::String { codes, strings }, _) => {
                Ok(Self::Strings { codes, strings, has_nulls: column.nulls() > 0 })
            }
            (ColumnData::List { ids }, Some(lists)) => {
                lists.check()?;
                Ok(Self::Lists { ids, lists })
            }
            (ColumnData::Int { values, validity }, _) => {
                if let Some((least, most)) = column.int_range()
                    && most.abs_diff(least) < DIRECT_INTS_MAX
                    && let Ok(count) = u32::try_from(most.abs_diff(least) + 1)
                {
                    return Ok(Self::Ints { values, valid: validity, least, count });
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

    /// How many codes there are, that of null included.
    pub(crate) fn count(&self) -> usize {
        match self {
            Self::Missing => 1,
            Self::Strings { strings, .. } => strings.len() + 1,
            Self::Lists { lists, .. } => lists.len() + 1,
            Self::Ints { count, .. } => *count as usize + 1,
            Self::Made { values, .. } => values.len(),
            Self::Time(buckets) => buckets.count(),
        }
    }

    /// How many codes there are that surely have a row of the segment, if that is known.
    pub(crate) fn used(&self) -> Option<usize> {
        match self {
            Self::Strings { strings, has_nulls, .. } => {
                Some(strings.len() + usize::from(*has_nulls))
            }
            Self::Missing => Some(1),
            Self::Lists { .. } | Self::Ints { .. } | Self::Made { .. } | Self::Time(_) => None,
        }
    }

    /// What was made for the question.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Made { codes, values } => {
                size_of_val(codes.as_slice()) + size_of_val(values.as_slice())
            }
            Self::Missing
            | Self::Strings { .. }
            | Self::Lists { .. }
            | Self::Ints { .. }
            | Self::Time(_) => 0,
        }
    }

    /// The codes as they lie in the segment, if they do.
    pub(crate) fn slice(&self, rows: Range<usize>) -> Option<CodeSlice<'_>> {
        match self {
            Self::Strings { codes, .. } | Self::Lists { ids: codes, .. } => Some(match codes {
                Codes::U8(codes) => CodeSlice::U8(&codes[rows]),
                Codes::U16(codes) => CodeSlice::U16(&codes[rows]),
                Codes::U32(codes) => CodeSlice::U32(&codes[rows]),
            }),
            Self::Made { codes, .. } => Some(CodeSlice::U32(&codes[rows])),
            Self::Missing | Self::Ints { .. } | Self::Time(_) => None,
        }
    }

    /// The code of one row.
    pub(crate) fn get(&self, row: usize) -> u32 {
        let mut code = [0];
        self.for_each(row..row + 1, &mut code, |into, code| *into = code);
        code[0]
    }

    /// Gives the code of each row to a function, with what is at its place.
    pub(crate) fn for_each<T>(
        &self,
        rows: Range<usize>,
        into: &mut [T],
        f: impl Fn(&mut T, u32) + Copy,
    ) {
        if let Some(codes) = self.slice(rows.clone()) {
            return codes.for_each(into.iter_mut(), |code, into| f(into, code));
        }
        match self {
            Self::Ints { values, valid, least, count } => {
                for (row, into) in rows.zip(into) {
                    let is_valid = valid.as_ref().is_none_or(|valid| valid.value(row));
                    let above = values.get(row).abs_diff(*least);
                    let code = u32::try_from(above).ok().filter(|_| is_valid).unwrap_or(*count);
                    f(into, code);
                }
            }
            Self::Time(buckets) => {
                let (mut row, first) = (rows.start, rows.start);
                while row < rows.end {
                    let (code, end) = buckets.run(row..rows.end);
                    let code = u32::try_from(code).unwrap_or(u32::MAX);
                    into[row - first..end - first].iter_mut().for_each(|into| f(into, code));
                    row = end;
                }
            }
            Self::Missing => into.iter_mut().for_each(|into| f(into, 0)),
            Self::Strings { .. } | Self::Lists { .. } | Self::Made { .. } => {}
        }
    }

    /// What a code stands for; of a bucket, its start.
    pub(crate) fn value(&self, code: usize) -> Value {
        let narrow = u32::try_from(code).unwrap_or(u32::MAX);
        match self {
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
            Self::Time(buckets) => {
                let start = (buckets.first + code).checked_sub(1).map(|at| buckets.starts[at]);
                start.map_or(Value::Null, Value::Time)
            }
            Self::Missing | Self::Strings { .. } | Self::Lists { .. } | Self::Ints { .. } => {
                Value::Null
            }
        }
    }
}

/// The values of a name, whatever its kinds. Looked up where they lie: whoever shows a few rows may
/// want thousands of sparse columns of them.
#[derive(Debug)]
pub(crate) struct Cells<'s> {
    /// In the order of kinds; a row has the value of the first that is not null.
    columns: Vec<(Kind, &'s Stored)>,
    lists: Option<&'s ListTable>,
}

impl<'s> Cells<'s> {
    pub(crate) fn new(
        columns: &[&'s SegmentColumn],
        segment: &'s Segment,
    ) -> Result<Self, QueryError> {
        let mut stored = Vec::new();
        for column in columns {
            stored.push((column.kind(), column.stored()?));
        }
        stored.sort_by_key(|(kind, _)| *kind);
        if let Some(lists) = segment.lists() {
            lists.check()?;
        }
        Ok(Self { columns: stored, lists: segment.lists() })
    }

    pub(crate) fn value(&self, row: usize) -> Value {
        let places = self.columns.iter();
        let places = places.filter_map(|(_, stored)| Some((stored.values(), stored.place(row)?)));
        let mut values = places.map(|(values, place)| self.one(values, place));
        values.find(|value| *value != Value::Null).unwrap_or(Value::Null)
    }

    fn one(&self, data: &ColumnData, place: usize) -> Value {
        match data {
            ColumnData::Int { values, validity } => {
                let is_valid = validity.as_ref().is_none_or(|valid| valid.value(place));
                if is_valid { Value::Int(values.get(place)) } else { Value::Null }
            }
            ColumnData::Float { values } if values[place].is_nan() => Value::Null,
            ColumnData::Float { values } => Value::Float(values[place]),
            ColumnData::String { codes, strings } => {
                let code = codes.get(place);
                let is_null = code as usize >= strings.len();
                if is_null { Value::Null } else { Value::String(strings.get(code).to_owned()) }
            }
            ColumnData::List { ids } => match self.lists {
                Some(lists) if (ids.get(place) as usize) < lists.len() => {
                    Value::List(lists.strings(ids.get(place)).map(str::to_owned).collect())
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
