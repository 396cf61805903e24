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
use std::ops::{Range, RangeInclusive};
use std::str::Utf8Chunk;

const CATEGORY: &str = "category";
const MESSAGE: &str = "message";
const LINE_ESCAPE: &str = "line_escape";

/// One of these takes the place of bytes that are not UTF-8 while an array is read: noncharacters,
/// which hardly any text holds. An entry that has the mark is refused; its neighbours are not.
const MARKS: RangeInclusive<char> = '\u{fdd0}'..='\u{fdef}';
/// The most places of a body that are marked: a mark is longer than the byte it stands for.
const MARKED_MAX: usize = 1 << 20;

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
    /// What stands for bytes that are not UTF-8, if the array has any.
    mark: Option<char>,
}

/// What an entry's keys say.
#[derive(Debug, Default)]
struct Keys<'t> {
    category: Option<Cow<'t, str>>,
    message: Option<Written>,
    line_escape: Option<bool>,
}

/// How a message is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Written {
    String,
    Object,
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

/// Text of a body, and its mark if it needs one: bytes that are not UTF-8 are marked, so that only
/// their entry is refused.
pub(super) fn text_of(bytes: &[u8]) -> Result<(Cow<'_, str>, Option<char>), BodyError> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Ok((Cow::Borrowed(text), None));
    }
    let is_bad = |chunk: &Utf8Chunk<'_>| !chunk.invalid().is_empty();
    let places = bytes.utf8_chunks().filter(is_bad).take(MARKED_MAX + 1).count();
    if places > MARKED_MAX {
        return Err(BodyError::NotText { places_max: MARKED_MAX });
    }
    let mark = free_mark(bytes).ok_or(BodyError::NoMark)?;
    let mut text = String::with_capacity(bytes.len() + places * mark.len_utf8());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        if !chunk.invalid().is_empty() {
            text.push(mark);
        }
    }
    Ok((Cow::Owned(text), Some(mark)))
}

/// The first mark that is not in the text, neither as a character nor as an escape.
fn free_mark(bytes: &[u8]) -> Option<char> {
    let mut used = 0_u32;
    // U+FDD0 to U+FDEF are EF B7 90 to EF B7 AF.
    for at in memchr::memmem::find_iter(bytes, b"\xef\xb7") {
        if let Some(last @ 0x90..=0xaf) = bytes.get(at + 2) {
            used |= 1 << (last - 0x90);
        }
    }
    for at in memchr::memmem::find_iter(bytes, b"\\u") {
        let digits = bytes.get(at + 2..at + 6).and_then(|digits| std::str::from_utf8(digits).ok());
        let code = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        if let Some(code @ 0xfdd0..=0xfdef) = code {
            used |= 1 << (code - 0xfdd0);
        }
    }
    MARKS.enumerate().find(|(place, _)| used & 1 << place == 0).map(|(_, mark)| mark)
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
            mark: None,
        }
    }

    pub(super) fn into_request(self, token: Option<Secret>) -> Request {
        let Self { categories, entries, arena, refused, .. } = self;
        Request { token, categories, entries, messages: Messages::Arena(arena), refused }
    }

    /// Reads a text that is nothing but the array. `mark` stands for bytes that are not UTF-8.
    pub(super) fn read_text(&mut self, text: &str, mark: Option<char>) -> Result<(), BodyError> {
        let mut reader = Reader::new(text);
        self.read(&mut reader, mark)?;
        reader.end().map_err(BodyError::Logs)
    }

    /// Reads the array that comes next. `mark` stands for bytes that are not UTF-8.
    pub(super) fn read(
        &mut self,
        reader: &mut Reader<'_>,
        mark: Option<char>,
    ) -> Result<(), BodyError> {
        self.mark = mark;
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
                reader.skip_to_value();
                let text_start = reader.at();
                reader.step_over().map_err(BodyError::Logs)?;
                self.keep_refused(reader.text_since(text_start));
                Err(match unreadable {
                    Unreadable::Entry(error) => error,
                    Unreadable::Json(JsonError { at, problem }) => {
                        EntryError::Json(JsonError { at: at.saturating_sub(text_start), problem })
                    }
                })
            }
        };
        self.entries.push(entry);
        Ok(())
    }

    fn keep_refused(&mut self, text: &str) {
        let text = text.trim_ascii();
        let text = &text[..text.floor_char_boundary(REFUSED_TEXT_BYTES_MAX)];
        let start = self.arena.len();
        match self.mark {
            None => self.arena.extend_from_slice(text.as_bytes()),
            Some(mark) => {
                let readable = text.replace(mark, "\u{fffd}");
                self.arena.extend_from_slice(readable.as_bytes());
            }
        }
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
        if let Some(mark) = self.mark
            && let Some(at) = reader.text_since(entry_start).find(mark)
        {
            return Err(EntryError::Utf8 { at }.into());
        }
        let message = keys.message.ok_or(EntryError::Missing { key: MESSAGE })?;
        // An object's backslashes are JSON's own.
        if keys.line_escape == Some(true) && message == Written::String {
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
                    once(MESSAGE, keys.message.is_some())?;
                    keys.message = Some(self.message(reader)?);
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

    fn message(&mut self, reader: &mut Reader<'_>) -> Result<Written, Unreadable> {
        match reader.peek()? {
            Next::String => {
                reader.string_into(&mut self.arena)?;
                Ok(Written::String)
            }
            Next::Object if self.messages == MessageForm::Plain => {
                self.arena.extend_from_slice(reader.raw_value()?.as_bytes());
                Ok(Written::Object)
            }
            other @ (Next::Object
            | Next::Array
            | Next::Number
            | Next::True
            | Next::False
            | Next::Null) => {
                let found = other.describe();
                Err(EntryError::Type { key: MESSAGE, found, expected: "a string" }.into())
            }
        }
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
