//! Strings and their escapes.

use super::{JsonError, JsonProblem, Reader};
use crate::scan::{self, Window, WindowCopy};
use std::borrow::Cow;

/// What ends a run of characters that stand for themselves.
#[inline]
fn special(word: u64) -> u64 {
    scan::equal(word, b'"') | scan::equal(word, b'\\') | scan::below(word, b' ')
}

#[inline]
fn first_special(word: u64) -> u64 {
    scan::first_equal(word, b'"') | scan::first_equal(word, b'\\') | scan::first_below(word, b' ')
}

impl<'t> Reader<'t> {
    /// Takes a string; it is copied only when it has escapes.
    ///
    /// Always inlined, like `next_key`: as calls, they hand their results over in memory, which
    /// is a tenth of a message's instructions.
    #[inline(always)]
    pub(crate) fn string(&mut self) -> Result<Cow<'t, str>, JsonError> {
        let start = self.at + 1;
        let end = plain_end(self.text.as_bytes(), start);
        if self.text.as_bytes().get(end) == Some(&b'"') {
            self.at = end + 1;
            return Ok(Cow::Borrowed(&self.text[start..end]));
        }
        self.escaped_string()
    }

    #[cold]
    #[inline(never)]
    fn escaped_string(&mut self) -> Result<Cow<'t, str>, JsonError> {
        let start = self.at;
        let mut unescaped = Vec::new();
        self.string_into(&mut unescaped)?;
        // Pieces of UTF-8 text, cut at ASCII bytes, with whole characters between them.
        let unescaped = String::from_utf8(unescaped);
        unescaped
            .map(Cow::Owned)
            .map_err(|_not_utf8| JsonError { at: start, problem: JsonProblem::Escape })
    }

    /// Takes a string, and adds it to `out` without its escapes.
    pub(crate) fn string_into(&mut self, out: &mut Vec<u8>) -> Result<(), JsonError> {
        let bytes = self.text.as_bytes();
        if bytes.get(self.at) != Some(&b'"') {
            return Err(self.expected("a string"));
        }
        self.at += 1;
        while let Some(window) = bytes[self.at..].first_chunk() {
            let (read, stop) = WindowCopy::append(window, out, |copy| unescape(window, copy));
            self.at += read;
            if stop && self.special_into(out)? {
                return Ok(());
            }
        }
        // The rest of a text, shorter than a window.
        loop {
            let end = plain_end(bytes, self.at);
            out.extend_from_slice(&bytes[self.at..end]);
            self.at = end;
            if self.special_into(out)? {
                return Ok(());
            }
        }
    }

    /// Takes the special byte that comes next, or the escape. Whether it ends the string.
    fn special_into(&mut self, out: &mut Vec<u8>) -> Result<bool, JsonError> {
        let bytes = self.text.as_bytes();
        match (bytes.get(self.at), bytes.get(self.at + 1)) {
            (Some(b'"'), _) => {
                self.at += 1;
                Ok(true)
            }
            (Some(b'\\'), Some(&escape)) => self.escape(escape, out).map(|()| false),
            (Some(b'\\') | None, _) => {
                self.at = bytes.len();
                Err(self.expected("the end of a string"))
            }
            (Some(_), _) => Err(self.error(JsonProblem::ControlCharacter)),
        }
    }

    fn escape(&mut self, escape: u8, out: &mut Vec<u8>) -> Result<(), JsonError> {
        out.push(match escape {
            b'"' | b'\\' | b'/' => escape,
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'b' => 0x08,
            b'f' => 0x0c,
            b'u' => return self.unicode_escape(out),
            _ => return Err(self.error(JsonProblem::Escape)),
        });
        self.at += 2;
        Ok(())
    }

    fn unicode_escape(&mut self, out: &mut Vec<u8>) -> Result<(), JsonError> {
        let first = self.hex(self.at + 2)?;
        let mut len = 6;
        let code = match first {
            0xd800..0xdc00 => {
                let is_pair = self.text.as_bytes()[self.at + 6..].starts_with(b"\\u");
                let second = if is_pair { self.hex(self.at + 8)? } else { 0 };
                if !(0xdc00..0xe000).contains(&second) {
                    return Err(self.error(JsonProblem::Surrogate));
                }
                len = 12;
                0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00)
            }
            other => other,
        };
        let character = char::from_u32(code).ok_or_else(|| self.error(JsonProblem::Surrogate))?;
        out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        self.at += len;
        Ok(())
    }

    fn hex(&self, start: usize) -> Result<u32, JsonError> {
        let digits = self.text.as_bytes().get(start..start + 4);
        let digits = digits.ok_or_else(|| self.error(JsonProblem::Escape))?;
        let mut code = 0;
        for &digit in digits {
            let digit = char::from(digit).to_digit(16);
            code = code * 16 + digit.ok_or_else(|| self.error(JsonProblem::Escape))?;
        }
        Ok(code)
    }
}

/// Copies a window without the backslashes of the escapes that messages are full of, `\"` and
/// `\\`. Whether it stopped before the window's block ended, at anything else that is special.
#[inline]
fn unescape(window: &Window, copy: &mut WindowCopy<'_>) -> bool {
    let mut marks = scan::marks_of(window, special);
    while marks != 0 {
        let position = marks.trailing_zeros() as usize;
        marks &= marks - 1;
        copy.copy_to(position);
        let escaped = window[position + 1];
        if window[position] != b'\\' || !matches!(escaped, b'"' | b'\\') {
            return true;
        }
        copy.replace(escaped, 2);
        // The escaped byte is special too, and may be in the next block.
        marks &= !(2 << position);
    }
    copy.finish();
    false
}

/// The position of the first byte from `at` on that isn't plain, or the end.
#[inline]
fn plain_end(bytes: &[u8], at: usize) -> usize {
    let at = scan::skip_plain(bytes, at, first_special);
    let is_special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
    let rest = bytes.get(at..).unwrap_or_default();
    at + rest.iter().position(is_special).unwrap_or(rest.len())
}
