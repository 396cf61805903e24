//! The checkpoint: the key window and the next sequence, as of a place in the log.
//!
//! It is written whenever a file is sealed and at a clean end, always by rename. Recovery adds
//! the keys of the frames after its place, so that starting reads one file and not the log, and
//! so that keys outlive the files that retention removes. A large one is written beside the
//! commits, and files that are sealed meanwhile get none: then starting reads those too.

use std::io;
use std::path::{Path, PathBuf};

use crate::bytes::{Cursor, Put};
use crate::disk::{Disk, replace};
use crate::window::{Snapshot, Window, WindowLimits};

const MAGIC: u64 = u64::from_le_bytes(*b"PLCHECK1");

/// A place between two frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) number: u64,
    pub(crate) offset: u64,
}

#[derive(Debug)]
pub(crate) struct Checkpoint {
    /// The window holds the keys of all frames before this.
    pub(crate) place: Place,
    pub(crate) next_seq: u64,
    pub(crate) window: Window,
}

fn path(dir: &Path) -> PathBuf {
    dir.join("checkpoint")
}

pub(crate) fn write(
    disk: &dyn Disk,
    dir: &Path,
    place: Place,
    next_seq: u64,
    window: &Snapshot,
) -> io::Result<()> {
    let mut bytes = Vec::new();
    bytes.put_u64(MAGIC);
    bytes.put_u64(place.number);
    bytes.put_u64(place.offset);
    bytes.put_u64(next_seq);
    window.encode(&mut bytes);
    let crc = crc32c::crc32c(&bytes);
    bytes.put_u32(crc);
    replace(disk, &path(dir), &bytes)
}

/// The last checkpoint; `None` when there is none or it is damaged.
pub(crate) fn read(
    disk: &dyn Disk,
    dir: &Path,
    limits: WindowLimits,
    now_ns: i64,
) -> io::Result<Option<Checkpoint>> {
    let file = match disk.open(&path(dir)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = vec![0; usize::try_from(file.len()?).map_err(io::Error::other)?];
    let read = file.read_at(&mut bytes, 0)?;
    Ok(decode(&bytes[..read], limits, now_ns))
}

fn decode(bytes: &[u8], limits: WindowLimits, now_ns: i64) -> Option<Checkpoint> {
    let (covered, crc) = bytes.split_last_chunk::<4>()?;
    if crc32c::crc32c(covered) != u32::from_le_bytes(*crc) {
        return None;
    }
    let mut rest = Cursor(covered);
    if rest.take_u64()? != MAGIC {
        return None;
    }
    let place = Place { number: rest.take_u64()?, offset: rest.take_u64()? };
    let next_seq = rest.take_u64()?;
    let window = Window::decode(limits, now_ns, &mut rest)?;
    Some(Checkpoint { place, next_seq, window })
}
