//! Structured messages, as the real client writes them.

use crate::{ARRIVAL, chain, open_batch, show};
use bytes::Bytes;
use perflab_model::{Batch, Nanos};
use perflab_wire::{BodyForm, Codec, Limits, MessageForm, Registry, Request, decode};
use proptest::prelude::*;

const COMPILE_TIME: &str = include_str!("../fixtures/structured/compile_time.b64");
const COMPILE_TIME_IDL: &str = include_str!("../fixtures/structured/compile_time.thrift");
const EVERY_TYPE: &str = include_str!("../fixtures/structured/every_type.b64");
const EVERY_TYPE_IDL: &str = include_str!("../fixtures/structured/every_type.thrift");

fn request(messages: &[&str]) -> Request {
    let entry =
        |message: &&str| format!(r#"{{"category": "UNUSED", "message": "{}"}}"#, message.trim());
    let logs = messages.iter().map(entry).collect::<Vec<_>>().join(", ");
    let body = Bytes::from(format!(r#"{{"logs": [{logs}]}}"#));
    Request::decode(&BodyForm::Json, MessageForm::Structured, body, &Limits::default()).unwrap()
}

fn decode_one(message: &str, registry: &Registry) -> Batch {
    let request = request(&[message]);
    let entry = request.entries().next().unwrap().unwrap();
    assert_eq!(entry.codec, Codec::Structured);
    let mut batch = open_batch();
    decode(entry.codec, entry.message, ARRIVAL, registry, &mut batch).unwrap();
    batch
}

#[test]
fn the_category_is_the_target_without_its_suffix() {
    let request = request(&[COMPILE_TIME, EVERY_TYPE, COMPILE_TIME]);
    let categories: Vec<_> =
        request.entries().map(|entry| entry.unwrap().category.as_str()).collect();
    assert_eq!(categories, ["TorchBenchmarkCompileTime", "EveryType", "TorchBenchmarkCompileTime"]);
    assert_eq!(request.categories().len(), 2);
}

#[test]
fn a_registered_definition_names_the_fields() {
    let mut registry = Registry::default();
    assert_eq!(
        registry.register(COMPILE_TIME_IDL),
        Ok(vec!["TorchBenchmarkCompileTime".to_owned()])
    );
    let batch = decode_one(COMPILE_TIME, &registry);
    assert_eq!(
        show(&batch, 0),
        r#"commit_sha=String("0123456789abcdef") commit_date=Int(1699999999) github_ref_protected=String("true") name=String("resnet50 é") compile_time=Float(12.5)"#
    );
    let row = batch.row(0).unwrap();
    assert_eq!((row.time(), row.weight()), (Nanos(1_700_000_000_000_000_000), 2.0));
}

#[test]
fn every_type_has_its_column() {
    let mut registry = Registry::default();
    assert_eq!(registry.register(EVERY_TYPE_IDL), Ok(vec!["EveryType".to_owned()]));
    let batch = decode_one(EVERY_TYPE, &registry);
    assert_eq!(
        show(&batch, 0),
        concat!(
            r#"yes=String("true") no=String("false") tiny=Int(-5) small=Int(-300) medium=Int(70000) large=Int(-9000000000) "#,
            r#"ratio=Float(-0.1) text=String("a \"quoted\" line\n") color=String("GREEN") unknown_color=String("9") "#,
            r#"stack=Vector(["b", "a", "b"]) tags=Set(["only"]) empty_stack=Vector([]) numbers=String("[1,-2,3]") "#,
            r#"flags=String("[true,false]") by_name=String("{\"one\":1}") by_number=String("{\"7\":\"seven\"}") "#,
            r#"inner=String("{\"x\":1,\"y\":\"z\",\"deep\":[{\"x\":2}]}") count=Int(42)"#,
        )
    );
}

#[test]
fn an_unregistered_target_has_numbered_columns() {
    let batch = decode_one(COMPILE_TIME, &Registry::default());
    assert_eq!(
        show(&batch, 0),
        r#"f4=Int(1700000000) f6=Int(2) f7=String("0123456789abcdef") f8=Int(1699999999) f16=String("true") f17=String("resnet50 é") f28=Float(12.5)"#
    );
    assert_eq!(batch.row(0).unwrap().time(), ARRIVAL, "no field is called time");
    assert!(
        show(&decode_one(EVERY_TYPE, &Registry::default()), 0)
            .contains(r#"f19=String("{\"f1\":1,\"f2\":\"z\",\"f3\":[{\"f1\":2}]}")"#)
    );
}

#[test]
fn a_definition_that_does_not_match_is_said() {
    let mut registry = Registry::default();
    let changed = COMPILE_TIME_IDL.replace("string commit_sha", "i64 commit_sha");
    registry.register(&changed).unwrap();
    let request = request(&[COMPILE_TIME]);
    let entry = request.entries().next().unwrap().unwrap();
    let refused =
        decode(entry.codec, entry.message, ARRIVAL, &registry, &mut open_batch()).unwrap_err();
    assert_eq!(
        chain(&refused),
        "the message is not a structured Thrift message: field 7 `commit_sha` is a string, the registered IDL says an integer"
    );
}

#[test]
fn bad_structured_entries_are_refused_alone() {
    let request = request(&["%%%", COMPILE_TIME, "AAAA", "CwABAAAAAS8MAAILAAEAAAAAAAA="]);
    let answers: Vec<_> =
        request.entries().map(|entry| entry.map(|_| ()).map_err(|error| chain(error))).collect();
    assert!(answers[0].as_ref().unwrap_err().starts_with("the structured message is not base64"));
    assert_eq!(answers[1], Ok(()));
    assert!(
        answers[2]
            .as_ref()
            .unwrap_err()
            .starts_with("the structured message is not a `WriteStructuredMessage`")
    );
    assert!(
        answers[3]
            .as_ref()
            .unwrap_err()
            .starts_with("the structured message's target is not a category name"),
        "{answers:?}"
    );
}

/// A message with this compact struct in it.
fn envelope(data: &[u8]) -> Vec<u8> {
    let mut message = vec![11, 0, 1, 0, 0, 0, 1, b'x', 12, 0, 2, 11, 0, 1];
    message.extend(u32::try_from(data.len()).unwrap().to_be_bytes());
    message.extend_from_slice(data);
    message.extend([0, 0]);
    message
}

fn decode_bytes(data: &[u8]) -> Result<String, String> {
    let mut batch = open_batch();
    let message = envelope(data);
    let decoded = decode(Codec::Structured, &message, ARRIVAL, &Registry::default(), &mut batch);
    decoded.map(|()| show(&batch, 0)).map_err(|error| chain(&error))
}

#[test]
fn lengths_that_lie_and_deep_nesting_are_refused() {
    assert_eq!(decode_bytes(&[0x15, 0x02, 0x00]), Ok("f1=Int(1)".to_owned()));
    for (data, reason) in [
        (&[0x18, 0xff, 0xff, 0xff, 0xff, 0x07][..], "a length of 2147483647"),
        (&[0x19, 0xf8, 0xff, 0xff, 0xff, 0xff, 0x07], "a length of 2147483647"),
        (&[0x1b, 0xff, 0xff, 0xff, 0xff, 0x07, 0x88], "a length of 2147483647"),
        (
            &[0x16, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
            "a varint of more than 10 bytes",
        ),
        (&[0x15], "the bytes end at 1, where 1 more were expected"),
        (&[0x1e, 0x00], "14 is no type"),
        (&[0x00, 0x01], "1 bytes follow the end of the struct"),
        (&[0x17, 0, 0, 0, 0, 0, 0, 0xf8, 0x7f, 0x00], "field 1 `f1` is not a finite number"),
        (&[0x18, 0x01, 0xff, 0x00], "field `f1` is not UTF-8"),
        (&[0x15, 0x02, 0x05, 0x02, 0x02, 0x00], "column `f1` appears twice"),
    ] {
        let refused = decode_bytes(data).unwrap_err();
        assert!(refused.contains(reason), "{refused}");
    }
    assert!(decode_bytes(&[0x1c; 10_000]).unwrap_err().contains("nested deeper than 64 levels"));
    assert!(decode_bytes(&[0x19; 10_000]).unwrap_err().contains("nested deeper than 64 levels"));
}

/// Maps whose keys are maps, `levels` deep, around an empty one; the values are true.
fn maps_in_keys(levels: usize) -> Vec<u8> {
    let mut data = [0x01, 0xb1].repeat(levels);
    data.push(0x00);
    data.extend(std::iter::repeat_n(0x01, levels));
    data
}

#[test]
fn nested_text_that_grows_with_every_level_is_refused() {
    let field = |data: &[u8]| [&[0x1b], data].concat();
    let whole = |fields: &[u8]| [fields, &[0x00]].concat();
    assert_eq!(
        decode_bytes(&whole(&field(&maps_in_keys(2)))).unwrap(),
        r#"f1=String("{\"{\\\"{}\\\":true}\":true}")"#
    );
    let refused = decode_bytes(&whole(&field(&maps_in_keys(63)))).unwrap_err();
    assert!(refused.contains("too long as JSON text"), "{refused}");

    let one = field(&maps_in_keys(9));
    assert!(decode_bytes(&whole(&one)).is_ok(), "one of them fits");
    let refused = decode_bytes(&whole(&one.repeat(1000))).map(drop).unwrap_err();
    assert!(refused.contains("too long as JSON text"), "many don't: {refused}");
}

#[test]
fn long_names_do_not_multiply() {
    let mut registry = Registry::default();
    let name = "n".repeat(100_000);
    let idl = format!("struct Inner {{ 1: bool {name} }} struct xLogEntry {{ 1: Inner a }}");
    registry.register(&idl).unwrap();
    // The one field of the inner struct, a thousand times.
    let data = [&[0x1c], [0x01, 0x02].repeat(1000).as_slice(), &[0x00, 0x00]].concat();
    let mut batch = open_batch();
    let refused = decode(Codec::Structured, &envelope(&data), ARRIVAL, &registry, &mut batch);
    assert!(chain(&refused.unwrap_err()).contains("too long as JSON text"));
}

#[test]
fn a_time_or_weight_that_is_no_number_is_refused() {
    let decode_as = |ty: &str, data: &[u8]| {
        let mut registry = Registry::default();
        let idl = format!("enum E {{ A }} struct xLogEntry {{ 1: {ty} weight }}");
        registry.register(&idl).unwrap();
        let mut batch = open_batch();
        decode(Codec::Structured, &envelope(data), ARRIVAL, &registry, &mut batch)
            .map(|()| batch.row(0).unwrap().weight())
            .map_err(|error| chain(&error))
    };
    assert_eq!(decode_as("i32", &[0x15, 0x04, 0x00]), Ok(2.0));
    for (ty, data, found) in [
        ("string", &[0x18, 0x01, b'2', 0x00][..], "a string"),
        ("bool", &[0x11, 0x00], "a bool"),
        ("list<string>", &[0x19, 0x08, 0x00], "a list"),
        ("E", &[0x15, 0x00, 0x00], "an enum"),
    ] {
        assert_eq!(decode_as(ty, data), Err(format!("column `weight` holds {found}")), "{ty}");
    }
}

proptest! {
    /// Every prefix of, and every single change to, a real message is decoded or refused; what
    /// is refused leaves nothing behind.
    #[test]
    fn damaged_messages_never_panic(cut in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut registry = Registry::default();
        registry.register(EVERY_TYPE_IDL).unwrap();
        let request = request(&[EVERY_TYPE]);
        let original = request.entries().next().unwrap().unwrap().message;
        let mut changed = original.to_vec();
        changed[at.index(original.len())] = byte;
        for message in [&original[..cut.index(original.len())], &changed] {
            let mut batch = open_batch();
            let decoded = decode(Codec::Structured, message, ARRIVAL, &registry, &mut batch);
            prop_assert_eq!(batch.len(), usize::from(decoded.is_ok()));
            prop_assert!(decoded.is_ok() || batch.columns().is_empty());
        }
    }

    #[test]
    fn garbage_in_the_compact_struct_never_panics(data in proptest::collection::vec(any::<u8>(), 0..200)) {
        drop(decode_bytes(&data));
    }
}
