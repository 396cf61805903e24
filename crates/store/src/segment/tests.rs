//! What goes into a segment comes out of it, whatever it is; what is damaged is found.

use super::*;
use perflab_model::{Batch, ListKind, Nanos, Schema, SchemaState, Value};
use proptest::prelude::*;

/// A value of a row, owned.
#[derive(Debug, Clone, PartialEq)]
enum Cell {
    Int(i64),
    Float(f64),
    String(String),
    Set(Vec<String>),
    Vector(Vec<String>),
}

#[derive(Debug, Clone, PartialEq)]
struct Row {
    time: i64,
    weight: f64,
    /// Sorted by name and kind.
    cells: Vec<(String, Cell)>,
}

impl Cell {
    fn kind(&self) -> Kind {
        match self {
            Self::Int(_) => Kind::Int,
            Self::Float(_) => Kind::Float,
            Self::String(_) => Kind::String,
            Self::Set(_) => Kind::Set,
            Self::Vector(_) => Kind::Vector,
        }
    }
}

fn batch_of(rows: &[Row]) -> Batch {
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
    batch
}

fn open(built: &Built) -> Segment {
    Segment::open(&built.rows, built.lists.as_ref()).unwrap()
}

/// Reads a segment back, row by row.
fn rows_of(segment: &Segment) -> Result<Vec<Row>, SegmentError> {
    let (times, weights) = (segment.times()?, segment.weights()?);
    let mut rows: Vec<Row> = (0..segment.rows())
        .map(|row| Row { time: times[row], weight: weights.get(row), cells: Vec::new() })
        .collect();
    if let Some(lists) = segment.lists() {
        lists.check()?;
    }
    for column in segment.columns() {
        let data = column.data()?;
        for (row, into) in rows.iter_mut().enumerate() {
            if let Some(cell) = cell_of(segment, column.kind(), data, row) {
                into.cells.push((column.name().to_owned(), cell));
            }
        }
    }
    Ok(rows)
}

fn cell_of(segment: &Segment, kind: Kind, data: &ColumnData, row: usize) -> Option<Cell> {
    match data {
        ColumnData::Int { values, validity } => {
            let is_valid = validity.as_ref().is_none_or(|valid| valid.value(row));
            is_valid.then(|| Cell::Int(values.get(row)))
        }
        ColumnData::Float { values } => (!values[row].is_nan()).then(|| Cell::Float(values[row])),
        ColumnData::String { codes, strings } => {
            let code = codes.get(row);
            ((code as usize) < strings.len()).then(|| Cell::String(strings.get(code).to_owned()))
        }
        ColumnData::List { ids } => {
            let (lists, id) = (segment.lists().unwrap(), ids.get(row));
            let items = || lists.strings(id).map(str::to_owned).collect();
            let cell =
                || if kind == Kind::Set { Cell::Set(items()) } else { Cell::Vector(items()) };
            ((id as usize) < lists.len()).then(cell)
        }
    }
}

fn cell() -> impl Strategy<Value = Cell> {
    let item = || prop_oneof!["[a-c]{0,2}", "[é€]{1,2}"];
    prop_oneof![
        prop_oneof![-5_i64..5, -40_000_i64..40_000, any::<i64>()].prop_map(Cell::Int),
        prop_oneof![Just(0.0), Just(-1.5), any::<f64>()]
            .prop_filter("finite, as the doors have it", |value| value.is_finite())
            .prop_map(Cell::Float),
        item().prop_map(Cell::String),
        prop::collection::btree_set(item(), 0..4)
            .prop_map(|items| Cell::Set(items.into_iter().collect())),
        prop::collection::vec(item(), 0..4).prop_map(Cell::Vector),
    ]
}

fn row() -> impl Strategy<Value = Row> {
    let cells = prop::collection::vec(("[xyz]", cell()), 0..6);
    let weight = prop_oneof![Just(1.0), (0_u32..70_000).prop_map(f64::from), 0.01..9.0];
    (-20_i64..20, weight, cells).prop_map(|(time, weight, mut cells)| {
        cells.sort_by_key(|(name, cell)| (name.clone(), cell.kind()));
        cells.dedup_by_key(|(name, cell)| (name.clone(), cell.kind()));
        Row { time, weight, cells }
    })
}

