//! The spool: where writers put messages when no server answers.
//!
//! Any number of processes append to one file, one at a time under a lock, each append one frame
//! made durable before it returns. Draining first renames the file, so that writers start
//! another; then every record goes to the server under the key (file, offset of its frame + its
//! index), and the file is removed once all are acknowledged. A drain that is cut short is
//! repeated, and the server recognises by the keys what it has: exactly once.
//!
//! A writer that dies half-way leaves a bad stretch; the frames after it are found as in the log.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FlockOperation, flock};

use crate::disk::{Disk, RealDisk, create_dir};
use crate::frame::{FrameBuilder, FrameReader, Step};
use crate::group::{GROUP_BYTES_MAX, Group, GroupView};

/// Files that writers append to.
const OPEN: &str = "spool";
/// Files that are being drained.
const DRAINING: &str = "draining";

/// Why something could not be spooled or drained.
#[derive(Debug, thiserror::Error)]
pub enum SpoolError {
    #[error("the spool `{dir}` is full: {bytes} of at most {bytes_max} bytes wait to be sent")]
    Full { dir: PathBuf, bytes: u64, bytes_max: u64 },
    #[error("failed to use the spool `{dir}`")]
    Io {
        dir: PathBuf,
        #[source]
        error: io::Error,
    },
}

/// A folder of spooled messages.
#[derive(Debug, Clone)]
pub struct Spool {
    dir: PathBuf,
    bytes_max: u64,
}

/// What waits in one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpoolFile {
    pub path: PathBuf,
    pub bytes: u64,
    pub records: u64,
    pub oldest_ns: Option<i64>,
    /// Bytes that are no frame: appends that were cut short and never acknowledged.
    pub bad_bytes: u64,
}

impl Spool {
    /// The spool in `dir`, which takes at most `bytes_max` bytes.
    pub fn new(dir: PathBuf, bytes_max: u64) -> Self {
        Self { dir, bytes_max }
    }

    /// Appends a group and makes it durable.
    pub fn append(&self, group: &Group) -> Result<(), SpoolError> {
        let bytes = group.encoded_bytes();
        if bytes > GROUP_BYTES_MAX {
            let reason = format!("group of {bytes} bytes is larger than {GROUP_BYTES_MAX} bytes");
            return Err(self.failed(io::Error::new(io::ErrorKind::InvalidInput, reason)));
        }
        self.create_dir().map_err(|error| self.failed(error))?;
        let _lock = self.lock().map_err(|error| self.failed(error))?;
        let waiting = self.bytes().map_err(|error| self.failed(error))?;
        if waiting + bytes as u64 > self.bytes_max {
            let (dir, bytes_max) = (self.dir.clone(), self.bytes_max);
            return Err(SpoolError::Full { dir, bytes: waiting, bytes_max });
        }
        self.append_locked(group).map_err(|error| self.failed(error))
    }

