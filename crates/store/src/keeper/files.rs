//! The files of hot segments: `segments/<dataset's number>/<segment's number>.arrow`, and beside it
//! `….lists.arrow` where the segment has lists, `….sparse.arrow` where it has sparse columns.
//!
//! A file gets its name when it is complete and on the disk, and is never changed after that.

use std::collections::HashSet;
use std::fs;
use std::io::{self, Write};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use perflab_log::{Disk, DiskFile, create_dir};
use perflab_model::Nanos;

use super::map::{Mapped, map};
use super::scratch::Scratch;
use super::steps::{Fault, Steps};
use crate::catalog::SegmentEntry;
use crate::segment::{Output, PerFile, Segment, SegmentError, SegmentFile, Sheet, Sheets};

/// The home's folders of hot and of cold segments, and of damaged bytes.
const HOT_FOLDER: &str = "segments";
pub(super) const COLD_FOLDER: &str = "cold";
pub(super) const QUARANTINE: &str = "quarantine";

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
        Ok(map(&self.path, self.len)?.bytes())
    }
}

#[derive(Debug)]
pub(super) struct SegmentFiles {
    dir: PathBuf,
    quarantine: PathBuf,
    disk: Arc<dyn Disk>,
    fault: Fault,
}

impl SegmentFiles {
    pub(super) fn new(home: &Path, disk: Arc<dyn Disk>, fault: Fault) -> Self {
        let (dir, quarantine) = (home.join(HOT_FOLDER), home.join(QUARANTINE));
        Self { dir, quarantine, disk, fault }
    }

    fn path(&self, folder: u64, id: u64, file: SegmentFile) -> PathBuf {
        self.dir.join(folder.to_string()).join(format!("{id}.{}", file.extension()))
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
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
    ) -> Result<PerFile<u64>, SegmentError> {
        let dir = self.dir.join(folder.to_string());
        self.disk.create_dir(&dir)?;
        let lengths = sheets.try_map(|file, sheet: Sheet| {
            self.write_one(&self.path(folder, id, file), steps, |out| sheet.write(out))
        })?;
        self.disk.sync_dir(&dir)?;
        (self.fault)(steps.durable);
        Ok(lengths)
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
        let lengths =
            PerFile { rows: entry.row_bytes, lists: entry.list_bytes, sparse: entry.sparse_bytes };
        let files = lengths.try_map(|file, len| {
            let path = self.path(folder, entry.id, file);
            map(&path, len).map_err(|error| FileError::Read { path, error })
        })?;
        let opened = Segment::open(&files.as_ref().map(Mapped::bytes));
        let segment = opened.map_err(|error| {
            let path = self.path(folder, entry.id, SegmentFile::Rows);
            FileError::Segment { path, error }
        })?;
        Ok(segment.with_read_ahead(&files.as_ref().map(Mapped::ahead)))
    }

    /// Removes what is there of a segment, a file that is half written too.
    pub(super) fn remove(&self, folder: u64, id: u64) -> io::Result<()> {
        for file in SegmentFile::ALL {
            let path = self.path(folder, id, file);
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
        let aside = |file: SegmentFile| {
            self.quarantine.join(format!("segment-{folder}-{id}.{}", file.extension()))
        };
        for file in SegmentFile::ALL {
            match fs::rename(self.path(folder, id, file), aside(file)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(aside(SegmentFile::Rows))
    }

    /// Removes every file that is of none of these segments: a crash came before they were in the
    /// catalog, or after they were out of it. Returns how many there were.
    pub(super) fn sweep(&self, known: &HashSet<(u64, u64)>) -> io::Result<usize> {
        let known: HashSet<PathBuf> = known
            .iter()
            .flat_map(|&(folder, id)| SegmentFile::ALL.map(|file| self.path(folder, id, file)))
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

/// Moves all segments of a home to where damaged bytes are kept, since nobody knows any more what
/// they hold; says where.
pub(super) fn set_all_aside(home: &Path, now: Nanos) -> io::Result<Vec<PathBuf>> {
    let mut moved = Vec::new();
    for folder in [HOT_FOLDER, COLD_FOLDER] {
        let dir = home.join(folder);
        if dir.try_exists()? {
            create_dir(&home.join(QUARANTINE), 0o700)?;
            let aside = home.join(QUARANTINE).join(format!("{folder}-{}", now.as_i64()));
            fs::rename(&dir, &aside)?;
            moved.push(aside);
        }
    }
    Ok(moved)
}
