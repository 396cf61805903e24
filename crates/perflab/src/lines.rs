//! Lines of an input as they come: no timer, no waiting for more, bounded memory.
//!
//! A thread reads whatever is there and hands on the complete lines in it. Whoever sends takes
//! all that has come meanwhile as one batch, so a slow input is sent line by line and a fast one
//! in large batches.

use std::io::{self, Read};
use std::thread;

use tokio::sync::mpsc::{Receiver, channel, error::TryRecvError};

use crate::messages::Messages;

/// How much is read at once.
const READ_BYTES: usize = 64 << 10;
/// How many reads may wait to be sent; then the input has to wait.
const WAITING_READS_MAX: usize = 16;
/// The longest line that is kept.
pub(crate) const LINE_BYTES_MAX: usize = perflab_log::RECORD_BYTES_MAX - 1;

/// Part of an input.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Lines {
    pub(crate) messages: Messages,
    /// Lines longer than [`LINE_BYTES_MAX`], which were left out.
    pub(crate) too_long: Vec<u64>,
}

/// Cuts an input into lines.
#[derive(Debug)]
struct LineReader<R> {
    input: R,
    /// The beginning of a line whose end has not come yet.
    partial: Vec<u8>,
    /// Inside a line that is already too long.
    skipping: bool,
    line: u64,
}

impl<R: Read> LineReader<R> {
    fn new(input: R) -> Self {
        Self { input, partial: Vec::new(), skipping: false, line: 1 }
    }

    /// Waits for the next bytes; `None` at the end of the input. There may be no complete line
    /// in them.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<Option<Lines>> {
        let mut lines = Lines::default();
        let read = loop {
            match self.input.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read?,
            }
        };
        if read == 0 {
            if self.partial.is_empty() && !self.skipping {
                return Ok(None);
            }
            self.end_line(&mut lines);
            return Ok(Some(lines));
        }
        let mut rest = &buffer[..read];
        while let Some(end) = memchr::memchr(b'\n', rest) {
            self.extend_line(&rest[..end]);
            self.end_line(&mut lines);
            rest = &rest[end + 1..];
        }
        self.extend_line(rest);
        Ok(Some(lines))
    }

    fn extend_line(&mut self, bytes: &[u8]) {
        if self.partial.len() + bytes.len() > LINE_BYTES_MAX {
            self.skipping = true;
            self.partial = Vec::new();
        }
        if !self.skipping {
            self.partial.extend_from_slice(bytes);
        }
    }

    fn end_line(&mut self, lines: &mut Lines) {
        let line = self.partial.trim_ascii_end();
        if self.skipping {
            lines.too_long.push(self.line);
        } else if !line.is_empty() {
            lines.messages.push(line, self.line);
        }
        self.partial.clear();
        self.skipping = false;
        self.line += 1;
    }
}

/// The lines of an input that is read in a thread of its own.
#[derive(Debug)]
pub(crate) struct LineStream {
    receiver: Receiver<io::Result<Lines>>,
    /// What did not fit into the last batch.
    left_over: Option<Lines>,
    /// Why the input ended early; told after the lines before it.
    failed: Option<io::Error>,
}

impl LineStream {
    pub(crate) fn start(input: impl Read + Send + 'static) -> io::Result<Self> {
        let (sender, receiver) = channel(WAITING_READS_MAX);
        // Never joined: at the end of the program it may still wait for input that never comes.
        thread::Builder::new().name("input".to_owned()).spawn(move || {
            let mut reader = LineReader::new(input);
            let mut buffer = vec![0; READ_BYTES];
            loop {
                let item = match reader.read(&mut buffer) {
                    Ok(None) => return,
                    Ok(Some(lines)) if lines == Lines::default() => continue,
                    Ok(Some(lines)) => Ok(lines),
                    Err(error) => Err(error),
                };
                let is_last = item.is_err();
                if sender.blocking_send(item).is_err() || is_last {
                    return;
                }
            }
        })?;
        Ok(Self { receiver, left_over: None, failed: None })
    }

