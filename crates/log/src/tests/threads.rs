//! The queue and its threads, over a disk that can be made slow or full.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use super::sim_disk::SimDisk;
use super::{DIR, SMALL, group};
use crate::{AppendError, CommitError, Log, Refusal, Settings};

fn open(disk: &SimDisk, settings: Settings) -> Log {
    Log::open(Arc::new(disk.clone()), Path::new(DIR), settings, 0).unwrap().0
}

#[test]
fn what_queues_during_a_sync_is_one_commit() {
    let disk = SimDisk::default();
    let log = open(&disk, Settings { file_bytes_max: 1 << 20, ..SMALL });
    log.append_and_wait(group("c", None, 0, b"first")).unwrap();
    let before = log.stats().commits;
    let held = disk.hold_syncs();
    let (sender, receiver) = channel();
    for n in 0..100 {
        let sender = sender.clone();
        log.append(group("c", None, 0, format!("{n}").as_bytes()), move |outcome| {
            sender.send((n, outcome.unwrap().first_seq)).unwrap();
        })
        .unwrap();
    }
    assert!(receiver.recv_timeout(Duration::from_millis(50)).is_err(), "none before its sync");
    drop(held);
    let acknowledged: Vec<(u64, u64)> = receiver.iter().take(100).collect();
    assert!(acknowledged.iter().all(|(n, seq)| *seq == n + 1), "in the order of arrival");
    let commits = log.stats().commits - before;
    assert!(commits <= 2, "the first alone, all others together, not {commits} commits");
}

#[test]
fn a_full_queue_refuses_at_once_and_takes_again_later() {
    let disk = SimDisk::default();
    let log = open(&disk, Settings { queue_bytes_max: 2000, ..SMALL });
    let held = disk.hold_syncs();
    let (sender, receiver) = channel();
    let mut accepted = 0;
    let refusal = loop {
        let sender = sender.clone();
        let outcome = log.append(group("c", None, 0, &[b'x'; 400]), move |outcome| {
            sender.send(outcome.is_ok()).unwrap();
        });
        match outcome {
            Ok(()) => accepted += 1,
            Err(refusal) => break refusal,
        }
        assert!(accepted < 20, "the queue has no end");
    };
    assert!(matches!(refusal, Refusal::QueueFull { .. }), "{refusal}");
    drop(held);
    assert!(receiver.iter().take(accepted).all(|ok| ok), "what was accepted is committed");
    log.append_and_wait(group("c", None, 0, b"later")).unwrap();
}

#[test]
fn a_full_disk_is_said_and_ends_by_itself() {
    let disk = SimDisk::default();
    let log = open(&disk, SMALL);
    disk.set_capacity(Some(9000));
    let error = (0..100)
        .find_map(|_| log.append_and_wait(group("c", None, 0, &[b'x'; 500])).err())
        .expect("nine kilobytes are soon full");
    assert!(matches!(error, AppendError::Commit(CommitError::NoSpace(_))), "{error}");
    while !log.stats().disk_full {
        std::thread::yield_now();
    }
    let error = log.append_and_wait(group("c", None, 0, b"small")).unwrap_err();
    assert!(matches!(error, AppendError::Refused(Refusal::DiskFull)), "{error}");
    disk.set_capacity(None);
    while log.stats().disk_full {
        std::thread::yield_now();
    }
    log.append_and_wait(group("c", None, 0, b"again")).unwrap();
}

#[test]
fn a_committer_that_ends_by_a_defect_leaves_nobody_waiting() {
    let disk = SimDisk::default();
    let log = open(&disk, Settings { queue_bytes_max: 8 << 20, ..SMALL });
    log.append_and_wait(group("c", None, 0, b"first")).unwrap();
    let held = disk.hold_syncs();
    // The first one is in a commit of its own by the time the others come, or with them: either
    // way they are queued before the defect shows.
    log.append(group("c", None, 0, b"x"), |_| panic!("a defect")).unwrap();
    let (sender, receiver) = channel::<()>();
    for _ in 0..3 {
        let sender = sender.clone();
        log.append(group("c", None, 0, &[b'x'; 500_000]), move |_| drop(sender)).unwrap();
    }
    drop((held, sender));
    let told = receiver.recv_timeout(Duration::from_secs(10));
    assert_eq!(told, Err(std::sync::mpsc::RecvTimeoutError::Disconnected), "all are told");
    let refused = log.append_and_wait(group("c", None, 0, b"later")).unwrap_err();
    assert!(matches!(refused, AppendError::Refused(Refusal::Closed)), "{refused}");
    assert!(log.stats().closed);
}

#[test]
fn closing_waits_for_what_is_being_rewritten_and_lets_no_more_begin() {
    let disk = SimDisk::default();
    let log = open(&disk, SMALL);
    log.append_and_wait(group("c", None, 0, b"x")).unwrap();
    let rewriting = crate::shared::lock(&log.inner.shared.rewriting);
    let (sender, closed) = channel();
    let closer = std::thread::spawn({
        let log = log.clone();
        move || {
            log.close();
            sender.send(()).unwrap();
        }
    });
    assert!(closed.recv_timeout(Duration::from_millis(50)).is_err(), "it waits");
    drop(rewriting);
    closer.join().unwrap();
    assert!(log.retain(0, &|_| crate::Keep::default(), 0).is_err());
    assert!(log.check(None).is_err());
}

#[test]
fn closing_commits_what_was_accepted() {
    let disk = SimDisk::default();
    let log = open(&disk, SMALL);
    let held = disk.hold_syncs();
    for n in 0..10u8 {
        log.append(group("c", None, 0, &[n]), |outcome| assert!(outcome.is_ok())).unwrap();
    }
    let closer = std::thread::spawn({
        let log = log.clone();
        move || log.close()
    });
    drop(held);
    closer.join().unwrap();
    let refused = log.append_and_wait(group("c", None, 0, b"late")).unwrap_err();
    assert!(matches!(refused, AppendError::Refused(Refusal::Closed)));
    assert_eq!(open(&disk, SMALL).categories()["c"].records, 10);
}
