//! Opens a log after any kind of end.
//!
//! 1. Remove what was never finished: temporary files, files superseded by a later generation.
//! 2. Read each file's seal. A file without one is read frame by frame, up to the first sequence
//!    of its successor: bad bytes with a frame after them, or before the end that the successor
//!    or the checkpoint knows, are damage (kept, counted and located); others are a torn tail
//!    (cut).
//! 3. The last file with frames goes on being written; files prepared after it are removed.
//! 4. Load the checkpoint and add the keys of the frames after its place.
//!
//! Nothing that a file contains makes this fail: a file that cannot be read at all is reported
//! and left alone, and sequences continue past what it could hold, in another file.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::checkpoint::{self, Checkpoint, Place};
use crate::disk::DiskFile;
use crate::file::{Damage, END_UNKNOWN, FileName, HEADER_BYTES, Header, Scan, Summary, scan};
use crate::frame::{BODY_BYTES_MAX, FrameBuilder, FrameReader, FrameView, Step};
use crate::shared::{FileInfo, Shared};
use crate::window::Window;
use crate::writer::{Active, FILE_BYTES_MIN, Writer};
use crate::{Settings, group::GroupView};

/// What opening the log found and did.
#[derive(Debug, Default)]
pub struct Recovery {
    /// Stretches of bad bytes with valid frames after them, in the files that were read.
    pub damage: Vec<Damage>,
    /// Bytes cut from torn tails: commits that were never acknowledged.
    pub torn_bytes: u64,
    /// Files that could not be read, and why. They are left as they are.
    pub unreadable: Vec<(PathBuf, io::Error)>,
    /// Bytes that were read to get here.
    pub scanned_bytes: u64,
    /// Whether the window of producers' keys had to be rebuilt without a checkpoint.
    pub window_rebuilt: bool,
}

/// Every record takes as many bytes at least.
const RECORD_BYTES_MIN: u64 = 4;

/// A file found on disk.
struct Found {
    name: FileName,
    path: PathBuf,
    file: Arc<dyn DiskFile>,
    header: Option<Header>,
    seal: Option<Summary>,
    /// Whether anything was ever committed to it.
    is_used: bool,
    len: u64,
}

pub(crate) fn recover(
    shared: &Arc<Shared>,
    settings: &Settings,
    now_ns: i64,
) -> io::Result<(Writer, Recovery)> {
    let mut report = Recovery::default();
    let Files { found, unreadable, next_number } = find_files(shared, &mut report)?;
    let checkpoint = checkpoint::read(shared.disk.as_ref(), &shared.dir, settings.window, now_ns)
        .inspect_err(|_| report.window_rebuilt = true)
        .unwrap_or_default();
    report.window_rebuilt |= checkpoint.is_none() && found.iter().any(|file| file.is_used);
    let checkpoint = checkpoint.unwrap_or_else(|| Checkpoint {
        place: Place { number: 0, offset: 0 },
        next_seq: 0,
        window: Window::new(settings.window, now_ns),
    });
    shared.checkpointed.store(checkpoint.place.number, Ordering::Release);
    let mut rebuild = Rebuild {
        shared,
        report,
        from: checkpoint.place,
        writer: Writer {
            shared: Arc::clone(shared),
            active: None,
            prepared: None,
            next_number,
            next_seq: checkpoint.next_seq,
            previous_end: 0,
            gave_up: false,
            file_bytes_max: settings.file_bytes_max,
            next_file_bytes: FILE_BYTES_MIN.min(settings.file_bytes_max),
            window: checkpoint.window,
            checkpointing: None,
            builder: FrameBuilder::default(),
        },
    };
    let said = said_by_successors(&found, &unreadable);
    let last_used = found.iter().rev().find(|file| file.is_used).map(|file| file.name.number);
    // What could not be opened may hold later sequences than the last file that could: that one
    // must not be written again.
    let is_last_known = unreadable.last().is_none_or(|last| Some(*last) < last_used);
    for file in found {
        let number = file.name.number;
        if file.is_used {
            let goes_on = is_last_known && Some(number) == last_used;
            rebuild.take_in(file, said.get(&number).copied().unwrap_or_default(), goes_on);
        } else {
            shared.disk.remove(&file.path)?;
        }
    }
    if !is_last_known {
        rebuild.writer.previous_end = END_UNKNOWN;
    }
    // Sequences that a file which cannot be opened might hold are not given out again.
    let per_file = settings.file_bytes_max.max(Settings::DEFAULT.file_bytes_max);
    let per_file = (per_file + BODY_BYTES_MAX as u64) / RECORD_BYTES_MIN + 1;
    rebuild.writer.next_seq += unreadable.len() as u64 * per_file;
    shared.publish_commit(rebuild.writer.next_seq);
    if rebuild.report.window_rebuilt {
        // Retention may remove nothing that no checkpoint covers.
        rebuild.writer.checkpoint_all();
    }
    Ok((rebuild.writer, rebuild.report))
}

