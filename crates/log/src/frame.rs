//! A frame: what one commit writes, and the unit that is valid or not.
//!
//! ```text
//! frame = magic u32 · file id u64 · body bytes u32 · first sequence u64 · crc32c u32 · group…
//! ```
//!
//! The checksum covers the header (without itself) and the body. The file id is random and new
//! for every file: bytes that an earlier file left on the disk, and messages that happen or are
//! made to look like frames, are never taken for frames of this file.

use std::io;
use std::sync::Arc;

use memchr::memmem;

use crate::bytes::{Cursor, Put};
use crate::disk::{BLOCK, DiskFile};
use crate::group::{GROUP_BYTES_MAX, GROUP_BYTES_TARGET, Group, GroupView};

const MAGIC: u32 = u32::from_le_bytes(*b"PLF1");
pub(crate) const FRAME_HEADER_BYTES: usize = 28;
const CRC_AT: usize = 24;

/// One commit takes groups up to this many bytes; a single larger group goes alone.
pub(crate) const BATCH_BYTES_MAX: usize = GROUP_BYTES_TARGET;
/// The largest body a frame can have.
pub(crate) const BODY_BYTES_MAX: usize = BATCH_BYTES_MAX + GROUP_BYTES_MAX;

/// Builds one frame after another in the same buffer.
#[derive(Debug, Default)]
pub(crate) struct FrameBuilder {
    bytes: Vec<u8>,
}

impl FrameBuilder {
    pub(crate) fn start(&mut self, file_id: u64, first_seq: u64) {
        self.bytes.clear();
        self.bytes.put_u32(MAGIC);
        self.bytes.put_u64(file_id);
        self.bytes.put_u32(0);
        self.bytes.put_u64(first_seq);
        self.bytes.put_u32(0);
    }

    pub(crate) fn push(&mut self, group: &Group, first_seq: u64) {
        group.write_to(&mut self.bytes, first_seq);
    }

    pub(crate) fn copy(&mut self, group: &GroupView<'_>) {
        group.copy_to(&mut self.bytes);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.len() <= FRAME_HEADER_BYTES
    }

    /// The finished frame.
    pub(crate) fn finish(&mut self) -> &[u8] {
        let body = self.bytes.len() - FRAME_HEADER_BYTES;
        let len = u32::try_from(body).expect("limited by BODY_BYTES_MAX");
        self.bytes[12..16].copy_from_slice(&len.to_le_bytes());
        let crc = checksum(&self.bytes);
        self.bytes[CRC_AT..FRAME_HEADER_BYTES].copy_from_slice(&crc.to_le_bytes());
        &self.bytes
    }

    /// What [`FrameBuilder::finish`] returned last.
    pub(crate) fn finished(&self) -> &[u8] {
        &self.bytes
    }

    /// Writes the finished frame at `offset` of a file of `len` zeros, and zeros up to the end of
    /// its last block: a block that is written in part would have to be read first.
    pub(crate) fn write(&mut self, file: &dyn DiskFile, offset: u64, len: u64) -> io::Result<()> {
        let frame = self.bytes.len();
        let end = (offset + frame as u64).next_multiple_of(BLOCK as u64).min(len);
        let padded = usize::try_from(end - offset).map_err(io::Error::other)?;
        self.bytes.resize(padded.max(frame), 0);
        let written = file.write_at(&self.bytes, offset);
        self.bytes.truncate(frame);
        written
    }
}

fn checksum(frame: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&frame[..CRC_AT]), &frame[FRAME_HEADER_BYTES..])
}

/// The length of the frame that starts at the front of `bytes`, if a header of this file does.
fn frame_len(bytes: &[u8], file_id: u64) -> Option<usize> {
    let mut header = Cursor(bytes);
    if header.take_u32()? != MAGIC || header.take_u64()? != file_id {
        return None;
    }
    let body = header.take_u32()? as usize;
    (body <= BODY_BYTES_MAX).then_some(FRAME_HEADER_BYTES + body)
}

/// A whole, checked frame.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FrameView<'a> {
    pub(crate) offset: u64,
    pub(crate) first_seq: u64,
    bytes: &'a [u8],
}

impl<'a> FrameView<'a> {
    /// Checks the frame at the front of `bytes`, which must be all of it.
    pub(crate) fn decode(bytes: &'a [u8], file_id: u64, offset: u64) -> Option<Self> {
        if frame_len(bytes, file_id)? != bytes.len() {
            return None;
        }
        let crc = Cursor(&bytes[CRC_AT..]).take_u32()?;
        let first_seq = Cursor(&bytes[16..]).take_u64()?;
        let mut groups = Cursor(&bytes[FRAME_HEADER_BYTES..]);
        if crc != checksum(bytes) {
            return None;
        }
        while !groups.is_empty() {
            GroupView::take(&mut groups)?;
        }
        Some(Self { offset, first_seq, bytes })
    }

    /// The frame in `bytes`, which [`FrameView::decode`] has accepted: checksums are not free.
    pub(crate) fn checked_before(bytes: &'a [u8], offset: u64) -> Self {
        let first_seq = Cursor(&bytes[16..]).take_u64().unwrap_or_default();
        Self { offset, first_seq, bytes }
    }

    pub(crate) fn groups(&self) -> impl Iterator<Item = GroupView<'a>> + use<'a> {
        let mut rest = Cursor(&self.bytes[FRAME_HEADER_BYTES..]);
        std::iter::from_fn(move || GroupView::take(&mut rest))
    }

