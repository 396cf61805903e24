//! A scripted run, with the power cut, or one operation failing, at each of its steps.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use super::sim_disk::{Random, SimDisk};
use super::{SMALL, Sent, group, open_writer, read_all};
use crate::retain::{Keep, retain};
use crate::writer::Writer;
use crate::{Group, Settings};

/// What the script sends, in order.
const SENT: u64 = 60;
/// Records of this category go with retention.
const BUSY: &str = "busy";

fn payload(n: u64) -> Vec<u8> {
    // Of very different sizes, so that frames end in every part of a sector.
    let len = usize::try_from(n * 37 % 700).unwrap();
    let mut payload = format!("{n:04}").into_bytes();
    payload.resize(4 + len, b'x');
    payload
}

fn scripted(n: u64) -> (Group, Sent) {
    let category = if n.is_multiple_of(3) { BUSY } else { "kept" };
    let key = n.is_multiple_of(2).then_some(("producer", n));
    let arrival_ns = i64::try_from(n).unwrap() * 1_000_000_000;
    let sent = Sent { category: category.to_owned(), payload: payload(n) };
    (group(category, key, arrival_ns, &sent.payload), sent)
}

/// What a run knows of the messages when it ends.
#[derive(Debug, Default)]
struct Outcome {
    acknowledged: BTreeSet<u64>,
    retained_below: u64,
}

/// Sends all messages, two to a commit now and then, with retention in between. Goes on after
/// errors, as a server would.
fn run(writer: &mut Writer, outcome: &mut Outcome) {
    let mut n = 0;
    while n < SENT {
        let batch = if n.is_multiple_of(5) { 2 } else { 1 };
        let numbers: Vec<u64> = (n..(n + batch).min(SENT)).collect();
        let groups: Vec<Group> = numbers.iter().map(|n| scripted(*n).0).collect();
        if writer.commit(&groups).is_ok() {
            outcome.acknowledged.extend(&numbers);
        }
        n += batch;
        if n.is_multiple_of(20) {
            outcome.retained_below = n - 10;
            let now_ns = i64::try_from(n).unwrap() * 1_000_000_000;
            // What it can't do now it does the next time: see `verify`.
            let retained = retain(&writer.shared, now_ns, &keep, u64::MAX);
            drop(retained);
        }
    }
    writer.checkpoint_all();
}

fn keep(category: &str) -> Keep {
    Keep { age_ns: (category == BUSY).then_some(10_000_000_000), bytes: None }
}

/// The invariants after any kind of end.
fn verify(disk: &SimDisk, outcome: &Outcome, context: &str) {
    let (mut writer, recovery) = open_writer(Arc::new(disk.clone()), SMALL)
        .unwrap_or_else(|error| panic!("{context}: did not open: {error}"));
    assert!(recovery.damage.is_empty(), "{context}: {recovery:?}");
    check_content(&writer, outcome, context);
    let now_ns = i64::try_from(outcome.retained_below + 10).unwrap() * 1_000_000_000;
    retain(&writer.shared, now_ns, &keep, u64::MAX)
        .unwrap_or_else(|error| panic!("{context}: retention fails for good: {error}"));
    check_content(&writer, outcome, context);
    // The client sends again, under the same keys, what was not acknowledged to it, and some of
    // what was.
    for n in (0..SENT).filter(|n| n.is_multiple_of(2)) {
        let committed = writer.commit(&[scripted(n).0]);
        let committed = committed.unwrap_or_else(|error| panic!("{context}: {n}: {error}"));
        let known = committed[0].not_appended.len() == 1;
        assert!(known || !outcome.acknowledged.contains(&n), "{context}: {n} taken twice");
    }
    let (found, _) = read_all(&writer.shared);
    for n in (0..SENT).filter(|n| n.is_multiple_of(2) && *n >= outcome.retained_below) {
        let sent = scripted(n).1;
        let times = found.iter().filter(|(_, found)| *found == sent).count();
        assert_eq!(times, 1, "{context}: message {n} with a key is there {times} times");
    }
}

