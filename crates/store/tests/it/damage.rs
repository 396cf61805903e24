//! Damaged segments are found, set aside and made again from the log.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use perflab_model::{CategoryName, Clock as _, ManualClock};
use perflab_store::{CategorySettings, DatasetSettings, Home, HomeSettings, Reach};
use tempfile::TempDir;

use crate::rig::{NOW, flush, log, log_at, open_at, rows, rows_of};

fn line(n: u64) -> String {
    format!("{{\"int\":{{\"n\":{n}}},\"normvector\":{{\"stack\":[\"a\",\"{n}\"]}}}}")
}

/// A home with one segment of ten rows, closed; and its rows.
fn with_segment(dir: &Path, clock: &Arc<ManualClock>) -> Vec<String> {
    let home = open_at(dir, HomeSettings::default(), clock);
    for n in 0..10 {
        log(&home, "d", &line(n));
    }
    flush(&home, clock);
    rows(&home, "d")
}

fn segment_files(dir: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(dir.join("segments/1")).unwrap();
    let mut files: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    files
}

fn quarantined(dir: &Path) -> usize {
    fs::read_dir(dir.join("quarantine")).map_or(0, Iterator::count)
}

#[test]
fn files_that_are_cut_changed_or_gone_are_made_again() {
    for damage in [cut as fn(&Path), change_head, remove] {
        let dir = TempDir::new().unwrap();
        let clock = Arc::new(ManualClock::new(NOW));
        let before = with_segment(dir.path(), &clock);
        let file = segment_files(dir.path()).remove(0);
        damage(&file);
        let home = open_at(dir.path(), HomeSettings::default(), &clock);
        home.tend();
        assert_eq!(rows(&home, "d"), before);
        assert_eq!(home.datasets().unwrap()[0].segments, 1);
        drop(home);
        let home = open_at(dir.path(), HomeSettings::default(), &clock);
        assert_eq!(rows(&home, "d"), before, "for good");
        assert!(!segment_files(dir.path()).contains(&file));
    }
}

/// A home with one segment of three files, closed; and its rows.
fn with_sparse_segment(dir: &Path, clock: &Arc<ManualClock>) -> Vec<String> {
    let rare = |n| if n % 100 == 0 { format!(",\"rare\":{}", 77_777 + n) } else { String::new() };
    let line = |n| format!("{{\"n\":{n}{},\"vector\":[\"a\",\"b\"]}}\n", rare(n));
    let home = open_at(dir, HomeSettings::default(), clock);
    log(&home, "d", &(0..300).map(line).collect::<String>());
    flush(&home, clock);
    rows(&home, "d")
}

#[test]
fn each_file_of_a_segment_is_missed_when_it_is_damaged() {
    for (file, damage) in [0, 1, 2].map(|file| [(file, cut as fn(&Path)), (file, remove)]).concat()
    {
        let dir = TempDir::new().unwrap();
        let clock = Arc::new(ManualClock::new(NOW));
        let before = with_sparse_segment(dir.path(), &clock);
        assert_eq!(segment_files(dir.path()).len(), 3);
        damage(&segment_files(dir.path())[file]);
        let home = open_at(dir.path(), HomeSettings::default(), &clock);
        home.tend();
        assert_eq!(rows(&home, "d"), before);
        drop(home);
        assert_eq!(segment_files(dir.path()).len(), 3, "made again");
    }
}

#[test]
fn a_changed_value_of_a_sparse_column_is_found() {
    let dir = TempDir::new().unwrap();
    let clock = Arc::new(ManualClock::new(NOW));
    let before = with_sparse_segment(dir.path(), &clock);
    let file = segment_files(dir.path()).into_iter().find(|path| path.ends_with("1.sparse.arrow"));
    let file = file.unwrap();
    let mut bytes = fs::read(&file).unwrap();
    let value = 77_877_i64.to_le_bytes();
    let at = bytes.windows(8).position(|window| window == value).unwrap();
    bytes[at] ^= 1;
    fs::write(&file, bytes).unwrap();
    let home = open_at(dir.path(), HomeSettings::default(), &clock);
    let segment = Arc::clone(&home.snapshot("d").unwrap().segments[0]);
    segment.columns_named("n").next().unwrap().data().unwrap();
    segment.columns_named("rare").next().unwrap().data().unwrap_err();
    let found = home.check_segments().unwrap();
    assert_eq!(found.damage.len(), 1, "{found:?}");
    assert_eq!(quarantined(dir.path()), 3, "with its lists and sparse columns");
    home.tend();
    assert_eq!(rows(&home, "d"), before);
}

fn cut(file: &Path) {
    let bytes = fs::read(file).unwrap();
    fs::write(file, &bytes[..bytes.len() - 1]).unwrap();
}

fn change_head(file: &Path) {
    let mut bytes = fs::read(file).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(file, bytes).unwrap();
}

