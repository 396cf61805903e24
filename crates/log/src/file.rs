//! One file of the log: its name, its header, and the summary that seals it.
//!
//! ```text
//! name    = file number (16 hex) - file id (16 hex) - generation . log
//! file    = header · frame… · [summary · trailer, once sealed] or zeros, while it is written
//! header  = magic u64 · file id u64 · first sequence u64 · previous file's end u64 · crc32c u32
//! trailer = summary bytes u32 · summary's crc32c u32 · file id u64 · magic u64
//! ```
//!
//! * A file is written zeroed to its full size before its first frame (see
//!   [`prepare`]); an all-zero file is one that was prepared and not used.
//! * The header of file N+1 says with which sequence it starts and where file N ends. A frame of
//!   N with a sequence that N+1 has too was written by a commit whose sync failed and which was
//!   refused: it does not count. Bytes of N before its end that are no frame are damage.
//! * The end of the file before is [`END_UNKNOWN`] where that file could not be read.
//! * A sealed file is never written again. Retention replaces it by a file of the next
//!   generation; where two generations are found, the higher one counts if it is sealed.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::bytes::{Cursor, Put};
use crate::disk::{Disk, DiskFile};
use crate::frame::{FrameReader, FrameView, Step};

const HEADER_MAGIC: u64 = u64::from_le_bytes(*b"PERFLOG1");
const TRAILER_MAGIC: u64 = u64::from_le_bytes(*b"PLSEAL01");
const HEADER_LEN: usize = 36;
/// Frames start here.
pub(crate) const HEADER_BYTES: u64 = HEADER_LEN as u64;
const TRAILER_LEN: usize = 24;
/// What a header says of a previous file that nothing is known about.
pub(crate) const END_UNKNOWN: u64 = u64::MAX;
/// A seal larger than this is not believed: 100,000 categories fit.
const SUMMARY_BYTES_MAX: u64 = 64 << 20;
/// A reader that looks for a sequence or a time reads at most this much in vain.
const INDEX_EVERY_BYTES: u64 = 256 << 10;

/// What names a file: its place in the log, its random id, and how often it was rewritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FileName {
    pub(crate) number: u64,
    pub(crate) generation: u32,
    pub(crate) id: u64,
}

impl FileName {
    pub(crate) fn new(number: u64) -> io::Result<Self> {
        Ok(Self { number, generation: 0, id: getrandom::u64().map_err(io::Error::other)? })
    }

    pub(crate) fn parse(name: &str) -> Option<Self> {
        let mut parts = name.strip_suffix(".log")?.split('-');
        let number = u64::from_str_radix(parts.next()?, 16).ok()?;
        let id = u64::from_str_radix(parts.next()?, 16).ok()?;
        let generation = parts.next()?.parse().ok()?;
        parts.next().is_none().then_some(Self { number, generation, id })
    }

    pub(crate) fn path(self, dir: &Path) -> PathBuf {
        dir.join(format!("{:016x}-{:016x}-{}.log", self.number, self.id, self.generation))
    }
}

/// The fixed front of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) file_id: u64,
    pub(crate) first_seq: u64,
    pub(crate) previous_end: u64,
}

impl Header {
    pub(crate) fn encode(self) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.put_u64(HEADER_MAGIC);
        bytes.put_u64(self.file_id);
        bytes.put_u64(self.first_seq);
        bytes.put_u64(self.previous_end);
        let crc = crc32c::crc32c(&bytes);
        bytes.put_u32(crc);
        bytes
    }

    /// The header at the front of a file; `None` when it is blank or damaged.
    pub(crate) fn read(file: &dyn DiskFile) -> io::Result<Option<Self>> {
        let mut bytes = [0; HEADER_LEN];
        if file.read_at(&mut bytes, 0)? < bytes.len() {
            return Ok(None);
        }
        Ok(Self::decode(&bytes))
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut fields = Cursor(bytes);
        if fields.take_u64()? != HEADER_MAGIC {
            return None;
        }
        let header = Self {
            file_id: fields.take_u64()?,
            first_seq: fields.take_u64()?,
            previous_end: fields.take_u64()?,
        };
        let covered = bytes.len() - fields.0.len();
        (fields.take_u32()? == crc32c::crc32c(&bytes[..covered])).then_some(header)
    }
}

/// How much of one category a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CategorySpan {
    pub records: u64,
    pub bytes: u64,
    pub first_seq: u64,
    pub last_seq: u64,
    pub first_ns: i64,
    pub last_ns: i64,
}

impl CategorySpan {
    /// The span that covers both.
    #[must_use]
    pub fn join(self, other: Self) -> Self {
        Self {
            records: self.records + other.records,
            bytes: self.bytes + other.bytes,
            first_seq: self.first_seq.min(other.first_seq),
            last_seq: self.last_seq.max(other.last_seq),
            first_ns: self.first_ns.min(other.first_ns),
            last_ns: self.last_ns.max(other.last_ns),
        }
    }
}

