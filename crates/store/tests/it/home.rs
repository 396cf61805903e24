//! Opening, closing and what outlives both.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use perflab_model::{Kind, ManualClock};
use perflab_store::{
    CategorySettings, Glob, Home, HomeError, HomeSettings, NewToken, REJECTED, TokenError,
};
use tempfile::TempDir;

use crate::rig::{NOW, flush, log, messages, open, open_at, open_with};

#[test]
fn a_home_has_one_owner_at_a_time() {
    let dir = TempDir::new().unwrap();
    let home = open(dir.path());
    let second = Home::open(dir.path(), HomeSettings::default(), Arc::new(ManualClock::new(NOW)));
    match second {
        Err(HomeError::Held { pid, .. }) => assert_eq!(pid, Some(std::process::id())),
        other => panic!("{other:?}"),
    }
    home.close();
    assert_eq!(fs::read_to_string(dir.path().join("lock")).unwrap(), "", "nobody has it");
    drop(open(dir.path()));
    drop(open(dir.path()));
}

#[test]
fn a_new_home_is_for_its_owner_only() {
    let dir = TempDir::new().unwrap();
    let inner = dir.path().join("a/b");
    let home = open(&inner);
    assert_eq!(fs::metadata(&inner).unwrap().permissions().mode() & 0o777, 0o700);
    drop(home);
}

#[test]
fn a_damaged_catalog_does_not_take_the_log_with_it() {
    let dir = TempDir::new().unwrap();
    let home = open(dir.path());
    log(&home, "c", "kept");
    drop(home);
    fs::write(dir.path().join("catalog.sqlite"), "garbage").unwrap();
    let home = open(dir.path());
    assert!(home.report().catalog_set_aside.is_some());
    assert!(!home.tokens().nobody_needs_one());
    assert_eq!(messages(&home, "c"), ["kept"]);
}

#[test]
fn columns_are_recorded_and_limit_the_next_start() {
    let dir = TempDir::new().unwrap();
    let settings = HomeSettings { columns_max: 2, ..HomeSettings::default() };
    let home = open_with(dir.path(), settings.clone());
    log(&home, "perfpipe_d", "{\"a\":1,\"b\":\"x\"}");
    assert_eq!(home.recorded_columns("d").unwrap(), [], "not while a row waits");
    home.record_columns().unwrap();
    let columns = [("a".to_owned(), Kind::Int), ("b".to_owned(), Kind::String)];
    assert_eq!(home.recorded_columns("d").unwrap(), columns);
    drop(home);
    let home = open_with(dir.path(), settings);
    let answer = log(&home, "d", "{\"c\":1}\n{\"b\":\"y\"}");
    assert_eq!(answer.outcomes[0].code.as_str(), "ERROR");
    assert_eq!(answer.outcomes[1].code.as_str(), "OK");
}

#[test]
fn closing_records_columns_and_refuses_more() {
    let dir = TempDir::new().unwrap();
    let home = open(dir.path());
    log(&home, "d", "{\"a\":1}");
    home.close();
    let answer = log(&home, "d", "{\"a\":2}");
    assert_eq!(answer.outcomes[0].code.as_str(), "TRY_LATER");
    drop(home);
    let home = open(dir.path());
    assert_eq!(home.recorded_columns("d").unwrap(), [("a".to_owned(), Kind::Int)]);
    assert_eq!(messages(&home, "d"), ["{\"a\":1}"]);
}

#[test]
fn retention_follows_the_settings() {
    let dir = TempDir::new().unwrap();
    let mut settings = HomeSettings::default();
    settings.log.file_bytes_max = 64 << 10;
    let clock = Arc::new(ManualClock::new(NOW));
    let home = open_at(dir.path(), settings, &clock);
    let brief = perflab_model::CategoryName::new("brief").unwrap();
    let kept = CategorySettings { max_bytes: Some(50_000), ..CategorySettings::default() };
    home.set_category_settings(&brief, kept).unwrap();
    let line = "x".repeat(10_000);
    for _ in 0..40 {
        log(&home, "brief", &format!("{line}\n{line}"));
        log(&home, "forever", &line);
    }
    flush(&home, &clock);
    let retained = home.retain().unwrap();
    assert!(retained.records_removed > 0, "{retained:?}");
    assert_eq!(messages(&home, "forever").len(), 40);
    assert!(messages(&home, "brief").len() < 80);
    let rejected = perflab_model::CategoryName::new(REJECTED).unwrap();
    assert_eq!(home.category_settings(&rejected).max_bytes, Some(64 << 20));
}

fn new_token(name: &str) -> NewToken {
    let (write, read) = (vec![Glob::new("*")], Vec::new());
    NewToken { name: name.to_owned(), write, read, admin: false, expires_in: None }
}

#[test]
fn tokens_changed_at_once_end_up_as_the_catalog_says() {
    let dir = TempDir::new().unwrap();
    let home = open(dir.path());
    std::thread::scope(|scope| {
        for thread in ["a", "b", "c"] {
            let home = &home;
            scope.spawn(move || {
                for n in 0..10 {
                    let name = format!("{thread}{n}");
                    let secret = home.add_token(new_token(&name)).unwrap();
                    assert!(home.remove_token(&name).unwrap());
                    assert_eq!(home.tokens().find(&secret, NOW), None, "{name} is revoked");
                }
            });
        }
    });
    assert!(home.tokens().is_empty());
}

#[test]
fn a_pattern_with_a_line_break_is_refused() {
    let dir = TempDir::new().unwrap();
    let home = open(dir.path());
    let token = NewToken { write: vec![Glob::new("a\nb*")], ..new_token("t") };
    let error = home.add_token(token).unwrap_err();
    assert!(matches!(error, TokenError::Pattern { .. }), "{error}");
}

#[test]
fn a_definition_that_was_replaced_is_forgotten_at_once() {
    let dir = TempDir::new().unwrap();
    let home = open(dir.path());
    home.register_idl("x", "struct ALogEntry { 1: i64 time }").unwrap();
    home.register_idl("y", "struct CLogEntry { 1: i64 time }").unwrap();
    home.register_idl("x", "struct BLogEntry { 1: i64 time }").unwrap();
    let knows = |home: &Home| {
        let registry = format!("{:?}", home.registry());
        ["ALogEntry", "BLogEntry", "CLogEntry"].map(|name| registry.contains(name))
    };
    assert_eq!(knows(&home), [false, true, true]);
    drop(home);
    assert_eq!(knows(&open(dir.path())), [false, true, true], "as after a start");
}
