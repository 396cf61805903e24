//! The process ends at each step of everything that changes the set of segments: nothing is lost,
//! nothing is there twice, and no file is left over.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::sync::Arc;

use perflab_model::ManualClock;
use perflab_store::{Catalog, DatasetSettings, FAULT_POINTS, HomeSettings, TableLimits};
use tempfile::TempDir;

use crate::rig::{NOW, flush, log, open_at, rows};

/// Where the child ends, and the home that it works on.
const POINT: &str = "PERFLAB_TEST_FAULT_POINT";
const HOME: &str = "PERFLAB_TEST_HOME";

/// More than a quarter of what a segment may have, and enough for a sparse column.
const OLD_ROWS: usize = 260;
/// So many of them have a value of it.
const RARE_ROWS: usize = 10;

fn settings(fault: fn(&'static str)) -> HomeSettings {
    let tables = TableLimits { freeze_rows: 4, segment_rows: 1000, ..TableLimits::DEFAULT };
    HomeSettings { tables, fault, ..HomeSettings::default() }
}

fn abort_at_point(point: &'static str) {
    if env::var(POINT).is_ok_and(|wanted| wanted == point) {
        process::abort();
    }
}

fn line(n: u64) -> String {
    format!("{{\"int\":{{\"n\":{n}}},\"normvector\":{{\"stack\":[\"a\",\"b\"]}}}}")
}

/// Rows of long ago, enough of them to become cold.
fn old_lines() -> String {
    let rare = |n| if n < RARE_ROWS { format!(",\"rare\":{n}") } else { String::new() };
    let line = |n| format!("{{\"time\":1,\"n\":{n}{},\"vector\":[\"a\",\"b\"]}}\n", rare(n));
    (0..OLD_ROWS).map(line).collect()
}

/// What the child does: flushes, merges, cools, removes and rebuilds, until it ends.
#[test]
fn a_child_that_comes_to_its_end() {
    let Ok(dir) = env::var(HOME) else { return };
    let dir = Path::new(&dir);
    let clock = Arc::new(ManualClock::new(NOW));
    let home = open_at(dir, settings(abort_at_point), &clock);
    let limit = DatasetSettings { max_bytes: Some(1), ..DatasetSettings::default() };
    home.set_dataset_settings("brief", limit).unwrap();
    log(&home, "old", &old_lines());
    for n in 0..6 {
        log(&home, "kept", &line(n));
        log(&home, "brief", "x");
        flush(&home, &clock);
    }
    drop(home);
    damage_one(dir);
    let home = open_at(dir, settings(abort_at_point), &clock);
    home.tend();
    panic!("the point was not reached");
}

/// Cuts one file of the dataset that is kept.
fn damage_one(dir: &Path) {
    let folder = folder_of(dir, "kept");
    let file = fs::read_dir(folder).unwrap().next().unwrap().unwrap().path();
    fs::write(file, "cut").unwrap();
}

fn folder_of(dir: &Path, dataset: &str) -> PathBuf {
    let (catalog, _) = Catalog::open(&dir.join("catalog.sqlite"), NOW).unwrap();
    let sets = catalog.segment_sets().unwrap();
    let set = sets.iter().find(|set| set.dataset == dataset).unwrap();
    dir.join("segments").join(set.folder.to_string())
}

/// Every file that is there, and every file that the catalog names.
fn files(dir: &Path) -> (BTreeSet<PathBuf>, BTreeSet<PathBuf>) {
    let mut there = BTreeSet::new();
    let folders = ["segments", "cold"].map(|tier| fs::read_dir(dir.join(tier)));
    for folder in folders.into_iter().flatten().flatten() {
        let files = fs::read_dir(folder.unwrap().path()).unwrap();
        there.extend(files.map(|file| file.unwrap().path()));
    }
    let (catalog, _) = Catalog::open(&dir.join("catalog.sqlite"), NOW).unwrap();
    let mut named = BTreeSet::new();
    for set in catalog.segment_sets().unwrap() {
        for segment in set.segments {
            let (tier, kind) =
                if segment.cold.is_some() { ("cold", "parquet") } else { ("segments", "arrow") };
            let folder = dir.join(tier).join(set.folder.to_string());
            named.insert(folder.join(format!("{}.{kind}", segment.id)));
            let lists = folder.join(format!("{}.lists.{kind}", segment.id));
            named.extend(segment.list_bytes.map(|_| lists));
            let sparse = folder.join(format!("{}.sparse.{kind}", segment.id));
            named.extend(segment.sparse_bytes.map(|_| sparse));
        }
    }
    (there, named)
}

fn crash_at(point: &str) -> TempDir {
    let dir = TempDir::new().unwrap();
    let ran = Command::new(env::current_exe().unwrap())
        .args(["--exact", "crash::a_child_that_comes_to_its_end", "--nocapture"])
        .env(POINT, point)
        .env(HOME, dir.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.signal().is_some(), "{point}: {:?} {said}", ran.status);
    dir
}

fn old_rows() -> Vec<String> {
    let rare = |n| if n < RARE_ROWS { format!(" rare={n}") } else { String::new() };
    let row = |n| format!("1000000000*1 n={n}{} vector=a,b", rare(n));
    let mut rows: Vec<String> = (0..OLD_ROWS).map(row).collect();
    rows.sort();
    rows
}

#[test]
fn a_crash_at_any_step_is_harmless() {
    for point in FAULT_POINTS {
        let dir = crash_at(point);
        let clock = Arc::new(ManualClock::new(NOW));
        let home = open_at(dir.path(), settings(|_| {}), &clock);
        home.tend();
        let acknowledged = home.log().categories()["kept"].records;
        let numbers: Vec<u64> = (0..acknowledged).collect();
        let found = rows(&home, "kept");
        let expected: Vec<String> =
            numbers.iter().map(|n| format!("{}*1 n={n} stack=a,b", NOW.as_i64())).collect();
        assert_eq!(found, expected, "{point}");
        assert_eq!(rows(&home, "old"), old_rows(), "{point}");
        log(&home, "kept", &line(acknowledged));
        flush(&home, &clock);
        assert_eq!(rows(&home, "kept").len() as u64, acknowledged + 1, "{point}");
        assert_eq!(rows(&home, "brief"), [""; 0], "{point}: all past its retention");
        drop(home);
        let (there, named) = files(dir.path());
        assert_eq!(there, named, "{point}");
        let cold = named.iter().filter(|path| path.extension().unwrap() == "parquet");
        assert_eq!(cold.count(), 2, "{point}");
    }
}
