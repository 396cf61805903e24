//! The files of segments: `segments/<dataset's number>/<segment's number>.arrow`, and
//! `….lists.arrow` beside it where the segment has lists; those of cold ones are
//! `cold/…/….parquet` and `….lists.parquet`.
//!
//! A file gets its name when it is complete and on the disk, and is never changed after that.

use std::collections::HashSet;
use std::fs;
use std::io::{self, Write};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use perflab_log::{Disk, DiskFile, create_dir};
use perflab_model::Nanos;

use super::map::{check_length, map};
use super::scratch::Scratch;
use super::steps::{Fault, Steps};
use crate::catalog::{ColdEntry, SegmentEntry};
use crate::segment::{Output, Segment, SegmentError, Sheet, Sheets};

/// Where files are, and what their names end in.
#[derive(Debug)]
pub(super) struct Layout {
    folder: &'static str,
    rows: &'static str,
    lists: &'static str,
}

pub(super) const HOT: Layout = Layout { folder: "segments", rows: "arrow", lists: "lists.arrow" };
pub(super) const COLD: Layout = Layout { folder: "cold", rows: "parquet", lists: "lists.parquet" };

/// What the names of files that are being written end in.
const TEMPORARY: &str = "tmp";

/// Why a segment's files can't be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FileError {
    #[error("failed to read `{path}`")]
    Read {
        path: PathBuf,
        #[source]
        error: io::Error,
    },
    #[error("`{path}` can't be used")]
    Segment {
        path: PathBuf,
        #[source]
        error: SegmentError,
    },
}

/// How long the files of a segment are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lengths {
    pub(super) rows: u64,
    pub(super) lists: Option<u64>,
}

/// A file that is being written.
#[derive(Debug)]
struct NewFile {
    file: Arc<dyn DiskFile>,
    path: PathBuf,
    len: u64,
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write_at(bytes, self.len)?;
        self.len += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Output for NewFile {
    fn written(&self) -> io::Result<impl Deref<Target = [u8]> + '_> {
        map(&self.path, self.len)
    }
}

#[derive(Debug)]
pub(super) struct SegmentFiles {
    layout: Layout,
    dir: PathBuf,
    quarantine: PathBuf,
    disk: Arc<dyn Disk>,
    fault: Fault,
}

impl SegmentFiles {
    pub(super) fn new(home: &Path, layout: Layout, disk: Arc<dyn Disk>, fault: Fault) -> Self {
        let (dir, quarantine) = (home.join(layout.folder), home.join("quarantine"));
        Self { layout, dir, quarantine, disk, fault }
    }

    fn kinds(&self) -> [&'static str; 2] {
        [self.layout.rows, self.layout.lists]
    }

    fn path(&self, folder: u64, id: u64, kind: &str) -> PathBuf {
        self.dir.join(folder.to_string()).join(format!("{id}.{kind}"))
    }

    /// Room for the columns of a segment that is about to be written.
    pub(super) fn scratch(&self) -> io::Result<Scratch> {
        self.disk.create_dir(&self.dir)?;
        Scratch::new(&self.dir)
    }

    /// Writes a segment's files, so that they are there after a power cut once this returns; how
    /// long they are.
    pub(super) fn write(
        &self,
        (folder, id): (u64, u64),
        sheets: Sheets,
        steps: &Steps,
    ) -> Result<Lengths, SegmentError> {
        let dir = self.dir.join(folder.to_string());
        self.disk.create_dir(&dir)?;
        let write = |kind, sheet: Sheet| {
            self.write_one(&self.path(folder, id, kind), steps, |out| sheet.write(out))
        };
        let lists = sheets.lists.map(|lists| write(self.layout.lists, lists)).transpose()?;
        let rows = write(self.layout.rows, sheets.rows)?;
        self.disk.sync_dir(&dir)?;
        (self.fault)(steps.durable);
        Ok(Lengths { rows, lists })
    }

    /// As [`Self::write`], of bytes.
    pub(super) fn write_bytes(
        &self,
        (folder, id): (u64, u64),
        (rows, lists): (&[u8], Option<&[u8]>),
        steps: &Steps,
    ) -> Result<(), SegmentError> {
        let dir = self.dir.join(folder.to_string());
        self.disk.create_dir(&dir)?;
        let write = |kind, bytes: &[u8]| {
            self.write_one(&self.path(folder, id, kind), steps, |mut out| {
                out.write_all(bytes)?;
                Ok(out)
            })
        };
        lists.map(|lists| write(self.layout.lists, lists)).transpose()?;
        write(self.layout.rows, rows)?;
        self.disk.sync_dir(&dir)?;
        (self.fault)(steps.durable);
        Ok(())
    }

    /// Returns how long the file is.
    fn write_one(
        &self,
        path: &Path,
        steps: &Steps,
        write: impl FnOnce(NewFile) -> Result<NewFile, SegmentError>,
    ) -> Result<u64, SegmentError> {
        let temporary = path.with_added_extension(TEMPORARY);
        // Left by an attempt that failed, if it is there.
        self.remove_if_there(&temporary)?;
        let file = self.disk.create(&temporary)?;
        let written = write(NewFile { file, path: temporary, len: 0 })?;
        (self.fault)(steps.written);
        written.file.sync_data()?;
        (self.fault)(steps.synced);
        self.disk.rename(&written.path, path)?;
        (self.fault)(steps.renamed);
        Ok(written.len)
    }

