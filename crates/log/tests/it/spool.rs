//! The spool: many processes in, exactly one way out.

use std::io::Write;

use perflab_log::{Spool, SpoolError};

use crate::message;

fn drained(spool: &Spool) -> Vec<(String, u64, Vec<u8>)> {
    let mut found = Vec::new();
    for mut drain in spool.drain().unwrap() {
        let producer = drain.producer();
        let mut visit = |group: perflab_log::GroupView<'_>| {
            found.extend(group.records().map(|r| (producer.clone(), r.seq, r.payload.to_vec())));
        };
        while drain.next(&mut visit).unwrap() {}
        drain.finish().unwrap();
    }
    found
}

#[test]
fn what_many_writers_spool_is_drained_once_under_distinct_keys() {
    let dir = tempfile::tempdir().unwrap();
    let spool = Spool::new(dir.path().join("spool"), 1 << 20);
    let writers: Vec<_> = (0..4u8)
        .map(|writer| {
            let spool = spool.clone();
            std::thread::spawn(move || {
                for n in 0..25u8 {
                    spool.append(&message("c", 7, &[writer, n])).unwrap();
                }
            })
        })
        .collect();
    writers.into_iter().for_each(|writer| writer.join().unwrap());
    let waiting: u64 = spool.waiting().unwrap().iter().map(|file| file.records).sum();
    assert_eq!(waiting, 100);
    let mut found = drained(&spool);
    assert!(spool.is_empty().unwrap());
    assert_eq!(drained(&spool), []);
    let mut payloads: Vec<_> = found.iter().map(|(_, _, payload)| payload.clone()).collect();
    payloads.sort();
    assert_eq!(payloads.len(), 100);
    payloads.dedup();
    assert_eq!(payloads.len(), 100);
    found.sort();
    found.dedup_by_key(|(producer, seq, _)| (producer.clone(), *seq));
    assert_eq!(found.len(), 100, "keys are distinct");
}

#[test]
fn an_unfinished_drain_comes_back_with_the_same_keys() {
    let dir = tempfile::tempdir().unwrap();
    let spool = Spool::new(dir.path().join("spool"), 1 << 20);
    spool.append(&message("c", 0, b"one")).unwrap();
    let mut first = spool.drain().unwrap();
    assert_eq!(first.len(), 1);
    assert!(spool.drain().unwrap().is_empty(), "nobody else drains it meanwhile");
    let mut keys = Vec::new();
    while first[0].next(|group| keys.extend(group.records().map(|r| r.seq))).unwrap() {}
    let producer = first[0].producer();
    drop(first);
    spool.append(&message("c", 0, b"two")).unwrap();
    let again = drained(&spool);
    assert_eq!(again.len(), 2);
    assert!(again.contains(&(producer, keys[0], b"one".to_vec())));
}

#[test]
fn a_writer_that_died_half_way_hides_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let spool = Spool::new(dir.path().join("spool"), 1 << 20);
    spool.append(&message("c", 0, b"before")).unwrap();
    let path = spool.waiting().unwrap()[0].path.clone();
    std::fs::OpenOptions::new().append(true).open(path).unwrap().write_all(b"PLF1 torn").unwrap();
    spool.append(&message("c", 0, b"after")).unwrap();
    assert_eq!(spool.waiting().unwrap()[0].bad_bytes, 9);
    let payloads: Vec<_> = drained(&spool).into_iter().map(|(_, _, payload)| payload).collect();
    assert_eq!(payloads, [b"before".to_vec(), b"after".to_vec()]);
}

#[test]
fn a_full_spool_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let spool = Spool::new(dir.path().join("spool"), 1000);
    let error = (0..100).find_map(|_| spool.append(&message("c", 0, &[b'x'; 100])).err()).unwrap();
    assert!(matches!(error, SpoolError::Full { bytes_max: 1000, .. }), "{error}");
}

#[test]
fn a_spool_that_can_not_be_read_is_not_called_empty() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("spool");
    std::fs::write(&path, "a file in its place").unwrap();
    let spool = Spool::new(path, 1000);
    assert!(spool.is_empty().is_err());
    assert!(spool.drain().is_err());
}

#[test]
fn a_group_that_the_log_would_not_take_is_not_spooled() {
    let dir = tempfile::tempdir().unwrap();
    let spool = Spool::new(dir.path().join("spool"), 1 << 30);
    let mut group = message("c", 0, &vec![b'x'; 1 << 20]);
    while group.encoded_bytes() <= perflab_log::GROUP_BYTES_MAX {
        group.push(0, &[&vec![b'x'; 1 << 20]]).unwrap();
    }
    assert!(spool.append(&group).is_err());
    assert!(spool.is_empty().unwrap());
}