/// What a later file says about one.
#[derive(Debug, Clone, Copy)]
struct Said {
    /// Sequences from here on are another file's: a frame that has them was refused.
    until_seq: u64,
    /// Where the frames end that were committed.
    end: Option<u64>,
}

impl Default for Said {
    fn default() -> Self {
        Self { until_seq: u64::MAX, end: None }
    }
}

/// What is said about each file. Only sequences decide which frames count, since they hold
/// whatever was removed in between: a said end may be about a file that is gone by now.
fn said_by_successors(found: &[Found], unreadable: &BTreeSet<u64>) -> BTreeMap<u64, Said> {
    let mut said = BTreeMap::new();
    let mut by_next = Said::default();
    let mut next_number = u64::MAX;
    for file in found.iter().rev().filter(|file| file.is_used) {
        let number = file.name.number;
        if unreadable.range(number..next_number).next().is_some() {
            by_next.end = None;
        }
        said.insert(number, by_next);
        next_number = number;
        by_next = match file.header {
            Some(Header { first_seq, previous_end, .. }) => Said {
                until_seq: first_seq,
                end: (previous_end != END_UNKNOWN).then_some(previous_end),
            },
            None => Said { end: None, ..by_next },
        };
    }
    said
}

/// The log's folder.
struct Files {
    /// In order, one per number.
    found: Vec<Found>,
    /// The numbers of files that could not be opened.
    unreadable: BTreeSet<u64>,
    /// The number for the next file.
    next_number: u64,
}

/// Looks at all files and removes the leftovers of unfinished steps.
fn find_files(shared: &Shared, report: &mut Recovery) -> io::Result<Files> {
    let mut files: BTreeMap<u64, Found> = BTreeMap::new();
    let mut unreadable = BTreeSet::new();
    let mut next_number = 1;
    for entry in shared.disk.list(&shared.dir)? {
        let path = shared.dir.join(&entry);
        if entry.ends_with(".tmp") {
            shared.disk.remove(&path)?;
            continue;
        }
        let Some(name) = FileName::parse(&entry) else {
            continue;
        };
        next_number = next_number.max(name.number + 1);
        let found = match open_file(shared, name, path.clone()) {
            Ok(found) => found,
            Err(error) => {
                report.unreadable.push((path, error));
                unreadable.insert(name.number);
                continue;
            }
        };
        let superseded = match files.remove(&name.number) {
            Some(other) if other.rank() > found.rank() => {
                files.insert(name.number, other);
                Some(found)
            }
            other => {
                files.insert(name.number, found);
                other
            }
        };
        if let Some(superseded) = superseded {
            shared.disk.remove(&superseded.path)?;
        }
    }
    Ok(Files { found: files.into_values().collect(), unreadable, next_number })
}

fn open_file(shared: &Shared, name: FileName, path: PathBuf) -> io::Result<Found> {
    let file = shared.disk.open(&path)?;
    let header = Header::read(file.as_ref())?.filter(|header| header.file_id == name.id);
    let seal = Summary::read_seal(file.as_ref(), name.id)?;
    let len = file.len()?;
    // Without a header a file is most likely all zeros, prepared and not used. But if just the
    // header is damaged, the frames behind it count.
    let is_used = match (&header, &seal) {
        (None, None) => {
            let mut frames = FrameReader::new(Arc::clone(&file), name.id, HEADER_BYTES, len);
            frames.advance()? != Step::End
        }
        _ => true,
    };
    Ok(Found { name, path, file, header, seal, is_used, len })
}

impl Found {
    /// Of two files with one number, the one that counts: a rewritten file only once it is whole.
    fn rank(&self) -> (bool, bool, u32) {
        (self.is_used, self.seal.is_some(), self.name.generation)
    }
}

struct Rebuild<'a> {
    shared: &'a Shared,
    report: Recovery,
    /// Keys of frames from here on are not in the window yet.
    from: Place,
    writer: Writer,
}