/// A place from which reading can start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Milestone {
    pub(crate) seq: u64,
    /// The latest arrival of all records before this place.
    pub(crate) before_ns: i64,
    pub(crate) offset: u64,
}

/// What a file holds, without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Summary {
    /// The sequence that the file was started with.
    pub(crate) first_seq: u64,
    /// The offset after the last frame.
    pub(crate) end: u64,
    /// The sequence after the last record ever written to the file.
    pub(crate) end_seq: u64,
    pub(crate) latest_ns: i64,
    pub(crate) categories: BTreeMap<String, CategorySpan>,
    pub(crate) milestones: Vec<Milestone>,
}

impl Summary {
    pub(crate) fn new(first_seq: u64) -> Self {
        Self {
            first_seq,
            end: HEADER_BYTES,
            end_seq: first_seq,
            latest_ns: i64::MIN,
            categories: BTreeMap::new(),
            milestones: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, frame: &FrameView<'_>) {
        let due =
            self.milestones.last().is_none_or(|m| frame.offset - m.offset >= INDEX_EVERY_BYTES);
        if due {
            let before_ns = self.latest_ns;
            let place = Milestone { seq: frame.first_seq, before_ns, offset: frame.offset };
            self.milestones.push(place);
        }
        for group in frame.groups() {
            let span = CategorySpan {
                records: u64::from(group.count),
                bytes: group.encoded_bytes(),
                first_seq: group.first_seq,
                last_seq: group.end_seq().saturating_sub(1),
                first_ns: group.arrival_ns,
                last_ns: group.arrival_ns,
            };
            match self.categories.get_mut(group.category) {
                Some(known) => *known = known.join(span),
                None => _ = self.categories.insert(group.category.to_owned(), span),
            }
            self.end_seq = self.end_seq.max(group.end_seq());
            self.latest_ns = self.latest_ns.max(group.arrival_ns);
        }
        self.end = frame.end();
    }

    /// Where a reader that wants `seq` should start.
    pub(crate) fn offset_of_seq(&self, seq: u64) -> u64 {
        let after = self.milestones.partition_point(|m| m.seq <= seq);
        after.checked_sub(1).map_or(HEADER_BYTES, |at| self.milestones[at].offset)
    }

    /// Where a reader that wants what arrived at or after `ns` should start.
    pub(crate) fn offset_of_time(&self, ns: i64) -> u64 {
        let after = self.milestones.partition_point(|m| m.before_ns < ns);
        after.checked_sub(1).map_or(HEADER_BYTES, |at| self.milestones[at].offset)
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.put_u64(self.first_seq);
        bytes.put_u64(self.end);
        bytes.put_u64(self.end_seq);
        bytes.put_i64(self.latest_ns);
        bytes.put_u32(u32::try_from(self.categories.len()).expect("bounded by the file's size"));
        for (name, span) in &self.categories {
            bytes.put_str(name);
            bytes.put_u64(span.records);
            bytes.put_u64(span.bytes);
            bytes.put_u64(span.first_seq);
            bytes.put_u64(span.last_seq);
            bytes.put_i64(span.first_ns);
            bytes.put_i64(span.last_ns);
        }
        bytes.put_u32(u32::try_from(self.milestones.len()).expect("bounded by the file's size"));
        for place in &self.milestones {
            bytes.put_u64(place.seq);
            bytes.put_i64(place.before_ns);
            bytes.put_u64(place.offset);
        }
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut rest = Cursor(bytes);
        let mut summary = Self {
            first_seq: rest.take_u64()?,
            end: rest.take_u64()?,
            end_seq: rest.take_u64()?,
            latest_ns: rest.take_i64()?,
            categories: BTreeMap::new(),
            milestones: Vec::new(),
        };
        for _ in 0..rest.take_u32()? {
            let name = rest.take_str()?.to_owned();
            let span = CategorySpan {
                records: rest.take_u64()?,
                bytes: rest.take_u64()?,
                first_seq: rest.take_u64()?,
                last_seq: rest.take_u64()?,
                first_ns: rest.take_i64()?,
                last_ns: rest.take_i64()?,
            };
            summary.categories.insert(name, span);
        }
        for _ in 0..rest.take_u32()? {
            summary.milestones.push(Milestone {
                seq: rest.take_u64()?,
                before_ns: rest.take_i64()?,
                offset: rest.take_u64()?,
            });
        }
        rest.is_empty().then_some(summary)
    }

    /// Seals a file: after this it is never written again.
    pub(crate) fn write_seal(&self, file: &dyn DiskFile, file_id: u64) -> io::Result<()> {
        let mut bytes = self.encode();
        let len = u32::try_from(bytes.len()).map_err(io::Error::other)?;
        let crc = crc32c::crc32c(&bytes);
        bytes.put_u32(len);
        bytes.put_u32(crc);
        bytes.put_u64(file_id);
        bytes.put_u64(TRAILER_MAGIC);
        file.set_len(self.end)?;
        file.write_at(&bytes, self.end)?;
        file.sync_data()
    }

    /// The seal of a file, or `None` where there is none that can be believed.
    pub(crate) fn read_seal(file: &dyn DiskFile, file_id: u64) -> io::Result<Option<Self>> {
        let file_len = file.len()?;
        let Some(trailer_at) = file_len.checked_sub(TRAILER_LEN as u64) else {
            return Ok(None);
        };
        let mut trailer = [0; TRAILER_LEN];
        file.read_at(&mut trailer, trailer_at)?;
        let Some((len, crc)) = decode_trailer(&trailer, file_id) else {
            return Ok(None);
        };
        let Some(at) = trailer_at.checked_sub(len).filter(|_| len <= SUMMARY_BYTES_MAX) else {
            return Ok(None);
        };
        let mut bytes = vec![0; usize::try_from(len).map_err(io::Error::other)?];
        file.read_at(&mut bytes, at)?;
        let believed = crc32c::crc32c(&bytes) == crc;
        Ok(believed.then(|| Self::decode(&bytes)).flatten().filter(|summary| summary.end == at))
    }
}

fn decode_trailer(trailer: &[u8], file_id: u64) -> Option<(u64, u32)> {
    let mut fields = Cursor(trailer);
    let len = u64::from(fields.take_u32()?);
    let crc = fields.take_u32()?;
    (fields.take_u64()? == file_id && fields.take_u64()? == TRAILER_MAGIC).then_some((len, crc))
}

/// Bytes of a file that hold no valid frame although frames follow them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The file.
    pub path: PathBuf,
    /// Where the bad bytes start.
    pub offset: u64,
    /// How many there are.
    pub bytes: u64,
    /// The records that were there: the first lost sequence and how many are missing.
    pub lost: Option<(u64, u64)>,
}

