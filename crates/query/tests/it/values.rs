//! Values by their beginning.

use std::collections::BTreeSet;

use perflab_query::column_values;
use perflab_store::segment::Snapshot;
use proptest::prelude::*;

use perflab_query::testing::{Cell, Row, segment_of};

fn row(cells: &[(&str, Cell)]) -> Row {
    let cells = cells.iter().map(|(name, cell)| ((*name).to_owned(), cell.clone())).collect();
    Row { time: 0, weight: 1.0, cells }
}

fn text(text: &str) -> Cell {
    Cell::String(text.to_owned())
}

#[test]
fn values_come_from_all_segments_and_kinds_but_numbers() {
    let set = Cell::Set(vec!["nn_tag".to_owned(), "other".to_owned()]);
    let snapshot = Snapshot::of([
        segment_of(&[row(&[("test", text("nn_b"))]), row(&[("test", text("zz"))])]),
        segment_of(&[row(&[("test", text("nn_a"))]), row(&[("test", Cell::Int(5))])]),
        segment_of(&[row(&[("tags", set)])]),
    ]);
    let values = |column, prefix, limit| column_values(column, prefix, limit, &snapshot).unwrap();
    assert_eq!(values("test", "nn", 10), ["nn_a", "nn_b"]);
    assert_eq!(values("test", "", 2), ["nn_a", "nn_b"]);
    assert_eq!(values("test", "5", 10), [""; 0]);
    assert_eq!(values("tags", "n", 10), ["nn_tag"]);
    assert_eq!(values("nothing", "", 10), [""; 0]);
    assert_eq!(values("test", "", 0), [""; 0]);
}

#[test]
fn items_of_another_column_of_lists_are_not_among_them() {
    let list = |item: &str| vec![item.to_owned(), "both".to_owned()];
    let snapshot = Snapshot::of([segment_of(&[
        row(&[("stack", Cell::Vector(list("frame"))), ("tags", Cell::Set(list("tag")))]),
        row(&[("tags", Cell::Set(list("a")))]),
    ])]);
    let values = |column, prefix| column_values(column, prefix, 10, &snapshot).unwrap();
    assert_eq!(values("tags", ""), ["a", "both", "tag"]);
    assert_eq!(values("stack", ""), ["both", "frame"]);
    assert_eq!(values("stack", "t"), [""; 0]);
}

proptest! {
    #[test]
    fn the_first_by_their_bytes_are_found(
        segments in prop::collection::vec(prop::collection::vec("[ab]{0,3}", 0..6), 0..4),
        prefix in "[ab]{0,2}",
        limit in 0_usize..5,
    ) {
        let all: BTreeSet<&String> = segments.iter().flatten().collect();
        let expected: Vec<&String> =
            all.into_iter().filter(|value| value.starts_with(&prefix)).take(limit).collect();
        let segment = |values: &Vec<String>| {
            segment_of(&values.iter().map(|value| row(&[("c", text(value))])).collect::<Vec<_>>())
        };
        let snapshot = Snapshot::of(segments.iter().map(segment));
        let found = column_values("c", &prefix, limit, &snapshot).unwrap();
        prop_assert_eq!(found.iter().collect::<Vec<_>>(), expected);
    }
}