    /// Opens a segment: its length is checked against the catalog, its description against its
    /// checksum; nothing else is read.
    pub(super) fn open(&self, folder: u64, entry: &SegmentEntry) -> Result<Segment, FileError> {
        let open = |kind, len| {
            let path = self.path(folder, entry.id, kind);
            map(&path, len).map_err(|error| FileError::Read { path, error })
        };
        let rows = open(self.layout.rows, entry.row_bytes)?;
        let lists = entry.list_bytes.map(|bytes| open(self.layout.lists, bytes)).transpose()?;
        Segment::open(&rows, lists.as_ref()).map_err(|error| {
            let path = self.path(folder, entry.id, self.layout.rows);
            FileError::Segment { path, error }
        })
    }

    /// Checks that the files of a segment are there and as long as the catalog says.
    pub(super) fn check_lengths(&self, folder: u64, entry: &SegmentEntry) -> Result<(), FileError> {
        for (kind, len) in self.lengths(entry) {
            let path = self.path(folder, entry.id, kind);
            let found = fs::metadata(&path).and_then(|found| check_length(found.len(), len));
            found.map_err(|error| FileError::Read { path, error })?;
        }
        Ok(())
    }

    /// Reads a cold segment: its rows, and its lists where it has them. Their checksums are
    /// right.
    pub(super) fn read(
        &self,
        folder: u64,
        entry: &SegmentEntry,
        cold: &ColdEntry,
    ) -> Result<(Bytes, Option<Bytes>), FileError> {
        let read = |kind, len, crc| {
            let path = self.path(folder, entry.id, kind);
            read_whole(&path, len, crc).map_err(|error| FileError::Read { path, error })
        };
        let rows = read(self.layout.rows, entry.row_bytes, cold.row_crc)?;
        let lists = entry.list_bytes.zip(cold.list_crc);
        let lists = lists.map(|(len, crc)| read(self.layout.lists, len, crc)).transpose()?;
        Ok((rows, lists))
    }

    /// The files that a segment has, and their lengths.
    fn lengths(&self, entry: &SegmentEntry) -> impl Iterator<Item = (&'static str, u64)> {
        let lists = entry.list_bytes.map(|bytes| (self.layout.lists, bytes));
        std::iter::once((self.layout.rows, entry.row_bytes)).chain(lists)
    }

    /// Removes what is there of a segment, a file that is half written too.
    pub(super) fn remove(&self, folder: u64, id: u64) -> io::Result<()> {
        for kind in self.kinds() {
            let path = self.path(folder, id, kind);
            self.remove_if_there(&path.with_added_extension(TEMPORARY))?;
            self.remove_if_there(&path)?;
        }
        Ok(())
    }

    fn remove_if_there(&self, path: &Path) -> io::Result<()> {
        match self.disk.remove(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Moves what is there of a segment to where damaged bytes are kept; says where.
    pub(super) fn set_aside(&self, folder: u64, id: u64) -> io::Result<PathBuf> {
        create_dir(&self.quarantine, 0o700)?;
        let aside = |kind| self.quarantine.join(format!("segment-{folder}-{id}.{kind}"));
        for kind in self.kinds() {
            match fs::rename(self.path(folder, id, kind), aside(kind)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(aside(self.layout.rows))
    }

    /// Moves all segments to where damaged bytes are kept, since nobody knows any more what they
    /// hold; says where. `None` when there are none.
    pub(super) fn set_all_aside(&self, now: Nanos) -> io::Result<Option<PathBuf>> {
        if !self.dir.try_exists()? {
            return Ok(None);
        }
        create_dir(&self.quarantine, 0o700)?;
        let aside = self.quarantine.join(format!("{}-{}", self.layout.folder, now.as_i64()));
        fs::rename(&self.dir, &aside)?;
        Ok(Some(aside))
    }

    /// Removes every file that is of none of these segments: a crash came before they were in the
    /// catalog, or after they were out of it. Returns how many there were.
    pub(super) fn sweep(&self, known: &HashSet<(u64, u64)>) -> io::Result<usize> {
        let known: HashSet<PathBuf> = known
            .iter()
            .flat_map(|&(folder, id)| self.kinds().map(|kind| self.path(folder, id, kind)))
            .collect();
        let mut removed = 0;
        if !self.dir.try_exists()? {
            return Ok(0);
        }
        for folder in fs::read_dir(&self.dir)? {
            for file in fs::read_dir(folder?.path())? {
                let path = file?.path();
                if !known.contains(&path) {
                    self.disk.remove(&path)?;
                    removed += 1;
                }
            }
        }
        Ok(removed)
    }
}

/// The bytes of a file, if they are the ones that were written.
fn read_whole(path: &Path, len: u64, crc: u32) -> io::Result<Bytes> {
    // Before it is read: a file that grew need not fit into memory.
    check_length(fs::metadata(path)?.len(), len)?;
    let bytes = fs::read(path)?;
    if crc32c::crc32c(&bytes) != crc {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "its checksum is wrong"));
    }
    Ok(bytes.into())
}
