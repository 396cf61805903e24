//! Just enough HTTP/1.1 to send load and to take it: messages with a `Content-Length`, one after
//! the other on one connection. A library would cost the generator CPU that the server needs.

use anyhow::{Context, Result, bail};
use memchr::memmem;
use std::io::Read;

/// The longest head that is read, in bytes.
const HEAD_BYTES_MAX: usize = 16 << 10;

/// The longest body that is read, in bytes.
const BODY_BYTES_MAX: usize = 64 << 20;

/// How much is read at once, in bytes.
const READ_BYTES: usize = 64 << 10;

/// A request or an answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Message<'r> {
    pub(crate) head: &'r str,
    pub(crate) body: &'r [u8],
}

/// Takes a connection apart into messages.
#[derive(Debug)]
pub(crate) struct Reader<S> {
    stream: S,
    buffer: Vec<u8>,
    filled: usize,
    /// How much of what is filled belongs to the message that was given out last.
    taken: usize,
}

impl<S: Read> Reader<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self { stream, buffer: Vec::new(), filled: 0, taken: 0 }
    }

    /// The next message; `None` when the other side closed the connection between messages.
    pub(crate) fn next(&mut self) -> Result<Option<Message<'_>>> {
        self.buffer.copy_within(self.taken..self.filled, 0);
        self.filled -= self.taken;
        self.taken = 0;
        let Some(head_length) = self.read_head()? else {
            return Ok(None);
        };
        let head = std::str::from_utf8(&self.buffer[..head_length])?;
        let length = head_length + content_length(head)?;
        while self.filled < length {
            if self.read_some(length - self.filled)? == 0 {
                bail!("the connection ended inside a body");
            }
        }
        self.taken = length;
        let (head, body) = self.buffer[..length].split_at(head_length);
        let head = std::str::from_utf8(head)?;
        Ok(Some(Message { head, body }))
    }

    /// Reads until a head is there, and gives its length.
    fn read_head(&mut self) -> Result<Option<usize>> {
        loop {
            let filled = &self.buffer[..self.filled];
            if let Some(end) = memmem::find(filled, b"\r\n\r\n") {
                return Ok(Some(end + 4));
            }
            if self.filled > HEAD_BYTES_MAX {
                bail!("a head is longer than {HEAD_BYTES_MAX} bytes");
            }
            if self.read_some(READ_BYTES)? == 0 {
                if self.filled == 0 {
                    return Ok(None);
                }
                bail!("the connection ended inside a head");
            }
        }
    }

    fn read_some(&mut self, wanted: usize) -> Result<usize> {
        let end = self.filled + wanted.max(READ_BYTES);
        if self.buffer.len() < end {
            self.buffer.resize(end, 0);
        }
        let read = self.stream.read(&mut self.buffer[self.filled..])?;
        self.filled += read;
        Ok(read)
    }
}

fn content_length(head: &str) -> Result<usize> {
    let value = head
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let (_, value) = value.context("a message has no Content-Length")?;
    let length = value.trim().parse()?;
    if length > BODY_BYTES_MAX {
        bail!("a body has {length} bytes, more than {BODY_BYTES_MAX}");
    }
    Ok(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives one byte per read: every split that a network could make, at once.
    struct Trickle<'b>(&'b [u8]);

    impl Read for Trickle<'_> {
        fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
            let Some((first, rest)) = self.0.split_first() else {
                return Ok(0);
            };
            out[0] = *first;
            self.0 = rest;
            Ok(1)
        }
    }

    const TWO: &[u8] =
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokPOST / HTTP/1.1\r\nContent-Length:0\r\n\r\n";

    fn check(stream: impl Read) {
        let mut reader = Reader::new(stream);
        let first = reader.next().unwrap().unwrap();
        assert!(first.head.starts_with("HTTP/1.1 200"));
        assert_eq!(first.body, b"ok");
        let second = reader.next().unwrap().unwrap();
        assert!(second.head.starts_with("POST /"));
        assert_eq!(second.body, b"");
        assert!(reader.next().unwrap().is_none());
    }

    #[test]
    fn messages_come_apart_however_they_arrive() {
        check(TWO);
        check(Trickle(TWO));
    }

    #[test]
    fn what_is_cut_off_or_has_no_length_is_an_error() {
        for end in [5, TWO.len() - 3] {
            let mut reader = Reader::new(&TWO[..end]);
            while let Ok(message) = reader.next() {
                assert!(message.is_some(), "cut at {end}");
            }
        }
        for head in ["HTTP/1.1 200 OK\r\n\r\n", "X\r\nContent-Length: -1\r\n\r\n"] {
            assert!(Reader::new(head.as_bytes()).next().is_err(), "{head}");
        }
        let endless = [b'a'; HEAD_BYTES_MAX * 2 + READ_BYTES];
        assert!(Reader::new(&endless[..]).next().is_err());
    }
}
