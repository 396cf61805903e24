//! Messages on their way out, and how they are put into a request.

use http::Method;
use serde::Serialize;

use crate::client::{Call, encode_query};

/// A batch is sent when it reaches this size: large enough that the request costs nothing beside
/// its content, small enough to be retried.
pub(crate) const BATCH_BYTES_MAX: usize = 1 << 20;
/// The answer holds a code for each, and a repeated request may hold a number for each in a
/// header.
pub(crate) const BATCH_MESSAGES_MAX: usize = 2000;

/// Messages of one category, in one buffer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Messages {
    bytes: Vec<u8>,
    spans: Vec<Span>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    end: usize,
    /// The line of the input that it came from, or 0.
    line: u64,
    /// Its producer's number for it.
    sequence: u64,
}

/// One message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Message<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) line: u64,
    pub(crate) sequence: u64,
}

impl Messages {
    /// A single message that is no line of an input.
    pub(crate) fn one(message: &[u8]) -> Self {
        let mut messages = Self::default();
        messages.push(message, 0);
        messages
    }

    pub(crate) fn push(&mut self, message: &[u8], line: u64) {
        self.bytes.extend_from_slice(message);
        self.spans.push(Span { end: self.bytes.len(), line, sequence: 0 });
    }

    pub(crate) fn len(&self) -> usize {
        self.spans.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Whether `more` still fits into the same batch.
    pub(crate) fn has_room_for(&self, more: &Self) -> bool {
        self.bytes.len() + more.bytes.len() <= BATCH_BYTES_MAX
            && self.len() + more.len() <= BATCH_MESSAGES_MAX
    }

    pub(crate) fn append(&mut self, more: &Self) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&more.bytes);
        self.spans.extend(more.spans.iter().map(|span| Span { end: start + span.end, ..*span }));
    }

    /// Numbers the messages and returns the number after the last.
    pub(crate) fn number_from(&mut self, first: u64) -> u64 {
        let mut next = first;
        for span in &mut self.spans {
            span.sequence = next;
            next = next.saturating_add(1);
        }
        next
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = Message<'_>> {
        (0..self.len()).map(|index| self.message(index))
    }

    fn message(&self, index: usize) -> Message<'_> {
        let Span { end, line, sequence } = self.spans[index];
        let start = if index == 0 { 0 } else { self.spans[index - 1].end };
        Message { bytes: &self.bytes[start..end], line, sequence }
    }

    /// Those for which `keep` says yes of their index.
    pub(crate) fn select(&self, keep: impl Fn(usize) -> bool) -> Self {
        let mut selected = Self::default();
        for (index, message) in self.iter().enumerate().filter(|(index, _)| keep(*index)) {
            selected.bytes.extend_from_slice(message.bytes);
            selected.spans.push(Span { end: selected.bytes.len(), ..self.spans[index] });
        }
        selected
    }

    /// The same messages in batches of at most [`BATCH_MESSAGES_MAX`]: one read of short lines
    /// holds more.
    pub(crate) fn into_batches(self) -> Vec<Self> {
        if self.len() <= BATCH_MESSAGES_MAX {
            return vec![self];
        }
        let batches = self.len().div_ceil(BATCH_MESSAGES_MAX);
        (0..batches).map(|n| self.select(|index| index / BATCH_MESSAGES_MAX == n)).collect()
    }

    /// The headers that name these messages of a producer.
    pub(crate) fn key_headers(&self, producer: &str) -> [(&'static str, String); 2] {
        let is_a_run = self
            .spans
            .windows(2)
            .all(|pair| pair[1].sequence.checked_sub(pair[0].sequence) == Some(1));
        let sequences = match self.spans.first() {
            Some(first) if is_a_run => ("x-perflab-sequence", first.sequence.to_string()),
            _ => ("x-perflab-sequences", join_sequences(self.iter().map(|m| m.sequence))),
        };
        [("x-perflab-producer", producer.to_owned()), sequences]
    }

    /// The request that sends them; `None` when there is a message that no request can carry,
    /// because it is neither a line nor text.
    pub(crate) fn call(&self, category: &str) -> Option<Call> {
        if self.iter().all(|message| is_a_line(message.bytes)) {
            return Some(self.lines_call(category));
        }
        let mut entries = Vec::with_capacity(self.len());
        for message in self.iter() {
            let message = std::str::from_utf8(message.bytes).ok()?;
            entries.push(Entry { category, message, line_escape: false });
        }
        Some(entries_call(&entries))
    }

    fn lines_call(&self, category: &str) -> Call {
        let mut body = Vec::with_capacity(self.bytes.len() + self.len());
        for message in self.iter() {
            body.extend_from_slice(message.bytes);
            body.push(b'\n');
        }
        let path = format!("/api/log?category={}", encode_query(category));
        Call::new(Method::POST, path).body("application/x-ndjson", body)
    }
}

