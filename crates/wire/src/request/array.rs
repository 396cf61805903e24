//! The array of entries.

use super::error::{BodyError, EntryError};
use super::{Limits, MessageForm, Messages, REFUSED_TEXT_BYTES_MAX, Request, Secret, Stored};
use crate::Codec;
use crate::json::{JsonError, Next, Reader};
use crate::structured::Envelope;
use base64::Engine;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use base64::{alphabet, engine::DecodePaddingMode};
use perflab_model::CategoryName;
use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

const CATEGORY: &str = "category";
const MESSAGE: &str = "message";
const LINE_ESCAPE: &str = "line_escape";

/// Takes the place of bytes that are not UTF-8 while an array is read: a noncharacter, which no
/// text holds. An entry that has it is refused; its neighbours are not.
const NOT_UTF8: char = '\u{fdd1}';

/// Standard base64, with or without padding.
pub(super) const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Collects the entries of a request.
#[derive(Debug)]
pub(super) struct Entries<'l> {
    messages: MessageForm,
    limits: &'l Limits,
    categories: Vec<CategoryName>,
    index: HashMap<CategoryName, usize>,
    /// The category of the entry before: the next one usually has the same.
    last_category: usize,
    entries: Vec<Result<Stored, EntryError>>,
    refused: Vec<(usize, Range<usize>)>,
    arena: Vec<u8>,
    has_bad_utf8: bool,
}

/// What an entry's keys say.
#[derive(Debug, Default)]
struct Keys<'t> {
    category: Option<Cow<'t, str>>,
    has_message: bool,
    line_escape: Option<bool>,
}

/// An entry that can't be read: wrong in itself, or perhaps the array's brackets are.
enum Unreadable {
    Entry(EntryError),
    Json(JsonError),
}

impl From<JsonError> for Unreadable {
    fn from(error: JsonError) -> Self {
        Self::Json(error)
    }
}

impl From<EntryError> for Unreadable {
    fn from(error: EntryError) -> Self {
        Self::Entry(error)
    }
}

/// Text of a body. Bytes that are not UTF-8 are marked, so that only their entry is refused.
pub(super) fn text_of(bytes: &[u8]) -> (Cow<'_, str>, bool) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return (Cow::Borrowed(text), false);
    }
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        if !chunk.invalid().is_empty() {
            text.push(NOT_UTF8);
        }
    }
    (Cow::Owned(text), true)
}

impl<'l> Entries<'l> {
    pub(super) fn new(messages: MessageForm, limits: &'l Limits) -> Self {
        Self {
            messages,
            limits,
            categories: Vec::new(),
            index: HashMap::new(),
            last_category: 0,
            entries: Vec::new(),
            refused: Vec::new(),
            arena: Vec::new(),
            has_bad_utf8: false,
        }
    }

    pub(super) fn into_request(self, token: Option<Secret>) -> Request {
        let Self { categories, entries, arena, refused, .. } = self;
        Request { token, categories, entries, messages: Messages::Arena(arena), refused }
    }

    /// Says that the text of the array has [`NOT_UTF8`] in it.
    pub(super) fn note_bad_utf8(&mut self, has_bad_utf8: bool) {
        self.has_bad_utf8 |= has_bad_utf8;
    }

    /// Reads a text that is nothing but the array.
    pub(super) fn read_text(&mut self, text: &str) -> Result<(), BodyError> {
        let mut reader = Reader::new(text);
        self.read(&mut reader)?;
        reader.end().map_err(BodyError::Logs)
    }

    /// Reads the array that comes next.
    pub(super) fn read(&mut self, reader: &mut Reader<'_>) -> Result<(), BodyError> {
        // Messages get shorter by their escapes, never longer.
        self.arena.reserve(reader.rest().len());
        reader.begin_array().map_err(BodyError::Logs)?;
        while reader.next_item().map_err(BodyError::Logs)? {
            if self.entries.len() == self.limits.entries_max {
                return Err(BodyError::TooManyEntries { entries_max: self.limits.entries_max });
            }
            self.read_entry(reader)?;
        }
        Ok(())
    }

    fn read_entry(&mut self, reader: &mut Reader<'_>) -> Result<(), BodyError> {
        let before = reader.clone();
        let start = self.arena.len();
        let entry = match self.entry(reader) {
            Ok(stored) => Ok(stored),
            Err(unreadable) => {
                self.arena.truncate(start);
                *reader = before;
                let text_start = reader.at();
                reader.step_over().map_err(BodyError::Logs)?;
                self.keep_refused(reader.text_since(text_start));
                Err(match unreadable {
                    Unreadable::Entry(error) => error,
                    Unreadable::Json(error) => EntryError::Json(error),
                })
            }
        };
        self.entries.push(entry);
        Ok(())
    }

    fn keep_refused(&mut self, text: &str) {
        let text = text.trim_ascii().as_bytes();
        let start = self.arena.len();
        self.arena.extend_from_slice(&text[..text.len().min(REFUSED_TEXT_BYTES_MAX)]);
        self.refused.push((self.entries.len(), start..self.arena.len()));
    }

    fn entry(&mut self, reader: &mut Reader<'_>) -> Result<Stored, Unreadable> {
        let next = reader.peek()?;
        if next != Next::Object {
            return Err(EntryError::NotAnObject { found: next.describe() }.into());
        }
        let entry_start = reader.at();
        let start = self.arena.len();
        let keys = self.keys(reader)?;
        if self.has_bad_utf8
            && let Some(at) = reader.text_since(entry_start).find(NOT_UTF8)
        {
            return Err(EntryError::Utf8 { at }.into());
        }
        if !keys.has_message {
            return Err(EntryError::Missing { key: MESSAGE }.into());
        }
        if keys.line_escape == Some(true) {
            unescape_lines(&mut self.arena, start);
        }
        let stored = match self.messages {
            MessageForm::Plain => self.plain(keys.category, start)?,
            MessageForm::Structured => self.structured(start)?,
        };
        Ok(stored)
    }

