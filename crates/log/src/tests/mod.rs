//! Tests that need the inside of the crate, or a disk that fails.

mod damage;
mod faults;
mod model;
mod power_cut;
mod sim_disk;
mod threads;

use std::path::Path;
use std::sync::Arc;

use crate::recover::{Recovery, recover};
use crate::shared::Shared;
use crate::writer::Writer;
use crate::{Disk, Group, ReadFrom, ReadItem, Reader, Settings, WindowLimits, open_shared};

/// Files so small that a few appends fill one.
const SMALL: Settings =
    Settings { file_bytes_max: 4096, queue_bytes_max: 1 << 20, window: WindowLimits::DEFAULT };

const DIR: &str = "/home/log";

/// A record as a test names it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Sent {
    category: String,
    payload: Vec<u8>,
}

fn group(category: &str, key: Option<(&str, u64)>, arrival_ns: i64, payload: &[u8]) -> Group {
    let mut group = match key {
        Some((producer, _)) => Group::with_producer(category, producer, arrival_ns).unwrap(),
        None => Group::new(category, arrival_ns).unwrap(),
    };
    group.push(key.map_or(0, |(_, seq)| seq), &[payload]).unwrap();
    group
}

/// Opens without threads, so that every step of a run happens in a known order.
fn open_writer(disk: Arc<dyn Disk>, settings: Settings) -> std::io::Result<(Writer, Recovery)> {
    let shared = open_shared(disk, Path::new(DIR))?;
    recover(&shared, &settings, 0)
}

/// Everything that a reader finds, with its sequence, and how much damage it met.
fn read_all(shared: &Arc<Shared>) -> (Vec<(u64, Sent)>, usize) {
    let mut reader = Reader::new(Arc::clone(shared), None, ReadFrom::Oldest);
    let (mut found, mut damage) = (Vec::new(), 0);
    while let Some(item) = reader.next_item().unwrap() {
        match item {
            ReadItem::Frame(records) => found.extend(records.iter().map(|(group, record)| {
                let (category, payload) = (group.category.to_owned(), record.payload.to_vec());
                (record.seq, Sent { category, payload })
            })),
            ReadItem::Damage(_) => damage += 1,
        }
    }
    (found, damage)
}
