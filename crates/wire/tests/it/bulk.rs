//! Arrow streams to messages, and those to rows.

use std::collections::HashMap;
use std::sync::Arc;

use crate::{ARRIVAL, chain, open_batch, show};
use arrow::array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, Float32Array, Int32Array, ListArray, NullArray,
    RecordBatch, StringArray, TimestampMillisecondArray, UInt8Array, UInt64Array,
};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, Int32Type, Schema};
use arrow::ipc::writer::StreamWriter;
use bytes::Bytes;
use perflab_model::{Batch, CategoryName, Nanos};
use perflab_wire::bulk::BULK_ROWS_MAX;
use perflab_wire::{BodyForm, Codec, Entry, Limits, MessageForm, Registry, Request, decode};
use proptest::prelude::*;

fn stream(batches: &[RecordBatch]) -> Vec<u8> {
    let mut writer = StreamWriter::try_new(Vec::new(), &batches[0].schema()).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.finish().unwrap();
    writer.into_inner().unwrap()
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter(columns).unwrap()
}

fn request(body: Vec<u8>) -> Result<Request, String> {
    let form = BodyForm::Arrow { category: CategoryName::new("c").unwrap() };
    let request = Request::decode(&form, MessageForm::Plain, Bytes::from(body), &Limits::default());
    request.map_err(|error| chain(&error))
}

/// The rows of all messages that a stream becomes.
fn rows(body: Vec<u8>) -> Result<Vec<Batch>, String> {
    request(body)?.entries().map(|entry| rows_of(&entry.unwrap())).collect()
}

fn rows_of(entry: &Entry<'_>) -> Result<Batch, String> {
    let mut batch = open_batch();
    let decoded = decode(entry.codec, entry.message, ARRIVAL, &Registry::default(), &mut batch);
    let has_trace = !batch.is_empty() || !batch.columns().is_empty();
    match decoded {
        Err(_) if has_trace => Err("a refused batch left a trace".to_owned()),
        Err(error) => Err(chain(&error)),
        Ok(()) => Ok(batch),
    }
}

fn strings(items: &[Option<&[&str]>]) -> ListArray {
    let offsets = OffsetBuffer::from_lengths(items.iter().map(|items| items.map_or(0, <[_]>::len)));
    let all: Vec<&str> = items.iter().flatten().flat_map(|items| items.iter().copied()).collect();
    let field = Arc::new(Field::new("item", DataType::Utf8, true));
    let nulls = items.iter().map(Option::is_some).collect::<Vec<_>>().into();
    ListArray::new(field, offsets, Arc::new(StringArray::from(all)), Some(nulls))
}

#[test]
fn columns_become_kinds() {
    let stacks = strings(&[Some(&["main", "run", "run"]), Some(&[])]);
    let stack_ids = Int32Array::from(vec![Some(0), None, Some(1)]);
    let tags = strings(&[Some(&["b", "a", "b"]), None, Some(&["c"])]);
    let tagged = HashMap::from([("perflab.kind".to_owned(), "set".to_owned())]);
    let tag_field = Field::new("tags", tags.data_type().clone(), true).with_metadata(tagged);
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("i", Arc::new(Int32Array::from(vec![Some(-5), None, Some(7)]))),
        ("u", Arc::new(UInt8Array::from(vec![255, 0, 1]))),
        ("f", Arc::new(Float32Array::from(vec![Some(0.5), Some(f32::NAN), None]))),
        ("b", Arc::new(BooleanArray::from(vec![Some(true), Some(false), None]))),
        ("s", Arc::new(StringArray::from(vec![Some("x"), Some(""), None]))),
        ("d", Arc::new(DictionaryArray::<Int32Type>::from_iter([Some("y"), None, Some("y")]))),
        ("n", Arc::new(NullArray::new(3))),
        ("stack", Arc::new(DictionaryArray::new(stack_ids, Arc::new(stacks)))),
    ];
    let plain = batch(columns);
    let mut fields: Vec<_> = plain.schema().fields().iter().cloned().collect();
    fields.push(Arc::new(tag_field));
    let columns = plain.columns().iter().cloned().chain([Arc::new(tags) as ArrayRef]);
    let all = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns.collect()).unwrap();
    let rows = rows(stream(&[all])).unwrap();
    assert_eq!(rows.len(), 1);
    let shown: Vec<_> = (0..3).map(|row| show(&rows[0], row)).collect();
    assert_eq!(
        shown,
        [
            r#"i=Int(-5) u=Int(255) f=Float(0.5) b=String("true") s=String("x") d=String("y") stack=Vector(["main", "run", "run"]) tags=Set(["a", "b"])"#,
            r#"u=Int(0) b=String("false") s=String("")"#,
            r#"i=Int(7) u=Int(1) d=String("y") stack=Vector([]) tags=Set(["c"])"#,
        ]
    );
    assert_eq!(rows[0].times(), [ARRIVAL.as_i64(); 3]);
}