fn remove(file: &Path) {
    fs::remove_file(file).unwrap();
}

/// Changes a byte of the column of numbers, which no start reads.
fn change_column(dir: &Path) {
    let file = segment_files(dir).into_iter().find(|path| path.ends_with("1.arrow")).unwrap();
    let mut bytes = fs::read(&file).unwrap();
    let numbers: Vec<u8> = (0..10).collect();
    let at = bytes.windows(10).position(|window| window == numbers).unwrap();
    bytes[at] ^= 64;
    fs::write(file, bytes).unwrap();
}

#[test]
fn what_a_query_finds_damaged_is_made_again() {
    let dir = TempDir::new().unwrap();
    let clock = Arc::new(ManualClock::new(NOW));
    let before = with_segment(dir.path(), &clock);
    change_column(dir.path());
    let home = open_at(dir.path(), HomeSettings::default(), &clock);
    let segment = Arc::clone(&home.snapshot("d").unwrap().segments[0]);
    let column = segment.columns_named("n").next().unwrap();
    column.data().unwrap_err();
    assert!(home.report_damage("d", &segment));
    assert!(!home.report_damage("d", &segment), "once");
    home.tend();
    assert_eq!(rows(&home, "d"), before);
    assert_eq!(quarantined(dir.path()), 2, "with its lists");
    let sound = Arc::clone(&home.snapshot("d").unwrap().segments[0]);
    assert!(!home.report_damage("d", &sound), "nothing is wrong with it");
    assert_eq!(rows(&home, "d"), before);
}

/// As [`with_segment`], and the log has let go of its records.
fn with_segment_only(dir: &Path, clock: &Arc<ManualClock>) {
    let mut settings = HomeSettings::default();
    settings.log.file_bytes_max = 64 << 10;
    drop(with_segment(dir, clock));
    let home = open_at(dir, settings, clock);
    let kept = CategorySettings { retain_seconds: Some(1), ..CategorySettings::default() };
    for category in ["d", "other"] {
        home.set_category_settings(&CategoryName::new(category).unwrap(), kept).unwrap();
    }
    for _ in 0..100 {
        log(&home, "other", &"x".repeat(100_000));
    }
    clock.advance(Duration::from_secs(60));
    flush(&home, clock);
    assert!(home.retain().unwrap().records_removed > 0);
    assert!(!home.log().categories().contains_key("d"));
}

#[test]
fn what_cannot_be_made_again_is_said() {
    let dir = TempDir::new().unwrap();
    let clock = Arc::new(ManualClock::new(NOW));
    with_segment_only(dir.path(), &clock);
    change_column(dir.path());
    let home: Arc<Home> = open_at(dir.path(), HomeSettings::default(), &clock);
    let segment = Arc::clone(&home.snapshot("d").unwrap().segments[0]);
    assert!(home.report_damage("d", &segment));
    home.tend();
    let snapshot = home.snapshot("d").unwrap();
    assert_eq!(rows_of(&snapshot), [""; 0]);
    let expected = "10 of 10 rows are lost: their segment was damaged, and the log no longer has \
                    all records from 0 to 10";
    assert_eq!(snapshot.missing, [expected]);
    drop((home, segment));
    let home = open_at(dir.path(), HomeSettings::default(), &clock);
    let missing = |reach| home.snapshot_of("d", reach, &|| false).unwrap().missing;
    assert_eq!(missing(Reach::Everything), [expected], "the next start knows it too");
    let now = NOW.as_i64();
    assert_eq!(missing(Reach::Times(now, now + 1)), [expected]);
    assert_eq!(missing(Reach::Times(now + 1, i64::MAX)), [""; 0], "of other times all is there");
}

#[test]
fn what_would_be_past_its_retention_is_missed_no_longer() {
    let dir = TempDir::new().unwrap();
    let clock = Arc::new(ManualClock::new(NOW));
    with_segment_only(dir.path(), &clock);
    change_column(dir.path());
    let home = open_at(dir.path(), HomeSettings::default(), &clock);
    let segment = Arc::clone(&home.snapshot("d").unwrap().segments[0]);
    assert!(home.report_damage("d", &segment));
    log_at(&home, "d", "{\"int\": {\"n\": 1}}", clock.now(), None);
    flush(&home, &clock);
    assert_eq!(home.snapshot("d").unwrap().missing.len(), 1);
    let retained = DatasetSettings { retain_seconds: Some(10), ..DatasetSettings::default() };
    home.set_dataset_settings("d", retained).unwrap();
    home.tend();
    assert_eq!(home.snapshot("d").unwrap().missing, [""; 0]);
    drop((home, segment));
    let home = open_at(dir.path(), HomeSettings::default(), &clock);
    assert_eq!(home.snapshot("d").unwrap().missing, [""; 0]);
}
