//! A pull parser for JSON text, written for the shape of messages: small objects of numbers and
//! short strings.
//!
//! Why not `serde_json`: it rounds floats unless its slow path is chosen, can't say which column
//! of which section was wrong without allocating, and stops at the first bad entry of an array,
//! while good neighbours of a bad entry have to be kept. The tests hold the two against each
//! other.

mod number;
mod strings;

pub(crate) use number::Number;

use std::borrow::Cow;

/// The deepest nesting of objects and arrays that is read.
pub const JSON_DEPTH_MAX: usize = 64;

/// Where JSON text goes wrong, and how.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("byte {at}: {problem}")]
pub struct JsonError {
    pub at: usize,
    pub problem: JsonProblem,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum JsonProblem {
    #[error("expected {0}")]
    Expected(&'static str),
    #[error("the JSON text ends too early, expected {0}")]
    Truncated(&'static str),
    #[error("JSON has no NaN or Infinity; send null, or leave the field out")]
    NotFinite,
    #[error("nested deeper than {JSON_DEPTH_MAX} levels")]
    TooDeep,
    #[error("a line break or other control character must be escaped inside a string")]
    ControlCharacter,
    #[error("invalid escape in a string")]
    Escape,
    #[error("half of a surrogate pair in a string")]
    Surrogate,
    #[error("invalid number")]
    Number,
}

/// The first byte of a value says what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    Object,
    Array,
    String,
    Number,
    True,
    False,
    Null,
}

impl Next {
    /// For "column `x` holds …".
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Self::Object => "an object",
            Self::Array => "a list",
            Self::String => "a string",
            Self::Number => "a number",
            Self::True | Self::False => "a boolean",
            Self::Null => "null",
        }
    }
}

/// Reads values one after the other. Callers look at [`Reader::peek`] and take what is there.
#[derive(Debug, Clone)]
pub(crate) struct Reader<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
    /// Whether the innermost object or array was just opened, so that no comma is due.
    is_fresh: bool,
}

