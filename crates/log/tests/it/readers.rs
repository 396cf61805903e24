//! Reading while others write.

use std::collections::HashSet;
use std::sync::mpsc::channel;

use perflab_log::{ReadFrom, ReadItem, Reader};

use crate::{SECOND, message, open};

fn read(reader: &mut Reader) -> Vec<(u64, Vec<u8>)> {
    let mut found = Vec::new();
    while let Some(item) = reader.next_item().unwrap() {
        let ReadItem::Frame(records) = item else { panic!("no damage here") };
        found.extend(records.iter().map(|(_, record)| (record.seq, record.payload.to_vec())));
    }
    found
}

#[test]
fn a_follower_sees_every_record_once_and_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(dir.path());
    let (committed, commits) = channel();
    log.on_commit(move |end| _ = committed.send(end));
    let writers: Vec<_> = (0..4)
        .map(|writer: u8| {
            let log = log.clone();
            std::thread::spawn(move || {
                for n in 0..250u8 {
                    let payload = [[writer, n].as_slice(), &[b'.'; 400]].concat();
                    log.append_and_wait(message("c", 0, &payload)).unwrap();
                }
            })
        })
        .collect();
    let mut reader = log.read(None, ReadFrom::Oldest);
    let mut found = Vec::new();
    while found.len() < 1000 {
        commits.recv().unwrap();
        found.extend(read(&mut reader));
    }
    writers.into_iter().for_each(|writer| writer.join().unwrap());
    assert!(found.is_sorted_by(|a, b| a.0 < b.0));
    for writer in 0..4 {
        let own: Vec<u8> =
            found.iter().filter(|(_, p)| p[0] == writer).map(|(_, p)| p[1]).collect();
        assert!(own.iter().copied().eq(0..250), "each writer's own order is kept");
    }
    assert_eq!(reader.position(), log.end());
}

#[test]
fn reading_starts_at_an_offset_or_a_time_and_keeps_to_its_category() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(dir.path());
    for n in 0..500i64 {
        let category = if n % 2 == 0 { "even" } else { "odd" };
        log.append_and_wait(message(category, n * SECOND, &[b'x'; 500])).unwrap();
    }
    let seqs = |from, category: &str| -> Vec<u64> {
        let mut reader = log.read(Some(HashSet::from([category.to_owned()])), from);
        read(&mut reader).into_iter().map(|(seq, _)| seq).collect()
    };
    assert_eq!(seqs(ReadFrom::Seq(495), "odd"), [495, 497, 499]);
    assert_eq!(seqs(ReadFrom::Time(497 * SECOND), "even"), [498]);
    assert_eq!(seqs(ReadFrom::Oldest, "even").len(), 250);
    assert_eq!(seqs(ReadFrom::Seq(10_000), "even"), [0u64; 0]);
    assert_eq!(seqs(ReadFrom::Oldest, "none"), [0u64; 0]);
}
