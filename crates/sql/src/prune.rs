//! Which rows a query can leave unread.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Float64Array, Int64Array, UInt64Array};
use datafusion::common::pruning::PruningStatistics;
use datafusion::common::{Column, ScalarValue};
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use perflab_model::Kind;
use perflab_store::segment::Segment;

use crate::columns::{Content, TIME, TableColumn};

/// The first and the last time that meet a condition, when it is one on the time alone that a
/// range of times says all about.
pub(crate) fn time_range(condition: &Expr) -> Option<(i64, i64)> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = condition else { return None };
    let is_time = |side: &Expr| matches!(side, Expr::Column(column) if column.name == TIME);
    let nanoseconds = |side: &Expr| {
        let Expr::Literal(ScalarValue::TimestampNanosecond(time, _), _) = side else { return None };
        *time
    };
    let (operator, time) = if is_time(left) {
        (*op, nanoseconds(right)?)
    } else if is_time(right) {
        (op.swap()?, nanoseconds(left)?)
    } else {
        return None;
    };
    #[expect(clippy::wildcard_enum_match_arm, reason = "all others are no ranges")]
    match operator {
        Operator::Eq => Some((time, time)),
        Operator::Lt => Some((i64::MIN, time.checked_sub(1)?)),
        Operator::LtEq => Some((i64::MIN, time)),
        Operator::Gt => Some((time.checked_add(1)?, i64::MAX)),
        Operator::GtEq => Some((time, i64::MAX)),
        _ => None,
    }
}

/// What segments say about their columns.
pub(crate) struct Statistics<'t> {
    pub(crate) segments: &'t [Arc<Segment>],
    pub(crate) columns: &'t [TableColumn],
}

impl Statistics<'_> {
    fn content(&self, column: &Column) -> Option<&Content> {
        let column = self.columns.iter().find(|other| *other.field.name() == column.name)?;
        Some(&column.content)
    }

    /// One end of the numbers of each segment.
    fn ends(&self, column: &Column, end: End) -> Option<ArrayRef> {
        let segments = self.segments.iter();
        match self.content(column)? {
            Content::Kind(name, Kind::Int) => {
                let range = |segment: &Arc<Segment>| segment.column(name, Kind::Int)?.int_range();
                let ends = segments.map(|segment| range(segment).map(|range| end.of(range)));
                Some(Arc::new(ends.collect::<Int64Array>()))
            }
            Content::Kind(name, Kind::Float) => {
                let ends = segments.map(|segment| number_end(segment, name, &[Kind::Float], end));
                Some(Arc::new(ends.collect::<Float64Array>()))
            }
            Content::Number(name) => {
                let kinds = [Kind::Int, Kind::Float];
                let ends = segments.map(|segment| number_end(segment, name, &kinds, end));
                Some(Arc::new(ends.collect::<Float64Array>()))
            }
            Content::Time
            | Content::Weight
            | Content::Kind(_, Kind::String | Kind::Set | Kind::Vector) => None,
        }
    }
}

#[derive(Clone, Copy)]
enum End {
    Least,
    Most,
}

impl End {
    fn of<T>(self, (least, most): (T, T)) -> T {
        match self {
            Self::Least => least,
            Self::Most => most,
        }
    }
}

fn number_end(segment: &Segment, name: &str, kinds: &[Kind], end: End) -> Option<f64> {
    let ranges = kinds.iter().filter_map(|kind| segment.column(name, *kind)?.number_range());
    let both = |a: (f64, f64), b: (f64, f64)| (a.0.min(b.0), a.1.max(b.1));
    ranges.reduce(both).map(|range| end.of(range))
}

/// Whether a segment has any of these strings.
fn has_any(segment: &Segment, name: &str, strings: &[&str]) -> bool {
    let Some(column) = segment.column(name, Kind::String) else { return false };
    match column.strings() {
        Ok(Some(dictionary)) => {
            strings.iter().any(|string| dictionary.code(string.as_bytes()).is_some())
        }
        // Whoever reads the column says what is wrong with it.
        _ => true,
    }
}

impl PruningStatistics for Statistics<'_> {
    fn min_values(&self, column: &Column) -> Option<ArrayRef> {
        self.ends(column, End::Least)
    }

    fn max_values(&self, column: &Column) -> Option<ArrayRef> {
        self.ends(column, End::Most)
    }

    fn num_containers(&self) -> usize {
        self.segments.len()
    }

    fn null_counts(&self, _column: &Column) -> Option<ArrayRef> {
        None
    }

    fn row_counts(&self) -> Option<ArrayRef> {
        let rows = self.segments.iter().map(|segment| Some(segment.rows() as u64));
        Some(Arc::new(rows.collect::<UInt64Array>()))
    }

    /// False where a segment has none of the values; else it does not say.
    fn contained(&self, column: &Column, values: &HashSet<ScalarValue>) -> Option<BooleanArray> {
        let Content::Kind(name, Kind::String) = self.content(column)? else { return None };
        let strings: Option<Vec<&str>> =
            values.iter().map(|value| value.try_as_str().flatten()).collect();
        let strings = strings?;
        let says = |segment: &Arc<Segment>| (!has_any(segment, name, &strings)).then_some(false);
        Some(self.segments.iter().map(says).collect())
    }
}