impl<'t> Reader<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self { text, at: 0, depth: 0, is_fresh: false }
    }

    /// The position of the next unread byte.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// What is unread.
    pub(crate) fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    /// Passes the blanks before the next value.
    pub(crate) fn skip_to_value(&mut self) {
        self.skip_blanks();
    }

    /// Says what the next value is, without taking it.
    #[inline]
    pub(crate) fn peek(&mut self) -> Result<Next, JsonError> {
        // Two steps, not one `match`: that would be a jump through a table, which is guessed
        // badly where strings and numbers alternate.
        match self.skip_blanks() {
            Some(b'"') => Ok(Next::String),
            Some(b'0'..=b'9' | b'-') => Ok(Next::Number),
            other => self.peek_other(other),
        }
    }

    #[inline(never)]
    fn peek_other(&self, byte: Option<u8>) -> Result<Next, JsonError> {
        match byte {
            Some(b'{') => Ok(Next::Object),
            Some(b'[') => Ok(Next::Array),
            Some(b't') => Ok(Next::True),
            Some(b'f') => Ok(Next::False),
            Some(b'n') => Ok(Next::Null),
            Some(b'N' | b'I') => Err(self.error(JsonProblem::NotFinite)),
            _ => Err(self.expected("a value")),
        }
    }

    #[inline]
    pub(crate) fn begin_object(&mut self) -> Result<(), JsonError> {
        self.begin(b'{', "an object")
    }

    #[inline]
    pub(crate) fn begin_array(&mut self) -> Result<(), JsonError> {
        self.begin(b'[', "a list")
    }

    /// The next key of an object, or `None` at its end.
    #[inline(always)]
    pub(crate) fn next_key(&mut self) -> Result<Option<Cow<'t, str>>, JsonError> {
        if !self.has_more(b'}', "`,` or `}`")? {
            return Ok(None);
        }
        if self.skip_blanks() != Some(b'"') {
            return Err(self.expected("a key in double quotes"));
        }
        let key = self.string()?;
        match self.skip_blanks() {
            Some(b':') => self.at += 1,
            _ => return Err(self.expected("`:` after a key")),
        }
        Ok(Some(key))
    }

    /// Whether the array has another value; takes the comma before it, or the end.
    #[inline]
    pub(crate) fn next_item(&mut self) -> Result<bool, JsonError> {
        self.has_more(b']', "`,` or `]`")
    }

    pub(crate) fn bool(&mut self) -> Result<bool, JsonError> {
        let value = self.peek()? == Next::True;
        self.word(if value { "true" } else { "false" })?;
        Ok(value)
    }

    pub(crate) fn null(&mut self) -> Result<(), JsonError> {
        self.peek()?;
        self.word("null")
    }

    /// Checks that nothing but blanks follows.
    pub(crate) fn end(&mut self) -> Result<(), JsonError> {
        match self.skip_blanks() {
            None => Ok(()),
            Some(_) => Err(self.error(JsonProblem::Expected("the end of the text"))),
        }
    }

    /// Takes any value, checks it, and gives its text as it was written.
    pub(crate) fn raw_value(&mut self) -> Result<&'t str, JsonError> {
        let next = self.peek()?;
        let start = self.at;
        match next {
            Next::Object => {
                self.begin_object()?;
                while self.next_key()?.is_some() {
                    self.raw_value()?;
                }
            }
            Next::Array => {
                self.begin_array()?;
                while self.next_item()? {
                    self.raw_value()?;
                }
            }
            Next::String => drop(self.string()?),
            Next::Number => drop(self.number()?),
            Next::True | Next::False => drop(self.bool()?),
            Next::Null => self.null()?,
        }
        Ok(&self.text[start..self.at])
    }

    /// Gets past a value that is of no use, so that what follows it can be read. One that is not
    /// JSON is passed by its brackets and quotes alone. `self` is as it was before the value.
    pub(crate) fn step_over(&mut self) -> Result<(), JsonError> {
        let before = self.clone();
        if self.raw_value().is_ok() {
            return Ok(());
        }
        *self = before;
        self.step_over_brackets()
    }

    fn step_over_brackets(&mut self) -> Result<(), JsonError> {
        self.skip_blanks();
        let mut open = 0_usize;
        while let Some(&byte) = self.text.as_bytes().get(self.at) {
            match byte {
                b'}' | b']' | b',' if open == 0 => return Ok(()),
                b'"' => self.step_over_string()?,
                b'{' | b'[' => {
                    open += 1;
                    self.at += 1;
                }
                b'}' | b']' => {
                    open -= 1;
                    self.at += 1;
                }
                _ => self.at += 1,
            }
            if open == 0 && matches!(byte, b'"' | b'}' | b']') {
                return Ok(());
            }
        }
        Err(self.expected("the end of the entry"))
    }

    fn step_over_string(&mut self) -> Result<(), JsonError> {
        let bytes = self.text.as_bytes();
        let mut at = self.at + 1;
        loop {
            match bytes.get(at) {
                Some(b'"') => break,
                Some(b'\\') => at += 2,
                Some(_) => at += 1,
                None => {
                    self.at = self.text.len();
                    return Err(self.expected("the end of a string"));
                }
            }
        }
        self.at = at + 1;
        Ok(())
    }

    #[inline]
    fn begin(&mut self, open: u8, what: &'static str) -> Result<(), JsonError> {
        if self.skip_blanks() != Some(open) {
            return Err(self.expected(what));
        }
        if self.depth == JSON_DEPTH_MAX {
            return Err(self.error(JsonProblem::TooDeep));
        }
        self.at += 1;
        self.depth += 1;
        self.is_fresh = true;
        Ok(())
    }

    #[inline]
    fn has_more(&mut self, close: u8, what: &'static str) -> Result<bool, JsonError> {
        let is_first = std::mem::replace(&mut self.is_fresh, false);
        match self.skip_blanks() {
            Some(byte) if byte == close => {
                self.at += 1;
                self.depth -= 1;
                Ok(false)
            }
            Some(b',') if !is_first => {
                self.at += 1;
                Ok(true)
            }
            Some(_) if is_first => Ok(true),
            _ => Err(self.expected(what)),
        }
    }

    fn word(&mut self, word: &'static str) -> Result<(), JsonError> {
        if !self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
            return Err(self.expected("true, false or null"));
        }
        self.at += word.len();
        Ok(())
    }

    /// The next byte that isn't blank.
    #[inline]
    fn skip_blanks(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        loop {
            match bytes.get(self.at) {
                Some(b' ' | b'\n' | b'\t' | b'\r') => self.at += 1,
                other => return other.copied(),
            }
        }
    }

    #[cold]
    fn error(&self, problem: JsonProblem) -> JsonError {
        JsonError { at: self.at, problem }
    }

    #[cold]
    fn expected(&self, what: &'static str) -> JsonError {
        let is_at_end = self.at >= self.text.len();
        let problem =
            if is_at_end { JsonProblem::Truncated(what) } else { JsonProblem::Expected(what) };
        self.error(problem)
    }
}