/// A shelf that is somewhere else in memory.
struct Copies;

impl Shelf for Copies {
    fn keep(&self, buffer: &Buffer) -> std::io::Result<Buffer> {
        Ok(Buffer::from_slice_ref(&buffer[..]))
    }
}

proptest! {
    #[test]
    fn what_goes_in_comes_out_sorted_by_time(batches in prop::collection::vec(prop::collection::vec(row(), 0..40), 0..4)) {
        let mut expected: Vec<Row> = batches.concat();
        expected.sort_by_key(|row| row.time);
        let batches: Vec<Batch> = batches.iter().map(|rows| batch_of(rows)).collect();
        let sources: Vec<Source<'_>> = batches.iter().map(Source::Batch).collect();
        let built = build(&sources).unwrap();
        let segment = open(&built);
        prop_assert_eq!(segment.bytes(), built.rows.len() + built.lists.as_ref().map_or(0, Buffer::len));
        prop_assert_eq!(rows_of(&segment).unwrap(), expected);
        let elsewhere = lay_out(&sources, Some(&Copies)).unwrap().into_bytes().unwrap();
        prop_assert_eq!((elsewhere.rows, elsewhere.lists), (built.rows, built.lists));
    }

    #[test]
    fn segments_of_segments_are_segments_of_their_rows(
        first in prop::collection::vec(row(), 0..40),
        second in prop::collection::vec(row(), 0..40),
        third in prop::collection::vec(row(), 0..40),
    ) {
        let batches = [batch_of(&first), batch_of(&second), batch_of(&third)];
        let direct = build(&[Source::Batch(&batches[0]), Source::Batch(&batches[1]), Source::Batch(&batches[2])]).unwrap();
        let [a, b] = [&batches[0], &batches[1]].map(|batch| open(&build(&[Source::Batch(batch)]).unwrap()));
        let merged = build(&[Source::Segment(&a), Source::Segment(&b), Source::Batch(&batches[2])]).unwrap();
        prop_assert_eq!(rows_of(&open(&merged)).unwrap(), rows_of(&open(&direct)).unwrap());
    }
}

proptest! {
    #[test]
    fn what_is_cooled_thaws_as_it_was(rows in prop::collection::vec(row(), 0..60)) {
        let built = build(&[Source::Batch(&batch_of(&rows))]).unwrap();
        let segment = open(&built);
        let Cooled { rows, lists } = cool(&segment).unwrap();
        let thawed = thaw(rows.into(), lists.map(Into::into), None).unwrap().into_bytes().unwrap();
        prop_assert_eq!(rows_of(&open(&thawed)).unwrap(), rows_of(&segment).unwrap());
        prop_assert_eq!(&thawed.rows, &built.rows, "to the byte");
        prop_assert_eq!(&thawed.lists, &built.lists);
    }
}

#[test]
fn several_row_groups_and_numbers_at_their_ends_thaw_as_they_were() {
    let odd_nan = f64::from_bits(f64::NAN.to_bits() | 7);
    let floats = [0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::MIN_POSITIVE, odd_nan];
    let rows: Vec<Row> = (0..300_000_i64)
        .map(|n| {
            let float = floats[usize::try_from(n).unwrap() % floats.len()];
            let stack = vec![format!("{}", n % 1000), "main".to_owned()];
            let cells = vec![
                ("float".to_owned(), Cell::Float(float)),
                ("id".to_owned(), Cell::String(format!("an id of its own: {n:08}"))),
                ("int".to_owned(), Cell::Int(if n % 2 == 0 { i64::MIN } else { i64::MAX })),
                ("stack".to_owned(), Cell::Vector(stack)),
            ];
            Row { time: if n == 0 { i64::MIN } else { n }, weight: 1.0, cells }
        })
        .collect();
    let built = build(&[Source::Batch(&batch_of(&rows))]).unwrap();
    let cooled = cool(&open(&built)).unwrap();
    assert!(cooled.rows.len() < built.rows.len() / 3, "{} bytes", cooled.rows.len());
    let thawed =
        thaw(cooled.rows.into(), cooled.lists.map(Into::into), None).unwrap().into_bytes().unwrap();
    assert!(thawed.rows == built.rows, "to the byte");
    assert!(thawed.lists == built.lists);
}

