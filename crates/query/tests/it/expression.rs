//! Computed columns: what they hold, and what is refused.

use perflab_query::algebra::{Aggregate, Condition, Dimension, Question, Test};
use perflab_query::expression::{Expression, derived};
use perflab_query::views::samples;
use perflab_query::{Limits, QueryError, Selection, Value, answer};
use perflab_store::segment::Snapshot;
use proptest::prelude::*;

use perflab_query::testing::{Cell, Row, row, segment_of};

fn with(snapshot: &Snapshot, text: &str) -> Result<Snapshot, QueryError> {
    let expression = Expression::parse(text).unwrap();
    derived(snapshot, None, &[("x".to_owned(), expression)], &Limits::default())
}

/// The computed values of rows, oldest first.
fn values(snapshot: &Snapshot, text: &str) -> Vec<Value> {
    let wider = with(snapshot, text).unwrap();
    let found = samples(&Selection::default(), &["x".to_owned()], 1000, &wider, &Limits::default())
        .unwrap();
    found.rows.into_iter().rev().map(|mut row| row.values.remove(0)).collect()
}

fn example() -> Snapshot {
    let text = |value: &str| Cell::String(value.to_owned());
    let cells = |cells: &[(&str, Cell)]| {
        cells.iter().map(|(name, cell)| ((*name).to_owned(), cell.clone())).collect()
    };
    let row = |time, cells| Row { time, weight: 1.0, cells };
    let first = [
        row(0, cells(&[("a b", Cell::Int(7)), ("n", Cell::Int(12)), ("s", text("Host-3"))])),
        row(1, cells(&[("f", Cell::Float(-0.5)), ("s", text("it's"))])),
    ];
    let second = [row(2, cells(&[("n", Cell::Float(2.5)), ("t", text("8"))]))];
    Snapshot::of([segment_of(&first), segment_of(&second)])
}

fn text(value: &str) -> Value {
    Value::String(value.to_owned())
}

