//! Rows, and segments of them.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::sync::Arc;

use perflab_model::{Batch, ListKind, Nanos, Schema, SchemaState};
use perflab_store::segment::{Segment, Source, Sparsity, build_with};
use proptest::prelude::{Just, Strategy, any, prop, prop_oneof};

use crate::Value;

/// A value of a row.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    Int(i64),
    Float(f64),
    String(String),
    Set(Vec<String>),
    Vector(Vec<String>),
}

impl Cell {
    /// The place of its kind among the kinds.
    pub fn rank(&self) -> u8 {
        match self {
            Self::Int(_) => 0,
            Self::Float(_) => 1,
            Self::String(_) => 2,
            Self::Set(_) => 3,
            Self::Vector(_) => 4,
        }
    }

    pub fn value(&self) -> Value {
        match self {
            Self::Int(value) => Value::Int(*value),
            Self::Float(value) => Value::Float(*value),
            Self::String(value) => Value::String(value.clone()),
            Self::Set(items) | Self::Vector(items) => Value::List(items.clone()),
        }
    }

    pub fn number(&self) -> Option<f64> {
        match self {
            #[expect(clippy::cast_precision_loss, reason = "aggregates are floats")]
            Self::Int(value) => Some(*value as f64),
            Self::Float(value) => Some(*value),
            Self::String(_) | Self::Set(_) | Self::Vector(_) => None,
        }
    }
}

/// A row, as it is sent.
#[derive(Debug, Clone)]
pub struct Row {
    pub time: i64,
    pub weight: f64,
    /// Sorted by name, then by kind; no name and kind twice.
    pub cells: Vec<(String, Cell)>,
}

impl Row {
    pub fn cells_named(&self, name: &str) -> impl Iterator<Item = &Cell> {
        self.cells.iter().filter(move |(other, _)| other == name).map(|(_, cell)| cell)
    }
}

/// # Panics
/// When the rows are none that can be sent.
pub fn segment_of(rows: &[Row]) -> Segment {
    segment_with(rows, Sparsity::DEFAULT)
}

/// As [`segment_of`], with other columns sparse.
///
/// # Panics
/// When the rows are none that can be sent.
pub fn segment_with(rows: &[Row], sparsity: Sparsity) -> Segment {
    let mut batch = Batch::new(Arc::new(SchemaState::new(Schema::default())));
    for row in rows {
        let mut builder = batch.begin_row();
        for (name, cell) in &row.cells {
            match cell {
                Cell::Int(value) => builder.int(name, *value),
                Cell::Float(value) => builder.float(name, *value),
                Cell::String(value) => builder.string(name, value),
                Cell::Set(items) => {
                    builder.strings(name, ListKind::Set, items.iter().map(String::as_str))
                }
                Cell::Vector(items) => {
                    builder.strings(name, ListKind::Vector, items.iter().map(String::as_str))
                }
            }
            .unwrap();
        }
        builder.commit(Nanos(row.time), row.weight).unwrap();
    }
    let built = build_with(&[Source::Batch(&batch)], sparsity).unwrap();
    Segment::open(&built).unwrap()
}

/// Short strings, so that some are the same.
pub(super) fn item() -> impl Strategy<Value = String> {
    prop_oneof![4 => "[ab]{0,2}", 1 => "[é0-9]{1,2}"]
}

fn int() -> impl Strategy<Value = i64> {
    prop_oneof![4 => -3_i64..4, 1 => -200_000_i64..200_000, 1 => any::<i64>()]
}

fn float() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), Just(2.0), -10.0..10.0, 1e6..1e6 + 1.0]
}

/// `i`, `f`, `s`, `t` (a set) and `v` (a vector) have one kind, `m` any.
fn named_cell() -> impl Strategy<Value = (String, Cell)> {
    let set = || {
        prop::collection::btree_set(item(), 0..3)
            .prop_map(|items| Cell::Set(items.into_iter().collect()))
    };
    let vector = || prop::collection::vec(item(), 0..4).prop_map(Cell::Vector);
    let mixed = prop_oneof![
        int().prop_map(Cell::Int),
        float().prop_map(Cell::Float),
        item().prop_map(Cell::String),
        set(),
        vector(),
    ];
    prop_oneof![
        int().prop_map(|value| ("i".to_owned(), Cell::Int(value))),
        float().prop_map(|value| ("f".to_owned(), Cell::Float(value))),
        item().prop_map(|value| ("s".to_owned(), Cell::String(value))),
        set().prop_map(|cell| ("t".to_owned(), cell)),
        vector().prop_map(|cell| ("v".to_owned(), cell)),
        mixed.prop_map(|cell| ("m".to_owned(), cell)),
        (1_i64..5).prop_map(|hits| ("hits".to_owned(), Cell::Int(hits))),
    ]
}

/// A row with a time from 0 to 99.
pub fn row() -> impl Strategy<Value = Row> {
    let weight = prop_oneof![
        6 => Just(1.0),
        3 => (0_u32..300).prop_map(f64::from),
        1 => (60_000_u32..70_000).prop_map(f64::from),
        1 => 0.5..2.0,
    ];
    let cells = prop::collection::vec(named_cell(), 0..8);
    (0_i64..100, weight, cells).prop_map(|(time, weight, mut cells)| {
        cells.sort_by(|(a, x), (b, y)| (a, x.rank()).cmp(&(b, y.rank())));
        cells.dedup_by_key(|(name, cell)| (name.clone(), cell.rank()));
        Row { time, weight, cells }
    })
}

/// The largest numbers that sums are made of: what rounding is relative to.
pub fn scale(rows: &[Row]) -> f64 {
    let numbers =
        rows.iter().flat_map(|row| row.cells.iter().filter_map(|(_, cell)| cell.number()));
    let most = numbers.fold(1.0, |most: f64, number| most.max(number.abs()));
    most * rows.iter().map(|row| row.weight).sum::<f64>().max(1.0)
}
