//! JSON and text messages to rows.

use crate::{ARRIVAL, chain, decode_plain, open_batch, row, show};
use perflab_model::{Batch, Kind, Nanos, Schema, SchemaState};
use perflab_wire::{Codec, Registry, decode};
use std::sync::Arc;

#[test]
fn sections_give_columns_their_kinds() {
    assert_eq!(
        row(
            r#"{"int":{"a":1,"t":true,"w":2.0,"e":1e3},"float":{"b":1.5,"i":2},"double":{"c":-0.25},
                "normal":{"d":"x\u00e9\n","y":true},"denorm":{"f":"g"},
                "normvector":{"v":["b","a","b"]},"tags":{"s":["b","a","b"]},"__subset__":"part"}"#
        ),
        r#"a=Int(1) t=Int(1) w=Int(2) e=Int(1000) b=Float(1.5) i=Float(2.0) c=Float(-0.25) d=String("xé\n") y=String("true") f=String("g") v=Vector(["b", "a", "b"]) s=Set(["a", "b"]) __subset__=String("part")"#
    );
    assert_eq!(
        row(r#"{"int":{"a":1},"normal":{"a":"1"},"float":{"a":1}}"#),
        "a=Int(1) a=String(\"1\") a=Float(1.0)"
    );
}

#[test]
fn typed_null_is_no_value_and_makes_no_column() {
    let nulls = r#"{"int":{"a":null},"normal":{"b":null},"tags":{"c":null},"__subset__":null}"#;
    let mut batch = open_batch();
    decode_plain(nulls, &mut batch).unwrap();
    assert_eq!((show(&batch, 0), batch.columns().len()), (String::new(), 0));
    decode_plain(r#"{"int":{"a":1},"tags":{"c":["x"]}}"#, &mut batch).unwrap();
    decode_plain(nulls, &mut batch).unwrap();
    assert_eq!(show(&batch, 1), r#"a=Int(1) c=Set(["x"])"#);
    assert_eq!((show(&batch, 2), batch.columns().len()), (String::new(), 2));
    assert!(batch.column("b", Kind::String).is_none());
}

#[test]
fn flat_objects_have_their_types_inferred() {
    assert_eq!(
        row(
            r#"{"a":1,"b":1.5,"c":"x","d":true,"e":null,"f":["x","y"],"g":[1,"x"],"h":{"i":{"j":2}},"k":[],"l":{}}"#
        ),
        r#"a=Int(1) b=Float(1.5) c=String("x") d=String("true") f=Vector(["x", "y"]) g=String("[1,\"x\"]") h.i.j=Int(2) k=Vector([])"#
    );
    // A section's name that holds no object is a column like any other.
    assert_eq!(row(r#"{"int":5,"name":"x"}"#), r#"int=Int(5) name=String("x")"#);
    assert_eq!(row("{}"), "");
    assert_eq!(row(" \n{\"a\": 1}\r\n"), "a=Int(1)");
}

#[test]
fn anything_else_is_a_line_of_text() {
    assert_eq!(row("hello, world"), r#"message=String("hello, world")"#);
    assert_eq!(row("[1,2]"), r#"message=String("[1,2]")"#);
    assert_eq!(row(" \t"), "refused: the message is empty");
    assert_eq!(row(b"abc\xff"), "refused: the message is not UTF-8: byte 3 starts no character");
    assert_eq!(
        row(b"{\"a\":\"\xff\"}"),
        "refused: the message is not UTF-8: byte 6 starts no character"
    );
}

#[test]
fn one_section_makes_all_other_keys_sections() {
    let unknown = "refused: unknown section `ints`; known are `int`, `float`, `double`, `normal`, `denorm`, `normvector`, `tags` and `__subset__`";
    assert_eq!(row(r#"{"int":{"a":1},"ints":{"b":1}}"#), unknown);
    assert_eq!(row(r#"{"ints":{"b":1},"int":{"a":1}}"#), unknown);
    assert_eq!(
        row(r#"{"int":{},"float":null}"#),
        "refused: section `float` holds null, not an object"
    );
    assert_eq!(row(r#"{"int":{},"int":{}}"#), "refused: section `int` appears twice");
}

#[test]
fn wrong_types_name_column_section_and_what_was_found() {
    for (message, reason) in [
        (r#"{"int":{"rounds":"5"}}"#, "column `rounds` in section `int` holds a string"),
        (
            r#"{"int":{"rounds":1.5}}"#,
            "column `rounds` in section `int` holds 1.5, not a whole number",
        ),
        (
            r#"{"int":{"n":9223372036854775808}}"#,
            "column `n` in section `int` holds 9223372036854775808, more than a 64-bit integer can",
        ),
        (
            r#"{"int":{"n":1e400}}"#,
            "column `n` in section `int` holds 1e400, more than a 64-bit integer can",
        ),
        (
            r#"{"float":{"x":1e400}}"#,
            "column `x` in section `float` holds 1e400, more than a 64-bit float can",
        ),
        (r#"{"float":{"x":true}}"#, "column `x` in section `float` holds a boolean"),
        (r#"{"double":{"x":"1"}}"#, "column `x` in section `double` holds a string"),
        (r#"{"normal":{"x":1}}"#, "column `x` in section `normal` holds a number"),
        (r#"{"denorm":{"x":{}}}"#, "column `x` in section `denorm` holds an object"),
        (r#"{"normvector":{"x":"a"}}"#, "column `x` in section `normvector` holds a string"),
        (
            r#"{"tags":{"x":["a",1]}}"#,
            "column `x` in section `tags` holds a list with a number in it",
        ),
        (r#"{"int":{},"__subset__":1}"#, "column `__subset__` holds a number"),
        (r#"{"x":1e400}"#, "column `x` holds 1e400, more than a 64-bit float can"),
    ] {
        assert_eq!(row(message), format!("refused: {reason}"), "{message}");
    }
    assert_eq!(
        row(r#"{"int":{"n":9223372036854775807,"m":-9223372036854775808}}"#),
        "n=Int(9223372036854775807) m=Int(-9223372036854775808)"
    );
}

#[test]
fn a_key_that_appears_twice_is_refused() {
    for message in [
        r#"{"int":{"a":1,"a":2}}"#,
        r#"{"int":{"a":null,"a":2}}"#,
        r#"{"float":{"a":1},"double":{"a":1}}"#,
        r#"{"normal":{"a":"1"},"denorm":{"a":"1"}}"#,
        r#"{"a":1,"a":1}"#,
        r#"{"a":1,"a":"1"}"#,
        r#"{"a":null,"a":"1"}"#,
        r#"{"a":null,"a":null}"#,
        r#"{"a":{"b":1},"a":2}"#,
        r#"{"a":2,"a":{"b":1}}"#,
        r#"{"a":{"b":1},"a":{"c":1}}"#,
        r#"{"a":{},"a":null}"#,
        r#"{"normal":{"a":null,"a":null}}"#,
        r#"{"tags":{"a":null,"a":["x"]}}"#,
    ] {
        assert_eq!(row(message), "refused: column `a` appears twice", "{message}");
    }
    assert_eq!(row(r#"{"a":{"b":1},"a.b":2}"#), "refused: column `a.b` appears twice");
    assert_eq!(
        row(r#"{"int":{"time":1},"float":{"time":1}}"#),
        "refused: column `time` appears twice"
    );
    assert_eq!(row(r#"{"time":null,"time":1}"#), "refused: column `time` appears twice");
}

#[test]
fn broken_json_says_where_and_how() {
    for (message, reason) in [
        (
            r#"{"int":{"x":NaN}}"#,
            "byte 12: JSON has no NaN or Infinity; send null, or leave the field out",
        ),
        (
            r#"{"x":-Infinity}"#,
            "byte 5: JSON has no NaN or Infinity; send null, or leave the field out",
        ),
        (
            r#"{"x":Infinity}"#,
            "byte 5: JSON has no NaN or Infinity; send null, or leave the field out",
        ),
        ("{'x': 1}", "byte 1: expected a key in double quotes"),
        (r#"{"x":1"#, "byte 6: the JSON text ends too early, expected `,` or `}`"),
        (r#"{"x":"a"#, "byte 7: the JSON text ends too early, expected the end of a string"),
        (r#"{"x":1} y"#, "byte 8: expected the end of the text"),
        (r#"{"x":1,}"#, "byte 7: expected a key in double quotes"),
        (r#"{"x" 1}"#, "byte 5: expected `:` after a key"),
        (r#"{"x":01}"#, "byte 5: invalid number"),
        (r#"{"x":1.}"#, "byte 7: invalid number"),
        (r#"{"x":nul}"#, "byte 5: expected true, false or null"),
        (
            "{\"x\":\"a\nb\"}",
            "byte 7: a line break or other control character must be escaped inside a string",
        ),
        (r#"{"x":"\q"}"#, "byte 6: invalid escape in a string"),
        (r#"{"x":"\ud800"}"#, "byte 6: half of a surrogate pair in a string"),
    ] {
        assert_eq!(
            row(message),
            format!("refused: the message is not JSON: {reason}"),
            "{message}"
        );
    }
}

#[test]
fn nesting_has_a_limit() {
    let nested = |levels: usize| format!("{}1{}", r#"{"a":"#.repeat(levels), "}".repeat(levels));
    assert!(row(nested(64)).ends_with("=Int(1)"));
    assert!(row(nested(65)).contains("nested deeper than 64 levels"));
    assert!(row(nested(100_000)).contains("nested deeper than 64 levels"));
    assert!(
        row(format!(r#"{{"a":{}"#, "[".repeat(100_000))).contains("nested deeper than 64 levels")
    );
}

fn time_and_weight(message: &str) -> Result<(Nanos, f64), String> {
    let mut batch = open_batch();
    decode_plain(message, &mut batch)?;
    let row = batch.row(0).unwrap();
    Ok((row.time(), row.weight()))
}

#[test]
fn time_is_in_seconds_and_defaults_to_arrival() {
    let time = |message: &str| time_and_weight(message).map(|(time, _)| time.as_i64());
    assert_eq!(time(r#"{"int":{"time":1700000000}}"#), Ok(1_700_000_000_000_000_000));
    assert_eq!(time(r#"{"double":{"time":1700000000.25}}"#), Ok(1_700_000_000_250_000_000));
    assert_eq!(time(r#"{"time":1700000000.5,"a":1}"#), Ok(1_700_000_000_500_000_000));
    for message in [r#"{"int":{"a":1}}"#, r#"{"int":{"time":null}}"#, r#"{"time":null}"#, "text"] {
        assert_eq!(time(message), Ok(ARRIVAL.as_i64()), "{message}");
    }
    assert_eq!(time(r#"{"int":{"time":-5}}"#), Ok(-5_000_000_000));
    assert_eq!(time(r#"{"time":"now"}"#), Err("column `time` holds a string".to_owned()));
    assert_eq!(
        time(r#"{"normal":{"time":"now"}}"#),
        Err("column `time` in section `normal` holds a string".to_owned())
    );
}

#[test]
fn time_far_ahead_is_refused_with_a_hint() {
    let refused = |message: &str| time_and_weight(message).unwrap_err();
    let latest = ARRIVAL.as_i64() / 1_000_000_000 + 86_400;
    assert!(time_and_weight(&format!(r#"{{"time":{latest}}}"#)).is_ok());
    assert_eq!(
        refused(&format!(r#"{{"time":{}}}"#, latest + 1)),
        "`time` is 1700136401, more than 24 h after its arrival at 2023-11-15T12:06:40Z"
    );
    for (time, unit) in [
        ("1700000000000", "milliseconds"),
        ("1700000000000000", "microseconds"),
        ("1700000000000000000", "nanoseconds"),
        ("1700000000000.5", "milliseconds"),
    ] {
        let reason = refused(&format!(r#"{{"int":{{}},"double":{{"time":{time}}}}}"#));
        assert!(
            reason.ends_with(&format!("; `time` is in seconds, this looks like {unit}")),
            "{reason}"
        );
    }
    assert!(
        refused(r#"{"int":{"time":9223372036854775807}}"#)
            .starts_with("`time` is 9223372036854775807, more")
    );
    assert_eq!(
        refused(r#"{"int":{"time":-9223372036854775807}}"#),
        "`time` is -9223372036854775807, which is outside the years 1677 to 2262"
    );
}

#[test]
fn weight_is_weight_or_sample_rate_or_one() {
    let weight = |message: &str| time_and_weight(message).map(|(_, weight)| weight);
    assert_eq!(weight(r#"{"int":{"weight":5,"sample_rate":7}}"#), Ok(5.0));
    assert_eq!(weight(r#"{"float":{"weight":0.5}}"#), Ok(0.5));
    assert_eq!(weight(r#"{"int":{"sample_rate":7}}"#), Ok(7.0));
    assert_eq!(weight(r#"{"sample_rate":7,"weight":null}"#), Ok(7.0));
    assert_eq!(weight("{}"), Ok(1.0));
    assert_eq!(row(r#"{"int":{"weight":5,"sample_rate":7}}"#), "sample_rate=Int(7)");
    for bad in ["0", "-1", "1e400"] {
        let refused = weight(&format!(r#"{{"weight":{bad}}}"#)).unwrap_err();
        assert!(refused.ends_with("a row's weight must be finite and more than 0"), "{refused}");
    }
    assert!(weight(r#"{"int":{"sample_rate":0}}"#).is_err());
    assert!(weight(r#"{"int":{"sample_rate":0,"weight":1}}"#).is_ok());
}

#[test]
fn a_refused_message_leaves_the_batch_as_it_was() {
    let mut batch = open_batch();
    decode_plain(r#"{"int":{"a":1},"normal":{"b":"x"}}"#, &mut batch).unwrap();
    decode_plain(
        r#"{"int":{"a":2},"normal":{"b":"new","c":"new"},"float":{"d":"bad"}}"#,
        &mut batch,
    )
    .unwrap_err();
    decode_plain(r#"{"int":{"a":3}}"#, &mut batch).unwrap();
    assert_eq!((batch.len(), batch.columns().len()), (2, 2));
    assert_eq!(
        (show(&batch, 0), show(&batch, 1)),
        (r#"a=Int(1) b=String("x")"#.to_owned(), "a=Int(3)".to_owned())
    );
}

#[test]
fn a_declared_schema_is_checked_and_widens_ints_of_flat_messages() {
    let schema = Schema::declared_from_json(
        r#"{"int":["rounds"],"float":["mean"],"normal":["branch"],"null":"None"}"#,
    );
    let mut batch = Batch::new(Arc::new(SchemaState::new(schema.unwrap())));
    let mut add = |message: &str| {
        let registry = Registry::default();
        let decoded = decode(Codec::Message, message.as_bytes(), ARRIVAL, &registry, &mut batch);
        decoded.map(|()| show(&batch, batch.len() - 1)).map_err(|error| chain(&error))
    };
    assert_eq!(
        add(r#"{"mean":1,"rounds":2,"branch":"None","time":5}"#),
        Ok("mean=Float(1.0) rounds=Int(2)".to_owned())
    );
    assert_eq!(
        add(r#"{"int":{"rouns":1}}"#),
        Err("field `rouns` is not currently used, be intentional about adding new fields (the declared schema does not name it)".to_owned())
    );
}

#[test]
fn names_of_nested_objects_are_bounded_before_they_are_put_together() {
    // The inner fields have no value that would be checked.
    let nested = |name: usize, fields: usize| {
        let fields: Vec<_> = (0..fields).map(|n| format!(r#""{n}":null"#)).collect();
        format!(r#"{{"{}":{{{}}}}}"#, "x".repeat(name), fields.join(","))
    };
    assert_eq!(row(nested(253, 10)), "");
    let refused = row(nested(254, 11));
    assert_eq!(
        refused,
        format!("refused: column name `{}…` has 256 bytes, more than 255", "x".repeat(32))
    );
    assert!(row(nested(500_000, 1)).contains("has 500000 bytes, more than 255"));
    assert!(row(nested(1, 4095)).is_empty());
    assert!(row(nested(1, 4096)).contains("the limit is 4096"), "fields without a value too");
}

#[test]
fn names_and_quotes_are_bounded() {
    let long = "x".repeat(1000);
    let refused = row(format!(r#"{{"int":{{"{long}":"s"}}}}"#));
    assert!(refused.starts_with("refused: column `xxx") && refused.len() < 200, "{refused}");
    let refused = row(format!(r#"{{"int":{{"{long}":1}}}}"#));
    assert!(refused.contains("has 1000 bytes, more than 255") && refused.len() < 200, "{refused}");
    for unnamed in [r#"{"":1}"#, r#"{"":null}"#, r#"{"":{"time":5}}"#, r#"{"a":{"":1}}"#] {
        assert_eq!(row(unnamed), "refused: a column has no name", "{unnamed}");
    }
    let digits = "9".repeat(1000);
    assert!(row(format!(r#"{{"int":{{"n":{digits}}}}}"#)).len() < 200);
}