#[test]
fn expressions_are_computed_row_by_row() {
    let (null, number) = (Value::Null, Value::Float);
    let cases: [(&str, [Value; 3]); 26] = [
        ("n / 1000", [number(0.012), null.clone(), number(0.0025)]),
        ("n * 1e-9 + 1", [number(12e-9 + 1.0), null.clone(), number(2.5e-9 + 1.0)]),
        ("1 + 2 * 3 - 4 / 2 % 3", [number(5.0), number(5.0), number(5.0)]),
        ("(1 + 2) * -3", [number(-9.0), number(-9.0), number(-9.0)]),
        ("10 - 2 - 3", [number(5.0), number(5.0), number(5.0)]),
        ("\"a b\" + 1", [number(8.0), null.clone(), null.clone()]),
        ("n / 0", [null.clone(), null.clone(), null.clone()]),
        ("n > 3", [number(1.0), null.clone(), number(0.0)]),
        ("n = 12 or f < 0", [number(1.0), number(1.0), null.clone()]),
        ("n = 12 and f < 0", [null.clone(), null.clone(), number(0.0)]),
        ("not n > 3 and 1 = 1", [number(0.0), null.clone(), number(1.0)]),
        ("s = 'it''s'", [number(0.0), number(1.0), null.clone()]),
        ("s < 'I'", [number(1.0), number(0.0), null.clone()]),
        ("if(n > 3, 'big', 'small')", [text("big"), text("small"), text("small")]),
        ("if(n > 3, n, f)", [number(12.0), number(-0.5), null.clone()]),
        ("coalesce(n, f, 0)", [number(12.0), number(-0.5), number(2.5)]),
        ("coalesce(t, s, null)", [text("Host-3"), text("it's"), text("8")]),
        ("concat(s, ':', n)", [text("Host-3:12"), null.clone(), null.clone()]),
        ("concat('at ', coalesce(n, 0))", [text("at 12"), text("at 0"), text("at 2.5")]),
        ("LOWER(s)", [text("host-3"), text("it's"), null.clone()]),
        ("length(concat(s, 'é'))", [number(7.0), number(5.0), null.clone()]),
        ("regex_extract(s, '(\\w+)-(\\d+)', 2)", [text("3"), null.clone(), null.clone()]),
        ("regex_extract(s, 'o.', 0)", [text("os"), null.clone(), null.clone()]),
        ("number(t) + number('x')", [null.clone(), null.clone(), null.clone()]),
        ("number(t) + 1", [null.clone(), null.clone(), number(9.0)]),
        ("bucket(n, 5)", [number(10.0), null.clone(), number(0.0)]),
    ];
    for (expression, expected) in cases {
        assert_eq!(values(&example(), expression), expected, "{expression}");
    }
    assert_eq!(values(&example(), "bucket(f, 10)")[1], number(-10.0));
    assert_eq!(values(&example(), "bucket(n, 0 - 1)"), [null.clone(), null.clone(), null]);
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let parsed = |text: &str| Expression::parse(text).unwrap_err().to_string();
    assert_eq!(
        parsed("n +"),
        "the expression ends where there should be a column, a number, a 'text' or a function"
    );
    assert_eq!(parsed("n 3"), "`3` at character 3 is not the end, or an operator such as `+`");
    assert_eq!(parsed("(n"), "the expression ends where there should be `)` or an operator");
    assert_eq!(parsed("'é' + 'abc"), "the ' at character 7 is never closed");
    assert_eq!(parsed("lower(s, t)"), "`lower` at character 1 takes 1 arguments, not 2");
    assert!(parsed("upper(s)").starts_with("`upper` at character 1 is not one of the functions"));
    assert!(parsed("n ~ 3").starts_with("`~` at character 3 is not a number, a 'text', a column"));
    assert!(parsed("1.2.3").starts_with("`.3` at character 4"));
    assert_eq!(
        parsed(&"(".repeat(100)),
        "more than 64 expressions inside each other at character 65"
    );
    assert_eq!(parsed(&" ".repeat(5000)), "the expression has 5000 bytes, the limit is 4096");
    let refused = |text: &str| {
        let error = with(&example(), text).unwrap_err();
        assert_eq!(error.to_string(), "the expression of column `x` can't be used");
        std::error::Error::source(&error).unwrap().to_string()
    };
    assert_eq!(refused("1 + s"), "column `s` at character 5 holds strings, and this takes numbers");
    assert_eq!(
        refused("lower(n)"),
        "column `n` at character 7 holds numbers, and this takes strings"
    );
    assert_eq!(refused("1 + 'a'"), "at character 5 is text where a number is needed");
    assert_eq!(
        refused("lower(1)"),
        "at character 7 is a number where text is needed; `concat` makes text of it"
    );
    assert_eq!(
        refused("regex_extract(s, s, 1)"),
        "the regular expression at character 18 must be written out"
    );
    assert_eq!(
        refused("regex_extract(s, 'a', 1)"),
        "at character 23 is no group: the regular expression has 0 to 0"
    );
    assert_eq!(
        refused("regex_extract(s, '(', 1)"),
        "the regular expression at character 18 can't be used"
    );
    let one = || Expression::parse("1").unwrap();
    let taken =
        derived(&example(), None, &[("n".to_owned(), one())], &Limits::default()).unwrap_err();
    let message = "column `n` is there already: give the computed one another name";
    assert_eq!(taken.to_string(), message);
    let twice = [("x".to_owned(), one()), ("x".to_owned(), one())];
    assert!(matches!(
        derived(&example(), None, &twice, &Limits::default()),
        Err(QueryError::NameTaken { .. })
    ));
}

#[test]
fn only_rows_of_the_range_are_computed() {
    let expression = Expression::parse("coalesce(n, 1)").unwrap();
    assert_eq!(expression.columns().into_iter().collect::<Vec<_>>(), ["n"]);
    let wider =
        derived(&example(), Some((0, 1)), &[("x".to_owned(), expression)], &Limits::default())
            .unwrap();
    let question =
        Question { aggregates: vec![Aggregate::Sum("x".to_owned())], ..Question::default() };
    assert_eq!(answer(&question, &wider, &Limits::default()).unwrap().rows[0].values, [Some(12.0)]);
    assert!(
        derived(&Snapshot::default(), None, &[], &Limits::default()).unwrap().segments.is_empty()
    );
}

fn number(row: &Row, name: &str) -> Option<f64> {
    row.cells_named(name).find_map(Cell::number)
}

