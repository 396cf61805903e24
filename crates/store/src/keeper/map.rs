//! Files as memory: the one place where unsafe code is needed.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use arrow::buffer::Buffer;
use bytes::Bytes;
use memmap2::{Advice, Mmap, MmapOptions};

use crate::segment::ReadAhead;

/// A file as memory, while it is opened: what is touched is read from the disk, and nothing around
/// it. A system that reads megabytes ahead would read large parts of all segments at each start
/// otherwise. When this is dropped, the bytes are as any other file's.
#[derive(Debug)]
pub(super) struct Mapped(Shared);

#[derive(Debug, Clone)]
struct Shared(Arc<Mmap>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Mapped {
    pub(super) fn bytes(&self) -> Buffer {
        Buffer::from(Bytes::from_owner(self.0.clone()))
    }

    pub(super) fn ahead(&self) -> Arc<dyn ReadAhead> {
        Arc::new(self.0.clone())
    }

    /// It is not worth failing for.
    fn advise(&self, advice: Advice) {
        self.0.0.advise(advice).unwrap_or_default();
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        self.advise(Advice::Normal);
    }
}

impl ReadAhead for Shared {
    fn read_ahead(&self, range: &Range<usize>) {
        // It is not worth failing for either.
        self.0.advise_range(Advice::WillNeed, range.start, range.len()).unwrap_or_default();
    }
}

/// Maps a file that has this length.
#[expect(unsafe_code, reason = "the bytes of a mapped file can't be known not to change")]
pub(super) fn map(path: &Path, len: u64) -> io::Result<Mapped> {
    let file = File::open(path)?;
    let found = file.metadata()?.len();
    // Before it is mapped: touching memory past the end of its file ends the process.
    check_length(found, len)?;
    // SAFETY: nobody changes or cuts the file while it is mapped. Segments get their names when
    // they are complete, are never written to after that (thawed ones are new files that are mapped
    // when they are complete; one that is being written is only written to past what is mapped),
    // and the home, which is the owner's own folder, has one owner at a time. Removing the file leaves the mapping as it is.
    let mapped = Mapped(Shared(Arc::new(unsafe { Mmap::map(&file) }?)));
    mapped.advise(Advice::Random);
    Ok(mapped)
}

/// Some bytes of a file that this process has just made; they begin where a page does.
#[expect(unsafe_code, reason = "the bytes of a mapped file can't be known not to change")]
pub(super) fn map_part(file: &File, offset: u64, len: usize) -> io::Result<Buffer> {
    // SAFETY: nobody else writes to the file, which has no name or one that nobody else uses, and
    // this process only past what is mapped.
    let map = unsafe { MmapOptions::new().offset(offset).len(len).map(file) }?;
    Ok(Buffer::from(Bytes::from_owner(map)))
}

fn check_length(found: u64, len: u64) -> io::Result<()> {
    if found == len {
        return Ok(());
    }
    let what = format!("it has {found} bytes instead of {len}");
    Err(io::Error::new(io::ErrorKind::InvalidData, what))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_another_length_is_not_mapped() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, "12345").unwrap();
        assert_eq!(&map(&path, 5).unwrap().bytes()[..], b"12345");
        for len in [0, 4, 6] {
            let error = map(&path, len).unwrap_err();
            assert_eq!(error.to_string(), format!("it has 5 bytes instead of {len}"));
        }
    }
}
