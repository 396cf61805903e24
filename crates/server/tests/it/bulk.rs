//! Arrow streams through the door for lines.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, RecordBatch, StringArray, TimestampSecondArray};
use arrow::ipc::writer::StreamWriter;
use serde_json::json;

use crate::client::{Call, Reply};
use crate::rig::Rig;

fn stream(batches: &[RecordBatch]) -> Vec<u8> {
    let mut writer = StreamWriter::try_new(Vec::new(), &batches[0].schema()).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.finish().unwrap();
    writer.into_inner().unwrap()
}

fn post(rig: &Rig, body: Vec<u8>) -> Reply {
    let call = Call::post("/api/log?category=runs", body);
    rig.call(&call.header("Content-Type", "application/vnd.apache.arrow.stream"))
}

fn rows(names: &[&str]) -> RecordBatch {
    let count = names.len();
    let columns: [(&str, ArrayRef); 2] = [
        ("time", Arc::new(TimestampSecondArray::from(vec![1_690_000_000; count]))),
        ("name", Arc::new(StringArray::from(names.to_vec()))),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

#[test]
fn each_batch_is_a_record_of_many_rows() {
    let rig = Rig::start();
    let reply = post(&rig, stream(&[rows(&["a", "b"]), rows(&["c"])]));
    assert_eq!((reply.status, reply.codes()), (200, vec!["OK".to_owned(); 2]));
    let lines = rig.call(&Call::get("/api/tail?category=runs")).lines();
    let read: Vec<_> = lines[..3].iter().map(|line| (&line["offset"], &line["row"])).collect();
    let row = |name| json!({"time": "2023-07-22T04:26:40Z", "weight": 1.0, "name": name});
    let (first, second) = (json!(0), json!(1));
    assert_eq!(read, [(&first, &row("a")), (&first, &row("b")), (&second, &row("c"))]);
}

#[test]
fn a_bad_batch_is_refused_by_itself_and_a_bad_stream_whole() {
    let rig = Rig::start();
    let infinite: ArrayRef = Arc::new(Float64Array::from(vec![1.0, f64::INFINITY]));
    let bad = RecordBatch::try_from_iter([("x", infinite)]).unwrap();
    let reply = post(&rig, stream(&[bad]));
    assert_eq!(reply.codes(), ["ERROR"]);
    assert_eq!(reply.reason(0), "column `x` holds inf, more than a 64-bit float can");
    let whole = stream(&[rows(&["a"])]);
    let reply = post(&rig, whole[..whole.len() / 2].to_vec());
    assert_eq!(reply.status, 400);
    assert!(reply.error().starts_with("the body is no Arrow IPC stream"), "{}", reply.error());
    assert_eq!(rig.call(&Call::get("/api/tail?category=runs")).lines().len(), 1, "only the end");
}
