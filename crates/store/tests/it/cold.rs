//! Old rows become cold, and are thawed where a question touches them.

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use perflab_model::{CategoryName, ManualClock};
use perflab_store::{
    CategorySettings, DatasetSettings, Home, HomeSettings, Reach, SnapshotError, TableLimits,
};
use tempfile::TempDir;

use crate::rig::{NOW, flush, log, open_at, rows, rows_of};

const SECOND: i64 = 1_000_000_000;
/// As many rows as a segment may have, in the settings of these tests.
const ROWS: usize = 100;

fn settings() -> HomeSettings {
    let tables = TableLimits { segment_rows: ROWS, ..TableLimits::DEFAULT };
    HomeSettings { tables, ..HomeSettings::default() }
}

/// Rows of one second, all different.
fn lines(second: i64) -> String {
    let line = |n| {
        format!("{{\"time\":{second},\"n\":{n},\"s\":\"{second}\",\"stack\":[\"main\",\"{n}\"]}}\n")
    };
    (0..ROWS).map(line).collect()
}

/// A home with a cold segment for each of these seconds.
fn with_cold(dir: &Path, settings: HomeSettings, seconds: &[i64]) -> (Arc<Home>, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new(NOW));
    let home = open_at(dir, settings, &clock);
    for &second in seconds {
        log(&home, "d", &lines(second));
        flush(&home, &clock);
    }
    assert_eq!(files(dir, "cold").len(), 2 * seconds.len());
    assert_eq!(files(dir, "segments"), Vec::<PathBuf>::new());
    (home, clock)
}

/// All files of a folder, sorted.
fn files(dir: &Path, folder: &str) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![dir.join(folder)]);
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).into_iter().flatten().map(|file| file.unwrap().path()) {
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    found
}

fn expected(seconds: &[i64]) -> Vec<String> {
    let row =
        |second: i64, n: usize| format!("{}*1 n={n} s={second} stack=main,{n}", second * SECOND);
    let mut rows: Vec<String> =
        seconds.iter().flat_map(|&second| (0..ROWS).map(move |n| row(second, n))).collect();
    rows.sort();
    rows
}

fn never() -> bool {
    false
}

#[test]
fn old_rows_become_cold_and_stay_what_they_are() {
    let dir = TempDir::new().unwrap();
    let (home, clock) = with_cold(dir.path(), settings(), &[1, 2]);
    let info = home.datasets().unwrap().remove(0);
    let bytes: u64 =
        files(dir.path(), "cold").iter().map(|path| fs::metadata(path).unwrap().len()).sum();
    assert_eq!((info.rows, info.bytes, info.segments), (2 * ROWS as u64, bytes, 2));
    assert_eq!(rows(&home, "d"), expected(&[1, 2]));
    assert_eq!(files(dir.path(), "thawed").len(), 4);
    log(&home, "d", &lines(3));
    assert_eq!(rows(&home, "d"), expected(&[1, 2, 3]), "beside new ones");
    drop(home);
    let home = open_at(dir.path(), settings(), &clock);
    assert_eq!(files(dir.path(), "thawed"), Vec::<PathBuf>::new(), "no data: wiped at a start");
    assert_eq!(rows(&home, "d"), expected(&[1, 2, 3]));
}

#[test]
fn rows_stay_hot_as_long_as_their_dataset_says() {
    let dir = TempDir::new().unwrap();
    let clock = Arc::new(ManualClock::new(NOW));
    let home = open_at(dir.path(), settings(), &clock);
    let hot = |hot_seconds| DatasetSettings { hot_seconds, ..DatasetSettings::default() };
    home.set_dataset_settings("d", hot(None)).unwrap();
    log(&home, "d", &lines(1));
    flush(&home, &clock);
    log(&home, "d", &lines(NOW.as_i64() / SECOND));
    flush(&home, &clock);
    assert_eq!(files(dir.path(), "cold"), Vec::<PathBuf>::new(), "for ever");
    drop(home);
    let home = open_at(dir.path(), settings(), &clock);
    assert_eq!(home.dataset_settings("d"), hot(None));
    home.set_dataset_settings("d", hot(Some(3600))).unwrap();
    home.tend();
    assert_eq!(files(dir.path(), "cold").len(), 2, "the old ones only");
    clock.advance(Duration::from_hours(1));
    home.tend();
    assert_eq!(files(dir.path(), "cold").len(), 4);
}

