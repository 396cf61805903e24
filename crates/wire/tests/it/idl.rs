//! Thrift documents.

use perflab_wire::Registry;
use proptest::prelude::*;

fn register(idl: &str) -> Result<Vec<String>, String> {
    Registry::default().register(idl).map_err(|error| error.to_string())
}

#[test]
fn what_log_messages_do_not_need_is_skipped() {
    let idl = r#"
        namespace * perflab.test
        namespace py x.y (a = "b")
        include "other.thrift"
        # a comment
        const map<string, list<i32>> NUMBERS = {"a": [1, 2], "b": []};
        const i32 ONE = 1
        @annotation.Thing{value = {"x": 1}}
        struct ALogEntry { /* inside */
            1: required i64 time = 5 (key = "value"),
            -2: optional map<string, list<set<binary>>> nested;
            @deprecated
            3: string last
        } (more = "annotations")
        union BLogEntry { 1: bool yes }
        service S extends T { void ping(1: i32 x) throws (1: E e), oneway void go() }
        struct Other { 1: Other self }
    "#;
    assert_eq!(register(idl), Ok(vec!["A".to_owned(), "B".to_owned()]));
}

#[test]
fn mistakes_are_said_with_their_line() {
    for (idl, reason) in [
        ("struct A {\n 1: i64\n}", "line 3: expected the field's name, found `}`"),
        (
            "struct ALogEntry {\n\n 1: Strin name\n}",
            "line 3: unknown type `Strin`; includes are not read, its definition must be in this document",
        ),
        (
            "struct ALogEntry {\n 1: i64 a\n 1: i64 b\n}",
            "line 3: field id 1 is used twice in struct `ALogEntry`",
        ),
        (
            "struct ALogEntry {\n 1: i64 a\n 2: i64 a\n}",
            "line 3: field `a` appears twice in struct `ALogEntry`",
        ),
        ("struct ALogEntry {\n i64 a\n}", "line 2: field `a` has no id"),
        ("struct A {}\nstruct A {}", "line 2: `A` is defined twice"),
        ("struct A { 99999: i64 a }", "line 1: number `99999` does not fit"),
        (
            "typedef A B\ntypedef B A\nstruct XLogEntry { 1: A a }",
            "line 1: typedef `A` leads back to itself",
        ),
        ("struct A {", "line 1: expected a field (`1: string name`) or `}`, found the end"),
        ("strut A {}", "line 1: expected a definition (struct, enum, typedef, …), found `strut`"),
        ("\n/* no end", "line 2: a comment or string has no end"),
        (
            "struct A {}",
            "line 1: no struct is called `…LogEntry`, which is what describes a logger's messages",
        ),
        (
            "",
            "line 1: no struct is called `…LogEntry`, which is what describes a logger's messages",
        ),
    ] {
        assert_eq!(register(idl), Err(reason.to_owned()), "{idl}");
    }
}

#[test]
fn documents_have_limits() {
    let deep = format!(
        "struct ALogEntry {{ 1: {}i64{} a }}",
        "list<".repeat(100_000),
        ">".repeat(100_000)
    );
    assert_eq!(register(&deep), Err("line 1: types are nested deeper than 32 levels".to_owned()));
    let typedef = |level: usize| {
        let next = level + 1;
        format!("typedef map<T{level}, map<T{level}, map<T{level}, T{level}>>> T{next}\n")
    };
    let typedefs: String = (0..15).map(typedef).collect();
    let doubling = format!("typedef i64 T0\n{typedefs}struct ALogEntry {{ 1: T15 a }}");
    assert!(register(&doubling).unwrap_err().contains("too many types"));
    let deep = |inner: &str| format!("{}{inner}{}", "list<".repeat(32), ">".repeat(32));
    let typedefs: String =
        (0..15).map(|n| format!("typedef {} T{}\n", deep(&format!("T{n}")), n + 1)).collect();
    let fields: String = (1..300).map(|id| format!("{id}: T15 a{id}\n")).collect();
    let nested = format!("typedef i64 T0\n{typedefs}struct ALogEntry {{ {fields} }}");
    assert!(register(&nested).unwrap_err().contains("too many types, more than 100000"));
    assert!(register(&" ".repeat((1 << 20) + 1)).unwrap_err().contains("more than 1048576"));
}

proptest! {
    #[test]
    fn any_text_is_parsed_or_refused(idl in "(struct|enum|typedef|list|map|LogEntry|[a-z{}<>()\\[\\]:;,=@\"'/*# \n0-9.-]){0,40}") {
        drop(register(&idl));
    }
}