impl Rebuild<'_> {
    /// Adds a file to the log. If it `goes_on`, commits continue in it unless it is sealed.
    fn take_in(&mut self, found: Found, said: Said, goes_on: bool) {
        let result = match &found.seal {
            Some(seal) => self.replay_keys(&found, seal.end).map(|()| seal.clone()),
            None => self.read_through(&found, said, goes_on),
        };
        let summary = match result {
            Ok(summary) => summary,
            Err(error) => {
                self.writer.next_seq += found.len / RECORD_BYTES_MIN + 1;
                self.writer.previous_end = END_UNKNOWN;
                self.report.unreadable.push((found.path, error));
                return;
            }
        };
        self.writer.next_seq = self.writer.next_seq.max(summary.end_seq);
        self.writer.previous_end = summary.end;
        self.writer.next_file_bytes = (found.len * 2)
            .clamp(FILE_BYTES_MIN.min(self.writer.file_bytes_max), self.writer.file_bytes_max);
        let is_sealed = !goes_on || found.seal.is_some();
        let end = summary.end;
        let info = Arc::new(FileInfo::new(found.name, &self.shared.dir, is_sealed, summary));
        self.shared.publish_file(Arc::clone(&info));
        if !is_sealed {
            self.writer.active =
                Some(Active { info, file: found.file, offset: end, len: found.len.max(end) });
        }
    }

    /// Adds the keys of a sealed file's frames where the checkpoint does not have them.
    fn replay_keys(&mut self, found: &Found, end: u64) -> io::Result<()> {
        if self.from.number > found.name.number {
            return Ok(());
        }
        self.report.scanned_bytes += end;
        let scan = self.scan(found, end, u64::MAX, |_| {})?;
        self.report.damage.extend(scan.damage);
        Ok(())
    }

    /// Reads a file that has no seal, and repairs its end: the last file is made ready to be
    /// written again, an earlier one is sealed.
    fn read_through(&mut self, found: &Found, said: Said, goes_on: bool) -> io::Result<Summary> {
        self.report.scanned_bytes += found.len;
        let (mut last, mut last_offset) = (Vec::new(), HEADER_BYTES);
        let scan = self.scan(found, found.len, said.until_seq, |frame| {
            last.clear();
            last.extend_from_slice(frame.bytes());
            last_offset = frame.offset;
        })?;
        self.report.damage.extend(scan.damage);
        let mut summary = scan.summary;
        self.keep_known(found, said, &mut summary);
        // The last frame's sync may have failed, and then a sync that succeeds says nothing: Linux
        // shows the bytes and takes them for written. What is written once more is synced. The
        // bytes are those that were checked, since reading again may find the disk's.
        if let Some(header) = found.header {
            found.file.write_at(&header.encode(), 0)?;
        }
        found.file.write_at(&last, last_offset)?;
        if !goes_on {
            summary.write_seal(found.file.as_ref(), found.name.id)?;
            return Ok(summary);
        }
        let torn = torn_bytes(found.file.as_ref(), summary.end, found.len)?;
        if torn > 0 {
            self.report.torn_bytes += torn;
            found.file.write_zeros(summary.end, summary.end + torn)?;
        }
        // Frames that were written but not yet synced when the process ended are served from now
        // on, so they must be durable from now on.
        found.file.sync_data()?;
        Ok(summary)
    }

    fn scan(
        &mut self,
        found: &Found,
        end: u64,
        until_seq: u64,
        mut visit: impl FnMut(&FrameView<'_>),
    ) -> io::Result<Scan> {
        let first_seq = found.header.map_or(self.writer.next_seq, |header| header.first_seq);
        let window = &mut self.writer.window;
        // In a rewritten file frames are not where they were when the checkpoint was made.
        let is_rewritten = found.name.generation > 0 && self.from.number == found.name.number;
        let from = if is_rewritten { Place { offset: 0, ..self.from } } else { self.from };
        let number = found.name.number;
        scan(&found.file, &found.path, found.name, first_seq..until_seq, end, |frame| {
            if (Place { number, offset: frame.offset }) >= from {
                remember_keys(window, frame);
            }
            visit(frame);
        })
    }

    /// The checkpoint or the next file may know how far the file was committed. Bad bytes before
    /// that are damage and not a torn tail, even with no frame after them.
    fn keep_known(&mut self, found: &Found, said: Said, summary: &mut Summary) {
        // A rewritten file is shorter than what they know.
        let is_original = found.name.generation == 0;
        let by_checkpoint = (self.from.number == found.name.number)
            .then_some((self.from.offset, self.writer.next_seq));
        let by_next = said.end.filter(|end| *end <= found.len).map(|end| (end, said.until_seq));
        let Some((end, end_seq)) = by_checkpoint.max(by_next).filter(|_| is_original) else {
            return;
        };
        // If no record is missing, the end that is known is that of another file, between which
        // and the one that knows it this one was begun, given up and not quite removed.
        if summary.end < end && summary.end_seq < end_seq {
            self.report.damage.push(Damage {
                path: found.path.clone(),
                offset: summary.end,
                bytes: end - summary.end,
                lost: Some((summary.end_seq, end_seq - summary.end_seq)),
            });
            summary.end = end;
            summary.end_seq = end_seq;
        }
    }
}

fn remember_keys(window: &mut Window, frame: &FrameView<'_>) {
    for group in frame.groups().filter(GroupView::is_keyed) {
        for record in group.records() {
            window.insert(group.producer, record.producer_seq.unwrap_or_default());
        }
    }
}

/// How many bytes after `end` are not zero, up to the last such byte.
fn torn_bytes(file: &dyn DiskFile, end: u64, len: u64) -> io::Result<u64> {
    let mut buffer = vec![0; 1 << 20];
    let mut torn_end = end;
    let mut offset = end;
    while offset < len {
        let read = file.read_at(&mut buffer, offset)?;
        if read == 0 {
            break;
        }
        if let Some(last) = buffer[..read].iter().rposition(|byte| *byte != 0) {
            torn_end = offset + last as u64 + 1;
        }
        offset += read as u64;
    }
    Ok(torn_end - end)
}
