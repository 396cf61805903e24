//! The few file operations the log is built on, as a trait, so that tests can cut the power
//! between any two of them.

use std::fmt::Debug;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

/// A folder tree that the log keeps its files in.
pub trait Disk: Debug + Send + Sync {
    /// Creates the folder, and the ones above it, where missing, and durably.
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
    /// Writes zeros from one offset to another, past the page cache where that is possible.
    fn write_zeros(&self, from: u64, to: u64) -> io::Result<()>;
    /// Says that what was synced will hardly be read soon, so that its memory serves others.
    fn forget_cached(&self);
    /// Makes what was written durable: `fdatasync`.
    fn sync_data(&self) -> io::Result<()>;
}

/// The machine's own file system.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        create_dir(dir, 0o777)
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

/// Creates a folder, and the ones above it, where missing, with this mode, and durably: what is
/// synced inside of a folder whose name is not synced is lost with it.
pub fn create_dir(dir: &Path, mode: u32) -> io::Result<()> {
    let is_missing = |dir: &&Path| !dir.as_os_str().is_empty() && !dir.is_dir();
    let missing: Vec<&Path> = dir.ancestors().take_while(is_missing).collect();
    for dir in missing.into_iter().rev() {
        match fs::DirBuilder::new().mode(mode).create(dir) {
            // Someone else was faster.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && dir.is_dir() => {}
            created => created?,
        }
        let above = dir.parent().filter(|above| !above.as_os_str().is_empty());
        match RealDisk.sync_dir(above.unwrap_or_else(|| Path::new("."))) {
            // A folder that may be written to but not read can't be synced.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            synced => synced?,
        }
    }
    Ok(())
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

    fn write_zeros(&self, from: u64, to: u64) -> io::Result<()> {
        let is_aligned = from.is_multiple_of(BLOCK as u64) && to.is_multiple_of(BLOCK as u64);
        if is_aligned && self.write_zeros_directly(from, to).is_ok() {
            return Ok(());
        }
        write_chunks(&[0; ZERO_CHUNK], from, to, |zeros, offset| self.0.write_all_at(zeros, offset))
    }

    fn forget_cached(&self) {
        // Advice: where it is not taken, nothing is lost.
        _ = rustix::fs::fadvise(&self.0, 0, None, rustix::fs::Advice::DontNeed);
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}

/// Direct writes start, end and lie in memory at multiples of this.
pub(crate) const BLOCK: usize = 4096;
const ZERO_CHUNK: usize = 1 << 20;

impl RealFile {
    /// Zeros that go through the page cache take its memory from what is read, and on a virtual
    /// machine the first touch of each page can cost more than the write.
    fn write_zeros_directly(&self, from: u64, to: u64) -> io::Result<()> {
        let flags = fcntl_getfl(&self.0)?;
        fcntl_setfl(&self.0, flags | OFlags::DIRECT)?;
        let zeros = vec![0; ZERO_CHUNK + BLOCK];
        let aligned = zeros.as_ptr().align_offset(BLOCK);
        let zeros = &zeros[aligned..aligned + ZERO_CHUNK];
        let written =
            write_chunks(zeros, from, to, |zeros, offset| self.0.write_all_at(zeros, offset));
        fcntl_setfl(&self.0, flags)?;
        written
    }
}

fn write_chunks(
    chunk: &[u8],
    from: u64,
    to: u64,
    write: impl Fn(&[u8], u64) -> io::Result<()>,
) -> io::Result<()> {
    let mut offset = from;
    while offset < to {
        let n = usize::try_from(to - offset).map_or(chunk.len(), |left| left.min(chunk.len()));
        write(&chunk[..n], offset)?;
        offset += n as u64;
    }
    Ok(())
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