    /// Waits for lines and takes all that are there, up to a batch; `None` at the end.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Lines>> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let mut batch = match self.left_over.take() {
            Some(lines) => lines,
            None => match self.receiver.recv().await {
                None => return Ok(None),
                Some(lines) => lines?,
            },
        };
        loop {
            match self.receiver.try_recv() {
                Ok(Ok(more)) if batch.messages.has_room_for(&more.messages) => {
                    batch.messages.append(&more.messages);
                    batch.too_long.extend(more.too_long);
                }
                Ok(Ok(more)) => {
                    self.left_over = Some(more);
                    return Ok(Some(batch));
                }
                Ok(Err(error)) => {
                    self.failed = Some(error);
                    return Ok(Some(batch));
                }
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => return Ok(Some(batch)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read_all(input: impl Read, read_bytes: usize) -> (Vec<(u64, Vec<u8>)>, Vec<u64>) {
        let mut reader = LineReader::new(input);
        let mut buffer = vec![0; read_bytes];
        let (mut found, mut too_long) = (Vec::new(), Vec::new());
        while let Some(lines) = reader.read(&mut buffer).unwrap() {
            found.extend(lines.messages.iter().map(|m| (m.line, m.bytes.to_vec())));
            too_long.extend(lines.too_long);
        }
        (found, too_long)
    }

    #[test]
    fn the_last_line_may_lack_its_end() {
        let (lines, _) = read_all(&b"a\r\n\n  \nb"[..], 3);
        assert_eq!(lines, [(1, b"a".to_vec()), (4, b"b".to_vec())]);
    }

    #[test]
    fn a_line_without_end_costs_no_memory_and_no_other_line() {
        let long = io::repeat(b'x').take(LINE_BYTES_MAX as u64 + 1);
        let input = (&b"a\n"[..]).chain(long).chain(&b"\nb\n"[..]);
        let (lines, too_long) = read_all(input, READ_BYTES);
        assert_eq!(lines, [(1, b"a".to_vec()), (3, b"b".to_vec())]);
        assert_eq!(too_long, [2]);
    }

    #[test]
    fn a_fast_input_comes_in_batches_and_keeps_its_order() {
        let count = 100_000;
        let mut input = Vec::new();
        for n in 0..count {
            input.extend_from_slice(format!("line {n}\n").as_bytes());
        }
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let mut stream = LineStream::start(io::Cursor::new(input)).unwrap();
        let mut next = 0;
        while let Some(batch) = runtime.block_on(stream.next()).unwrap() {
            for message in batch.messages.iter() {
                assert_eq!(message.bytes, format!("line {next}").as_bytes());
                next += 1;
            }
        }
        assert_eq!(next, count);
    }

    #[tokio::test]
    async fn lines_before_a_failed_read_are_not_lost() {
        let (sender, receiver) = channel(WAITING_READS_MAX);
        let mut lines = Lines::default();
        lines.messages.push(b"a", 1);
        sender.send(Ok(lines)).await.unwrap();
        sender.send(Err(io::Error::other("the disk is gone"))).await.unwrap();
        let mut stream = LineStream { receiver, left_over: None, failed: None };
        assert_eq!(stream.next().await.unwrap().unwrap().messages.len(), 1);
        assert_eq!(stream.next().await.unwrap_err().to_string(), "the disk is gone");
    }

    proptest! {
        #[test]
        fn it_does_not_matter_how_the_input_is_cut(input in "[ab \r\n]{0,60}", size in 1_usize..9) {
            let (lines, _) = read_all(input.as_bytes(), size);
            let expected: Vec<_> = input
                .split('\n')
                .enumerate()
                .map(|(n, line)| (n as u64 + 1, line.trim_end()))
                .filter(|(_, line)| !line.is_empty())
                .map(|(n, line)| (n, line.as_bytes().to_vec()))
                .collect();
            prop_assert_eq!(lines, expected);
        }
    }
}
