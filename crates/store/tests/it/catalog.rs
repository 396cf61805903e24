//! What the catalog keeps, it gives back; what it can't read, it moves aside.

use std::fs;

use perflab_model::{CategoryName, Kind, Nanos};
use perflab_store::{
    Catalog, CatalogError, CategorySettings, Glob, Guarantee, Idl, SegmentChange, SegmentEntry,
    Token,
};
use tempfile::TempDir;

fn open(dir: &TempDir) -> Catalog {
    let (catalog, set_aside) = Catalog::open(&dir.path().join("c.sqlite"), Nanos(7)).unwrap();
    assert_eq!(set_aside, None);
    catalog
}

/// Runs `check` on the catalog as it is, and once more after it was closed and opened.
fn now_and_later(dir: &TempDir, catalog: Catalog, check: impl Fn(&Catalog)) {
    check(&catalog);
    drop(catalog);
    check(&open(dir));
}

fn token(name: &str) -> Token {
    Token {
        name: name.to_owned(),
        write: vec![Glob::new("a*"), Glob::new("b")],
        read: Vec::new(),
        admin: true,
        created: Nanos(-5),
        expires: Some(Nanos(i64::MAX)),
    }
}

#[test]
fn tokens_come_back_as_they_were() {
    let dir = TempDir::new().unwrap();
    let catalog = open(&dir);
    catalog.add_token(&[1; 32], &token("one")).unwrap();
    catalog.add_token(&[2; 32], &Token { expires: None, admin: false, ..token("two") }).unwrap();
    let again = catalog.add_token(&[3; 32], &token("one"));
    assert!(matches!(again, Err(CatalogError::TokenExists { name }) if name == "one"));
    assert!(catalog.remove_token("two").unwrap());
    assert!(!catalog.remove_token("two").unwrap());
    now_and_later(&dir, catalog, |catalog| {
        assert_eq!(catalog.tokens().unwrap(), [([1; 32], token("one"))]);
    });
}

#[test]
fn settings_come_back_as_they_were() {
    let dir = TempDir::new().unwrap();
    let catalog = open(&dir);
    let name = CategoryName::new("a/b").unwrap();
    let settings = CategorySettings {
        guarantee: Guarantee::Fast,
        retain_seconds: Some(u64::MAX),
        max_bytes: None,
    };
    catalog.set_category_settings(&name, &CategorySettings::default()).unwrap();
    catalog.set_category_settings(&name, &settings).unwrap();
    now_and_later(&dir, catalog, |catalog| {
        assert_eq!(catalog.category_settings().unwrap()[&name], settings);
    });
}

#[test]
fn datasets_come_back_with_their_columns() {
    let dir = TempDir::new().unwrap();
    let catalog = open(&dir);
    let columns = [("x".to_owned(), Kind::Int), ("x".to_owned(), Kind::Vector)];
    catalog.add_columns("d", &columns).unwrap();
    catalog.add_columns("d", &columns[..1]).unwrap();
    catalog.set_schema("d", Some("{}")).unwrap();
    catalog.set_schema("e", None).unwrap();
    now_and_later(&dir, catalog, |catalog| {
        assert_eq!(catalog.columns("d").unwrap(), columns);
        assert_eq!(catalog.columns("e").unwrap(), []);
        let datasets = catalog.datasets().unwrap();
        assert_eq!(datasets["d"].as_deref(), Some("{}"));
        assert_eq!(datasets["e"], None);
    });
}

#[test]
fn definitions_and_positions_come_back_as_they_were() {
    let dir = TempDir::new().unwrap();
    let catalog = open(&dir);
    let idl =
        |text: &str, at| Idl { name: "a".to_owned(), text: text.to_owned(), registered: Nanos(at) };
    catalog.set_idl(&idl("old", 1)).unwrap();
    catalog.set_idl(&idl("new", 2)).unwrap();
    catalog.set_spool_position("spool-1", u64::MAX).unwrap();
    now_and_later(&dir, catalog, |catalog| {
        assert_eq!(catalog.idls().unwrap(), [idl("new", 2)]);
        assert_eq!(catalog.spool_position("spool-1").unwrap(), Some(u64::MAX));
        assert_eq!(catalog.spool_position("spool-2").unwrap(), None);
    });
}

