//! Bit rot: what was damaged is skipped, counted and located; all the rest is served.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::sim_disk::{Random, SimDisk};
use super::{SMALL, group, open_writer, read_all};
use crate::Disk;
use crate::check::check;

const RECORDS: u64 = 40;

fn filled() -> SimDisk {
    let disk = SimDisk::default();
    let (mut writer, _) = open_writer(Arc::new(disk.clone()), SMALL).unwrap();
    for n in 0..RECORDS {
        let payload = format!("{n:04}-{}", "y".repeat(300)).into_bytes();
        writer.commit(&[group("c", Some(("p", n)), 0, &payload)]).unwrap();
    }
    writer.checkpoint_all();
    disk
}

fn log_files(disk: &SimDisk) -> Vec<PathBuf> {
    disk.paths().into_iter().filter(|path| path.extension().is_some_and(|e| e == "log")).collect()
}

#[test]
fn any_flipped_bit_costs_at_most_its_frame_and_the_log_opens() {
    let pristine = filled();
    let mut random = Random::new(1);
    for path in log_files(&pristine) {
        let len = usize::try_from(pristine.open(&path).unwrap().len().unwrap()).unwrap();
        for offset in (0..len).step_by(7) {
            let disk = pristine.after_power_cut(&mut random);
            disk.flip(&path, offset);
            let context = format!("bit at {offset} of {}", path.display());
            let (mut writer, _) = open_writer(Arc::new(disk.clone()), SMALL).unwrap();
            let (found, _) = read_all(&writer.shared);
            let lost = RECORDS - found.len() as u64;
            assert!(lost <= 1, "{context}: {lost} records lost");
            let report = check(&writer.shared, None).unwrap();
            assert!(lost == 0 || !report.damage.is_empty(), "{context}: loss not reported");
            let lost_records: u64 = report.damage.iter().filter_map(|d| d.lost).map(|l| l.1).sum();
            assert_eq!(lost_records, lost, "{context}: {:?}", report.damage);
            // No sequence is given out twice, not even a lost one.
            let committed = writer.commit(&[group("c", None, 0, b"next")]).unwrap();
            assert_eq!(committed[0].first_seq, RECORDS, "{context}");
        }
    }
}

#[test]
fn a_check_can_set_damaged_bytes_aside() {
    let disk = filled();
    let path = log_files(&disk).remove(0);
    disk.flip(&path, 500);
    let (writer, _) = open_writer(Arc::new(disk.clone()), SMALL).unwrap();
    let dir = Path::new("/home/quarantine");
    let report = check(&writer.shared, Some(dir)).unwrap();
    assert_eq!(report.damage.len(), 1);
    assert_eq!(report.quarantined.len(), 1);
    assert_eq!(report.quarantined[0].parent(), Some(dir));
    let again = check(&writer.shared, None).unwrap();
    assert!(again.is_clean(), "{again:?}");
    assert_eq!(again.records, RECORDS - 1);
    // And a new start agrees.
    let (writer, _) = open_writer(Arc::new(disk.clone()), SMALL).unwrap();
    assert!(check(&writer.shared, None).unwrap().is_clean());
    assert_eq!(read_all(&writer.shared).0.len() as u64, RECORDS - 1);
}

#[test]
fn a_lost_or_damaged_checkpoint_is_rebuilt_from_the_log() {
    for lose in [true, false] {
        let disk = filled();
        let checkpoint = Path::new(super::DIR).join("checkpoint");
        if lose {
            disk.remove(&checkpoint).unwrap();
        } else {
            disk.flip(&checkpoint, 20);
        }
        let (mut writer, recovery) = open_writer(Arc::new(disk), SMALL).unwrap();
        assert!(recovery.window_rebuilt);
        let again = writer.commit(&[group("c", Some(("p", 3)), 0, b"again")]).unwrap();
        assert_eq!(again[0].appended, 0, "the key is known from the log itself");
    }
}

#[test]
fn garbage_for_a_file_does_not_stop_the_log() {
    let disk = filled();
    let path = Path::new(super::DIR).join("00000000000000ff-00000000000000ee-0.log");
    let file = disk.create(&path).unwrap();
    file.write_at(&[0xAB; 5000], 0).unwrap();
    let (mut writer, _) = open_writer(Arc::new(disk), SMALL).unwrap();
    assert_eq!(read_all(&writer.shared).0.len() as u64, RECORDS);
    writer.commit(&[group("c", None, 0, b"next")]).unwrap();
}

mod bytes_that_are_no_log {
    use proptest::prelude::*;

    use super::*;
    use crate::count_records_in_body;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn never_stop_the_decoder(body in proptest::collection::vec(any::<u8>(), 0..400)) {
            // Each record takes four bytes at least: a count cannot come from nowhere.
            prop_assert!(count_records_in_body(&body).is_none_or(|records| records * 4 <= body.len()));
        }

        #[test]
        fn never_stop_a_start(
            bytes in proptest::collection::vec(any::<u8>(), 0..3000),
            offset in 0..12_000u64,
            file in 0..4usize,
        ) {
            let disk = filled();
            let path = log_files(&disk).remove(file);
            disk.open(&path).unwrap().write_at(&bytes, offset).unwrap();
            let (mut writer, _) = open_writer(Arc::new(disk), SMALL).unwrap();
            let (found, _) = read_all(&writer.shared);
            prop_assert!(found.is_sorted_by(|a, b| a.0 < b.0));
            let next = writer.commit(&[group("c", None, 0, b"next")]).unwrap();
            prop_assert!(next[0].first_seq >= found.last().map_or(0, |(seq, _)| seq + 1));
        }
    }
}