#[test]
fn what_is_no_cold_segment_is_not_thawed() {
    let batch = batch_of(&sample_rows());
    let Cooled { rows, lists } = cool(&open(&build(&[Source::Batch(&batch)]).unwrap())).unwrap();
    let lists = lists.unwrap();
    for (rows, lists) in [(&rows[1..], &lists[..]), (&rows, &lists[1..]), (&lists, &rows)] {
        let [rows, lists] = [rows, lists].map(bytes::Bytes::copy_from_slice);
        thaw(rows, Some(lists), None).unwrap_err();
    }
}

fn sample_rows() -> Vec<Row> {
    let string = |value: &str| Cell::String(value.to_owned());
    let list = |items: &[&str]| items.iter().map(|item| (*item).to_owned()).collect::<Vec<_>>();
    (0_i64..40)
        .map(|n| Row {
            time: n,
            weight: 1.0 + n as f64 / 2.0,
            cells: vec![
                ("float".to_owned(), Cell::Float(n as f64 / 3.0)),
                ("int".to_owned(), Cell::Int(n * 1000)),
                (
                    "stack".to_owned(),
                    Cell::Vector(list(&["main", if n % 2 == 0 { "a" } else { "b" }])),
                ),
                ("string".to_owned(), string(if n % 3 == 0 { "yes" } else { "no" })),
            ],
        })
        .collect()
}

#[test]
fn columns_are_as_narrow_as_their_values() {
    let rows = sample_rows();
    let batch = batch_of(&rows);
    let segment = open(&build(&[Source::Batch(&batch)]).unwrap());
    let data = |name, kind| segment.column(name, kind).unwrap().data().unwrap();
    assert!(matches!(
        data("int", Kind::Int),
        ColumnData::Int { values: Ints::I32(_), validity: None }
    ));
    assert!(matches!(data("string", Kind::String), ColumnData::String { codes: Codes::U8(_), .. }));
    assert!(matches!(data("stack", Kind::Vector), ColumnData::List { ids: Codes::U8(_) }));
    assert_eq!(segment.lists().unwrap().len(), 2, "each stack once");
    let int = segment.column("int", Kind::Int).unwrap();
    assert_eq!(int.number_range(), Some((0.0, 39_000.0)));
    assert_eq!(segment.columns_named("int").count(), 1);
    assert_eq!(segment.columns_named("none").count(), 0);
}

#[test]
fn a_null_has_the_code_after_the_last() {
    let mut rows: Vec<Row> = (0..256)
        .map(|n| Row {
            time: n,
            weight: 1.0,
            cells: vec![("s".to_owned(), Cell::String(format!("{n:03}")))],
        })
        .collect();
    let full = batch_of(&rows);
    let full = open(&build(&[Source::Batch(&full)]).unwrap());
    let codes = |segment: &Segment| {
        let data = segment.column("s", Kind::String).unwrap().data().unwrap();
        let ColumnData::String { codes, .. } = data else { panic!("a string column") };
        codes.clone()
    };
    assert!(matches!(codes(&full), Codes::U8(_)), "256 strings and no null fit into a byte");
    rows.push(Row { time: 256, weight: 1.0, cells: Vec::new() });
    let with_null = batch_of(&rows);
    let with_null = open(&build(&[Source::Batch(&with_null)]).unwrap());
    assert!(matches!(codes(&with_null), Codes::U16(_)));
    assert_eq!(codes(&with_null).get(256), 256);
    assert_eq!(rows_of(&with_null).unwrap(), rows);
}