/// What a walk through all frames of a file found.
#[derive(Debug)]
pub(crate) struct Scan {
    pub(crate) summary: Summary,
    pub(crate) damage: Vec<Damage>,
}

/// Reads every frame between the header and `end`, calling `visit` for each. Frames with
/// sequences from `until_seq` on do not count: see the top of this file.
pub(crate) fn scan(
    file: &Arc<dyn DiskFile>,
    path: &Path,
    name: FileName,
    Range { start: first_seq, end: until_seq }: Range<u64>,
    end: u64,
    mut visit: impl FnMut(&FrameView<'_>),
) -> io::Result<Scan> {
    let mut frames = FrameReader::new(Arc::clone(file), name.id, HEADER_BYTES, end);
    let mut summary = Summary::new(first_seq);
    let mut damage: Vec<Damage> = Vec::new();
    loop {
        match frames.advance()? {
            Step::Frame => {
                let frame = frames.frame();
                // The frame after a damaged stretch tells which records are missing.
                if let Some(gap) = damage.last_mut().filter(|d| d.offset + d.bytes == frame.offset)
                {
                    let missing = frame.first_seq.saturating_sub(summary.end_seq);
                    gap.lost = (missing > 0).then_some((summary.end_seq, missing));
                    summary.end = frame.offset;
                    summary.end_seq = summary.end_seq.max(frame.first_seq);
                }
                if frame.first_seq >= until_seq {
                    return Ok(Scan { summary, damage });
                }
                summary.add(&frame);
                visit(&frame);
            }
            Step::Damage { offset, end } => {
                let bytes = end - offset;
                damage.push(Damage { path: path.to_owned(), offset, bytes, lost: None });
            }
            Step::End => return Ok(Scan { summary, damage }),
        }
    }
}

/// Creates a file of `bytes` zeros under its final name, so that the first commit into it needs
/// neither space nor a change of its folder.
///
/// Zeros, not just `fallocate`: a sync into merely reserved space must also record that the space
/// is now written, which costs ten times as much at 1 MiB (measured on ext4).
pub(crate) fn prepare(
    disk: &dyn Disk,
    dir: &Path,
    name: FileName,
    bytes: u64,
) -> io::Result<Arc<dyn DiskFile>> {
    let path = name.path(dir);
    let file = disk.create(&path)?;
    let filled = file
        .reserve(bytes)
        .and_then(|()| file.write_zeros(0, bytes))
        .and_then(|()| file.sync_data())
        .and_then(|()| disk.sync_dir(dir));
    if let Err(error) = filled {
        // Gives the space back; if even that fails, recovery removes the unused file.
        let removed = disk.remove(&path);
        drop(removed);
        return Err(error);
    }
    Ok(file)
}
