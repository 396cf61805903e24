//! A file without a name, where the columns of a segment wait until all of them are there and can
//! be written: in memory they would take as much as the segment.

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use arrow::buffer::Buffer;

use super::map::map_part;
use crate::segment::Shelf;

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
