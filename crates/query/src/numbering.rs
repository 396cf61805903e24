//! The values of a dimension, numbered over all segments: so that groups of different segments
//! are put together by numbers, and strings are looked at only for the groups that are shown.
//! Null is always number 0.

use std::ops::Range;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use perflab_model::Kind;
use perflab_store::segment::{NULL_ID, Segment, Snapshot, Vocabulary};
use rayon::prelude::*;

use crate::algebra::Dimension;
use crate::group::{Buckets, CellKey, LocalCodes, LocalDimension};
use crate::kernels::BLOCK_ROWS;
use crate::limits::Budget;
use crate::prepare::Part;
use crate::{QueryError, Value};

/// The values of a dimension, by number.
#[derive(Debug)]
pub(crate) enum Values<'q> {
    /// As the dataset numbers them; so many of them.
    Strings(Arc<Vocabulary>, usize),
    /// As this question numbers them.
    Interned(Vec<Value>),
    /// A bucket's number is its place after the first.
    Times(&'q [i64]),
}

impl Values<'_> {
    pub(crate) fn count(&self) -> usize {
        match self {
            Self::Strings(_, count) => *count,
            Self::Interned(values) => values.len(),
            Self::Times(starts) => starts.len() + 1,
        }
    }

    pub(crate) fn get(&self, id: u32) -> Value {
        match self {
            Self::Strings(vocabulary, _) => {
                let string = vocabulary.strings().get(id).map(str::to_owned);
                string.map_or(Value::Null, Value::String)
            }
            Self::Interned(values) => values[id as usize].clone(),
            Self::Times(starts) => {
                let start = (id as usize).checked_sub(1).map(|at| starts[at]);
                start.map_or(Value::Null, Value::Time)
            }
        }
    }
}

/// A dimension of all segments.
#[derive(Debug)]
pub(crate) struct Numbered<'s> {
    pub(crate) values: Values<'s>,
    /// One per segment.
    pub(crate) locals: Vec<LocalDimension<'s>>,
}

impl<'s> Numbered<'s> {
    pub(crate) fn new(
        dimension: &'s Dimension,
        parts: &[Part<'s>],
        snapshot: &Snapshot,
        budget: &Budget<'_>,
    ) -> Result<Self, QueryError> {
        match dimension {
            Dimension::Time(starts) => Self::times(starts, parts),
            Dimension::Column(name) => Self::column(name, parts, snapshot, budget),
        }
    }

    fn times(starts: &'s [i64], parts: &[Part<'s>]) -> Result<Self, QueryError> {
        let mut locals = Vec::new();
        for part in parts {
            let buckets = Buckets::new(part.segment.times()?, part.rows.clone(), starts);
            let numbers = buckets.first..=buckets.last;
            let ids = numbers.map(|number| u32::try_from(number).unwrap_or(u32::MAX)).collect();
            locals.push(LocalDimension { codes: LocalCodes::Time(buckets), ids });
        }
        Ok(Self { values: Values::Times(starts), locals })
    }

    pub(crate) fn column(
        name: &str,
        parts: &[Part<'s>],
        snapshot: &Snapshot,
        budget: &Budget<'_>,
    ) -> Result<Self, QueryError> {
        let mut columns = parts.iter().flat_map(|part| part.segment.columns_named(name));
        if columns.all(|column| column.kind() == Kind::String) {
            let vocabulary = snapshot.vocabularies.of(name);
            if let Some(locals) = Self::strings(name, parts, &vocabulary)? {
                let count = vocabulary.strings().count();
                return Ok(Self { values: Values::Strings(vocabulary, count), locals });
            }
        }
        Self::interned(name, parts, widens(name, &snapshot.segments), budget)
    }

    /// `None` when the vocabulary has given up.
    fn strings(
        name: &str,
        parts: &[Part<'s>],
        vocabulary: &Arc<Vocabulary>,
    ) -> Result<Option<Vec<LocalDimension<'s>>>, QueryError> {
        let local = |part: &Part<'s>| {
            let Some(column) = part.segment.column(name, Kind::String) else {
                let ids = [NULL_ID].into();
                return Ok(Some(LocalDimension { codes: LocalCodes::Missing, ids }));
            };
            let codes = LocalCodes::of_column(column, part.segment)?;
            Ok(column.ids(vocabulary)?.map(|ids| LocalDimension { codes, ids }))
        };
        parts.par_iter().map(local).collect()
    }