#[test]
fn whatever_the_file_holds_the_catalog_opens() {
    let sound = {
        let dir = TempDir::new().unwrap();
        let catalog = open(&dir);
        catalog.add_token(&[1; 32], &token("one")).unwrap();
        catalog.close().unwrap();
        fs::read(dir.path().join("c.sqlite")).unwrap()
    };
    let mut foreign = sound.clone();
    // The table is there under another name.
    let at = sound.windows(6).position(|window| window == b"tokens").unwrap();
    foreign[at] = b'x';
    let mut torn = sound.clone();
    torn.truncate(5000);
    let mut scribbled = sound.clone();
    scribbled[4096..].fill(0xaa);
    for content in [b"no database".to_vec(), torn, scribbled, foreign] {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("c.sqlite");
        fs::write(&path, &content).unwrap();
        let (catalog, set_aside) = Catalog::open(&path, Nanos(7)).unwrap();
        assert_eq!(fs::read(set_aside.unwrap()).unwrap(), content, "it is kept");
        assert!(catalog.has_lost_tokens().unwrap());
        catalog.add_token(&[1; 32], &token("one")).unwrap();
        now_and_later(&dir, catalog, |catalog| {
            assert!(!catalog.has_lost_tokens().unwrap());
        });
    }
}

#[test]
fn a_start_that_ended_while_a_catalog_was_replaced_does_not_hide_the_loss() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("c.sqlite");
    fs::write(dir.path().join("c.sqlite.damaged-5"), "no database").unwrap();
    // What was left in its place, and what was being built.
    fs::write(dir.path().join("c.sqlite-wal"), "no log").unwrap();
    fs::write(dir.path().join("c.sqlite.new"), "half").unwrap();
    let (catalog, set_aside) = Catalog::open(&path, Nanos(7)).unwrap();
    assert_eq!(set_aside, Some(dir.path().join("c.sqlite.damaged-5")));
    now_and_later(&dir, catalog, |catalog| {
        assert!(catalog.has_lost_tokens().unwrap());
    });
    assert!(!dir.path().join("c.sqlite.new").exists());
}

#[test]
fn a_newer_catalog_is_left_alone() {
    let dir = TempDir::new().unwrap();
    drop(open(&dir));
    let path = dir.path().join("c.sqlite");
    rusqlite::Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let error = Catalog::open(&path, Nanos(7)).unwrap_err();
    assert!(matches!(error, CatalogError::Newer { found: 99, .. }), "{error}");
    assert!(path.exists());
}

#[test]
fn a_catalog_of_before_there_were_sparse_columns_still_opens() {
    let dir = TempDir::new().unwrap();
    let catalog = open(&dir);
    let entry = SegmentEntry {
        id: 1,
        rows: 2,
        row_bytes: 3,
        list_bytes: Some(4),
        sparse_bytes: Some(5),
        min_ns: 6,
        max_ns: 7,
        first_seq: 8,
        end_seq: 9,
        cold: None,
    };
    let segments = |catalog: &Catalog| catalog.segment_sets().unwrap().remove(0).segments;
    let change = SegmentChange { added: Some(&entry), ..SegmentChange::default() };
    catalog.change_segments("d", &change).unwrap();
    assert_eq!(segments(&catalog), [entry]);
    catalog.close().unwrap();
    let before = rusqlite::Connection::open(dir.path().join("c.sqlite")).unwrap();
    before.execute_batch("ALTER TABLE segments DROP COLUMN sparse_bytes").unwrap();
    before.pragma_update(None, "user_version", 6).unwrap();
    before.close().unwrap();
    assert_eq!(segments(&open(&dir)), [SegmentEntry { sparse_bytes: None, ..entry }]);
}
