//! What goes into a segment comes out of it, whatever it is; what is damaged is found.

use super::*;
use arrow::buffer::Buffer;
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
    Segment::open(built).unwrap()
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
            if let Some(cell) = cell_of(segment, column.kind(), &data, row) {
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

/// Few rows are enough, and half of them may have a value.
const SPARSE: Sparsity = Sparsity { rows_per_value: 2, rows_min: 4 };

/// A row that has a value in some columns of many.
fn sparse_row() -> impl Strategy<Value = Row> {
    let cells = prop::collection::vec(("[a-z]", cell()), 0..3);
    (row(), cells).prop_map(|(mut row, cells)| {
        row.cells.retain(|(name, _)| name == "x");
        row.cells.extend(cells);
        row.cells.sort_by_key(|(name, cell)| (name.clone(), cell.kind()));
        row.cells.dedup_by_key(|(name, cell)| (name.clone(), cell.kind()));
        row
    })
}

fn some_rows() -> impl Strategy<Value = Vec<Row>> {
    prop_oneof![prop::collection::vec(row(), 0..40), prop::collection::vec(sparse_row(), 0..40)]
}

/// The smallest and the largest value of each column that has any.
fn ranges(segment: &Segment) -> Vec<Option<(f64, f64)>> {
    segment.columns().iter().map(SegmentColumn::number_range).collect()
}

proptest! {
    #[test]
    fn what_goes_in_comes_out_sorted_by_time(batches in prop::collection::vec(some_rows(), 0..4)) {
        let mut expected: Vec<Row> = batches.concat();
        expected.sort_by_key(|row| row.time);
        let batches: Vec<Batch> = batches.iter().map(|rows| batch_of(rows)).collect();
        let sources: Vec<Source<'_>> = batches.iter().map(Source::Batch).collect();
        let dense = open(&build_with(&sources, Sparsity::NONE).unwrap());
        for sparsity in [Sparsity::NONE, SPARSE] {
            let built = build_with(&sources, sparsity).unwrap();
            let segment = open(&built);
            let lens = [&built.lists, &built.sparse].map(|file| file.as_ref().map_or(0, Buffer::len));
            prop_assert_eq!(segment.bytes(), built.rows.len() + lens[0] + lens[1]);
            prop_assert_eq!(rows_of(&segment).unwrap(), &expected[..]);
            prop_assert_eq!(ranges(&segment), ranges(&dense));
            let elsewhere = lay_out(&sources, Some(&Copies), sparsity).unwrap().into_bytes().unwrap();
            prop_assert_eq!(elsewhere, built);
        }
    }

    #[test]
    fn segments_of_segments_are_segments_of_their_rows(
        rows in prop::array::uniform3(some_rows()),
        sparsities in prop::array::uniform3(prop::sample::select(vec![Sparsity::NONE, SPARSE])),
    ) {
        let batches = rows.map(|rows| batch_of(&rows));
        let [first, second, result] = sparsities;
        let direct = build_with(&batches.each_ref().map(Source::Batch), result).unwrap();
        let segment = |batch, sparsity| open(&build_with(&[Source::Batch(batch)], sparsity).unwrap());
        let (a, b) = (segment(&batches[0], first), segment(&batches[1], second));
        let sources = [Source::Segment(&a), Source::Segment(&b), Source::Batch(&batches[2])];
        let merged = build_with(&sources, result).unwrap();
        prop_assert_eq!(rows_of(&open(&merged)).unwrap(), rows_of(&open(&direct)).unwrap());
        prop_assert_eq!(merged.sparse.is_some(), direct.sparse.is_some());
    }

    #[test]
    fn what_is_cooled_thaws_as_it_was(
        rows in some_rows(),
        sparsity in prop::sample::select(vec![Sparsity::NONE, SPARSE]),
    ) {
        let built = build_with(&[Source::Batch(&batch_of(&rows))], sparsity).unwrap();
        let segment = open(&built);
        let Cooled { rows, lists } = cool(&segment).unwrap();
        let thawed = thaw(rows.into(), lists.map(Into::into), None, sparsity).unwrap();
        let thawed = thawed.into_bytes().unwrap();
        prop_assert_eq!(rows_of(&open(&thawed)).unwrap(), rows_of(&segment).unwrap());
        prop_assert_eq!(thawed, built, "to the byte");
    }

    #[test]
    fn single_values_are_where_they_lie(rows in prop::collection::vec(sparse_row(), 4..40)) {
        let batch = batch_of(&rows);
        let segment = open(&build_with(&[Source::Batch(&batch)], SPARSE).unwrap());
        for column in segment.columns() {
            let (stored, data) = (column.stored().unwrap(), column.data().unwrap());
            for row in 0..segment.rows() {
                let found = stored.place(row);
                let found = found.and_then(|at| cell_of(&segment, column.kind(), stored.values(), at));
                prop_assert_eq!(found, cell_of(&segment, column.kind(), &data, row));
            }
        }
    }
}

/// The first row, the last one, and one between them have a value of each kind.
fn three_in_a_thousand() -> Vec<Row> {
    let cells = |n: i64| {
        let text = format!("{n}");
        vec![
            ("float".to_owned(), Cell::Float(n as f64 / 3.0)),
            ("int".to_owned(), Cell::Int(n)),
            ("set".to_owned(), Cell::Set(vec![text.clone()])),
            ("string".to_owned(), Cell::String(text.clone())),
            ("vector".to_owned(), Cell::Vector(vec![text.clone(), text])),
        ]
    };
    let cells = |n| if [0, 500, 999].contains(&n) { cells(n) } else { Vec::new() };
    (0..1000).map(|time| Row { time, weight: 1.0, cells: cells(time) }).collect()
}

#[test]
fn columns_of_which_few_rows_have_a_value_are_apart() {
    let mut rows = three_in_a_thousand();
    for row in &mut rows {
        row.cells.insert(0, ("all".to_owned(), Cell::Int(row.time % 7)));
    }
    let batch = batch_of(&rows);
    let built = build(&[Source::Batch(&batch)]).unwrap();
    let segment = open(&built);
    assert_eq!(rows_of(&segment).unwrap(), rows);
    let is_sparse = |column: &SegmentColumn| matches!(column.stored(), Ok(Stored::Sparse(_)));
    let sparse = segment.columns().iter().filter(|column| is_sparse(column));
    let sparse: Vec<&str> = sparse.map(SegmentColumn::name).collect();
    assert_eq!(sparse, ["float", "int", "set", "string", "vector"]);
    let dense = build_with(&[Source::Batch(&batch)], Sparsity::NONE).unwrap();
    assert!(dense.sparse.is_none());
    // Next to 1000 times and weights.
    assert!(built.bytes() < dense.bytes() - 10_000, "{} of {}", built.bytes(), dense.bytes());
    let few = build(&[Source::Batch(&batch_of(&rows[..200]))]).unwrap();
    assert!(few.sparse.is_none(), "nulls of a few rows take little");
}

#[test]
fn what_a_sparse_column_has_is_known_without_its_rows() {
    let segment = open(&build(&[Source::Batch(&batch_of(&three_in_a_thousand()))]).unwrap());
    let column = |name, kind| segment.column(name, kind).unwrap();
    assert_eq!(column("int", Kind::Int).int_range(), Some((0, 999)));
    assert_eq!(column("float", Kind::Float).number_range(), Some((0.0, 333.0)));
    let strings = column("string", Kind::String).strings().unwrap().unwrap();
    assert_eq!(strings.iter().collect::<Vec<_>>(), ["0", "500", "999"]);
    assert_eq!(
        (&strings.text()[..], strings.offsets().collect::<Vec<_>>()),
        (&b"0500999"[..], vec![0, 1, 4, 7])
    );
    let lists = segment.lists().unwrap();
    assert_eq!(column("set", Kind::Set).lists_used(lists).unwrap(), [0, 1, 2, 6], "and null");
    assert_eq!(column("vector", Kind::Vector).items_used(lists).unwrap(), [0, 1, 2]);
    assert_eq!(column("vector", Kind::Vector).nulls(), 997);
    let made =
        [("int", Kind::Int), ("float", Kind::Float), ("string", Kind::String), ("set", Kind::Set)];
    let made = made.map(|(name, kind)| column(name, kind).made_bytes());
    assert_eq!(made, [8125, 8000, 1000, 1000], "for the rows of the whole segment");
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
    let lists = cooled.lists.map(Into::into);
    let thawed = thaw(cooled.rows.into(), lists, None, Sparsity::DEFAULT).unwrap();
    let thawed = thawed.into_bytes().unwrap();
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
        thaw(rows, Some(lists), None, Sparsity::DEFAULT).unwrap_err();
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

/// A segment with one of its files changed.
fn changed(built: &Built, file: SegmentFile, change: impl Fn(&Buffer) -> Buffer) -> Built {
    let change = |one, bytes: Buffer| {
        Ok::<_, SegmentError>(if one == file { change(&bytes) } else { bytes })
    };
    built.clone().try_map(change).unwrap()
}

#[test]
fn every_flipped_bit_is_found_or_harmless() {
    let mut rows = sample_rows();
    rows.extend(three_in_a_thousand().into_iter().skip(100));
    rows.sort_by_key(|row| row.time);
    let built = build(&[Source::Batch(&batch_of(&rows))]).unwrap();
    let rows = rows_of(&open(&built)).unwrap();
    for (file, bytes) in
        [(SegmentFile::Rows, &built.rows), (SegmentFile::Sparse, built.sparse.as_ref().unwrap())]
    {
        let mut found = 0;
        for at in 0..bytes.len() {
            let flipped = changed(&built, file, |bytes| {
                let mut bytes = bytes.to_vec();
                bytes[at] ^= 1 << (at % 8);
                Buffer::from_slice_ref(&bytes)
            });
            match Segment::open(&flipped).and_then(|segment| rows_of(&segment)) {
                Err(SegmentError::Damaged(_)) => found += 1,
                Err(other) => panic!("{file:?}, byte {at}: {other}"),
                // Between the buffers.
                Ok(read) => assert_eq!(read, rows, "{file:?}, byte {at}"),
            }
        }
        assert!(found > bytes.len() / 4, "{file:?}: {found} of {}", bytes.len());
    }
}

#[test]
fn a_cut_segment_is_found() {
    let mut rows = sample_rows();
    rows.extend(three_in_a_thousand());
    let built = build(&[Source::Batch(&batch_of(&rows))]).unwrap();
    for (file, len) in [
        (SegmentFile::Rows, built.rows.len()),
        (SegmentFile::Lists, built.lists.as_ref().unwrap().len()),
        (SegmentFile::Sparse, built.sparse.as_ref().unwrap().len()),
    ] {
        for len in 0..len {
            let cut = changed(&built, file, |bytes| bytes.slice_with_length(0, len));
            let opened = Segment::open(&cut);
            assert!(matches!(opened, Err(SegmentError::Damaged(_))), "{file:?}, {len} bytes");
        }
    }
    let no_lists = Segment::open(&Built { lists: None, ..built.clone() }).unwrap_err();
    assert_eq!(no_lists.to_string(), "the segment is damaged: its lists are missing");
    let no_sparse = Segment::open(&Built { sparse: None, ..built }).unwrap_err();
    assert_eq!(no_sparse.to_string(), "the segment is damaged: its sparse columns are missing");
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
