//! The same question, asked by the algebra and in SQL, has the same answer.

use std::collections::HashMap;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, Int64Type};
use arrow::record_batch::RecordBatch;
use perflab_query::algebra::{Aggregate, Dimension, Question};
use perflab_query::testing::{question, row, scale};
use perflab_query::{AnswerRow, Limits, Value, answer};
use proptest::prelude::*;

use crate::rig::{batches, dataset_of, limits, snapshot_of};
use crate::translation::{Names, query};

fn value(column: &ArrayRef, row: usize) -> Value {
    if column.is_null(row) {
        return Value::Null;
    }
    if let Some(ints) = column.as_primitive_opt::<Int64Type>() {
        return Value::Int(ints.value(row));
    }
    if let Some(floats) = column.as_primitive_opt::<Float64Type>() {
        return Value::Float(floats.value(row));
    }
    if let Some(strings) = column.as_string_view_opt() {
        return Value::String(strings.value(row).to_owned());
    }
    let items = column.as_list::<i32>().value(row);
    let items = items.as_string_view().iter();
    Value::List(items.map(|item| item.unwrap().to_owned()).collect())
}

/// Puts the parts of the groups together again.
fn answer_row(question: &Question, names: &Names, batch: &RecordBatch, row: usize) -> AnswerRow {
    let mut columns = batch.columns().iter();
    let group = |dimension: &Dimension| match dimension {
        Dimension::Time(_) => {
            let start = columns.next().unwrap();
            let starts = start.as_primitive::<Int64Type>();
            if start.is_null(row) { Value::Null } else { Value::Time(starts.value(row)) }
        }
        Dimension::Column(name) => {
            let parts = names.parts(name).len();
            let parts: Vec<_> = columns.by_ref().take(parts).map(|one| value(one, row)).collect();
            parts.into_iter().find(|part| *part != Value::Null).unwrap_or(Value::Null)
        }
    };
    let group = question.group_by.iter().map(group).collect();
    let number = |column: &ArrayRef| {
        let numbers = cast(column, &DataType::Float64).unwrap();
        numbers.is_valid(row).then(|| numbers.as_primitive::<Float64Type>().value(row))
    };
    AnswerRow { group, values: columns.map(number).collect() }
}

/// Sorted, so that two answers can be compared.
fn sorted(mut rows: Vec<AnswerRow>) -> Vec<AnswerRow> {
    rows.sort_by_key(|row| format!("{:?}", row.group));
    rows
}

fn agree(aggregate: &Aggregate, found: Option<f64>, expected: Option<f64>, scale: f64) -> bool {
    let (Some(found), Some(expected)) = (found, expected) else { return found == expected };
    let tolerance = match aggregate {
        // The same bucket of the same sketch; where in it may depend on the segment's numbers.
        Aggregate::Percentile(..) => expected.abs() * 0.008,
        Aggregate::Samples | Aggregate::Min(_) | Aggregate::Max(_) | Aggregate::Distinct(_) => 0.0,
        Aggregate::Count | Aggregate::EffectiveSize(_) => expected.abs() * 1e-9,
        Aggregate::Sum(_) | Aggregate::Avg(_) => scale * 1e-9,
        // In SQL of the sums of squares, which cancel out where numbers are large and close.
        Aggregate::Stddev(_) => {
            return (found * found - expected * expected).abs() <= scale * scale * 1e-9;
        }
    };
    (found - expected).abs() <= tolerance
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn sql_says_what_the_algebra_says(
        parts in prop::collection::vec(prop::collection::vec(row(), 0..30), 0..4),
        question in question(),
    ) {
        let snapshot = snapshot_of(&parts);
        let known = HashMap::from([("d".to_owned(), dataset_of(&snapshot))]);
        let expected = answer(&question, &snapshot, &Limits::default()).unwrap();
        let names = Names::of(&snapshot);
        let sql = query(&question, &names);
        let (batches, rows_scanned) = match batches(&sql, &known, limits()) {
            Ok(found) => found,
            Err(error) => return Err(TestCaseError::fail(format!("{error:?}: {sql}"))),
        };
        let rows = batches.iter().flat_map(|batch| {
            (0..batch.num_rows()).map(|row| answer_row(&question, &names, batch, row))
        });
        let (found, expected_rows) = (sorted(rows.collect()), sorted(expected.rows));
        prop_assert_eq!(
            found.iter().map(|row| &row.group).collect::<Vec<_>>(),
            expected_rows.iter().map(|row| &row.group).collect::<Vec<_>>(),
            "{}", sql
        );
        let scale = scale(&parts.concat());
        for (found, expected) in found.iter().zip(&expected_rows) {
            let values = found.values.iter().zip(&expected.values);
            for (aggregate, (found, expected)) in question.aggregates.iter().zip(values) {
                prop_assert!(
                    agree(aggregate, *found, *expected, scale),
                    "{aggregate:?}: {found:?}, not {expected:?}: {sql}"
                );
            }
        }
        // Neither reads rows of other times.
        prop_assert!(rows_scanned <= expected.rows_scanned, "{rows_scanned}: {sql}");
    }
}
