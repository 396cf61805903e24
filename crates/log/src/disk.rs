//! The few file operations the log is built on, as a trait, so that tests can cut the power
//! between any two of them.

use std::fmt::Debug;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

/// A folder tree that the log keeps its files in.
pub trait Disk: Debug + Send + Sync {
    /// Creates the folder, and the ones above it, where missing.
    fn create_dir(&self, dir: &Path) -> io::Result<()>;
    /// Creates an empty file for reading and writing; it must not exist yet.
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>>;
    /// Opens an existing file for reading and writing.
    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>>;
    /// The names of the files in a folder, in no order.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;
    /// Moves a file, replacing what is there.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Makes creations, renames and removals in a folder durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
}

/// One open file.
#[expect(clippy::len_without_is_empty, reason = "nobody asks whether a file is empty")]
pub trait DiskFile: Debug + Send + Sync {
    /// The file's length in bytes.
    fn len(&self) -> io::Result<u64>;
    /// Reads until `buffer` is full or the file ends; returns how much was read.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes all of `bytes` at `offset`.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// Cuts or extends the file.
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// Reserves space for the first `len` bytes, or fails at once where there is not enough.
    fn reserve(&self, len: u64) -> io::Result<()>;
    /// Makes what was written durable: `fdatasync`.
    fn sync_data(&self) -> io::Result<()>;
}

/// The machine's own file system.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        fs::create_dir_all(dir)
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
        Ok(Arc::new(RealFile(file)))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        Ok(Arc::new(RealFile(file)))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        fs::read_dir(dir)?
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        File::open(dir)?.sync_all()
    }
}

#[derive(Debug)]
struct RealFile(File);

impl DiskFile for RealFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut read = 0;
        while read < buffer.len() {
            match self.0.read_at(&mut buffer[read..], offset + read as u64) {
                Ok(0) => break,
                Ok(n) => read += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(read)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn reserve(&self, len: u64) -> io::Result<()> {
        match rustix::fs::fallocate(&self.0, rustix::fs::FallocateFlags::empty(), 0, len) {
            // Not every file system can; then writing the zeros shows whether there is space.
            Err(rustix::io::Errno::OPNOTSUPP) => Ok(()),
            result => Ok(result?),
        }
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}

/// Writes zeros over `from..to` and makes them durable.
///
/// Zeros, not `fallocate`: a sync into merely reserved space must also record that the space is
/// now written, which costs ten times as much at 1 MiB (measured on ext4).
pub(crate) fn fill_with_zeros(file: &dyn DiskFile, from: u64, to: u64) -> io::Result<()> {
    const CHUNK: usize = 1 << 20;
    let zeros = vec![0; CHUNK];
    let mut offset = from;
    while offset < to {
        let n = usize::try_from(to - offset).map_or(CHUNK, |left| left.min(CHUNK));
        file.write_at(&zeros[..n], offset)?;
        offset += n as u64;
    }
    file.sync_data()
}

/// Replaces `path` by `bytes` as one step: either the old file or the whole new one survives.
pub(crate) fn replace(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = path.with_extension("tmp");
    match disk.remove(&temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let file = disk.create(&temporary)?;
    file.write_at(bytes, 0)?;
    file.sync_data()?;
    disk.rename(&temporary, path)?;
    disk.sync_dir(path.parent().unwrap_or_else(|| Path::new("/")))
}