    /// Reads an entry's object; its message goes to the end of the arena.
    fn keys<'t>(&mut self, reader: &mut Reader<'t>) -> Result<Keys<'t>, Unreadable> {
        let mut keys = Keys::default();
        reader.begin_object()?;
        while let Some(key) = reader.next_key()? {
            match &*key {
                CATEGORY => {
                    let category = string(CATEGORY, reader)?;
                    once(CATEGORY, keys.category.replace(category).is_some())?;
                }
                MESSAGE => {
                    once(MESSAGE, std::mem::replace(&mut keys.has_message, true))?;
                    self.message(reader)?;
                }
                LINE_ESCAPE => {
                    let line_escape = line_escape(reader)?;
                    once(LINE_ESCAPE, keys.line_escape.replace(line_escape).is_some())?;
                }
                _ => drop(reader.raw_value()?),
            }
        }
        Ok(keys)
    }

    fn message(&mut self, reader: &mut Reader<'_>) -> Result<(), Unreadable> {
        match reader.peek()? {
            Next::String => reader.string_into(&mut self.arena)?,
            Next::Object if self.messages == MessageForm::Plain => {
                self.arena.extend_from_slice(reader.raw_value()?.as_bytes());
            }
            other @ (Next::Object
            | Next::Array
            | Next::Number
            | Next::True
            | Next::False
            | Next::Null) => {
                let found = other.describe();
                return Err(EntryError::Type { key: MESSAGE, found, expected: "a string" }.into());
            }
        }
        Ok(())
    }

    fn plain(
        &mut self,
        category: Option<Cow<'_, str>>,
        start: usize,
    ) -> Result<Stored, EntryError> {
        let category = category.ok_or(EntryError::Missing { key: CATEGORY })?;
        let message = start..self.arena.len();
        self.check_size(message.len())?;
        let category = self.category(&category)?;
        Ok(Stored { category, codec: Codec::Message, message })
    }

    fn structured(&mut self, start: usize) -> Result<Stored, EntryError> {
        let encoded = self.arena.split_off(start);
        // Four characters are three bytes: looked at before anything is decoded.
        self.check_size(encoded.len() / 4 * 3)?;
        BASE64.decode_vec(&encoded, &mut self.arena).map_err(EntryError::Base64)?;
        let message = start..self.arena.len();
        let envelope = Envelope::read(&self.arena[message.clone()])?;
        let category = envelope.category().map_err(EntryError::Target)?;
        let category = self.intern(category);
        Ok(Stored { category, codec: Codec::Structured, message })
    }

    fn check_size(&self, bytes: usize) -> Result<(), EntryError> {
        let bytes_max = self.limits.message_bytes_max;
        if bytes > bytes_max { Err(EntryError::TooLarge { bytes, bytes_max }) } else { Ok(()) }
    }

    fn category(&mut self, name: &str) -> Result<usize, EntryError> {
        match self.categories.get(self.last_category) {
            Some(last) if last.as_str() == name => Ok(self.last_category),
            _ => match self.index.get(name) {
                Some(&index) => {
                    self.last_category = index;
                    Ok(index)
                }
                None => Ok(self.intern(CategoryName::new(name)?)),
            },
        }
    }

    fn intern(&mut self, category: CategoryName) -> usize {
        let next = self.categories.len();
        let index = *self.index.entry(category.clone()).or_insert(next);
        if index == next {
            self.categories.push(category);
        }
        self.last_category = index;
        index
    }
}

fn once(key: &'static str, was_there: bool) -> Result<(), EntryError> {
    if was_there { Err(EntryError::Twice { key }) } else { Ok(()) }
}

fn string<'t>(key: &'static str, reader: &mut Reader<'t>) -> Result<Cow<'t, str>, Unreadable> {
    let next = reader.peek()?;
    if next != Next::String {
        let found = next.describe();
        return Err(EntryError::Type { key, found, expected: "a string" }.into());
    }
    Ok(reader.string()?)
}

fn line_escape(reader: &mut Reader<'_>) -> Result<bool, Unreadable> {
    match reader.peek()? {
        Next::True | Next::False => Ok(reader.bool()?),
        Next::Null => {
            reader.null()?;
            Ok(false)
        }
        other @ (Next::Object | Next::Array | Next::String | Next::Number) => {
            let found = other.describe();
            let expected = "true or false";
            Err(EntryError::Type { key: LINE_ESCAPE, found, expected }.into())
        }
    }
}

/// Undoes `line_escape`: `\n` is a line break and `\\` a backslash; anything else stays.
fn unescape_lines(arena: &mut Vec<u8>, start: usize) {
    let escaped = arena.split_off(start);
    let mut rest = &escaped[..];
    while let Some(at) = memchr::memchr(b'\\', rest) {
        arena.extend_from_slice(&rest[..at]);
        let (unescaped, taken) = match rest.get(at + 1) {
            Some(b'n') => (b'\n', 2),
            Some(b'\\') => (b'\\', 2),
            _ => (b'\\', 1),
        };
        arena.push(unescaped);
        rest = &rest[at + taken..];
    }
    arena.extend_from_slice(rest);
}
