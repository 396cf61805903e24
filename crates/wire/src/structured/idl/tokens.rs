//! Thrift text to tokens.

use super::{IdlError, IdlProblem};
use crate::message::quote;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token<'i> {
    /// A name or keyword, perhaps with dots; also numbers, which thereby need no rules here.
    Word(&'i str),
    Text,
    Symbol(char),
    End,
}

impl Token<'_> {
    pub(super) fn describe(self) -> String {
        match self {
            Self::Word(word) => format!("`{}`", quote(word)),
            Self::Text => "a string".to_owned(),
            Self::Symbol(symbol) => format!("`{symbol}`"),
            Self::End => "the end".to_owned(),
        }
    }
}

/// Tokens one after the other, with one token of looking ahead.
#[derive(Debug)]
pub(super) struct Tokens<'i> {
    rest: &'i str,
    rest_line: usize,
    next: Token<'i>,
    line: usize,
}

impl<'i> Tokens<'i> {
    pub(super) fn new(idl: &'i str) -> Result<Self, IdlError> {
        let mut tokens = Self { rest: idl, rest_line: 1, next: Token::End, line: 1 };
        tokens.advance()?;
        Ok(tokens)
    }

    pub(super) fn peek(&self) -> Token<'i> {
        self.next
    }

    /// The line of the token that [`Self::peek`] shows.
    pub(super) fn line(&self) -> usize {
        self.line
    }

    pub(super) fn next(&mut self) -> Result<Token<'i>, IdlError> {
        let token = self.next;
        self.advance()?;
        Ok(token)
    }

    pub(super) fn is(&self, symbol: char) -> bool {
        self.next == Token::Symbol(symbol)
    }

    /// Takes the symbol if it comes next.
    pub(super) fn take(&mut self, symbol: char) -> Result<bool, IdlError> {
        let is_next = self.is(symbol);
        if is_next {
            self.advance()?;
        }
        Ok(is_next)
    }

    pub(super) fn symbol(&mut self, symbol: char, name: &'static str) -> Result<(), IdlError> {
        if self.take(symbol)? { Ok(()) } else { Err(self.unexpected(name)) }
    }

    pub(super) fn word(&mut self, expected: &'static str) -> Result<&'i str, IdlError> {
        let Token::Word(word) = self.next else {
            return Err(self.unexpected(expected));
        };
        self.advance()?;
        Ok(word)
    }

    pub(super) fn unexpected(&self, expected: &'static str) -> IdlError {
        self.error(IdlProblem::Unexpected { expected, found: self.next.describe() })
    }

    pub(super) fn error(&self, problem: IdlProblem) -> IdlError {
        IdlError { line: self.line, problem }
    }

    fn advance(&mut self) -> Result<(), IdlError> {
        self.skip_blanks_and_comments()?;
        self.line = self.rest_line;
        let Some(first) = self.rest.chars().next() else {
            self.next = Token::End;
            return Ok(());
        };
        self.next = match first {
            '"' | '\'' => {
                let end = self.rest[1..].find(first).ok_or_else(|| self.no_end())?;
                self.eat(end + 2);
                Token::Text
            }
            _ if is_word(first) => {
                let end = self.rest.find(|c| !is_word(c)).unwrap_or(self.rest.len());
                Token::Word(self.eat(end))
            }
            symbol => {
                self.eat(symbol.len_utf8());
                Token::Symbol(symbol)
            }
        };
        Ok(())
    }

    fn skip_blanks_and_comments(&mut self) -> Result<(), IdlError> {
        loop {
            let blanks = self.rest.len() - self.rest.trim_start().len();
            self.eat(blanks);
            let length = if self.rest.starts_with("//") || self.rest.starts_with('#') {
                self.rest.find('\n').unwrap_or(self.rest.len())
            } else if self.rest.starts_with("/*") {
                self.rest[2..].find("*/").ok_or_else(|| self.no_end())? + 4
            } else {
                return Ok(());
            };
            self.eat(length);
        }
    }

    fn no_end(&self) -> IdlError {
        IdlError { line: self.rest_line, problem: IdlProblem::NoEnd }
    }

    fn eat(&mut self, bytes: usize) -> &'i str {
        let (eaten, rest) = self.rest.split_at(bytes);
        self.rest_line += eaten.matches('\n').count();
        self.rest = rest;
        eaten
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '.' | '-' | '+')
}
