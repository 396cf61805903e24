//! The forms of bodies.

use super::array::{BASE64, Entries, text_of};
use super::error::{BodyError, EntryError};
use super::{
    Limits, MessageForm, Messages, REFUSED_TEXT_BYTES_MAX, Request, Secret, Stored, percent,
};
use crate::json::{Next, Reader};
use crate::{Codec, bulk};
use base64::Engine;
use bytes::Bytes;
use bzip2::read::MultiBzDecoder;
use perflab_model::CategoryName;
use std::io::Read;

const ACCESS_TOKEN: &str = "access_token";
const LOGS: &str = "logs";
const COMPRESSED_LOGS: &str = "base64_bz2_logs";

pub(super) fn decode_form(
    messages: MessageForm,
    body: &[u8],
    limits: &Limits,
) -> Result<Request, BodyError> {
    let mut parts = Parts::new(messages, limits);
    for field in fields(body) {
        let split = memchr::memchr(b'=', field).unwrap_or(field.len());
        let (key, value) = (&field[..split], field.get(split + 1..).unwrap_or_default());
        match std::str::from_utf8(&percent::decode(key)) {
            Ok(ACCESS_TOKEN) => {
                let token = String::from_utf8(percent::decode(value));
                parts.token(token.map_err(|_secret| BodyError::TokenUtf8)?)?;
            }
            Ok(LOGS) => parts.logs_text(LOGS, &percent::decode(value), None)?,
            Ok(COMPRESSED_LOGS) => parts.compressed_logs(&percent::decode(value))?,
            _ => {}
        }
    }
    parts.finish()
}

/// What is between the `&` of a form.
fn fields(body: &[u8]) -> impl Iterator<Item = &[u8]> {
    let ends = memchr::memchr_iter(b'&', body).chain(std::iter::once(body.len()));
    ends.scan(0, |start, end| {
        let field = &body[*start..end];
        *start = end + 1;
        Some(field)
    })
}

pub(super) fn decode_json(
    messages: MessageForm,
    body: &[u8],
    limits: &Limits,
) -> Result<Request, BodyError> {
    let (text, mark) = text_of(body)?;
    let mut parts = Parts::new(messages, limits);
    let mut reader = Reader::new(&text);
    reader.begin_object().map_err(BodyError::Json)?;
    while let Some(key) = reader.next_key().map_err(BodyError::Json)? {
        let next = reader.peek().map_err(BodyError::Json)?;
        match (&*key, next) {
            (LOGS, Next::Array) => parts.logs_array(&mut reader, mark)?,
            (LOGS, Next::String) => {
                let mut logs = Vec::with_capacity(reader.rest().len());
                reader.string_into(&mut logs).map_err(BodyError::Json)?;
                parts.logs_text(LOGS, &logs, mark)?;
            }
            (COMPRESSED_LOGS | ACCESS_TOKEN, Next::String) => {
                let value = reader.string().map_err(BodyError::Json)?;
                if key == ACCESS_TOKEN {
                    parts.token(value.into_owned())?;
                } else {
                    parts.compressed_logs(value.as_bytes())?;
                }
            }
            (ACCESS_TOKEN, Next::Null) => reader.null().map_err(BodyError::Json)?,
            (LOGS, other) => return Err(wrong_type(LOGS, other, "an array of entries")),
            (COMPRESSED_LOGS, other) => return Err(wrong_type(COMPRESSED_LOGS, other, "a string")),
            (ACCESS_TOKEN, other) => return Err(wrong_type(ACCESS_TOKEN, other, "a string")),
            _ => drop(reader.raw_value().map_err(BodyError::Json)?),
        }
    }
    reader.end().map_err(BodyError::Json)?;
    parts.finish()
}

/// One message per line. The messages stay where they are, in the body.
pub(super) fn decode_ndjson(
    category: &CategoryName,
    body: Bytes,
    limits: &Limits,
) -> Result<Request, BodyError> {
    let (mut entries, mut refused) = (Vec::new(), Vec::new());
    let mut start = 0;
    while start < body.len() {
        let line = &body[start..];
        let length = memchr::memchr(b'\n', line).unwrap_or(line.len());
        let message = start..start + line[..length].trim_ascii_end().len();
        start += length + 1;
        if message.is_empty() {
            continue;
        }
        if entries.len() == limits.entries_max {
            return Err(BodyError::TooManyEntries { entries_max: limits.entries_max });
        }
        let (bytes, bytes_max) = (message.len(), limits.message_bytes_max);
        entries.push(if bytes > bytes_max {
            let kept = message.start..message.start + bytes.min(REFUSED_TEXT_BYTES_MAX);
            refused.push((entries.len(), kept));
            Err(EntryError::TooLarge { bytes, bytes_max })
        } else {
            Ok(Stored { category: 0, codec: Codec::Message, message })
        });
    }
    let categories = vec![category.clone()];
    Ok(Request { token: None, categories, entries, messages: Messages::Body(body), refused })
}