fn check_content(writer: &Writer, outcome: &Outcome, context: &str) {
    let (found, damage) = read_all(&writer.shared);
    assert_eq!(damage, 0, "{context}: readers met damage");
    assert!(found.is_sorted_by(|a, b| a.0 < b.0), "{context}: sequences out of order");
    assert!(found.last().is_none_or(|(seq, _)| *seq < writer.next_seq), "{context}: reused");
    let all: BTreeSet<Sent> = (0..SENT).map(|n| scripted(n).1).collect();
    for (seq, record) in &found {
        assert!(all.contains(record), "{context}: record {seq} was never sent");
    }
    for n in &outcome.acknowledged {
        let sent = scripted(*n).1;
        let may_be_gone = sent.category == BUSY && *n < outcome.retained_below;
        let times = found.iter().filter(|(_, found)| *found == sent).count();
        assert!(times == 1 || may_be_gone, "{context}: acknowledged {n} is there {times} times");
    }
}

fn steps_of_a_whole_run() -> u64 {
    let disk = SimDisk::default();
    let (mut writer, _) = open_writer(Arc::new(disk.clone()), SMALL).unwrap();
    let mut outcome = Outcome::default();
    run(&mut writer, &mut outcome);
    assert_eq!(outcome.acknowledged.len() as u64, SENT);
    let files = disk.paths().len();
    assert!(files > 3, "the script rolls and rewrites files: {files}");
    disk.steps()
}

#[test]
fn a_power_cut_at_any_step_loses_nothing_acknowledged() {
    let steps = steps_of_a_whole_run();
    for cut in 0..steps {
        for seed in 0..6 {
            let disk = SimDisk::default();
            disk.cut_after(cut);
            let mut outcome = Outcome::default();
            if let Ok((mut writer, _)) = open_writer(Arc::new(disk.clone()), SMALL) {
                run(&mut writer, &mut outcome);
            }
            let mut random = Random::new(seed * 7919 + cut);
            let after = disk.after_power_cut(&mut random);
            verify(&after, &outcome, &format!("cut at step {cut}, seed {seed}"));
        }
    }
}

#[test]
fn a_power_cut_during_recovery_loses_nothing_either() {
    let steps = steps_of_a_whole_run();
    for cut in (0..steps).step_by(17) {
        let disk = SimDisk::default();
        disk.cut_after(cut);
        let mut outcome = Outcome::default();
        if let Ok((mut writer, _)) = open_writer(Arc::new(disk.clone()), SMALL) {
            run(&mut writer, &mut outcome);
        }
        let mut random = Random::new(cut);
        let first = disk.after_power_cut(&mut random);
        for second_cut in 0..40 {
            let again = first.after_power_cut(&mut random);
            again.cut_after(second_cut);
            let opened = open_writer(Arc::new(again.clone()), SMALL);
            drop(opened);
            let after = again.after_power_cut(&mut random);
            verify(&after, &outcome, &format!("cut at {cut}, then at {second_cut} of recovery"));
        }
    }
}

#[test]
fn any_one_operation_may_fail_and_the_log_goes_on() {
    let steps = steps_of_a_whole_run();
    for failing in 0..steps {
        let disk = SimDisk::default();
        let (mut writer, _) = open_writer(Arc::new(disk.clone()), SMALL).unwrap();
        disk.fail_after(failing);
        let mut outcome = Outcome::default();
        run(&mut writer, &mut outcome);
        disk.heal();
        let context = format!("operation {failing} failed");
        let lost = SENT - outcome.acknowledged.len() as u64;
        assert!(lost <= 2, "{context}: {lost} messages were refused for one error");
        check_content(&writer, &outcome, &context);
        let now_ns = i64::try_from(SENT).unwrap() * 1_000_000_000;
        retain(&writer.shared, now_ns, &keep, u64::MAX)
            .unwrap_or_else(|error| panic!("{context}: retention fails for good: {error}"));
        let after = disk.after_power_cut(&mut Random::new(failing));
        verify(&after, &outcome, &format!("{context}, then the power was cut"));
    }
}

