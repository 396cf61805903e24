//! Cold rows in another folder than the home's.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use perflab_model::ManualClock;
use perflab_store::{ColdUrl, DatasetSettings, Home, HomeSettings, TableLimits, chain};
use tempfile::TempDir;

use crate::disk::FaultyDisk;
use crate::rig::{NOW, flush, log, open_at, rows};

/// As many rows as a segment may have, in the settings of these tests.
const ROWS: usize = 100;
/// Longer than any pause after a failure.
const LATER: Duration = Duration::from_mins(2);

struct Place {
    dir: TempDir,
}

impl Place {
    fn new() -> Self {
        Self { dir: TempDir::new().unwrap() }
    }

    fn home(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn cold(&self) -> PathBuf {
        self.dir.path().join("cold rows")
    }

    fn url(&self) -> ColdUrl {
        format!("file://{}/cold%20rows", self.dir.path().display()).parse().unwrap()
    }

    fn settings(&self) -> HomeSettings {
        HomeSettings { cold: Some(self.url()), ..settings() }
    }

    /// The files of segments, by their paths below the folder, without the home's name.
    fn segments(&self) -> Vec<String> {
        let mut found = Vec::new();
        for home in fs::read_dir(self.cold()).into_iter().flatten().map(Result::unwrap) {
            for folder in fs::read_dir(home.path()).unwrap().map(Result::unwrap) {
                let Ok(files) = fs::read_dir(folder.path()) else { continue };
                let folder = folder.file_name().into_string().unwrap();
                found.extend(files.map(|file| {
                    format!("{folder}/{}", file.unwrap().file_name().into_string().unwrap())
                }));
            }
        }
        found.sort();
        found
    }
}

fn settings() -> HomeSettings {
    let tables = TableLimits { segment_rows: ROWS, ..TableLimits::DEFAULT };
    HomeSettings { tables, ..HomeSettings::default() }
}

fn log_old_rows(home: &Home) {
    let lines: String = (0..ROWS).map(|n| format!("{{\"time\":1,\"n\":{n}}}\n")).collect();
    log(home, "d", &lines);
}

/// A home whose rows are cold, elsewhere.
fn with_cold(place: &Place, name: &str) -> (Arc<Home>, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new(NOW));
    let home = open_at(&place.home(name), place.settings(), &clock);
    log_old_rows(&home);
    flush(&home, &clock);
    assert!(!place.home(name).join("cold").exists());
    (home, clock)
}

#[test]
fn they_are_where_the_home_was_told_to_keep_them() {
    let place = Place::new();
    let (home, clock) = with_cold(&place, "home");
    assert_eq!(place.segments().len(), 1);
    assert_eq!(rows(&home, "d").len(), ROWS);
    drop(home);
    let home = open_at(&place.home("home"), settings(), &clock);
    home.tend();
    assert_eq!(rows(&home, "d").len(), ROWS, "it is remembered");
    log_old_rows(&home);
    flush(&home, &clock);
    assert_eq!(place.segments().len(), 2);
    drop(home);
    let other = HomeSettings { cold: Some("s3://bucket/other".parse().unwrap()), ..settings() };
    let refused = Home::open(&place.home("home"), other.clone(), Arc::<ManualClock>::clone(&clock));
    let error = chain(&refused.unwrap_err());
    for name in ["`s3://bucket/other`", &format!("`{}`", place.url())] {
        assert!(error.contains(name), "{error}");
    }
    let home = open_at(&place.home("home"), place.settings(), &clock);
    let limit = DatasetSettings { retain_seconds: Some(1), ..DatasetSettings::default() };
    home.set_dataset_settings("d", limit).unwrap();
    home.tend();
    assert_eq!(place.segments(), [""; 0]);
    drop(home);
    open_at(&place.home("home"), other, &clock);
}

#[test]
fn homes_share_a_folder_and_leave_each_other_alone() {
    let place = Place::new();
    let (first, clock) = with_cold(&place, "first");
    let (second, _) = with_cold(&place, "second");
    assert_eq!(place.segments().len(), 2);
    drop((first, second));
    for name in ["first", "second"] {
        let home = open_at(&place.home(name), settings(), &clock);
        home.tend();
        assert_eq!(rows(&home, "d").len(), ROWS);
    }
    assert_eq!(place.segments().len(), 2);
}

fn leave_over(folder: &Path) {
    for name in ["99.parquet", "99.lists.parquet", "100.parquet#1"] {
        fs::write(folder.join(name), "left over").unwrap();
    }
}

#[test]
fn what_a_crash_left_is_removed_and_nothing_else() {
    let place = Place::new();
    let (home, clock) = with_cold(&place, "home");
    drop(home);
    let before = place.segments();
    let of_home = fs::read_dir(place.cold()).unwrap().next().unwrap().unwrap().path();
    let dataset = of_home.join(before[0].split_once('/').unwrap().0);
    leave_over(&dataset);
    leave_over(&of_home);
    let home = open_at(&place.home("home"), settings(), &clock);
    home.tend();
    assert_eq!(place.segments(), before);
    assert!(of_home.join("99.parquet").exists(), "not where segments are");
    assert_eq!(rows(&home, "d").len(), ROWS);
}

#[test]
fn a_folder_that_is_away_is_not_taken_for_damage() {
    let place = Place::new();
    let (home, clock) = with_cold(&place, "home");
    let away = place.dir.path().join("away");
    fs::rename(place.cold(), &away).unwrap();
    let assert_missing = |home: &Home| {
        home.tend();
        let snapshot = home.snapshot("d").unwrap();
        assert_eq!(snapshot.segments.len(), 0);
        let missing = &snapshot.missing[0];
        assert!(missing.starts_with("100 cold rows are missing: `file://"), "{missing}");
        let check = home.check_segments().unwrap();
        assert_eq!((check.damage.len(), check.unread.values().sum::<u64>()), (0, ROWS as u64));
        assert!(home.is_cold_failing());
    };
    assert_missing(&home);
    drop(home);
    let home = open_at(&place.home("home"), settings(), &clock);
    assert_missing(&home);
    // The start has made an empty one.
    fs::remove_dir_all(place.cold()).unwrap();
    fs::rename(&away, place.cold()).unwrap();
    clock.advance(LATER);
    home.tend();
    assert_eq!(rows(&home, "d").len(), ROWS);
    assert!(!home.is_cold_failing());
    assert_eq!(place.segments().len(), 1);
}

#[test]
fn rows_stay_hot_while_they_cant_be_written() {
    let place = Place::new();
    let disk = FaultyDisk::default();
    let settings = HomeSettings { disk: Arc::new(disk.clone()), ..place.settings() };
    let clock = Arc::new(ManualClock::new(NOW));
    let home = open_at(&place.home("home"), settings, &clock);
    home.set_dataset_settings("d", DatasetSettings { hot_seconds: None, ..Default::default() })
        .unwrap();
    log_old_rows(&home);
    flush(&home, &clock);
    disk.fail_syncs(1);
    home.set_dataset_settings("d", DatasetSettings::default()).unwrap();
    home.tend();
    home.tend();
    let left = place.segments();
    assert_eq!(left.len(), 1, "not tried again at once, nor removed");
    assert_eq!(rows(&home, "d").len(), ROWS);
    assert!(home.is_cold_failing());
    clock.advance(LATER);
    home.tend();
    let written = place.segments();
    assert_eq!(written.len(), 1);
    assert_ne!(written, left, "what was left over is gone");
    assert_eq!(rows(&home, "d").len(), ROWS);
    assert!(!home.is_cold_failing());
}