    /// The whole frame as it is on the disk.
    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The offset after the frame.
    pub(crate) fn end(&self) -> u64 {
        self.offset + self.bytes.len() as u64
    }
}

/// What comes next in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// A valid frame: [`FrameReader::frame`] has it.
    Frame,
    /// Bytes from `offset` to `end` are no frame, but a frame follows.
    Damage { offset: u64, end: u64 },
    /// No frame follows.
    End,
}

/// Reads a file's frames in order through one bounded buffer.
#[derive(Debug)]
pub(crate) struct FrameReader {
    file: Arc<dyn DiskFile>,
    file_id: u64,
    /// Where the next frame should start.
    offset: u64,
    /// Frames lie before this.
    end: u64,
    buffer: Vec<u8>,
    buffer_offset: u64,
    /// The frame that was found last, in the buffer.
    frame: std::ops::Range<usize>,
}

const READ_BYTES: usize = 256 << 10;

impl FrameReader {
    pub(crate) fn new(file: Arc<dyn DiskFile>, file_id: u64, offset: u64, end: u64) -> Self {
        Self { file, file_id, offset, end, buffer: Vec::new(), buffer_offset: offset, frame: 0..0 }
    }

    /// Lets the reader go on to `end`, where more frames have been committed.
    pub(crate) fn extend(&mut self, end: u64) {
        self.end = end;
    }

    /// Goes on after bytes in which no frame follows although frames were committed up to the
    /// reader's end; `None` when there are none such.
    pub(crate) fn skip_to_end(&mut self) -> Option<Step> {
        let (offset, end) = (self.offset, self.end);
        self.offset = end.max(offset);
        (offset < end).then_some(Step::Damage { offset, end })
    }

    pub(crate) fn advance(&mut self) -> io::Result<Step> {
        let start = self.offset;
        if let Some(len) = self.frame_at(start)? {
            let from = usize::try_from(start - self.buffer_offset).expect("inside the buffer");
            self.frame = from..from + len;
            self.offset = start + len as u64;
            return Ok(Step::Frame);
        }
        match self.find_frame(start + 1)? {
            Some(found) => {
                self.offset = found;
                Ok(Step::Damage { offset: start, end: found })
            }
            None => Ok(Step::End),
        }
    }

    /// The frame that the last [`Step::Frame`] spoke of.
    pub(crate) fn frame(&self) -> FrameView<'_> {
        let offset = self.buffer_offset + self.frame.start as u64;
        FrameView::checked_before(&self.buffer[self.frame.clone()], offset)
    }

    /// The length of the valid frame at `offset`, which is then in the buffer.
    fn frame_at(&mut self, offset: u64) -> io::Result<Option<usize>> {
        let file_id = self.file_id;
        let header = self.fill(offset, FRAME_HEADER_BYTES)?;
        let Some(len) = frame_len(header, file_id) else {
            return Ok(None);
        };
        let bytes = self.fill(offset, len)?;
        Ok(FrameView::decode(bytes, file_id, offset).map(|_| len))
    }

    /// The first valid frame at or after `from`.
    fn find_frame(&mut self, from: u64) -> io::Result<Option<u64>> {
        let mut pattern = MAGIC.to_le_bytes().to_vec();
        pattern.put_u64(self.file_id);
        let finder = memmem::Finder::new(&pattern);
        let mut at = from;
        while at + (FRAME_HEADER_BYTES as u64) <= self.end {
            let window = self.fill(at, READ_BYTES)?;
            match finder.find(window) {
                Some(found) => {
                    let offset = at + found as u64;
                    if self.frame_at(offset)?.is_some() {
                        return Ok(Some(offset));
                    }
                    at = offset + 1;
                }
                // The pattern may straddle the window's end.
                None => at += (window.len().saturating_sub(pattern.len() - 1)).max(1) as u64,
            }
        }
        Ok(None)
    }

    /// Up to `len` bytes at `offset`, fewer only where the file's frames must have ended.
    fn fill(&mut self, offset: u64, len: usize) -> io::Result<&[u8]> {
        let left = usize::try_from(self.end.saturating_sub(offset)).unwrap_or(usize::MAX);
        let len = len.min(left);
        let have = self.buffer_offset..self.buffer_offset + self.buffer.len() as u64;
        if !(have.start <= offset && offset + len as u64 <= have.end) {
            let wanted = len.max(READ_BYTES).min(left);
            self.buffer.resize(wanted, 0);
            self.buffer_offset = offset;
            let read = self.file.read_at(&mut self.buffer, offset)?;
            self.buffer.truncate(read);
        }
        let from = usize::try_from(offset - self.buffer_offset).expect("inside the buffer");
        let to = (from + len).min(self.buffer.len());
        Ok(&self.buffer[from.min(to)..to])
    }
}

/// Puts `body` into a frame with a right checksum, decodes that, and counts its records: the fuzz
/// target's way in, past the checksum that random bytes would never have.
#[doc(hidden)]
pub fn count_records_in_body(body: &[u8]) -> Option<usize> {
    let mut builder = FrameBuilder::default();
    builder.start(0, 0);
    builder.bytes.extend_from_slice(body);
    let frame = FrameView::decode(builder.finish(), 0, 0)?;
    Some(frame.groups().map(|group| group.records().count()).sum())
}