#[test]
fn a_few_old_rows_wait_until_they_are_merged_with_more() {
    let dir = TempDir::new().unwrap();
    let clock = Arc::new(ManualClock::new(NOW));
    let home = open_at(dir.path(), settings(), &clock);
    for n in 0..40 {
        log(&home, "d", &format!("{{\"time\":1,\"n\":{n}}}"));
        flush(&home, &clock);
        let cold = files(dir.path(), "cold").len();
        assert!(cold <= 1, "row {n}: {cold} files");
    }
    assert_eq!(files(dir.path(), "cold").len(), 1);
    let expected: Vec<String> = (0..40).map(|n| format!("1000000000*1 n={n}")).collect();
    let mut found = rows(&home, "d");
    found.sort_by_key(|row| row.len());
    assert_eq!(found, expected);
}

#[test]
fn only_what_is_touched_is_thawed() {
    let dir = TempDir::new().unwrap();
    let (home, _) = with_cold(dir.path(), settings(), &[10, 20, 30]);
    let thawed = |reach| {
        let snapshot = home.snapshot_of("d", reach, &never).unwrap();
        (rows_of(&snapshot), files(dir.path(), "thawed").len())
    };
    assert_eq!(thawed(Reach::Times(0, 10 * SECOND)), (Vec::new(), 0), "the end is not in it");
    assert_eq!(thawed(Reach::Times(31 * SECOND, i64::MAX)), (Vec::new(), 0));
    assert_eq!(thawed(Reach::Times(15 * SECOND, 25 * SECOND)), (expected(&[20]), 2));
    assert_eq!(thawed(Reach::Times(20 * SECOND, 30 * SECOND + 1)), (expected(&[20, 30]), 4));
    let hot = home.snapshot_of("d", Reach::Hot, &never).unwrap();
    assert_eq!((rows_of(&hot), hot.missing), (Vec::new(), vec!["300 rows are cold".to_owned()]));
}

#[test]
fn thawed_rows_have_little_room() {
    let dir = TempDir::new().unwrap();
    let clock = Arc::new(ManualClock::new(NOW));
    let home = open_at(dir.path(), settings(), &clock);
    home.set_dataset_settings("d", DatasetSettings { hot_seconds: None, ..Default::default() })
        .unwrap();
    log(&home, "d", &lines(1));
    flush(&home, &clock);
    let bytes = home.datasets().unwrap()[0].bytes;
    home.set_dataset_settings("d", DatasetSettings::default()).unwrap();
    drop(home);
    let settings = HomeSettings { thawed_bytes_max: bytes * 2 - 1, ..settings() };
    let home = open_at(dir.path(), settings, &clock);
    log(&home, "d", &lines(2));
    flush(&home, &clock);
    let error = home.snapshot("d").unwrap_err();
    assert!(matches!(error, SnapshotError::TooMuchCold { .. }), "{error}");
    let at =
        |second| home.snapshot_of("d", Reach::Times(second * SECOND, second * SECOND + 1), &never);
    for second in [1, 2, 1] {
        assert_eq!(rows_of(&at(second).unwrap()), expected(&[second]));
        assert_eq!(files(dir.path(), "thawed").len(), 2, "the one before has gone");
    }
    let first = at(1).unwrap();
    let error = at(2).unwrap_err();
    let error = perflab_store::chain(&error);
    assert!(error.contains("ask again"), "{error}");
    assert_eq!(rows_of(&first), expected(&[1]));
    drop(first);
    assert_eq!(rows_of(&at(2).unwrap()), expected(&[2]));
}

#[test]
fn thawing_stops_when_it_is_told_to() {
    let dir = TempDir::new().unwrap();
    let (home, _) = with_cold(dir.path(), settings(), &[1]);
    let error = home.snapshot_of("d", Reach::Everything, &|| true).unwrap_err();
    assert!(matches!(error, SnapshotError::Stopped { .. }), "{error}");
    assert_eq!(files(dir.path(), "thawed"), Vec::<PathBuf>::new());
}

#[test]
fn retention_removes_cold_rows() {
    let dir = TempDir::new().unwrap();
    let (home, _) = with_cold(dir.path(), settings(), &[1, 2, 3]);
    let bytes = home.datasets().unwrap()[0].bytes;
    let limit = DatasetSettings { max_bytes: Some(bytes - 1), ..DatasetSettings::default() };
    home.set_dataset_settings("d", limit).unwrap();
    home.tend();
    assert_eq!(rows(&home, "d"), expected(&[2, 3]), "the oldest go first");
    assert_eq!(files(dir.path(), "cold").len(), 4);
    let limit = DatasetSettings { retain_seconds: Some(60), ..DatasetSettings::default() };
    home.set_dataset_settings("d", limit).unwrap();
    home.tend();
    assert_eq!(rows(&home, "d"), [""; 0]);
    assert_eq!(files(dir.path(), "cold"), Vec::<PathBuf>::new());
}

