//! A batch holds what was committed, and nothing of what wasn't.

use perflab_model::{
    Batch, Kind, ListKind, Nanos, RowBuilder, RowError, Schema, SchemaState, Value,
};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

fn open_batch() -> Batch {
    Batch::new(Arc::new(SchemaState::new(Schema::default())))
}

/// Everything a reader can see, rows and dictionaries, as text.
fn snapshot(batch: &Batch) -> String {
    let rows: Vec<_> = batch
        .rows()
        .map(|row| (row.time(), row.weight(), row.fields().collect::<Vec<_>>()))
        .collect();
    let strings: Vec<_> =
        batch.columns().iter().map(|c| (c.name(), c.kind(), dictionary(c))).collect();
    format!("{rows:?}\n{strings:?}")
}

fn dictionary(column: &perflab_model::batch::Column) -> Vec<&str> {
    use perflab_model::batch::Data;
    match column.data() {
        Data::Int(_) | Data::Float(_) => Vec::new(),
        Data::String(_, dictionary) => dictionary.iter().collect(),
        Data::Set(lists) | Data::Vector(lists) => lists.dictionary().iter().collect(),
    }
}

#[test]
fn values_come_back_as_they_went_in() {
    let mut batch = open_batch();
    let mut row = batch.begin_row();
    row.int("rounds", 5).unwrap();
    row.float("mean", 0.5).unwrap();
    row.string("branch", "main").unwrap();
    row.strings("tags", ListKind::Set, ["b", "a", "b"]).unwrap();
    row.strings("stack", ListKind::Vector, ["b", "a", "b"]).unwrap();
    row.commit(Nanos(7), 2.0).unwrap();
    let mut row = batch.begin_row();
    row.string("branch", "").unwrap();
    row.strings("tags", ListKind::Set, []).unwrap();
    row.commit(Nanos(8), 1.0).unwrap();

    let first = batch.row(0).unwrap();
    assert_eq!((first.time(), first.weight()), (Nanos(7), 2.0));
    let fields = format!("{:?}", first.fields().collect::<Vec<_>>());
    assert_eq!(
        fields,
        r#"[("rounds", Int(5)), ("mean", Float(0.5)), ("branch", String("main")), ("tags", Set(["a", "b"])), ("stack", Vector(["b", "a", "b"]))]"#
    );
    let second = batch.row(1).unwrap();
    assert_eq!(
        format!("{:?}", second.fields().collect::<Vec<_>>()),
        r#"[("branch", String("")), ("tags", Set([]))]"#
    );
    assert_eq!(second.value("rounds", Kind::Int), None);
    assert!(batch.row(2).is_none());
}

#[test]
fn one_name_with_two_kinds_is_two_columns() {
    let mut batch = open_batch();
    for (int, float) in [(Some(1), None), (None, Some(1.5)), (Some(2), Some(2.5))] {
        let mut row = batch.begin_row();
        int.into_iter().for_each(|value| row.int("x", value).unwrap());
        float.into_iter().for_each(|value| row.float("x", value).unwrap());
        assert!(row.contains("x") && !row.contains("y"));
        assert_eq!(row.last_has_namesake(), int.is_some() && float.is_some());
        row.commit(Nanos(0), 1.0).unwrap();
    }
    let kinds: Vec<_> = batch.columns().iter().map(|c| (c.name(), c.kind())).collect();
    assert_eq!(kinds, [("x", Kind::Int), ("x", Kind::Float)]);
    assert_eq!(batch.column("x", Kind::Int).unwrap().value(1), None);
    assert_eq!(batch.column("x", Kind::Float).unwrap().value(2), Some(Value::Float(2.5)));
}

#[test]
fn a_row_that_is_not_committed_leaves_no_trace() {
    let mut batch = open_batch();
    let mut row = batch.begin_row();
    row.string("branch", "main").unwrap();
    row.strings("tags", ListKind::Set, ["a"]).unwrap();
    row.commit(Nanos(1), 1.0).unwrap();
    let before = snapshot(&batch);

    let mut row = batch.begin_row();
    row.string("branch", "other").unwrap();
    row.strings("tags", ListKind::Set, ["z", "a"]).unwrap();
    row.string("new column", "x").unwrap();
    row.int("branch", 1).unwrap();
    assert_eq!(row.int("branch", 1), Err(RowError::Twice { column: "branch".to_owned() }));
    drop(row);
    assert_eq!(snapshot(&batch), before);
}

