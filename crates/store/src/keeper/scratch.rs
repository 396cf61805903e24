//! Files in the place of memory, which they leave to the system. The columns of a segment wait in
//! one without a name until all of them are there and can be written: in memory they would take as
//! much as the segment.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Write};
use std::ops::Deref;
use std::os::unix::fs::FileExt;
use std::path::Path;

use arrow::buffer::Buffer;

use super::map::map_part;
use crate::segment::{Output, Segment, SegmentError, Sheet, Sheets, Shelf};

/// Smaller buffers stay in memory.
const KEPT_MIN: usize = 64 << 10;
/// What is mapped begins at a multiple of this, on any machine.
const PAGE_BYTES: u64 = 64 << 10;

#[derive(Debug)]
pub(super) struct Scratch {
    file: File,
    end: Cell<u64>,
}

impl Scratch {
    /// In this folder, which is there.
    pub(super) fn new(dir: &Path) -> io::Result<Self> {
        Ok(Self { file: tempfile::tempfile_in(dir)?, end: Cell::new(0) })
    }

    /// Opens a segment that is only wanted for a moment.
    pub(super) fn open(dir: &Path, sheets: Sheets) -> Result<Segment, SegmentError> {
        let files = sheets.try_map(|_, sheet| write_and_map(tempfile::tempfile_in(dir)?, sheet))?;
        Segment::open(&files)
    }
}

impl Shelf for Scratch {
    fn keep(&self, buffer: &Buffer) -> io::Result<Buffer> {
        if buffer.len() < KEPT_MIN {
            return Ok(buffer.clone());
        }
        let offset = self.end.get();
        self.file.write_all_at(buffer, offset)?;
        self.end.set((offset + buffer.len() as u64).next_multiple_of(PAGE_BYTES));
        map_part(&self.file, offset, buffer.len())
    }
}

/// Writes a file that is empty so far, and maps it.
pub(super) fn write_and_map(file: File, sheet: Sheet) -> Result<Buffer, SegmentError> {
    Ok(sheet.write(Mapped { file, len: 0 })?.map()?)
}

/// A file that is written from its beginning to its end.
struct Mapped {
    file: File,
    len: usize,
}

impl Mapped {
    fn map(&self) -> io::Result<Buffer> {
        map_part(&self.file, 0, self.len)
    }
}

impl Write for Mapped {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write_all_at(bytes, self.len as u64)?;
        self.len += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Output for Mapped {
    fn written(&self) -> io::Result<impl Deref<Target = [u8]> + '_> {
        self.map()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_stays_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let scratch = Scratch::new(dir.path()).unwrap();
        let buffer = |byte: u8, len: usize| Buffer::from(vec![byte; len]);
        let buffers = [buffer(1, 10), buffer(2, KEPT_MIN), buffer(3, 1_000_000), buffer(4, 70_000)];
        let kept = buffers.each_ref().map(|buffer| scratch.keep(buffer).unwrap());
        assert_eq!(kept, buffers);
        drop(scratch);
        assert_eq!(kept, buffers);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