fn flip(file: &Path) {
    let mut bytes = fs::read(file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(file, bytes).unwrap();
}

fn cut(file: &Path) {
    let bytes = fs::read(file).unwrap();
    fs::write(file, &bytes[1..]).unwrap();
}

fn remove(file: &Path) {
    fs::remove_file(file).unwrap();
}

#[test]
fn damaged_ones_are_found_and_made_again_from_the_log() {
    for damage in [flip as fn(&Path), cut, remove] {
        for which in [0, 1] {
            let dir = TempDir::new().unwrap();
            let (home, clock) = with_cold(dir.path(), settings(), &[1, 2]);
            // The lists come first.
            damage(&files(dir.path(), "cold")[which]);
            let snapshot = home.snapshot("d").unwrap();
            // The keeper may have been faster.
            let found = rows_of(&snapshot);
            let all = if snapshot.missing.is_empty() { expected(&[1, 2]) } else { expected(&[2]) };
            assert_eq!(found, all, "{:?}", snapshot.missing);
            home.tend();
            assert_eq!(rows(&home, "d"), expected(&[1, 2]));
            drop(home);
            damage(&files(dir.path(), "cold")[which]);
            let home = open_at(dir.path(), settings(), &clock);
            drop(home.snapshot("d").unwrap());
            home.tend();
            assert_eq!(rows(&home, "d"), expected(&[1, 2]), "found at a start");
            assert_eq!(files(dir.path(), "cold").len(), 4, "cold again");
        }
    }
}

#[test]
fn a_thawed_one_that_is_damaged_is_thawed_again() {
    let dir = TempDir::new().unwrap();
    let (home, _) = with_cold(dir.path(), settings(), &[1]);
    let snapshot = home.snapshot("d").unwrap();
    let file = &files(dir.path(), "thawed")[0];
    let numbers: Vec<u8> = (0..ROWS).map(|n| u8::try_from(n).unwrap()).collect();
    let bytes = fs::read(file).unwrap();
    let at = bytes.windows(ROWS).position(|window| window == numbers).unwrap();
    // In place, as it is mapped.
    let file = fs::OpenOptions::new().write(true).open(file).unwrap();
    file.write_all_at(&[64], at as u64).unwrap();
    assert!(home.report_damage("d", &snapshot.segments[0]));
    assert_eq!(rows(&home, "d"), expected(&[1]));
    assert_eq!(files(dir.path(), "cold").len(), 2, "nothing is wrong with what is cold");
}

#[test]
fn a_check_reads_all_segments() {
    let dir = TempDir::new().unwrap();
    let (home, clock) = with_cold(dir.path(), settings(), &[1]);
    log(&home, "d", &lines(NOW.as_i64() / SECOND));
    flush(&home, &clock);
    drop(home.snapshot("d").unwrap());
    let check = home.check_segments().unwrap();
    let bytes = home.datasets().unwrap()[0].bytes;
    assert_eq!((check.segments, check.bytes, check.damage.len()), (2, bytes, 0));
    flip(&files(dir.path(), "cold")[1]);
    flip(&files(dir.path(), "segments")[1]);
    let damage = home.check_segments().unwrap().damage;
    let why = |n: usize| (damage[n].dataset.as_str(), damage[n].rows, damage[n].why.as_str());
    assert!(damage.len() == 2 && why(0).2.contains("is damaged"), "{damage:?}");
    assert!(why(1).2.contains("its checksum is wrong"), "{damage:?}");
    assert_eq!((why(0).0, why(1).1), ("d", ROWS as u64));
    home.tend();
    assert_eq!(rows(&home, "d").len(), 2 * ROWS, "made again");
    assert_eq!(home.check_segments().unwrap().damage.len(), 0);
}

#[test]
fn what_neither_the_file_nor_the_log_has_is_said_to_be_lost() {
    let dir = TempDir::new().unwrap();
    let mut settings = settings();
    settings.log.file_bytes_max = 64 << 10;
    let (home, clock) = with_cold(dir.path(), settings, &[1]);
    let kept = CategorySettings { retain_seconds: Some(1), ..CategorySettings::default() };
    for category in ["d", "other"] {
        home.set_category_settings(&CategoryName::new(category).unwrap(), kept).unwrap();
    }
    for _ in 0..100 {
        log(&home, "other", &"x".repeat(100_000));
    }
    clock.advance(Duration::from_secs(60));
    flush(&home, &clock);
    assert!(home.retain().unwrap().records_removed > 0);
    assert_eq!(rows(&home, "d"), expected(&[1]), "the log is not needed");
    drop(home);
    flip(&files(dir.path(), "cold")[0]);
    let home = open_at(dir.path(), crate::cold::settings(), &clock);
    drop(home.snapshot("d").unwrap());
    home.tend();
    let snapshot = home.snapshot("d").unwrap();
    assert_eq!(rows_of(&snapshot), [""; 0]);
    assert!(snapshot.missing[0].starts_with("100 of 100 rows are lost"), "{:?}", snapshot.missing);
}