#[test]
fn names_have_rules() {
    let mut batch = open_batch();
    let mut row = batch.begin_row();
    assert_eq!(row.int("", 1), Err(RowError::Unnamed));
    row.int(&"x".repeat(255), 1).unwrap();
    let long = row.int(&"x".repeat(256), 1).unwrap_err().to_string();
    assert_eq!(long, format!("column name `{}…` has 256 bytes, more than 255", "x".repeat(32)));
}

#[test]
fn a_declared_schema_refuses_the_row_and_knows_null() {
    let schema =
        Schema::declared_from_json(r#"{"int":["n"],"normal":["s"],"null":"None"}"#).unwrap();
    let mut batch = Batch::new(Arc::new(SchemaState::new(schema)));
    let mut row = batch.begin_row();
    row.string("s", "None").unwrap();
    row.commit(Nanos(0), 1.0).unwrap();
    assert_eq!(batch.row(0).unwrap().fields().count(), 0);

    let mut row = batch.begin_row();
    row.int("n", 1).unwrap();
    let refused = row.int("m", 1).unwrap_err();
    assert!(refused.to_string().contains("field `m` is not currently used"));
    drop(row);
    assert_eq!(batch.len(), 1);
}

#[test]
fn the_limit_of_columns_counts_over_all_batches_of_a_dataset() {
    let state = Arc::new(SchemaState::new(Schema::Open { columns_max: 1 }));
    let add = |name: &str| {
        let mut batch = Batch::new(Arc::clone(&state));
        let mut row = batch.begin_row();
        row.int(name, 1).unwrap();
        row.commit(Nanos(0), 1.0).map(|()| batch.len())
    };
    assert_eq!(add("a"), Ok(1));
    assert!(add("b").is_err());
    assert_eq!(add("a"), Ok(1));
}

#[test]
fn a_row_stops_at_the_first_column_that_has_no_room() {
    let state = Arc::new(SchemaState::new(Schema::Open { columns_max: 2 }));
    let mut batch = Batch::new(state);
    for _ in 0..1000 {
        let mut row = batch.begin_row();
        row.int("a", 1).unwrap();
        row.commit(Nanos(0), 1.0).unwrap();
    }
    let before = snapshot(&batch);
    let mut row = batch.begin_row();
    row.int("b", 1).unwrap();
    row.int("c", 1).unwrap();
    let refused = row.int("d", 1).unwrap_err().to_string();
    assert_eq!(refused, "field `d` would be column 3, the limit is 2");
    drop(row);
    assert_eq!(snapshot(&batch), before);

    let known = [("a", Kind::Int), ("b", Kind::Int), ("c", Kind::Int)];
    let past = SchemaState::with_columns(Schema::Open { columns_max: 2 }, known);
    let mut batch = Batch::new(Arc::new(past));
    let mut row = batch.begin_row();
    known.iter().for_each(|(name, _)| row.int(name, 1).unwrap());
    row.commit(Nanos(0), 1.0).unwrap();

    let schema = Schema::declared_from_json(r#"{"int":["n"]}"#).unwrap();
    let mut batch = Batch::new(Arc::new(SchemaState::new(schema)));
    assert!(batch.begin_row().int("m", 1).is_err(), "before it takes any memory");
}

#[test]
fn the_size_of_a_batch_is_known() {
    let mut batch = open_batch();
    assert_eq!(batch.bytes(), 0);
    let mut row = batch.begin_row();
    row.string("s", &"x".repeat(1000)).unwrap();
    row.strings("t", ListKind::Set, ["abc", "abc"]).unwrap();
    row.commit(Nanos(0), 1.0).unwrap();
    let bytes = batch.bytes();
    assert_eq!(bytes, 1003 + 4 * 8);
    let mut row = batch.begin_row();
    row.string("s", "other").unwrap();
    drop(row);
    assert_eq!(batch.bytes(), bytes, "as before");
}

#[test]
fn a_null_makes_no_column_and_is_checked_like_a_value() {
    let mut batch = open_batch();
    let twice = |column: &str| Err(RowError::Twice { column: column.to_owned() });
    let mut row = batch.begin_row();
    row.null("n", Kind::Int).unwrap();
    row.null("n", Kind::Float).unwrap();
    assert!(row.contains("n") && !row.contains("m"));
    assert_eq!(row.null("n", Kind::Int), twice("n"));
    assert_eq!(row.int("n", 1), twice("n"));
    assert_eq!(row.null("", Kind::Int), Err(RowError::Unnamed));
    row.string("n", "another kind").unwrap();
    row.commit(Nanos(0), 1.0).unwrap();
    let kinds: Vec<_> = batch.columns().iter().map(|c| (c.name(), c.kind())).collect();
    assert_eq!(kinds, [("n", Kind::String)]);
    assert_eq!(batch.schema().columns(), [("n".to_owned(), Kind::String)]);

    let mut row = batch.begin_row();
    row.null("n", Kind::String).unwrap();
    assert_eq!(row.string("n", "x"), twice("n"), "also where there is a column");
    drop(row);
    let mut row = batch.begin_row();
    (0..4096).for_each(|n| row.null(&n.to_string(), Kind::Int).unwrap());
    assert!(row.null("one more", Kind::Int).is_err());
    drop(row);

    let schema = Schema::declared_from_json(r#"{"int":["n"]}"#).unwrap();
    let mut batch = Batch::new(Arc::new(SchemaState::new(schema)));
    let mut row = batch.begin_row();
    row.null("n", Kind::Int).unwrap();
    let kind = row.null("n", Kind::Float).unwrap_err().to_string();
    assert_eq!(kind, "field `n` is declared as int, not float");
    assert!(row.null("m", Kind::Int).is_err(), "undeclared");
}

type Fields = BTreeMap<(u8, u8), i64>;

fn name(index: u8) -> String {
    format!("c{index}")
}

fn fill(row: &mut RowBuilder<'_>, fields: &Fields) {
    for (&(column, kind), &value) in fields {
        let (column, text) = (name(column), value.to_string());
        match kind {
            0 => row.int(&column, value),
            1 => row.float(&column, value as f64),
            2 => row.string(&column, &text),
            3 => row.strings(&column, ListKind::Set, [text.as_str(), "s"]),
            4 => row.strings(&column, ListKind::Vector, [text.as_str(), "s", "s"]),
            _ => row.null(&format!("null {column}"), Kind::Int),
        }
        .unwrap();
    }
}

/// What the row should read back as, in the order of kinds and names.
fn expected(fields: &Fields) -> Vec<String> {
    let show = |(&(column, kind), &value): (&(u8, u8), &i64)| {
        let (column, text) = (name(column), value.to_string());
        match kind {
            0 => Some(format!("{column} Int({value})")),
            1 => Some(format!("{column} Float({:?})", value as f64)),
            2 => Some(format!("{column} String({text:?})")),
            3 => Some(format!("{column} Set([{text:?}, \"s\"])")),
            4 => Some(format!("{column} Vector([{text:?}, \"s\", \"s\"])")),
            _ => None,
        }
    };
    let mut shown: Vec<_> = fields.iter().filter_map(show).collect();
    shown.sort();
    shown
}

proptest! {
    #[test]
    fn it_reads_back_as_the_rows_that_were_committed(
        steps in proptest::collection::vec(
            (proptest::collection::btree_map((0_u8..6, 0_u8..6), -3_i64..9, 0..8), any::<bool>()),
            0..40,
        ),
    ) {
        let mut batch = open_batch();
        let mut model = Vec::new();
        for (fields, commit) in steps {
            let before = snapshot(&batch);
            let mut row = batch.begin_row();
            fill(&mut row, &fields);
            if commit {
                row.commit(Nanos(5), 1.0).unwrap();
                model.push(fields);
            } else {
                drop(row);
                prop_assert_eq!(snapshot(&batch), before);
            }
        }
        prop_assert_eq!(batch.len(), model.len());
        for (row, fields) in batch.rows().zip(&model) {
            let mut read: Vec<_> =
                row.fields().map(|(name, value)| format!("{name} {value:?}")).collect();
            read.sort();
            prop_assert_eq!(read, expected(fields));
        }
        let show = |batch: &Batch, step: usize| -> Vec<String> {
            let rows = batch.rows().step_by(step);
            rows.map(|row| {
                let mut fields: Vec<_> = row.fields().map(|field| format!("{field:?}")).collect();
                fields.sort();
                format!("{} {} {fields:?}", row.time(), row.weight())
            })
            .collect()
        };
        let odd = batch.select(|row| row % 2 == 0);
        prop_assert_eq!(show(&odd, 1), show(&batch, 2));
    }
}
