//! Files that can't be read for a while, syncs that fail, disks that are full: what was
//! acknowledged comes back.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::sim_disk::{Random, SimDisk};
use super::{DIR, SMALL, group, open_writer, read_all};
use crate::Disk;
use crate::file::FileName;
use crate::retain::{Keep, retain};
use crate::shared::Shared;
use crate::writer::Writer;

fn open(disk: &SimDisk) -> Writer {
    open_writer(Arc::new(disk.clone()), SMALL).unwrap().0
}

fn commit(writer: &mut Writer, category: &str, key: u64, len: usize) {
    let committed = writer.commit(&[keyed(category, key, len)]).unwrap();
    assert_eq!(committed[0].appended, 1, "{key} is new");
}

fn keyed(category: &str, key: u64, len: usize) -> crate::Group {
    group(category, Some(("p", key)), 0, &payload(key, len))
}

fn payload(key: u64, len: usize) -> Vec<u8> {
    let mut payload = key.to_le_bytes().to_vec();
    payload.resize(len, b'x');
    payload
}

/// The keys of all records, in the order in which they are read.
fn keys(shared: &Arc<Shared>) -> Vec<u64> {
    let (found, _) = read_all(shared);
    assert!(found.is_sorted_by(|a, b| a.0 < b.0), "sequences are given out once");
    let key = |payload: &[u8]| u64::from_le_bytes(payload[..8].try_into().unwrap());
    found.iter().map(|(_, sent)| key(&sent.payload)).collect()
}

fn log_files(disk: &SimDisk) -> Vec<PathBuf> {
    disk.paths().into_iter().filter(|path| path.extension().is_some_and(|e| e == "log")).collect()
}

/// Everything of the category `old` may go.
fn drop_old(category: &str) -> Keep {
    Keep { age_ns: (category == "old").then_some(0), bytes: None }
}

fn retain_all_but_old(shared: &Shared) -> std::io::Result<crate::Retained> {
    retain(shared, 1, &drop_old, u64::MAX)
}

#[test]
fn a_file_that_could_not_be_opened_once_loses_nothing() {
    let disk = SimDisk::default();
    let mut writer = open(&disk);
    (0..30).for_each(|key| commit(&mut writer, "c", key, 300));
    drop(writer);
    for denied in log_files(&disk) {
        let disk = disk.after_power_cut(&mut Random::new(0));
        disk.deny(&denied);
        let (mut writer, recovery) = open_writer(Arc::new(disk.clone()), SMALL).unwrap();
        assert_eq!(recovery.unreadable.len(), 1);
        (100..120).for_each(|key| commit(&mut writer, "c", key, 300));
        writer.checkpoint_all();
        // And a second start while it still can't be opened.
        let mut writer = open(&disk);
        commit(&mut writer, "c", 120, 300);
        disk.allow_all();
        let writer = open(&disk);
        let expected: Vec<u64> = (0..30).chain(100..121).collect();
        assert_eq!(keys(&writer.shared), expected, "{}", denied.display());
    }
}

#[test]
fn nothing_is_written_to_a_file_before_one_that_can_not_be_opened() {
    let disk = SimDisk::default();
    let mut writer = open(&disk);
    commit(&mut writer, "c", 0, 300);
    disk.fail_after(1);
    writer.commit(&[keyed("c", 99, 300)]).unwrap_err();
    // The first file has room and no seal; this goes to the second.
    commit(&mut writer, "c", 1, 300);
    drop(writer);
    let disk = disk.after_power_cut(&mut Random::new(0));
    disk.deny(log_files(&disk).last().unwrap());
    let mut writer = open(&disk);
    commit(&mut writer, "c", 2, 300);
    disk.allow_all();
    assert_eq!(keys(&open(&disk).shared), [0, 1, 2]);
}

#[test]
fn sequences_continue_past_a_file_that_no_checkpoint_tells_of() {
    let disk = SimDisk::default();
    let mut writer = open(&disk);
    (0..30).for_each(|key| commit(&mut writer, "c", key, 300));
    let next_seq = writer.next_seq;
    drop(writer);
    disk.remove(&Path::new(DIR).join("checkpoint")).unwrap();
    disk.deny(log_files(&disk).last().unwrap());
    assert!(open(&disk).next_seq >= next_seq);
}