/// Each batch is a message, or several where it is large.
pub(super) fn decode_arrow(
    category: &CategoryName,
    body: &[u8],
    limits: &Limits,
) -> Result<Request, BodyError> {
    let (mut entries, mut messages) = (Vec::new(), Vec::new());
    bulk::split(body, |message| {
        if entries.len() == limits.entries_max {
            return Err(BodyError::TooManyEntries { entries_max: limits.entries_max });
        }
        // Dictionaries are repeated in every message that a batch becomes.
        let (start, bytes_max) = (messages.len(), limits.decompressed_bytes_max);
        if start + message.len() > bytes_max {
            return Err(BodyError::BatchesTooLarge { bytes_max });
        }
        messages.extend_from_slice(&message);
        let message = start..messages.len();
        entries.push(Ok(Stored { category: 0, codec: Codec::Bulk, message }));
        Ok(())
    })?;
    let categories = vec![category.clone()];
    let messages = Messages::Arena(messages);
    Ok(Request { token: None, categories, entries, messages, refused: Vec::new() })
}

fn wrong_type(key: &'static str, found: Next, expected: &'static str) -> BodyError {
    BodyError::Type { key, found: found.describe(), expected }
}

/// What a body brings, each at most once.
struct Parts<'l> {
    token: Option<Secret>,
    /// The key that brought logs.
    logs: Option<&'static str>,
    entries: Entries<'l>,
    limits: &'l Limits,
}

impl<'l> Parts<'l> {
    fn new(messages: MessageForm, limits: &'l Limits) -> Self {
        let entries = Entries::new(messages, limits);
        Self { token: None, logs: None, entries, limits }
    }

    fn token(&mut self, token: String) -> Result<(), BodyError> {
        match self.token.replace(Secret::new(token)) {
            None => Ok(()),
            Some(_) => Err(BodyError::Twice { key: ACCESS_TOKEN }),
        }
    }

    fn logs_array(&mut self, reader: &mut Reader<'_>, mark: Option<char>) -> Result<(), BodyError> {
        self.begin_logs(LOGS)?;
        self.entries.read(reader, mark)
    }

    /// `mark` is the one of the text that these logs are a part of.
    fn logs_text(
        &mut self,
        key: &'static str,
        logs: &[u8],
        mark: Option<char>,
    ) -> Result<(), BodyError> {
        self.begin_logs(key)?;
        let (text, own_mark) = text_of(logs)?;
        self.entries.read_text(&text, own_mark.or(mark))
    }

    fn compressed_logs(&mut self, encoded: &[u8]) -> Result<(), BodyError> {
        let compressed = BASE64.decode(encoded).map_err(BodyError::Base64)?;
        let logs = decompress(&compressed, self.limits.decompressed_bytes_max)?;
        self.logs_text(COMPRESSED_LOGS, &logs, None)
    }

    fn begin_logs(&mut self, key: &'static str) -> Result<(), BodyError> {
        match self.logs.replace(key) {
            None => Ok(()),
            Some(other) if other == key => Err(BodyError::Twice { key }),
            Some(_) => Err(BodyError::TwoLogs),
        }
    }

    fn finish(self) -> Result<Request, BodyError> {
        if self.logs.is_none() {
            return Err(BodyError::NoLogs);
        }
        Ok(self.entries.into_request(self.token))
    }
}

fn decompress(compressed: &[u8], bytes_max: usize) -> Result<Vec<u8>, BodyError> {
    let mut logs = Vec::new();
    // One byte more than allowed tells "exactly full" from "too much".
    let limit = (bytes_max as u64).saturating_add(1);
    let mut decoder = MultiBzDecoder::new(compressed).take(limit);
    decoder.read_to_end(&mut logs).map_err(BodyError::Bzip2)?;
    if logs.len() > bytes_max {
        return Err(BodyError::DecompressedTooLarge { bytes_max });
    }
    Ok(logs)
}