fn string<'r>(row: &'r Row, name: &str) -> Option<&'r str> {
    let mut cells = row.cells_named(name);
    cells.find_map(|cell| if let Cell::String(text) = cell { Some(text.as_str()) } else { None })
}

fn sorted(mut values: Vec<(String, f64)>) -> Vec<(String, f64)> {
    values.sort_by(|x, y| x.0.cmp(&y.0));
    let mut merged: Vec<(String, f64)> = Vec::new();
    for (value, weight) in values {
        match merged.last_mut() {
            Some(last) if last.0 == value => last.1 += weight,
            _ => merged.push((value, weight)),
        }
    }
    merged
}

/// The weights of the values of a computed column, by the engine.
fn grouped(rows: &[Row], cut: usize, expression: &str) -> Vec<(String, f64)> {
    let (left, right) = rows.split_at(cut.min(rows.len()));
    let wider = with(&Snapshot::of([segment_of(left), segment_of(right)]), expression).unwrap();
    let question = Question {
        any_of: vec![vec![Condition { column: "x".to_owned(), test: Test::NotNull }]],
        group_by: vec![Dimension::Column("x".to_owned())],
        aggregates: vec![Aggregate::Count],
        ..Question::default()
    };
    let rows = answer(&question, &wider, &Limits::default()).unwrap().rows.into_iter();
    sorted(rows.map(|row| (format!("{:?}", row.group[0]), row.values[0].unwrap())).collect())
}

fn are_close(x: &[(String, f64)], y: &[(String, f64)]) -> bool {
    let is_close = |x: f64, y: f64| (x - y).abs() <= 1e-9 * x.abs().max(y.abs());
    x.len() == y.len() && x.iter().zip(y).all(|(x, y)| x.0 == y.0 && is_close(x.1, y.1))
}

proptest! {
    #[test]
    fn questions_group_and_filter_by_computed_columns(
        rows in prop::collection::vec(row(), 0..60), cut in 0_usize..60,
    ) {
        // The mixed column counts with its numbers where numbers are wanted.
        let sum = |row: &Row| {
            let x = (number(row, "f")? + number(row, "m")?) / 2.0;
            Some(format!("{:?}", Value::Float(x)))
        };
        let label = |row: &Row| {
            let (s, i) = (string(row, "s")?, number(row, "i")?);
            let label = if i > 0.0 { format!("{}:{i}", s.to_lowercase()) } else { s.to_owned() };
            Some(format!("{:?}", Value::String(label)))
        };
        let expected = |value: &dyn Fn(&Row) -> Option<String>| {
            sorted(rows.iter().filter_map(|row| Some((value(row)?, row.weight))).collect())
        };
        // Without numbers anywhere, a column of strings is refused where numbers are wanted.
        let has_numbers = rows.iter().any(|row| number(row, "m").is_some());
        let has_others = rows.iter().any(|row| row.cells_named("m").next().is_some());
        if has_numbers || !has_others {
            let found = grouped(&rows, cut, "(f + m) / 2");
            prop_assert!(are_close(&found, &expected(&sum)), "{found:?}");
        }
        let found = grouped(&rows, cut, "if(i > 0, concat(lower(s), ':', i), if(i <= 0, s, null))");
        prop_assert!(are_close(&found, &expected(&label)), "{found:?}");
    }
}

/// Strings that the dataset numbers stay; those of a question go with it.
#[test]
fn computed_strings_are_not_the_datasets() {
    let (snapshot, expression) = (example(), Expression::parse("concat('x', n)").unwrap());
    let columns = [("x".to_owned(), expression)];
    let wider = derived(&snapshot, None, &columns, &Limits::default()).unwrap();
    let question = Question {
        group_by: ["x", "s"].map(|name| Dimension::Column(name.to_owned())).to_vec(),
        aggregates: vec![Aggregate::Count],
        ..Question::default()
    };
    assert!(!answer(&question, &wider, &Limits::default()).unwrap().rows.is_empty());
    let counts = |name: &str| {
        let count = |snapshot: &Snapshot| snapshot.vocabularies.of(name).strings().count();
        (count(&wider), count(&snapshot))
    };
    let (computed, of_dataset) = counts("x");
    assert!(computed > 1 && of_dataset == 1, "only null");
    assert_eq!(counts("s").0, counts("s").1);
}
