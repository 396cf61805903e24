//! Columns whose smallest and largest number say that no row passes are not read.

use std::sync::Arc;

use arrow::buffer::Buffer;
use perflab_model::{Batch, Nanos, Schema, SchemaState};
use perflab_query::algebra::{Aggregate, Comparison, Condition, Question, Test};
use perflab_query::{Limits, QueryError, answer};
use perflab_store::segment::{Built, Segment, Snapshot, Source, build};

/// Numbers from 10 to 50, of which one was changed on the disk: reading them is an error.
fn damaged() -> Snapshot {
    let mut batch = Batch::new(Arc::new(SchemaState::new(Schema::default())));
    for n in 1..=5_i32 {
        let mut row = batch.begin_row();
        row.int("int", i64::from(n) * 10).unwrap();
        row.float("float", f64::from(n) * 10.0).unwrap();
        row.commit(Nanos(i64::from(n)), 1.0).unwrap();
    }
    let built = build(&[Source::Batch(&batch)]).unwrap();
    let mut bytes = built.rows.to_vec();
    let floats: Vec<u8> = [10.0, 20.0].iter().flat_map(|n: &f64| n.to_le_bytes()).collect();
    for numbers in [&[10, 20, 30, 40, 50][..], &floats] {
        let at = bytes.windows(numbers.len()).position(|window| window == numbers).unwrap();
        bytes[at] ^= 1;
    }
    let built = Built { rows: Buffer::from_slice_ref(&bytes), ..built };
    Snapshot::of([Segment::open(&built).unwrap()])
}

fn ask(column: &str, test: Test) -> Result<f64, QueryError> {
    let condition = Condition { column: column.to_owned(), test };
    let question = Question {
        any_of: vec![vec![condition]],
        aggregates: vec![Aggregate::Count],
        ..Question::default()
    };
    let answer = answer(&question, &damaged(), &Limits::default())?;
    Ok(answer.rows.first().and_then(|row| row.values[0]).unwrap_or(0.0))
}

#[test]
fn what_no_number_can_pass_is_not_read() {
    let compare = |comparison, bound: &str| Test::Compare(comparison, bound.to_owned());
    let one_of = |values: &[&str]| Test::In(values.iter().map(|&one| one.to_owned()).collect());
    for column in ["int", "float"] {
        for test in [
            compare(Comparison::Greater, "50"),
            compare(Comparison::GreaterOrEqual, "50.5"),
            compare(Comparison::Less, "10"),
            compare(Comparison::LessOrEqual, "9"),
            one_of(&["9", "51", "none"]),
        ] {
            assert_eq!(ask(column, test.clone()).unwrap(), 0.0, "{column} {test:?}");
        }
        for test in [
            compare(Comparison::Greater, "49"),
            compare(Comparison::GreaterOrEqual, "50"),
            compare(Comparison::Less, "11"),
            compare(Comparison::LessOrEqual, "10"),
            one_of(&["9", "50"]),
            Test::NotNull,
        ] {
            let error = ask(column, test.clone()).unwrap_err();
            assert!(matches!(error, QueryError::Segment(_)), "{column} {test:?}: {error}");
        }
    }
}