#[test]
fn a_file_that_was_given_up_outlives_its_successor() {
    let disk = SimDisk::default();
    let mut writer = open(&disk);
    (0..8).for_each(|key| commit(&mut writer, "kept", key, 300));
    disk.fail_after(1);
    writer.commit(&[keyed("kept", 99, 300)]).unwrap_err();
    // A short file, of which nothing is wanted, and one after it.
    commit(&mut writer, "old", 8, 100);
    commit(&mut writer, "kept", 9, 3900);
    commit(&mut writer, "kept", 10, 3900);
    assert_eq!(retain_all_but_old(&writer.shared).unwrap().files_removed, 1);
    let expected = [0, 1, 2, 3, 4, 5, 6, 7, 9, 10];
    assert_eq!(keys(&open(&disk).shared), expected, "and what was refused does not come back");
    let after = disk.after_power_cut(&mut Random::new(1));
    assert_eq!(keys(&open(&after).shared), expected);
}

#[test]
fn a_refused_frame_that_a_restart_brings_back_stays() {
    for before in [0, 3] {
        let disk = SimDisk::default();
        let mut writer = open(&disk);
        (0..before).for_each(|key| commit(&mut writer, "c", key, 300));
        if before == 0 {
            // The file is there, its header and first frame are not.
            commit(&mut writer, "c", 50, 4000);
        }
        disk.fail_after(if before == 0 { 8 } else { 1 });
        let refused = (60..70).find(|key| writer.commit(&[keyed("c", *key, 300)]).is_err());
        assert!(refused.is_some());
        drop(writer);
        // Just the process ends: the page cache still has what the disk does not.
        disk.heal();
        let served = keys(&open(&disk).shared);
        let after = disk.after_power_cut(&mut Random::new(0));
        assert_eq!(keys(&open(&after).shared), served);
    }
}

#[test]
fn keys_that_no_checkpoint_holds_keep_their_files() {
    let disk = SimDisk::default();
    let mut writer = open(&disk);
    disk.deny(&Path::new(DIR).join("checkpoint.tmp"));
    (0..40).for_each(|key| commit(&mut writer, "old", key, 300));
    assert!(writer.shared.counters.failed_checkpoints.load(Ordering::Relaxed) > 0);
    retain_all_but_old(&writer.shared).unwrap();
    let after = disk.after_power_cut(&mut Random::new(0));
    let mut writer = open(&after);
    for key in 0..40 {
        assert_eq!(writer.commit(&[keyed("old", key, 300)]).unwrap()[0].appended, 0, "{key}");
    }
    // Once there is a checkpoint, the files may go.
    after.allow_all();
    (40..60).for_each(|key| commit(&mut writer, "old", key, 300));
    assert!(retain_all_but_old(&writer.shared).unwrap().files_removed > 3);
}

#[test]
fn damage_in_the_last_frame_of_a_sealed_file_is_told() {
    let disk = SimDisk::default();
    let mut writer = open(&disk);
    (0..30).for_each(|key| commit(&mut writer, "c", key, 300));
    writer.checkpoint_all();
    let first = Arc::clone(&writer.shared.files()[0]);
    let end = usize::try_from(crate::shared::lock(&first.summary).end).unwrap();
    disk.flip(&first.path, end - 1);
    let writer = open(&disk);
    let (found, damage) = read_all(&writer.shared);
    assert_eq!((found.len(), damage), (29, 1));
}

#[test]
fn damage_at_the_end_of_a_file_without_a_seal_is_told() {
    let disk = SimDisk::default();
    let mut writer = open(&disk);
    (0..5).for_each(|key| commit(&mut writer, "c", key, 300));
    let first = Arc::clone(&writer.shared.files()[0]);
    let end = usize::try_from(crate::shared::lock(&first.summary).end).unwrap();
    disk.fail_after(1);
    writer.commit(&[keyed("c", 99, 300)]).unwrap_err();
    commit(&mut writer, "c", 5, 300);
    disk.flip(&first.path, end - 1);
    // With the refused frame after the damage, and without.
    for disk in [disk.after_power_cut(&mut Random::new(0)), disk] {
        let (writer, recovery) = open_writer(Arc::new(disk), SMALL).unwrap();
        assert_eq!(recovery.damage.len(), 1, "{recovery:?}");
        assert_eq!(recovery.damage[0].lost, Some((4, 1)));
        assert_eq!(keys(&writer.shared), [0, 1, 2, 3, 5]);
        assert_eq!(read_all(&writer.shared).1, 1, "readers are told too");
    }
}

/// Files with a little that is kept, then files with nothing that is.
fn half_wanted() -> (SimDisk, Writer) {
    let disk = SimDisk::default();
    let mut writer = open(&disk);
    for key in 0..40 {
        commit(&mut writer, if key < 20 && key % 8 == 0 { "kept" } else { "old" }, key, 300);
    }
    (disk, writer)
}