    fn append_locked(&self, group: &Group) -> io::Result<()> {
        let (path, id) = match self.files(OPEN)?.into_iter().next() {
            Some(found) => found,
            None => {
                let id = getrandom::u64().map_err(io::Error::other)?;
                (self.dir.join(format!("{id:016x}.{OPEN}")), id)
            }
        };
        let file =
            OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path)?;
        let offset = file.metadata()?.len();
        // Before the first byte: if the writer that created the file died before its name was
        // durable, it is still empty, and the next one sees to that.
        if offset == 0 {
            RealDisk.sync_dir(&self.dir)?;
        }
        let mut builder = FrameBuilder::default();
        builder.start(id, offset);
        builder.push(group, offset);
        file.write_all_at(builder.finish(), offset)?;
        file.sync_data()
    }

    /// What waits, without changing it.
    pub fn waiting(&self) -> Result<Vec<SpoolFile>, SpoolError> {
        let mut files = Vec::new();
        for state in [DRAINING, OPEN] {
            for (path, id) in self.files(state).map_err(|error| self.failed(error))? {
                files.push(inspect(&path, id).map_err(|error| self.failed(error))?);
            }
        }
        Ok(files)
    }

    /// Whether nothing waits. Cheap: a look at the folder.
    pub fn is_empty(&self) -> Result<bool, SpoolError> {
        for state in [OPEN, DRAINING] {
            if !self.files(state).map_err(|error| self.failed(error))?.is_empty() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Takes what waits, oldest first, leaving out what another process is draining now.
    pub fn drain(&self) -> Result<Vec<Drain>, SpoolError> {
        if self.is_empty()? {
            return Ok(Vec::new());
        }
        self.drain_found().map_err(|error| self.failed(error))
    }

    fn drain_found(&self) -> io::Result<Vec<Drain>> {
        {
            let _lock = self.lock()?;
            for (path, _) in self.files(OPEN)? {
                fs::rename(&path, path.with_extension(DRAINING))?;
            }
            RealDisk.sync_dir(&self.dir)?;
        }
        let mut files = self.files(DRAINING)?;
        files.sort_by_key(|(path, _)| path.metadata().and_then(|m| m.modified()).ok());
        let mut drains = Vec::new();
        for (path, id) in files {
            let claim = match File::open(&path) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            if flock(&claim, FlockOperation::NonBlockingLockExclusive).is_err() || !path.exists() {
                continue;
            }
            let file = RealDisk.open(&path)?;
            let end = file.len()?;
            let frames = FrameReader::new(file, id, 0, end);
            drains.push(Drain { path, id, frames, _claim: claim });
        }
        Ok(drains)
    }

    fn files(&self, state: &str) -> io::Result<Vec<(PathBuf, u64)>> {
        let entries = match RealDisk.list(&self.dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let parse = |entry: String| {
            let (id, extension) = entry.split_once('.')?;
            let id = u64::from_str_radix(id, 16).ok()?;
            (extension == state).then(|| (self.dir.join(&entry), id))
        };
        Ok(entries.into_iter().filter_map(parse).collect())
    }

    fn bytes(&self) -> io::Result<u64> {
        let mut bytes = 0;
        for state in [OPEN, DRAINING] {
            for (path, _) in self.files(state)? {
                bytes += path.metadata().map_or(0, |metadata| metadata.len());
            }
        }
        Ok(bytes)
    }

    /// Messages are nobody else's business.
    fn create_dir(&self) -> io::Result<()> {
        create_dir(&self.dir, 0o700)
    }

    /// Held until it is dropped.
    fn lock(&self) -> io::Result<File> {
        let path = self.dir.join("lock");
        let file =
            OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path)?;
        flock(&file, FlockOperation::LockExclusive)?;
        Ok(file)
    }

    fn failed(&self, error: io::Error) -> SpoolError {
        SpoolError::Io { dir: self.dir.clone(), error }
    }
}

fn inspect(path: &Path, id: u64) -> io::Result<SpoolFile> {
    let file = RealDisk.open(path)?;
    let bytes = file.len()?;
    let mut found =
        SpoolFile { path: path.to_owned(), bytes, records: 0, oldest_ns: None, bad_bytes: bytes };
    let mut frames = FrameReader::new(Arc::clone(&file), id, 0, bytes);
    loop {
        match frames.advance()? {
            Step::Frame => {
                let frame = frames.frame();
                found.bad_bytes -= frame.end() - frame.offset;
                for group in frame.groups() {
                    found.records += u64::from(group.count);
                    found.oldest_ns = found.oldest_ns.or(Some(group.arrival_ns));
                }
            }
            Step::Damage { .. } => {}
            Step::End => return Ok(found),
        }
    }
}

/// One spool file on its way to the server. Nobody else drains it meanwhile.
#[derive(Debug)]
pub struct Drain {
    path: PathBuf,
    id: u64,
    frames: FrameReader,
    _claim: File,
}

impl Drain {
    /// The producer under whose name the records are sent.
    pub fn producer(&self) -> String {
        format!("spool-{:016x}", self.id)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Calls `visit` with the groups of the next append; false when all have been seen. The
    /// records' sequences are their keys.
    pub fn next(&mut self, mut visit: impl FnMut(GroupView<'_>)) -> Result<bool, SpoolError> {
        loop {
            let step = self
                .frames
                .advance()
                .map_err(|error| SpoolError::Io { dir: self.path.clone(), error })?;
            match step {
                Step::Frame => {
                    self.frames.frame().groups().for_each(&mut visit);
                    return Ok(true);
                }
                Step::Damage { .. } => {}
                Step::End => return Ok(false),
            }
        }
    }

    /// Removes the file, once all of it is acknowledged.
    pub fn finish(self) -> Result<(), SpoolError> {
        let dir = self.path.parent().unwrap_or_else(|| Path::new("/"));
        fs::remove_file(&self.path)
            .and_then(|()| RealDisk.sync_dir(dir))
            .map_err(|error| SpoolError::Io { dir: dir.to_owned(), error })
    }
}
