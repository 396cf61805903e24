//! Our parser and `serde_json` agree.

use crate::{decode_plain, open_batch};
use perflab_model::{Kind, Value};
use proptest::prelude::*;

/// Text that is nearly JSON: what parsers disagree about.
fn nearly_json() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("{"),
        Just("}"),
        Just("["),
        Just("]"),
        Just(","),
        Just(":"),
        Just("\"a\""),
        Just("\"\\u00e9\""),
        Just("\"\\ud83d\\ude00\""),
        Just("\"\\ud83d\""),
        Just("\"x\\n\""),
        Just("\"\\x\""),
        Just("\"é\""),
        Just("\"b"),
        Just("1"),
        Just("-0"),
        Just("-"),
        Just("1.5"),
        Just("1e5"),
        Just("1e"),
        Just("01"),
        Just("1E+2"),
        Just("true"),
        Just("false"),
        Just("null"),
        Just("nul"),
        Just(" "),
        Just("\n"),
        Just("\t"),
        Just("\u{b}"),
        Just("NaN"),
        Just("\"key\":"),
        Just("\"k2\":"),
        Just("\"k3\": \""),
    ];
    prop_oneof![
        proptest::collection::vec(piece, 0..12)
            .prop_map(|pieces| format!("{{{}}}", pieces.concat())),
        // Valid JSON with one byte changed.
        (json_object(), any::<prop::sample::Index>(), "[\\[\\]{}\",:0-9a-z\\\\ .-]").prop_map(
            |(text, at, with)| {
                let mut text = text;
                let at = at.index(text.len());
                if text.is_char_boundary(at) && text.is_char_boundary(at + 1) {
                    text.replace_range(at..=at, &with);
                }
                text
            }
        ),
    ]
}

fn json_object() -> impl Strategy<Value = String> {
    let scalar = prop_oneof![
        any::<i64>().prop_map(serde_json::Value::from),
        any::<f64>()
            .prop_filter("JSON has no such float", |value| value.is_finite())
            .prop_map(serde_json::Value::from),
        any::<bool>().prop_map(serde_json::Value::from),
        ".{0,20}".prop_map(serde_json::Value::from),
        Just(serde_json::Value::Null),
    ];
    let value = scalar.prop_recursive(3, 20, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(serde_json::Value::from),
            proptest::collection::btree_map("[a-z]{1,8}", inner, 0..4)
                .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
        ]
    });
    proptest::collection::btree_map("[a-z]{1,8}", value, 0..6)
        .prop_map(|map| serde_json::Value::Object(map.into_iter().collect()).to_string())
}

/// Reasons that only we have: the text is JSON, but not a row.
fn is_refused_as_a_row(reason: &str) -> bool {
    [
        "appears twice",
        "`time`",
        "`weight`",
        "unknown section",
        "in section",
        "section `",
        "has no name",
        "more than a 64-bit",
    ]
    .iter()
    .any(|part| reason.contains(part))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn what_one_parser_takes_the_other_takes(text in nearly_json()) {
        if !text.trim_ascii_start().starts_with('{') {
            return Ok(()); // a line of text
        }
        let parsed = serde_json::from_str::<serde_json::Value>(&text);
        let is_json = parsed.is_ok();
        // Grammar allows them; a list that is kept as text may hold them.
        if parsed.is_err_and(|error| error.to_string().starts_with("number out of range")) {
            return Ok(());
        }
        match decode_plain(&text, &mut open_batch()) {
            Ok(()) => prop_assert!(is_json, "only ours takes {text}"),
            Err(reason) => prop_assert!(!is_json || is_refused_as_a_row(&reason), "{reason}: {text}"),
        }
    }

    #[test]
    fn strings_and_numbers_come_back_exactly(string in "\\PC{0,40}|[\\x00-\\x7f\u{e9}]{0,40}", float in any::<f64>(), int in any::<i64>()) {
        let float = if float.is_finite() { float } else { 0.5 };
        let message = serde_json::json!({"normal": {"s": string}, "float": {"f": float}, "int": {"i": int}});
        let mut batch = open_batch();
        decode_plain(message.to_string(), &mut batch).unwrap();
        let row = batch.row(0).unwrap();
        prop_assert_eq!(row.value("s", Kind::String), Some(Value::String(&string)));
        prop_assert_eq!(row.value("i", Kind::Int), Some(Value::Int(int)));
        let Some(Value::Float(read)) = row.value("f", Kind::Float) else { panic!("no float") };
        prop_assert_eq!(read.to_bits(), float.to_bits());
    }
}