#[test]
fn dictionaries_are_sorted_and_searched() {
    let names = ["pear", "apple", "fig", "é"];
    let rows: Vec<Row> = names
        .iter()
        .map(|name| Row {
            time: 0,
            weight: 1.0,
            cells: vec![("s".to_owned(), Cell::String((*name).to_owned()))],
        })
        .collect();
    let batch = batch_of(&rows);
    let segment = open(&build(&[Source::Batch(&batch)]).unwrap());
    let ColumnData::String { strings, .. } =
        segment.column("s", Kind::String).unwrap().data().unwrap()
    else {
        panic!("a string column")
    };
    assert_eq!(strings.iter().collect::<Vec<_>>(), ["apple", "fig", "pear", "é"]);
    assert_eq!(strings.code(b"pear"), Some(2));
    assert_eq!(strings.code(b"pea"), None);
    assert_eq!(strings.code(b"\xff"), None);
    assert_eq!(strings.first_from(b"b"), 1);
    assert_eq!(strings.first_from(b"\xff"), 4);
}

#[test]
fn every_flipped_bit_is_found_or_harmless() {
    let rows = sample_rows();
    let batch = batch_of(&rows);
    let built = build(&[Source::Batch(&batch)]).unwrap();
    let mut found = 0;
    for at in 0..built.rows.len() {
        let mut bytes = built.rows.to_vec();
        bytes[at] ^= 1 << (at % 8);
        let read = Segment::open(&Buffer::from_slice_ref(&bytes), built.lists.as_ref())
            .and_then(|segment| rows_of(&segment));
        match read {
            Err(SegmentError::Damaged(_)) => found += 1,
            Err(other) => panic!("byte {at}: {other}"),
            // Between the buffers.
            Ok(read) => assert_eq!(read, rows, "byte {at}"),
        }
    }
    assert!(found > built.rows.len() / 4, "{found} of {}", built.rows.len());
}

#[test]
fn a_cut_segment_is_found() {
    let batch = batch_of(&sample_rows());
    let built = build(&[Source::Batch(&batch)]).unwrap();
    for len in 0..built.rows.len() {
        let cut = built.rows.slice_with_length(0, len);
        let opened = Segment::open(&cut, built.lists.as_ref());
        assert!(matches!(opened, Err(SegmentError::Damaged(_))), "{len} bytes");
    }
    let no_lists = Segment::open(&built.rows, None).unwrap_err();
    assert_eq!(no_lists.to_string(), "the segment is damaged: its lists are missing");
}

#[test]
fn a_batch_reads_as_its_segment_does() {
    let rows = sample_rows();
    let batch = batch_of(&rows);
    let value = batch.row(3).unwrap().value("int", Kind::Int);
    assert_eq!(value, Some(Value::Int(3000)));
    let segment = open(&build(&[Source::Batch(&batch)]).unwrap());
    assert_eq!(rows_of(&segment).unwrap()[3], rows[3]);
}

#[test]
fn computed_columns_stand_beside_the_stored_ones() {
    let rows = sample_rows();
    let batch = batch_of(&rows);
    let built = build(&[Source::Batch(&batch)]).unwrap();
    let numbers: Vec<f64> = (0..40).map(|n| if n == 7 { f64::NAN } else { f64::from(n) }).collect();
    let codes = (0..40).map(|n| (n % 3 < 2).then_some(n % 3)).collect();
    let strings = vec!["even".to_owned(), "odd".to_owned()];
    let wider = open(&built)
        .with_columns(vec![
            ("words".to_owned(), Computed::String { codes, strings }),
            ("numbers".to_owned(), Computed::Float(numbers)),
        ])
        .unwrap();
    let mut expected = rows;
    for (n, row) in expected.iter_mut().enumerate() {
        if n != 7 {
            row.cells.push(("numbers".to_owned(), Cell::Float(n as f64)));
        }
        if n % 3 < 2 {
            let word = if n % 3 == 0 { "even" } else { "odd" };
            row.cells.push(("words".to_owned(), Cell::String(word.to_owned())));
        }
        row.cells.sort_by(|x, y| x.0.cmp(&y.0));
    }
    assert_eq!(rows_of(&wider).unwrap(), expected);
    assert_eq!(wider.column("numbers", Kind::Float).unwrap().number_range(), Some((0.0, 39.0)));
}