/// An entry of the Scribe door, which takes any text as a message.
#[derive(Debug, Serialize)]
pub(crate) struct Entry<'a> {
    pub(crate) category: &'a str,
    pub(crate) message: &'a str,
    pub(crate) line_escape: bool,
}

/// The request that sends entries, each with its own category.
pub(crate) fn entries_call(entries: &[Entry<'_>]) -> Call {
    #[derive(Serialize)]
    struct Logs<'a> {
        logs: &'a [Entry<'a>],
    }
    let body = serde_json::to_vec(&Logs { logs: entries }).expect("texts are always JSON");
    Call::new(Method::POST, "/scribe_logs").body("application/json", body)
}

pub(crate) fn join_sequences(sequences: impl Iterator<Item = u64>) -> String {
    let mut joined = String::new();
    for sequence in sequences {
        if !joined.is_empty() {
            joined.push(',');
        }
        joined.push_str(&sequence.to_string());
    }
    joined
}

/// Whether it can be a line of NDJSON and come back as it is: there, blank lines are skipped and
/// white space at the end is left out.
fn is_a_line(message: &[u8]) -> bool {
    memchr::memchr(b'\n', message).is_none()
        && !message.is_empty()
        && message.trim_ascii_end().len() == message.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn messages(texts: &[&str]) -> Messages {
        let mut messages = Messages::default();
        for (index, text) in texts.iter().enumerate() {
            messages.push(text.as_bytes(), index as u64 + 1);
        }
        messages
    }

    #[test]
    fn lines_go_as_lines_and_the_rest_as_entries() {
        let call = messages(&["a", "{\"b\":1}"]).call("x/y").unwrap();
        assert_eq!(call.path, "/api/log?category=x/y");
        assert_eq!(&call.body[..], b"a\n{\"b\":1}\n");
        for text in ["two\nlines", "", " ", "end\r", "end "] {
            let call = messages(&["a", text]).call("c").unwrap();
            assert_eq!(call.path, "/scribe_logs", "{text:?}");
            let body: serde_json::Value = serde_json::from_slice(&call.body).unwrap();
            assert_eq!(body["logs"][1]["message"], text);
            assert_eq!(body["logs"][1]["category"], "c");
        }
    }

    #[test]
    fn what_is_neither_a_line_nor_text_is_in_no_request() {
        let mut messages = messages(&["two\nlines"]);
        messages.push(b"\xff", 2);
        assert!(messages.call("c").is_none());
    }

    #[test]
    fn keys_are_short_when_they_can_be() {
        let mut messages = messages(&["a", "b", "c"]);
        assert_eq!(messages.number_from(7), 10);
        assert_eq!(messages.key_headers("p")[1], ("x-perflab-sequence", "7".to_owned()));
        let some = messages.select(|index| index != 1);
        assert_eq!(some.key_headers("p")[1], ("x-perflab-sequences", "7,9".to_owned()));
        assert_eq!(some.iter().map(|m| m.line).collect::<Vec<_>>(), [1, 3]);
    }

    #[test]
    fn many_short_messages_are_several_batches() {
        let mut many = Messages::default();
        for line in 0..BATCH_MESSAGES_MAX as u64 * 2 + 1 {
            many.push(b"x", line);
        }
        let batches = many.clone().into_batches();
        assert_eq!(batches.iter().map(Messages::len).collect::<Vec<_>>(), [2000, 2000, 1]);
        assert_eq!(batches.iter().flat_map(Messages::iter).map(|m| m.line).max(), Some(4000));
    }

    proptest! {
        #[test]
        fn what_was_put_in_comes_out(texts in prop::collection::vec(".{0,9}", 0..9), at in 0_usize..9) {
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            let (left, right) = texts.split_at(at.min(texts.len()));
            let mut joined = messages(left);
            joined.append(&messages(right));
            let out: Vec<_> = joined.iter().map(|m| m.bytes).collect();
            prop_assert_eq!(out, texts.iter().map(|t| t.as_bytes()).collect::<Vec<_>>());
        }
    }
}
