//! Request bodies to entries.

use crate::{chain, show};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use perflab_model::CategoryName;
use perflab_wire::{BodyForm, EntryCode, Limits, MessageForm, Request};
use std::io::Read;

fn limits() -> Limits {
    Limits { message_bytes_max: 100, entries_max: 5, decompressed_bytes_max: 1000 }
}

fn read(form: &BodyForm, body: impl Into<Vec<u8>>) -> Result<Request, String> {
    let body = Bytes::from(body.into());
    Request::decode(form, MessageForm::Plain, body, &limits()).map_err(|error| chain(&error))
}

/// `category: message` or `CODE reason` for each entry.
fn answers(request: &Request) -> Vec<String> {
    let answer = |entry: Result<perflab_wire::Entry<'_>, &perflab_wire::EntryError>| match entry {
        Ok(entry) => format!("{}: {}", entry.category, String::from_utf8_lossy(entry.message)),
        Err(error) => format!("{} {}", error.code(), chain(error)),
    };
    request.entries().map(answer).collect()
}

fn json(body: impl Into<Vec<u8>>) -> Result<Vec<String>, String> {
    read(&BodyForm::Json, body).map(|request| answers(&request))
}

fn logs(logs: &str) -> Vec<String> {
    json(format!(r#"{{"logs":{logs}}}"#)).unwrap()
}

const TWO: &str = r#"[{"category": "perfpipe_a", "message": "{\"int\": {\"x\": 1}}", "line_escape": false}, {"category": "b", "message": "text é"}]"#;
const TWO_READ: [&str; 2] = [r#"perfpipe_a: {"int": {"x": 1}}"#, "b: text é"];

#[test]
fn forms_bring_a_token_and_entries() {
    let mut form = form_urlencoded::Serializer::new(String::new());
    let body = form.append_pair("access_token", "1|a+b c").append_pair("logs", TWO).finish();
    let request = read(&BodyForm::UrlEncoded, body).unwrap();
    assert_eq!(answers(&request), TWO_READ);
    assert_eq!(request.token().unwrap().expose(), "1|a+b c");
    assert!(!format!("{request:?}").contains("a+b"), "the token prints itself");
    assert_eq!((request.len(), request.is_empty()), (2, false));
    assert_eq!(
        request.categories().iter().map(CategoryName::as_str).collect::<Vec<_>>(),
        ["perfpipe_a", "b"]
    );
}

#[test]
fn json_brings_logs_as_a_string_or_an_array() {
    let string = serde_json::Value::from(TWO);
    let request = read(
        &BodyForm::Json,
        format!(r#"{{"access_token":"1|x","logs":{string},"other":[{{}}]}}"#),
    )
    .unwrap();
    assert_eq!(
        (answers(&request), request.token().unwrap().expose()),
        (TWO_READ.map(str::to_owned).to_vec(), "1|x")
    );
    assert_eq!(logs(TWO), TWO_READ);
    assert_eq!(json(r#"{"access_token":null,"logs":[]}"#), Ok(vec![]));
}

fn bz2(text: &str) -> String {
    let mut compressed = Vec::new();
    bzip2::read::BzEncoder::new(text.as_bytes(), bzip2::Compression::best())
        .read_to_end(&mut compressed)
        .unwrap();
    STANDARD.encode(compressed)
}

#[test]
fn compressed_logs_are_read_up_to_a_limit() {
    assert_eq!(json(format!(r#"{{"base64_bz2_logs":"{}"}}"#, bz2(TWO))).unwrap(), TWO_READ);
    let mut form = form_urlencoded::Serializer::new(String::new());
    let body = form.append_pair("base64_bz2_logs", &bz2(TWO)).finish();
    assert_eq!(answers(&read(&BodyForm::UrlEncoded, body).unwrap()), TWO_READ);

    let bomb = format!(r#"{{"base64_bz2_logs":"{}"}}"#, bz2(&" ".repeat(100_000_000)));
    assert!(bomb.len() < 1000);
    assert_eq!(json(bomb), Err("`base64_bz2_logs` holds more than 1000 bytes".to_owned()));
    let truncated = &bz2(TWO)[..40];
    assert!(
        json(format!(r#"{{"base64_bz2_logs":"{truncated}"}}"#))
            .unwrap_err()
            .starts_with("`base64_bz2_logs` is not bzip2 data")
    );
    assert!(
        json(r#"{"base64_bz2_logs":"?"}"#)
            .unwrap_err()
            .starts_with("`base64_bz2_logs` is not base64")
    );
}

#[test]
fn ndjson_is_one_message_per_line() {
    let form = BodyForm::Ndjson { category: CategoryName::new("c").unwrap() };
    let long = "x".repeat(101);
    let body = format!("{{\"a\":1}}\n\n \r\n{{\"a\":2}}\r\n{long}\nlast");
    let request = read(&form, body).unwrap();
    assert_eq!(
        answers(&request),
        [
            r#"c: {"a":1}"#,
            r#"c: {"a":2}"#,
            "TOO_LARGE the message has 101 bytes, more than 100",
            "c: last"
        ]
    );
    assert_eq!(answers(&read(&form, "").unwrap()), [""; 0]);
    assert_eq!(
        read(&form, "a\n".repeat(6)).unwrap_err(),
        "the body has more than 5 entries; send fewer per request"
    );
}

#[test]
fn a_bad_entry_is_refused_alone() {
    let good = r#"{"category":"c","message":"m"}"#;
    for (bad, answer) in [
        ("5", "ERROR the entry holds a number, not an object"),
        ("[]", "ERROR the entry holds a list, not an object"),
        (r#"{"message":"m"}"#, "ERROR the entry has no `category`"),
        (r#"{"category":"c"}"#, "ERROR the entry has no `message`"),
        (
            r#"{"category":5,"message":"m"}"#,
            "ERROR `category` of the entry holds a number, not a string",
        ),
        (
            r#"{"category":"c","message":5}"#,
            "ERROR `message` of the entry holds a number, not a string",
        ),
        (
            r#"{"category":"c","message":"m","line_escape":1}"#,
            "ERROR `line_escape` of the entry holds a number, not true or false",
        ),
        (
            r#"{"category":"c","category":"c","message":"m"}"#,
            "ERROR the entry has `category` twice",
        ),
        (r#"{"category":"c","message":"m","message":"m"}"#, "ERROR the entry has `message` twice"),
        (
            r#"{"category":"../etc","message":"m"}"#,
            "ERROR `category` of the entry is not a category name: category name `../etc` has a part `..`, which would leave its directory",
        ),
    ] {
        let read = logs(&format!("[{good},{bad},{good}]"));
        assert_eq!(read, ["c: m", answer, "c: m"], "{bad}");
    }
    for bad in [
        r#"{"category":"c","message":"\ud800"}"#,
        r#"{"category":"c","message":{"int":{"x":NaN}}}"#,
        r#"{"category" "c"}"#,
        "{'a': 1}",
    ] {
        let read = logs(&format!("[{good},{bad},{good}]"));
        assert_eq!((&*read[0], &*read[2], read.len()), ("c: m", "c: m", 3), "{bad}");
        assert!(read[1].starts_with("ERROR the entry is not JSON: byte "), "{}", read[1]);
    }
    let deep =
        format!(r#"{{"category":"c","message":{}}}"#, "{\"a\":".repeat(70) + "1" + &"}".repeat(70));
    let read = logs(&format!("[{deep},{good}]"));
    assert!(read[0].contains("nested deeper than 64 levels") && read[1] == "c: m", "{read:?}");
}

#[test]
fn messages_have_a_limit() {
    let of = |bytes: usize| format!(r#"{{"category":"c","message":"{}"}}"#, "x".repeat(bytes));
    let read = logs(&format!("[{},{},{}]", of(100), of(101), of(1)));
    assert_eq!(
        read[1..],
        ["TOO_LARGE the message has 101 bytes, more than 100".to_owned(), "c: x".to_owned()]
    );
    assert!(read[0].starts_with("c: xxx"));
    assert_eq!(EntryCode::TooLarge.as_str(), "TOO_LARGE");
}

#[test]
fn bytes_that_are_not_utf8_refuse_only_their_entry() {
    let body = b"{\"logs\":[{\"category\":\"c\",\"message\":\"m\"},{\"category\":\"c\",\"message\":\"a\xffb\"},{\"category\":\"c\",\"message\":\"\xc3\xa9\"}]}";
    let refused = "ERROR the entry is not UTF-8: byte 28 of it starts no character";
    assert_eq!(json(&body[..]).unwrap(), ["c: m", refused, "c: é"]);
    let mut form = form_urlencoded::Serializer::new(String::new());
    let array = String::from_utf8_lossy(&body[8..body.len() - 1]).replace('\u{fffd}', "MARK");
    let body = form.append_pair("logs", &array).finish().replace("MARK", "%FF");
    assert_eq!(answers(&read(&BodyForm::UrlEncoded, body).unwrap()), ["c: m", refused, "c: é"]);
}

#[test]
fn line_escape_and_message_objects() {
    assert_eq!(
        logs(
            r#"[{"category":"c","message":"a\\nb\\\\n\\x\\","line_escape":true},{"line_escape":true,"category":"c","message":"{}"},{"category":"c","message":"a\\nb","line_escape":null}]"#
        ),
        ["c: a\nb\\n\\x\\", "c: {}", "c: a\\nb"]
    );
    assert_eq!(
        logs(r#"[{"category":"c","message":{"int": {"x": 1}}}]"#),
        [r#"c: {"int": {"x": 1}}"#]
    );
    assert_eq!(
        logs(r#"[{"category":"c","message":{"a": "x\ny\\z"},"line_escape":true}]"#),
        [r#"c: {"a": "x\ny\\z"}"#],
        "an object has no lines to escape"
    );
}

#[test]
fn places_in_an_entry_are_counted_from_its_start() {
    let bad = r#"{"category" "c"}"#;
    let reason = "ERROR the entry is not JSON: byte 12: expected `:` after a key";
    for before in ["", r#"{"category":"c","message":"m"}, "#, "[],\n\t "] {
        let read = logs(&format!("[{before}{bad}]"));
        assert_eq!(read.last().unwrap(), reason, "after `{before}`");
    }
}

/// Characters that no text should hold, but that are characters.
#[test]
fn noncharacters_are_kept_beside_bytes_that_are_not_utf8() {
    let nonchars: String = ('\u{fdd0}'..='\u{fdee}').collect();
    let escaped = r"\ufdd0\uFDEF";
    let entry =
        |message: &[u8]| [br#"{"category":"c","message":""#, message, br#""}"#.as_slice()].concat();
    let body = |array: &[u8]| [b"{\"logs\":", array, b"}"].concat();
    let array = |entries: &[Vec<u8>]| [b"[", entries.join(&b","[..]).as_slice(), b"]"].concat();

    let some = array(&[entry("\u{fdd1}".as_bytes()), entry(b"\xff"), entry(br"\ufdd0")]);
    let read = json(body(&some)).unwrap();
    assert_eq!((&*read[0], &*read[2]), ("c: \u{fdd1}", "c: \u{fdd0}"));
    assert!(read[1].starts_with("ERROR the entry is not UTF-8"), "{}", read[1]);

    // The same inside a string: an escape there is a character of the array.
    let inner = br#""[{\"category\":\"c\",\"message\":\"\ufdd0\"},{\"category\":\"c\",\"message\":\"X\"}]""#;
    let inner: Vec<u8> = inner.iter().map(|&byte| if byte == b'X' { 0xff } else { byte }).collect();
    let read = json(body(&inner)).unwrap();
    assert_eq!(read[0], "c: \u{fdd0}");
    assert!(read[1].starts_with("ERROR the entry is not UTF-8"), "{}", read[1]);

    let all = array(&[entry(nonchars.as_bytes()), entry(escaped.as_bytes()), entry(b"\xff")]);
    assert!(json(body(&all)).unwrap_err().contains("every noncharacter from U+FDD0 to U+FDEF"));
    let fine = array(&[entry(nonchars.as_bytes()), entry(escaped.as_bytes())]);
    assert_eq!(json(body(&fine)).unwrap().len(), 2, "without bad bytes no mark is needed");
}

#[test]
fn a_body_that_is_hardly_text_is_refused_whole() {
    let bad = vec![0xff; (1 << 20) + 1];
    let refused = json(bad).unwrap_err();
    assert_eq!(refused, "the body is not UTF-8 in more than 1048576 places");
}

#[test]
fn bodies_that_cannot_be_read_say_where() {
    for (body, reason) in [
        ("", "the body is not JSON: byte 0: the JSON text ends too early, expected an object"),
        ("[]", "the body is not JSON: byte 0: expected an object"),
        ("{}", "the body has neither `logs` nor `base64_bz2_logs`"),
        (r#"{"logs":5}"#, "`logs` holds a number, not an array of entries"),
        (r#"{"logs":"5"}"#, "`logs` is not a JSON array of entries: byte 0: expected a list"),
        (r#"{"logs":[],"logs":[]}"#, "the body has `logs` twice"),
        (
            r#"{"access_token":"a","access_token":"a","logs":[]}"#,
            "the body has `access_token` twice",
        ),
        (r#"{"access_token":5,"logs":[]}"#, "`access_token` holds a number, not a string"),
        (
            r#"{"logs":[{"category":"c","mess"#,
            "`logs` is not a JSON array of entries: byte 30: the JSON text ends too early, expected the end of a string",
        ),
        (
            r#"{"logs":[{"category":"c","message":"m"}"#,
            "`logs` is not a JSON array of entries: byte 39: the JSON text ends too early, expected `,` or `]`",
        ),
        (
            r#"{"logs":[1 2]}"#,
            "`logs` is not a JSON array of entries: byte 11: expected `,` or `]`",
        ),
        (r#"{"logs":[]} x"#, "the body is not JSON: byte 12: expected the end of the text"),
        (r#"{"logs":[1,2,3,4,5,6]}"#, "the body has more than 5 entries; send fewer per request"),
    ] {
        assert_eq!(json(body), Err(reason.to_owned()), "{body}");
    }
    assert_eq!(
        json(format!(r#"{{"logs":[],"base64_bz2_logs":"{}"}}"#, bz2("[]"))),
        Err("the body has both `logs` and `base64_bz2_logs`; send one of them".to_owned())
    );
    let form = |body: &str| read(&BodyForm::UrlEncoded, body).map(|request| answers(&request));
    assert_eq!(form("x=1"), Err("the body has neither `logs` nor `base64_bz2_logs`".to_owned()));
    assert_eq!(
        form("logs=%5B&logs=%5B%5D").unwrap_err(),
        "`logs` is not a JSON array of entries: byte 1: the JSON text ends too early, expected `,` or `]`"
    );
    assert_eq!(form("access_token=%ff&logs=[]"), Err("the access token is not UTF-8".to_owned()));
    assert_eq!(form("access_token&logs=[]"), Ok(vec![]));
}

/// The bodies of the seeds' clients, byte for byte as `requests` sends them.
#[test]
fn a_recorded_form_of_requests_is_read() {
    let body = include_bytes!("../fixtures/bodies/requests_form.txt");
    let body = Bytes::copy_from_slice(body.trim_ascii_end());
    let request =
        Request::decode(&BodyForm::UrlEncoded, MessageForm::Plain, body, &Limits::default())
            .unwrap();
    let mut batch = crate::open_batch();
    for entry in request.entries() {
        let entry = entry.unwrap();
        assert_eq!(entry.category.dataset(), "pytorch_benchmarks");
        crate::decode_plain(entry.message, &mut batch).unwrap();
    }
    assert_eq!(
        show(&batch, 0),
        r#"rounds=Int(5) benchmark_name=String("test_lstm[aten] é") pytorch_git_dirty=String("None") mean=Float(0.012345678901234567)"#
    );
    assert_eq!(
        show(&batch, 1),
        r#"rounds=Int(6) benchmark_name=String("100% \"quoted\" \\ back")"#
    );
}

#[test]
fn what_a_refused_entry_was_is_kept() {
    let bad = r#"{"category": "../a", "message": "m"}"#;
    let body = format!(r#"{{"logs": [{{"category": "a", "message": "x"}}, {bad}, 7]}}"#);
    let request = read(&BodyForm::Json, body).unwrap();
    let kept: Vec<_> = (0..3).map(|index| request.refused_text(index)).collect();
    assert_eq!(kept, [&b""[..], bad.as_bytes(), b"7"]);
    assert_eq!(answers(&request)[0], "a: x", "its neighbour is as it was");
    let entry = |index| request.entry(index).map(|entry| entry.message.to_vec());
    assert_eq!([entry(0), entry(1), entry(3)], [Some(b"x".to_vec()), None, None]);

    let body = b"{\"logs\":[{\"message\":\"\xff\"}]}";
    let kept = read(&BodyForm::Json, &body[..]).unwrap().refused_text(0).to_vec();
    assert_eq!(String::from_utf8(kept).unwrap(), "{\"message\":\"\u{fffd}\"}");

    let category = CategoryName::new("c").unwrap();
    let request = read(&BodyForm::Ndjson { category }, format!("x\n{}\n", "y".repeat(101)));
    assert_eq!(request.unwrap().refused_text(1), "y".repeat(101).as_bytes());
}