    fn interned(
        name: &str,
        parts: &[Part<'s>],
        widens: bool,
        budget: &Budget<'_>,
    ) -> Result<Self, QueryError> {
        let codes: Vec<LocalCodes<'s>> = parts
            .par_iter()
            .map(|part| {
                budget.check()?;
                let codes = LocalCodes::of_name(name, part.segment)?;
                budget.take(codes.bytes())?;
                Ok::<_, QueryError>(codes)
            })
            .collect::<Result<_, _>>()?;
        let (mut interner, mut locals) = (Interner::default(), Vec::new());
        for (codes, part) in codes.into_iter().zip(parts) {
            let before = interner.bytes;
            let number = |(code, is_used): (usize, u8)| {
                let value = if is_used == 1 { codes.value(code) } else { return NULL_ID };
                interner.number(if widens { widened(value) } else { value })
            };
            let ids = used(&codes, part.rows.clone()).into_iter().enumerate().map(number).collect();
            budget.take(interner.bytes - before)?;
            locals.push(LocalDimension { codes, ids });
        }
        Ok(Self { values: Values::Interned(interner.values), locals })
    }
}

/// 1 for the codes that rows have: the lists of a segment are also those of other columns.
fn used(codes: &LocalCodes<'_>, rows: Range<usize>) -> Vec<u8> {
    let mut used = vec![0; codes.count()];
    let mut block = [0; BLOCK_ROWS];
    for start in rows.clone().step_by(BLOCK_ROWS) {
        let rows = start..rows.end.min(start + BLOCK_ROWS);
        let block = &mut block[..rows.len()];
        codes.for_each(rows, block, |into, code| *into = code);
        block.iter().for_each(|&code| used[code as usize] = 1);
    }
    used
}

/// Whether a name holds both integers and floats, in whichever of the segments.
fn widens(name: &str, segments: &[Arc<Segment>]) -> bool {
    let has = |kind| segments.iter().any(|segment| segment.column(name, kind).is_some());
    has(Kind::Int) && has(Kind::Float)
}

/// Where a name holds both, all are floats.
fn widened(value: Value) -> Value {
    if let Value::Int(value) = value {
        #[expect(clippy::cast_precision_loss, reason = "widened, as rows of both kinds are")]
        return Value::Float(value as f64);
    }
    value
}

/// Values numbered as they come, after null.
#[derive(Debug)]
struct Interner {
    known: HashMap<CellKey, u32, RandomState>,
    values: Vec<Value>,
    /// About what they take.
    bytes: usize,
}

impl Default for Interner {
    fn default() -> Self {
        let known = [(CellKey::Null, NULL_ID)].into_iter().collect();
        Self { known, values: vec![Value::Null], bytes: 0 }
    }
}

impl Interner {
    fn number(&mut self, value: Value) -> u32 {
        let Self { known, values, bytes } = self;
        *known.entry(CellKey::of(&value)).or_insert_with(|| {
            *bytes += 2 * (size_of::<(CellKey, u32)>() + text_bytes(&value));
            values.push(value);
            u32::try_from(values.len() - 1).unwrap_or(u32::MAX)
        })
    }
}

/// What the text of a value takes.
pub(crate) fn text_bytes(value: &Value) -> usize {
    match value {
        Value::String(string) => string.len(),
        Value::List(items) => items.iter().map(|item| size_of::<String>() + item.len()).sum(),
        Value::Null | Value::Int(_) | Value::Float(_) | Value::Time(_) => 0,
    }
}