#[test]
fn a_full_disk_does_not_stop_retention() {
    let (disk, writer) = half_wanted();
    disk.set_capacity(Some(disk.used()));
    let before = disk.used();
    // The removals make the space that the rewrites need.
    let retained = retain_all_but_old(&writer.shared).unwrap();
    assert!(retained.files_removed > 0 && retained.files_rewritten > 0, "{retained:?}");
    assert!(disk.used() < before);
}

#[test]
fn retention_goes_on_past_a_file_that_it_can_not_rewrite() {
    let (disk, writer) = half_wanted();
    disk.deny(&writer.shared.files()[0].path);
    retain_all_but_old(&writer.shared).unwrap_err();
    disk.allow_all();
    let newest = crate::shared::lock(&writer.shared.files().last().unwrap().summary).first_seq;
    let left = || keys(&writer.shared).into_iter().filter(|key| *key < newest);
    assert!(left().eq((0..10).chain([16])), "the others are done: {:?}", left());
    retain_all_but_old(&writer.shared).unwrap();
    assert!(left().eq([0, 8, 16]), "{:?}", left());
}

#[test]
fn what_an_unfinished_rewrite_left_is_no_obstacle() {
    let (disk, writer) = half_wanted();
    let name = writer.shared.files()[0].name;
    let next = FileName { generation: name.generation + 1, ..name };
    disk.create(&next.path(Path::new(DIR)).with_extension("tmp")).unwrap();
    retain_all_but_old(&writer.shared).unwrap();
    assert!(disk.paths().iter().all(|path| path.extension().is_none_or(|e| e != "tmp")));
}

#[test]
fn a_file_that_someone_else_removed_is_forgotten() {
    let (disk, writer) = half_wanted();
    let files = writer.shared.files();
    let gone = &files[files.len() - 2];
    disk.remove(&gone.path).unwrap();
    retain_all_but_old(&writer.shared).unwrap();
    assert!(writer.shared.files().iter().all(|info| info.path != gone.path));
}

#[test]
fn only_a_full_disk_is_called_full() {
    let disk = SimDisk::default();
    let mut writer = open(&disk);
    disk.fail_after(0);
    let error = writer.commit(&[keyed("c", 0, 10)]).unwrap_err();
    assert!(matches!(error, crate::CommitError::Write(_)), "{error}");
    disk.set_capacity(Some(100));
    let error = writer.commit(&[keyed("c", 0, 10)]).unwrap_err();
    assert!(matches!(error, crate::CommitError::NoSpace(_)), "{error}");
}

#[test]
fn what_is_repeated_as_a_whole_is_counted_too() {
    let disk = SimDisk::default();
    let mut writer = open(&disk);
    commit(&mut writer, "c", 0, 10);
    writer.commit(&[keyed("c", 0, 10)]).unwrap();
    let counters = &writer.shared.counters;
    assert_eq!(counters.duplicates.load(Ordering::Relaxed), 1);
    assert_eq!(counters.commits.load(Ordering::Relaxed), 1, "nothing was written for it");
}

#[test]
fn a_large_checkpoint_does_not_hold_up_commits() {
    let disk = SimDisk::default();
    let settings = crate::Settings { file_bytes_max: 1 << 20, ..SMALL };
    let (mut writer, _) = open_writer(Arc::new(disk.clone()), settings).unwrap();
    // No two keys in one run.
    let batch = |keys: std::ops::Range<u64>| {
        let mut group = crate::Group::with_producer("c", "p", 0).unwrap();
        keys.for_each(|key| group.push(key * 2, &[b"x"]).unwrap());
        group
    };
    for n in 0..30 {
        writer.commit(&[batch(n * 1000..(n + 1) * 1000)]).unwrap();
    }
    writer.checkpoint_all();
    let before = writer.shared.checkpointed.load(Ordering::Acquire);
    let held = disk.hold_checkpoints();
    for n in 30..100 {
        writer.commit(&[batch(n * 1000..(n + 1) * 1000)]).unwrap();
    }
    assert_eq!(writer.shared.checkpointed.load(Ordering::Acquire), before);
    drop(held);
    writer.checkpoint_all();
    let number = writer.shared.checkpointed.load(Ordering::Acquire);
    assert!(number > before, "{number}");
    drop(writer);
    let (mut writer, recovery) = open_writer(Arc::new(disk), settings).unwrap();
    assert!(!recovery.window_rebuilt);
    let again = writer.commit(&[batch(0..100_000)]).unwrap();
    assert_eq!(again[0].appended, 0, "all keys are known");
}
