//! How little a start reads.

use std::sync::Arc;

use perflab_log::{Group, Log, RealDisk, Settings};

use crate::message;

/// 100 MiB in 4 MiB files, then no clean end: what is read at the next start is bounded by the
/// file size, not by the log.
#[test]
fn a_start_reads_one_file_and_not_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    let settings = Settings { file_bytes_max: 4 << 20, ..Settings::DEFAULT };
    let (log, _) = Log::open(Arc::new(RealDisk), &path, settings, 0).unwrap();
    let payload = vec![b'x'; 1000];
    for _ in 0..100 {
        let mut group = Group::new("c", 0).unwrap();
        for _ in 0..1000 {
            group.push(0, &[&payload]).unwrap();
        }
        log.append_and_wait(group).unwrap();
    }
    // The process "dies": a copy of the files as they are now, without the closing steps.
    let copy = dir.path().join("copy");
    std::fs::create_dir(&copy).unwrap();
    for entry in std::fs::read_dir(&path).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), copy.join(entry.file_name())).unwrap();
    }
    let (log, recovery) = Log::open(Arc::new(RealDisk), &copy, settings, 0).unwrap();
    assert_eq!(log.categories()["c"].records, 100_000);
    assert!(recovery.scanned_bytes <= 4 << 20, "{} bytes were read", recovery.scanned_bytes);
    assert!(!recovery.window_rebuilt);
    assert_eq!(log.append_and_wait(message("c", 0, b"next")).unwrap().first_seq, 100_000);
}

#[test]
fn a_record_larger_than_a_file_gets_a_file_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let log = crate::open(dir.path());
    log.append_and_wait(message("c", 0, &vec![b'x'; 1 << 20])).unwrap();
    log.append_and_wait(message("c", 0, b"small")).unwrap();
    log.close();
    assert_eq!(crate::open(dir.path()).categories()["c"].records, 2);
}
