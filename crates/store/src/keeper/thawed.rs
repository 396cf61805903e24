//! The folder of thawed segments: cold ones as they were while they were hot, for as long as
//! questions touch them and there is room. Nothing in it is data: a start wipes it.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use perflab_log::create_dir;

use super::scratch::write_and_map;
use super::thaw::ThawError;
use crate::segment::{Segment, SegmentFile, Sheets};

#[derive(Debug)]
pub(super) struct Thawed {
    dir: PathBuf,
    bytes_max: u64,
    kept: Mutex<Kept>,
    /// Held while a segment is thawed: one at a time bounds the memory that it takes, and nobody
    /// does the same twice.
    turn: Mutex<()>,
}

#[derive(Debug, Default)]
struct Kept {
    /// By the numbers of segments.
    segments: HashMap<u64, ThawedSegment>,
    bytes: u64,
    /// Counts, so that the least recently used is known.
    uses: u64,
}

#[derive(Debug)]
struct ThawedSegment {
    segment: Arc<Segment>,
    bytes: u64,
    used: u64,
}

impl Thawed {
    pub(super) fn open(home: &Path, bytes_max: u64) -> Self {
        let dir = home.join("thawed");
        match fs::remove_dir_all(&dir) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(%error, "segments that the last process thawed are not removed");
            }
            _ => {}
        }
        Self { dir, bytes_max, kept: Mutex::default(), turn: Mutex::default() }
    }

    pub(super) fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    /// Waits until nobody else thaws.
    pub(super) fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn find(&self, id: u64) -> Option<Arc<Segment>> {
        let mut kept = self.lock();
        kept.uses += 1;
        let uses = kept.uses;
        let found = kept.segments.get_mut(&id)?;
        found.used = uses;
        Some(Arc::clone(&found.segment))
    }

    /// Keeps a segment that takes about this many bytes, for which others go that nobody uses.
    pub(super) fn keep(
        &self,
        id: u64,
        sheets: Sheets,
        bytes: u64,
    ) -> Result<Arc<Segment>, ThawError> {
        let failed = |error| ThawError::Write { dir: self.dir.clone(), error };
        self.make_room(bytes)?;
        let segment = match self.write(id, sheets) {
            Ok(segment) => Arc::new(segment),
            Err(error) => {
                self.remove(id).map_err(failed)?;
                return Err(error);
            }
        };
        let bytes = segment.bytes() as u64;
        let mut kept = self.lock();
        kept.bytes += bytes;
        let used = kept.uses;
        kept.segments.insert(id, ThawedSegment { segment: Arc::clone(&segment), bytes, used });
        Ok(segment)
    }

    /// Lets go of a segment whose bytes are damaged; false when it is none of these.
    pub(super) fn forget(&self, segment: &Segment) -> bool {
        let mut kept = self.lock();
        let is_it = |one: &ThawedSegment| std::ptr::eq(&raw const *one.segment, segment);
        let found = kept.segments.iter().find(|(_, one)| is_it(one)).map(|(&id, _)| id);
        let Some(id) = found else { return false };
        kept.bytes -= kept.segments.remove(&id).map_or(0, |one| one.bytes);
        true
    }

    fn make_room(&self, bytes: u64) -> Result<(), ThawError> {
        let mut kept = self.lock();
        while kept.bytes + bytes > self.bytes_max {
            // What snapshots hold stays on the disk, whether it has a name or not.
            let is_unused = |one: &ThawedSegment| Arc::strong_count(&one.segment) == 1;
            let unused = kept.segments.iter().filter(|(_, one)| is_unused(one));
            let least = unused.min_by_key(|(_, one)| one.used).map(|(&id, _)| id);
            let id = least.ok_or(ThawError::NoRoom { bytes_max: self.bytes_max })?;
            self.remove(id).map_err(|error| ThawError::Write { dir: self.dir.clone(), error })?;
            kept.bytes -= kept.segments.remove(&id).map_or(0, |one| one.bytes);
        }
        Ok(())
    }

    /// Through files, so that the memory is the system's to take back.
    fn write(&self, id: u64, sheets: Sheets) -> Result<Segment, ThawError> {
        let failed = |error| ThawError::Write { dir: self.dir.clone(), error };
        create_dir(&self.dir, 0o700).map_err(failed)?;
        // Not written over: someone may still look at it.
        self.remove(id).map_err(failed)?;
        let files = sheets.try_map(|file, sheet| {
            let path = self.path(id, file);
            let created = File::options().read(true).write(true).create_new(true).open(path);
            let written = write_and_map(created.map_err(failed)?, sheet);
            written.map_err(|error| ThawError::of(error, &self.dir))
        })?;
        Segment::open(&files).map_err(|error| ThawError::Damaged(error.to_string()))
    }

    fn remove(&self, id: u64) -> io::Result<()> {
        for file in SegmentFile::ALL {
            match fs::remove_file(self.path(id, file)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    fn path(&self, id: u64, file: SegmentFile) -> PathBuf {
        self.dir.join(format!("{id}.{}", file.extension()))
    }
}