#[test]
fn time_and_weight_are_no_columns() {
    let time = TimestampMillisecondArray::from(vec![Some(1_700_000_000_123), None]);
    let weight = Float32Array::from(vec![Some(2.5), None]);
    let rate = Int32Array::from(vec![10, 20]);
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("time", Arc::new(time.with_timezone("Asia/Tokyo"))),
        ("weight", Arc::new(weight)),
        ("sample_rate", Arc::new(rate)),
    ];
    let read = rows(stream(&[batch(columns)])).unwrap();
    assert_eq!(read[0].times(), [1_700_000_000_123_000_000, ARRIVAL.as_i64()]);
    assert_eq!(read[0].weights(), [2.5, 20.0]);
    let seconds: ArrayRef = Arc::new(UInt64Array::from(vec![1_700_000_000]));
    let read = rows(stream(&[batch(vec![("time", seconds)])])).unwrap();
    assert_eq!(read[0].row(0).unwrap().time(), Nanos(1_700_000_000_000_000_000));
}

#[test]
fn mistakes_are_named() {
    let refused =
        |name, values: ArrayRef| rows(stream(&[batch(vec![(name, values)])])).unwrap_err();
    assert_eq!(
        refused("when", Arc::new(TimestampMillisecondArray::from(vec![0]))),
        "the message is no Arrow batch: column `when` holds Timestamp(ms): send numbers, strings, or lists of strings"
    );
    assert_eq!(
        refused("f", Arc::new(Float32Array::from(vec![f32::INFINITY]))),
        "column `f` holds inf, more than a 64-bit float can"
    );
    assert_eq!(
        refused("u", Arc::new(UInt64Array::from(vec![u64::MAX]))),
        "the message is no Arrow batch: column `u` can't be read: Cast error: Can't cast value 18446744073709551615 to type Int64"
    );
    assert_eq!(
        refused("weight", Arc::new(StringArray::from(vec!["x"]))),
        "column `weight` holds strings"
    );
    assert_eq!(
        refused("weight", Arc::new(Int32Array::from(vec![0]))),
        "`weight` is 0; a row's weight must be finite and more than 0"
    );
    let late = TimestampMillisecondArray::from(vec![1_800_000_000_000]);
    assert_eq!(
        refused("time", Arc::new(late)),
        "`time` is 2027-01-15T08:00:00Z, more than 24 h after its arrival at 2023-11-15T12:06:40Z"
    );
    let twice = vec![("a", Arc::new(Int32Array::from(vec![1])) as ArrayRef); 2];
    assert_eq!(rows(stream(&[batch(twice)])).unwrap_err(), "column `a` appears twice");
    assert!(request(b"{}".to_vec()).unwrap_err().starts_with("the body is no Arrow IPC stream: "));
}

#[test]
fn large_batches_become_several_messages() {
    let count = BULK_ROWS_MAX + 10;
    let names = (0..count).map(|row| format!("name-{row:0>600}"));
    let names: DictionaryArray<Int32Type> =
        names.collect::<Vec<_>>().iter().map(String::as_str).collect();
    let numbers = Int32Array::from_iter_values((0..).take(count));
    let columns: Vec<(&str, ArrayRef)> =
        vec![("name", Arc::new(names)), ("number", Arc::new(numbers))];
    let read = rows(stream(&[batch(columns)])).unwrap();
    assert!(read.len() > 2, "600 bytes a row are more than a message's worth");
    let mut row = 0;
    for part in &read {
        for n in 0..part.len() {
            assert_eq!(
                show(part, n),
                format!("name=String(\"name-{row:0>600}\") number=Int({row})")
            );
            row += 1;
        }
    }
    assert_eq!(row, count);
}

#[test]
fn entries_say_what_they_are() {
    let one: ArrayRef = Arc::new(Int32Array::from(vec![1]));
    let request = request(stream(&[batch(vec![("a", one)])])).unwrap();
    let entry = request.entry(0).unwrap();
    assert_eq!((entry.codec, entry.category.as_str()), (Codec::Bulk, "c"));
}

#[test]
fn a_stream_without_rows_is_no_message() {
    let none: ArrayRef = Arc::new(Int32Array::from(Vec::<i32>::new()));
    assert!(rows(stream(&[batch(vec![("a", none)])])).unwrap().is_empty());
}

proptest! {
    #[test]
    fn damaged_streams_are_refused_without_a_panic(
        places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<Option<prop::sample::Index>>(),
    ) {
        let tags = strings(&[Some(&["b", "a", "b"]), None, Some(&["c"])]);
        let ids = Int32Array::from(vec![Some(0), None, Some(2), Some(1)]);
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("s", Arc::new(StringArray::from(vec![Some("x"), Some("yy"), None, Some("zzz")]))),
            ("d", Arc::new(DictionaryArray::<Int32Type>::from_iter([Some("y"), None, Some("y"), Some("q")]))),
            ("l", Arc::new(DictionaryArray::new(ids, Arc::new(tags)))),
            ("i", Arc::new(Int32Array::from(vec![Some(-5), None, Some(7), Some(8)]))),
        ];
        let mut body = stream(&[batch(columns)]);
        for (place, byte) in places {
            let at = place.index(body.len());
            body[at] = byte;
        }
        if let Some(cut) = cut {
            body.truncate(cut.index(body.len()));
        }
        drop(rows(body));
    }
}
