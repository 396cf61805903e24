//! The store may fall behind the log; it says so, and catches up.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use perflab_log::Group;
use perflab_model::ManualClock;
use perflab_store::{Home, HomeSettings, Keys, Sequences, TableLimits};
use proptest::prelude::*;
use tempfile::TempDir;

use crate::rig::{NOW, PATIENCE, flush, log, log_with_keys, open_at, rows, rows_of};

/// Everything is small, so that little is needed to fill it.
fn small() -> HomeSettings {
    let tables = TableLimits {
        freeze_rows: 4,
        flush_rows: 16,
        segment_rows: 200,
        memory_bytes: 4000,
        ..TableLimits::DEFAULT
    };
    HomeSettings { tables, ..HomeSettings::default() }
}

/// A home that has nothing but the log of another one.
fn rebuilt_from_log(dir: &Path, clock: &Arc<ManualClock>) -> (TempDir, Arc<Home>) {
    let copy = TempDir::new().unwrap();
    fs::create_dir(copy.path().join("log")).unwrap();
    for file in fs::read_dir(dir.join("log")).unwrap() {
        let path = file.unwrap().path();
        fs::copy(&path, copy.path().join("log").join(path.file_name().unwrap())).unwrap();
    }
    let home = open_at(copy.path(), small(), clock);
    (copy, home)
}

#[test]
fn what_others_append_to_the_log_is_found_there() {
    let dir = TempDir::new().unwrap();
    let clock = Arc::new(ManualClock::new(NOW));
    let home = open_at(dir.path(), HomeSettings::default(), &clock);
    log(&home, "d", "{\"n\":1}");
    let mut group = Group::new("d", NOW.as_i64()).unwrap();
    group.push(0, &[b"\x01{\"n\":2}"]).unwrap();
    home.log().append_and_wait(group).unwrap();
    log(&home, "d", "{\"n\":3}");
    assert!(home.wait_until_current(PATIENCE));
    assert_eq!(rows(&home, "d").len(), 3);
}

#[test]
fn while_files_cannot_be_written_memory_is_bounded_and_nothing_is_lost() {
    let dir = TempDir::new().unwrap();
    let clock = Arc::new(ManualClock::new(NOW));
    let home = open_at(dir.path(), small(), &clock);
    // A file where the folder of segments should be.
    fs::write(dir.path().join("segments"), "in the way").unwrap();
    for n in 0..500 {
        log(&home, "d", &format!("{{\"n\":{n}}}"));
    }
    home.tend();
    let snapshot = home.snapshot("d").unwrap();
    assert_eq!(snapshot.missing.len(), 1, "{:?}", snapshot.missing);
    let held = rows_of(&snapshot).len();
    assert!(held < 400, "{held} rows in memory");
    assert_eq!(snapshot.missing[0], format!("the store is {} records behind the log", 500 - held));
    fs::remove_file(dir.path().join("segments")).unwrap();
    home.tend();
    assert_eq!(rows(&home, "d").len(), 500);
    log(&home, "d", "{\"n\":500}");
    assert_eq!(rows(&home, "d").len(), 501, "it follows the log again");
}

#[test]
fn a_catalog_that_is_lost_loses_no_row_that_the_log_has() {
    let dir = TempDir::new().unwrap();
    let clock = Arc::new(ManualClock::new(NOW));
    let home = open_at(dir.path(), small(), &clock);
    log(&home, "d", "{\"n\":1}\n{\"n\":2}");
    flush(&home, &clock);
    let before = rows(&home, "d");
    drop(home);
    fs::write(dir.path().join("catalog.sqlite"), "garbage").unwrap();
    let home = open_at(dir.path(), small(), &clock);
    assert_eq!(rows(&home, "d"), before);
    let aside = fs::read_dir(dir.path().join("quarantine")).unwrap().next().unwrap().unwrap();
    assert_eq!(fs::read_dir(aside.path().join("1")).unwrap().count(), 1, "nor its file");
}

