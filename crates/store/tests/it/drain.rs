//! The spool goes into the log exactly once, whenever the power fails.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use perflab_log::{Group, Spool};
use perflab_store::{DrainReport, HomeSettings, Keys, Sequences};
use tempfile::TempDir;

use crate::disk::FaultyDisk;
use crate::rig::{NOW, log, log_with_keys, messages, open, open_with};

fn spool(home: &Path, category: &str, messages: &[&str]) {
    let mut group = Group::new(category, NOW.as_i64()).unwrap();
    for message in messages {
        group.push(0, &[&[1], message.as_bytes()]).unwrap();
    }
    Spool::new(home.join("spool"), 64 << 20).append(&group).unwrap();
}

/// The spool's files as they are now.
fn spool_files(home: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let files = fs::read_dir(home.join("spool")).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|path| path.extension().is_some());
    files.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

fn restore(files: &[(std::path::PathBuf, Vec<u8>)]) {
    for (path, bytes) in files {
        fs::write(path, bytes).unwrap();
    }
}

/// As if the power had failed before SQLite had written how far the drain was.
fn forget_positions(home: &Path) {
    let connection = rusqlite::Connection::open(home.join("catalog.sqlite")).unwrap();
    assert_eq!(connection.execute("DELETE FROM spools", ()).unwrap(), 1);
}

#[test]
fn what_waits_is_stored_in_order_and_removed() {
    let dir = TempDir::new().unwrap();
    spool(dir.path(), "a", &["1", "2"]);
    spool(dir.path(), "b", &["3"]);
    spool(dir.path(), "a", &["4"]);
    let home = open(dir.path());
    let report = home.drain_spool().unwrap();
    assert_eq!(report, DrainReport { files: 1, records: 4, duplicates: 0, refused: 0 });
    assert_eq!(messages(&home, "a"), ["1", "2", "4"]);
    assert_eq!(messages(&home, "b"), ["3"]);
    assert!(home.spool().is_empty().unwrap());
    assert_eq!(home.drain_spool().unwrap(), DrainReport::default());
}

#[test]
fn a_crash_between_the_append_and_the_position_stores_nothing_twice() {
    let dir = TempDir::new().unwrap();
    spool(dir.path(), "c", &["1", "2"]);
    let files = spool_files(dir.path());
    let home = open(dir.path());
    home.drain_spool().unwrap();
    drop(home);
    restore(&files);
    forget_positions(dir.path());
    let home = open(dir.path());
    let report = home.drain_spool().unwrap();
    assert_eq!(report, DrainReport { files: 1, records: 0, duplicates: 2, refused: 0 });
    assert_eq!(messages(&home, "c"), ["1", "2"]);
    assert!(home.spool().is_empty().unwrap());
}

#[test]
fn a_crash_before_the_file_is_removed_stores_nothing_twice() {
    let dir = TempDir::new().unwrap();
    spool(dir.path(), "c", &["1", "2"]);
    let files = spool_files(dir.path());
    // A window of nothing: only the position can tell.
    let mut settings = HomeSettings::default();
    settings.log.window.keys = 0;
    let home = open_with(dir.path(), settings.clone());
    home.drain_spool().unwrap();
    drop(home);
    restore(&files);
    let home = open_with(dir.path(), settings);
    let report = home.drain_spool().unwrap();
    assert_eq!(report, DrainReport { files: 1, ..DrainReport::default() });
    assert_eq!(messages(&home, "c"), ["1", "2"]);
}

#[test]
fn keys_that_the_log_forgot_during_a_drain_are_stored_ones() {
    let dir = TempDir::new().unwrap();
    spool(dir.path(), "c", &["1", "2", "3"]);
    let files = spool_files(dir.path());
    let mut settings = HomeSettings::default();
    settings.log.window.keys = 0;
    let home = open_with(dir.path(), settings.clone());
    home.drain_spool().unwrap();
    drop(home);
    restore(&files);
    forget_positions(dir.path());
    let home = open_with(dir.path(), settings);
    let report = home.drain_spool().unwrap();
    assert_eq!(report, DrainReport { files: 1, records: 0, duplicates: 3, refused: 0 });
    assert_eq!(messages(&home, "c"), ["1", "2", "3"]);
    assert!(messages(&home, "perflab/rejected").is_empty());
}

const HOUR: i64 = 3_600_000_000_000;

#[test]
fn a_spool_of_three_days_is_stored_whole() {
    let dir = TempDir::new().unwrap();
    let spooled = Spool::new(dir.path().join("spool"), 64 << 20);
    let at = |category: &str, hours_ago: i64| {
        let mut group = Group::new(category, NOW.as_i64() - hours_ago * HOUR).unwrap();
        group.push(0, &[&[1], hours_ago.to_string().as_bytes()]).unwrap();
        spooled.append(&group).unwrap();
    };
    at("b", 72);
    (0..72).rev().for_each(|hours_ago| at("a", hours_ago));
    let files = spool_files(dir.path());
    let home = open(dir.path());
    let report = home.drain_spool().unwrap();
    assert_eq!(report, DrainReport { files: 1, records: 73, duplicates: 0, refused: 0 });
    assert_eq!(messages(&home, "b"), ["72"]);
    assert_eq!(messages(&home, "a").len(), 72);
    // Nor is any of it stored twice, whatever its age.
    drop(home);
    restore(&files);
    forget_positions(dir.path());
    let home = open(dir.path());
    assert_eq!(home.drain_spool().unwrap().duplicates, 73);
}

