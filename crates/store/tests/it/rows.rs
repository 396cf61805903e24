//! Rows can be queried once they are acknowledged, and stay so in files.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use perflab_model::{CategoryName, ManualClock, Nanos};
use perflab_store::{
    CategorySettings, DatasetInfo, DatasetSettings, Guarantee, Home, HomeSettings, Keys, REJECTED,
    Sequences, SnapshotError, TableLimits,
};
use tempfile::TempDir;

use crate::rig::{NOW, flush, log, log_with_keys, open, open_at, open_with, rows, rows_of};

/// The text that [`rows`] gives for a message of one number.
fn row(n: u64) -> String {
    format!("{}*1 n={n}", NOW.as_i64())
}

fn numbers(range: std::ops::Range<u64>) -> String {
    range.map(|n| format!("{{\"n\":{n}}}\n")).collect()
}

fn sorted_rows(range: std::ops::Range<u64>) -> Vec<String> {
    let mut rows: Vec<String> = range.map(row).collect();
    rows.sort();
    rows
}

/// Everything is small, so that little is needed to fill it.
fn small() -> HomeSettings {
    let tables =
        TableLimits { freeze_rows: 8, flush_rows: 32, segment_rows: 1000, ..TableLimits::DEFAULT };
    HomeSettings { tables, ..HomeSettings::default() }
}

#[test]
fn what_is_acknowledged_can_be_read() {
    let dir = TempDir::new().unwrap();
    let home = open(dir.path());
    for n in 0..20 {
        log(&home, "perfpipe_d", &numbers(n * 3..n * 3 + 3));
        assert_eq!(rows(&home, "d"), sorted_rows(0..n * 3 + 3));
    }
    assert!(home.snapshot("d").unwrap().segments.len() < 6, "small images are merged");
    let unknown = home.snapshot("e").unwrap_err();
    assert!(matches!(unknown, SnapshotError::Unknown { .. }), "{unknown}");
    assert!(home.dataset_names().contains("d"));
}

#[test]
fn refused_entries_and_fast_ones_are_rows_too() {
    let dir = TempDir::new().unwrap();
    let home = open(dir.path());
    log(&home, "d", "{");
    assert_eq!(rows(&home, REJECTED).len(), 1);
    let quick = CategoryName::new("quick").unwrap();
    let fast = CategorySettings { guarantee: Guarantee::Fast, ..CategorySettings::default() };
    home.set_category_settings(&quick, fast).unwrap();
    log(&home, "quick", &numbers(0..3));
    // Commits are in order: this one's answer comes after the fast one's rows.
    log(&home, "d", "x");
    assert_eq!(rows(&home, "quick"), sorted_rows(0..3));
}

#[test]
fn what_the_log_has_already_is_one_row() {
    let dir = TempDir::new().unwrap();
    let home = open(dir.path());
    let keys = |listed: &[u64]| Keys {
        producer: "p".to_owned(),
        sequences: Sequences::Listed(listed.to_vec()),
    };
    log_with_keys(&home, "d", &numbers(1..3), Some(&keys(&[1, 2])));
    log_with_keys(&home, "d", &numbers(0..5), Some(&keys(&[0, 1, 2, 3, 4])));
    log_with_keys(&home, "d", &numbers(0..5), Some(&keys(&[0, 1, 2, 3, 4])));
    assert_eq!(rows(&home, "d"), sorted_rows(0..5));
}

#[test]
fn a_snapshot_does_not_change() {
    let dir = TempDir::new().unwrap();
    let clock = Arc::new(ManualClock::new(NOW));
    let home = open_at(dir.path(), small(), &clock);
    log(&home, "d", &numbers(0..5));
    let before = home.snapshot("d").unwrap();
    log(&home, "d", &numbers(5..50));
    flush(&home, &clock);
    assert_eq!(rows_of(&before), sorted_rows(0..5));
    assert_eq!(rows(&home, "d"), sorted_rows(0..50));
}

#[test]
fn rows_go_into_files_after_a_while_and_are_not_read_from_the_log_again() {
    let dir = TempDir::new().unwrap();
    let clock = Arc::new(ManualClock::new(NOW));
    let home = open_at(dir.path(), HomeSettings::default(), &clock);
    log(&home, "a/b", &numbers(0..10));
    home.tend();
    assert_eq!(home.datasets().unwrap()[0].segments, 0, "not due yet");
    flush(&home, &clock);
    let info = home.datasets().unwrap().remove(0);
    assert_eq!((&*info.name, info.rows, info.memory_rows, info.segments), ("a/b", 10, 0, 1));
    assert_eq!((info.times, info.columns), (Some((NOW, NOW)), 1));
    log(&home, "a/b", &numbers(10..12));
    drop(home);
    let home = open_at(dir.path(), HomeSettings::default(), &clock);
    assert_eq!(rows(&home, "a/b"), sorted_rows(0..12));
    let info = home.datasets().unwrap().remove(0);
    assert_eq!((info.rows, info.memory_rows, info.segments), (12, 2, 1));
}