#[test]
fn a_log_that_is_lost_takes_no_segment_along_and_hides_no_new_row() {
    let dir = TempDir::new().unwrap();
    let clock = Arc::new(ManualClock::new(NOW));
    let home = open_at(dir.path(), small(), &clock);
    log(&home, "d", "{\"n\":1}\n{\"n\":2}");
    flush(&home, &clock);
    drop(home);
    fs::remove_dir_all(dir.path().join("log")).unwrap();
    let home = open_at(dir.path(), small(), &clock);
    log(&home, "d", "{\"n\":3}");
    assert_eq!(rows(&home, "d").len(), 3);
    flush(&home, &clock);
    drop(home);
    assert_eq!(rows(&open_at(dir.path(), small(), &clock), "d").len(), 3);
}

#[test]
fn rows_that_came_long_ago_go_into_a_file_at_the_next_start() {
    let dir = TempDir::new().unwrap();
    let clock = Arc::new(ManualClock::new(NOW));
    let home = open_at(dir.path(), small(), &clock);
    log(&home, "d", "{\"n\":1}");
    drop(home);
    clock.advance(TableLimits::DEFAULT.flush_after);
    let home = open_at(dir.path(), small(), &clock);
    home.tend();
    assert_eq!(home.datasets().unwrap()[0].segments, 1);
}

#[derive(Debug, Clone)]
enum Step {
    /// So many rows for one of a few datasets, from this number of their producer on.
    Log {
        dataset: usize,
        from: u64,
        rows: u64,
    },
    Query(usize),
    Flush,
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..3_usize, 0..60_u64, 1..12_u64)
            .prop_map(|(dataset, from, rows)| Step::Log { dataset, from, rows }),
        2 => (0..3_usize).prop_map(Step::Query),
        2 => Just(Step::Flush),
        1 => Just(Step::Restart),
    ]
}

/// Two categories of one dataset, and another one.
const CATEGORIES: [&str; 3] = ["d", "perfpipe_d", "e/f"];

fn do_step(home: Arc<Home>, dir: &Path, clock: &Arc<ManualClock>, step: &Step) -> Arc<Home> {
    match *step {
        Step::Log { dataset, from, rows } => {
            let lines: Vec<_> = (from..from + rows)
                .map(|n| format!("{{\"n\":{n},\"s\":\"{}\",\"time\":{}}}", n % 3, 1000 - n))
                .collect();
            let keys = Keys { producer: "p".to_owned(), sequences: Sequences::From(from) };
            log_with_keys(&home, CATEGORIES[dataset], &lines.join("\n"), Some(&keys));
        }
        Step::Query(dataset) => {
            drop(home.snapshot(["d", "d", "e/f"][dataset]));
        }
        Step::Flush => flush(&home, clock),
        Step::Restart => {
            drop(home);
            return open_at(dir, small(), clock);
        }
    }
    home
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn a_store_is_what_its_log_says(steps in proptest::collection::vec(step(), 1..40)) {
        let dir = TempDir::new().unwrap();
        let clock = Arc::new(ManualClock::new(NOW));
        let mut home = open_at(dir.path(), small(), &clock);
        for step in &steps {
            home = do_step(home, dir.path(), &clock, step);
        }
        prop_assert!(home.wait_until_current(PATIENCE));
        let names = home.dataset_names();
        let found: Vec<_> = names.iter().map(|name| rows(&home, name)).collect();
        let in_log: u64 = home.log().categories().values().map(|span| span.records).sum();
        prop_assert_eq!(found.iter().map(Vec::len).sum::<usize>() as u64, in_log);
        drop(home);
        let (_copy, rebuilt) = rebuilt_from_log(dir.path(), &clock);
        for (name, found) in names.iter().zip(found).filter(|(_, found)| !found.is_empty()) {
            prop_assert_eq!(rows(&rebuilt, name), found, "{}", name);
        }
    }
}