#[test]
fn records_are_appended_in_the_order_of_the_spool_whatever_their_category() {
    let dir = TempDir::new().unwrap();
    // So large that two categories do not go into one commit.
    let line = "x".repeat(300_000);
    for category in ["b", "a", "a", "b", "a"] {
        spool(dir.path(), category, &[&line]);
    }
    // A window of nothing: a key that is behind is a key that is refused.
    let mut settings = HomeSettings::default();
    settings.log.window.keys = 0;
    let home = open_with(dir.path(), settings);
    assert_eq!(home.drain_spool().unwrap().records, 5);
    assert_eq!(messages(&home, "a").len(), 3);
}

#[test]
fn what_failed_to_be_written_is_not_taken_for_stored() {
    let dir = TempDir::new().unwrap();
    let disk = FaultyDisk::default();
    let mut settings = HomeSettings { disk: Arc::new(disk.clone()), ..HomeSettings::default() };
    // A window of nothing: whatever lands after what failed hides that from the log.
    settings.log.window.keys = 0;
    let home = open_with(dir.path(), settings);
    log(&home, "c", "so that a file is there");
    let line = "x".repeat(400_000);
    for _ in 0..5 {
        spool(dir.path(), "c", &[&line]);
    }
    disk.fail_syncs(1);
    let report = home.drain_spool().unwrap();
    assert_eq!(report.duplicates, 0, "{report:?}");
    assert_eq!(report.records + report.refused, 5, "{report:?}");
    assert_eq!(messages(&home, "c").len() as u64, 1 + report.records);
    let kept = messages(&home, "perflab/rejected").len() as u64;
    assert_eq!(kept, report.refused, "not lost without a trace");
}

#[test]
fn a_large_message_does_not_take_its_neighbours_along() {
    let dir = TempDir::new().unwrap();
    spool(dir.path(), "c", &[&"s".repeat(200_000)]);
    spool(dir.path(), "c", &[&"l".repeat(perflab_log::RECORD_BYTES_MAX - 1)]);
    let home = open(dir.path());
    let report = home.drain_spool().unwrap();
    assert_eq!(report, DrainReport { files: 1, records: 2, duplicates: 0, refused: 0 });
}

#[test]
fn a_writers_own_key_counts() {
    let dir = TempDir::new().unwrap();
    let home = open(dir.path());
    let keys = Keys { producer: "p".to_owned(), sequences: Sequences::From(5) };
    log_with_keys(&home, "c", "sent, but the answer got lost", Some(&keys));
    let mut group = Group::with_producer("c", "p", NOW.as_i64()).unwrap();
    group.push(5, &[&[1], b"sent, but the answer got lost"]).unwrap();
    group.push(6, &[&[1], b"not sent"]).unwrap();
    home.spool().append(&group).unwrap();
    let report = home.drain_spool().unwrap();
    assert_eq!(report, DrainReport { files: 1, records: 1, duplicates: 1, refused: 0 });
    assert_eq!(messages(&home, "c"), ["sent, but the answer got lost", "not sent"]);
}

#[test]
fn what_is_bad_is_kept_as_rejected_and_holds_nothing_up() {
    let dir = TempDir::new().unwrap();
    spool(dir.path(), "c", &["{", "good"]);
    spool(dir.path(), "../etc", &["lost"]);
    spool(dir.path(), "perflab/own", &["x"]);
    let home = open(dir.path());
    let report = home.drain_spool().unwrap();
    assert_eq!(report, DrainReport { files: 1, records: 1, duplicates: 0, refused: 3 });
    let rejected = messages(&home, "perflab/rejected");
    assert_eq!(rejected.len(), 3);
    assert!(rejected.iter().all(|row| row.contains("\"source\":\"spool\"")), "{rejected:?}");
}

#[test]
fn fast_categories_are_durable_before_the_spool_lets_go() {
    let dir = TempDir::new().unwrap();
    let home = open(dir.path());
    let name = perflab_model::CategoryName::new("c").unwrap();
    let guarantee = perflab_store::Guarantee::Fast;
    let settings = perflab_store::CategorySettings { guarantee, ..Default::default() };
    home.set_category_settings(&name, settings).unwrap();
    spool(dir.path(), "c", &["x"]);
    home.drain_spool().unwrap();
    assert_eq!(messages(&home, "c"), ["x"], "committed when the drain returns");
}

#[test]
fn a_closed_home_leaves_the_spool_as_it_is() {
    let dir = TempDir::new().unwrap();
    spool(dir.path(), "c", &["x"]);
    let home = open(dir.path());
    home.close();
    assert!(home.drain_spool().is_err());
    drop(home);
    let home = open(dir.path());
    assert_eq!(home.drain_spool().unwrap().records, 1);
}

#[test]
fn a_large_spool_goes_in_batches() {
    let dir = TempDir::new().unwrap();
    let line = "x".repeat(5000);
    for _ in 0..30 {
        spool(dir.path(), "c", &[&*line; 30]);
        spool(dir.path(), "d", &["small"]);
    }
    let home = open(dir.path());
    let report = home.drain_spool().unwrap();
    assert_eq!(report.records, 30 * 31);
    assert_eq!(messages(&home, "c").len(), 900);
    assert_eq!(messages(&home, "d").len(), 30);
}