#[test]
fn a_clean_end_leaves_the_next_start_little_to_read_from_the_log() {
    let dir = TempDir::new().unwrap();
    let clock = Arc::new(ManualClock::new(NOW));
    let reopened = |home: Arc<Home>| {
        drop(home);
        let home = open_at(dir.path(), small(), &clock);
        let infos = home.datasets().unwrap().into_iter();
        let rows_of = |info: DatasetInfo| (info.rows, info.memory_rows);
        let infos = infos.filter(|info| info.rows > 0).map(rows_of).collect::<Vec<_>>();
        (home, infos)
    };
    let home = open_at(dir.path(), small(), &clock);
    log(&home, "few", &numbers(0..4));
    let (home, infos) = reopened(home);
    assert_eq!(infos, [(4, 4)], "a file for each few rows would be too many files");
    log(&home, "more", &numbers(0..10));
    assert!(home.datasets().unwrap().iter().all(|info| info.segments == 0), "not due yet");
    let (home, infos) = reopened(home);
    assert_eq!(infos, [(4, 0), (10, 0)]);
    assert_eq!((rows(&home, "few"), rows(&home, "more")), (sorted_rows(0..4), sorted_rows(0..10)));
}

#[test]
fn full_tables_are_written_by_themselves() {
    let dir = TempDir::new().unwrap();
    let home = open_with(dir.path(), small());
    for n in 0..40 {
        log(&home, "d", &numbers(n * 10..n * 10 + 10));
    }
    home.tend();
    let info = home.datasets().unwrap().remove(0);
    assert!(info.segments > 0 && info.memory_rows < 64, "{info:?}");
    assert_eq!(rows(&home, "d"), sorted_rows(0..400));
}

#[test]
fn small_segments_become_few() {
    let dir = TempDir::new().unwrap();
    let clock = Arc::new(ManualClock::new(NOW));
    let home = open_at(dir.path(), small(), &clock);
    for n in 0..30 {
        log(&home, "d", &numbers(n..n + 1));
        flush(&home, &clock);
    }
    let info = home.datasets().unwrap().remove(0);
    assert!(info.segments < 8, "{info:?}");
    let files = std::fs::read_dir(dir.path().join("segments/1")).unwrap().count();
    assert_eq!(files, info.segments, "what was merged is gone");
    assert_eq!(rows(&home, "d"), sorted_rows(0..30));
}

#[test]
fn segments_go_when_their_dataset_says_so() {
    let dir = TempDir::new().unwrap();
    let clock = Arc::new(ManualClock::new(NOW));
    let home = open_at(dir.path(), small(), &clock);
    log(&home, "d", &numbers(0..1));
    flush(&home, &clock);
    log(&home, "d", &format!("{{\"n\":7,\"time\":{}}}", NOW.as_i64() / 1_000_000_000 + 3600));
    flush(&home, &clock);
    let settings = DatasetSettings { retain_seconds: Some(3600), ..DatasetSettings::default() };
    home.set_dataset_settings("d", settings).unwrap();
    clock.set(Nanos(NOW.as_i64() + 3601 * 1_000_000_000));
    home.tend();
    assert_eq!(rows(&home, "d").len(), 1);
    drop(home);
    let home = open_at(dir.path(), small(), &clock);
    assert_eq!(home.dataset_settings("d"), settings);
    assert_eq!(rows(&home, "d").len(), 1, "not read from the log again");
    let none = DatasetSettings { max_bytes: Some(0), ..DatasetSettings::default() };
    home.set_dataset_settings("d", none).unwrap();
    home.tend();
    assert_eq!(rows(&home, "d"), [""; 0]);
    drop(home);
    let home = open_at(dir.path(), small(), &clock);
    assert_eq!(rows(&home, "d"), [""; 0]);
}

#[test]
fn nothing_leaves_the_log_before_it_is_in_a_segment() {
    let dir = TempDir::new().unwrap();
    let clock = Arc::new(ManualClock::new(NOW));
    let mut settings = HomeSettings::default();
    settings.log.file_bytes_max = 64 << 10;
    let home = open_at(dir.path(), settings, &clock);
    let brief = CategoryName::new("brief").unwrap();
    let kept = CategorySettings { retain_seconds: Some(1), ..CategorySettings::default() };
    home.set_category_settings(&brief, kept).unwrap();
    for _ in 0..100 {
        log(&home, "brief", &"x".repeat(100_000));
    }
    clock.advance(Duration::from_secs(60));
    assert_eq!(home.retain().unwrap().records_removed, 0, "held");
    flush(&home, &clock);
    assert!(home.retain().unwrap().records_removed > 0);
    assert_eq!(rows(&home, "brief").len(), 100);
}

#[test]
fn whoever_has_an_answer_finds_its_row_whatever_else_goes_on() {
    let dir = TempDir::new().unwrap();
    let clock = Arc::new(ManualClock::new(NOW));
    let home = open_at(dir.path(), small(), &clock);
    thread::scope(|scope| {
        for writer in 0..4_u64 {
            let home = &home;
            scope.spawn(move || {
                for n in (0..60).map(|n| writer * 100 + n) {
                    log(home, "d", &numbers(n..n + 1));
                    let found = rows(home, "d");
                    assert_eq!(found.iter().filter(|found| **found == row(n)).count(), 1, "{n}");
                }
            });
        }
        for _ in 0..20 {
            flush(&home, &clock);
        }
    });
    assert_eq!(rows(&home, "d").len(), 240);
}