/// What a refused commit left behind must not count later, nor make its keys unknown.
#[test]
fn a_power_cut_soon_after_a_failed_operation_loses_nothing_either() {
    let steps = steps_of_a_whole_run();
    for failing in 0..steps {
        for cut in (1..30).step_by(2) {
            let disk = SimDisk::default();
            let (mut writer, _) = open_writer(Arc::new(disk.clone()), SMALL).unwrap();
            disk.fail_after(failing);
            disk.cut_after(failing + cut);
            let mut outcome = Outcome::default();
            run(&mut writer, &mut outcome);
            let after = disk.after_power_cut(&mut Random::new(failing * 31 + cut));
            verify(&after, &outcome, &format!("operation {failing} failed, power cut {cut} later"));
        }
    }
}

/// As before, but only the process ends, and the power later.
#[test]
fn a_restart_after_a_failed_operation_promises_nothing_that_is_not_on_the_disk() {
    let steps = steps_of_a_whole_run();
    for failing in 0..steps {
        let disk = SimDisk::default();
        let (mut writer, _) = open_writer(Arc::new(disk.clone()), SMALL).unwrap();
        disk.fail_after(failing);
        let mut outcome = Outcome::default();
        for n in 0..SENT {
            let ended = writer.commit(&[scripted(n).0]);
            outcome.acknowledged.extend(ended.is_ok().then_some(n));
            if ended.is_err() {
                break;
            }
        }
        drop(writer);
        disk.heal();
        let context = format!("operation {failing} failed, then a restart");
        let (writer, _) = open_writer(Arc::new(disk.clone()), SMALL).unwrap();
        let (served, _) = read_all(&writer.shared);
        let after = disk.after_power_cut(&mut Random::new(failing));
        verify(&after, &outcome, &context);
        let (writer, _) = open_writer(Arc::new(after), SMALL).unwrap();
        let (found, _) = read_all(&writer.shared);
        let lost = served.iter().find(|record| !found.contains(record));
        assert_eq!(lost, None, "{context}, then the power was cut");
    }
}

#[test]
#[should_panic(expected = "acknowledged")]
fn the_test_itself_finds_the_loss_on_a_disk_that_does_not_sync() {
    let disk = SimDisk::default();
    let (mut writer, _) = open_writer(Arc::new(disk.clone()), SMALL).unwrap();
    disk.lie();
    let mut outcome = Outcome::default();
    run(&mut writer, &mut outcome);
    let after = disk.after_power_cut(&mut Random::new(0));
    verify(&after, &outcome, "a disk that lies");
}

#[test]
fn a_full_disk_refuses_and_recovers_by_itself() {
    let disk = SimDisk::default();
    let settings = Settings { file_bytes_max: 4096, ..SMALL };
    let (mut writer, _) = open_writer(Arc::new(disk.clone()), settings).unwrap();
    disk.set_capacity(Some(10_000));
    let mut outcome = Outcome::default();
    let mut refused = 0;
    for n in 0..SENT {
        match writer.commit(&[scripted(n).0]) {
            Ok(_) => _ = outcome.acknowledged.insert(n),
            Err(error) => {
                assert!(matches!(error, crate::CommitError::NoSpace(_)), "{error}");
                refused += 1;
                if refused == 10 {
                    disk.set_capacity(None);
                }
            }
        }
    }
    assert_eq!(refused, 10);
    check_content(&writer, &outcome, "after the disk was full");
    assert!(disk.paths().iter().all(|path| path.parent() == Some(Path::new(super::DIR))));
}
