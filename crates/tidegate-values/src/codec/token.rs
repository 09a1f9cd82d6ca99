//! Tokenizes the texts of arrays, composites and ranges: values between delimiters, quoted where
//! necessary (PostgreSQL, "Array Input and Output Syntax", "Composite Type Input and Output
//! Syntax").

use std::borrow::Cow;

use crate::error::{MalformedValue, Result};

/// A tokenizer, which holds the bytes that were not read yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tokens<'a> {
    rest: &'a [u8],
}

/// A value between delimiters.
#[derive(Debug)]
pub(super) struct TextToken<'a> {
    text: Cow<'a, [u8]>,
    quoted: bool,
}

impl<'a> TextToken<'a> {
    /// The text of the value; `None` if it is empty and not quoted. Such a value is NULL in a
    /// composite; in a range, it means that there is no bound.
    pub(super) fn given(self) -> Option<Cow<'a, [u8]>> {
        (self.quoted || !self.text.is_empty()).then_some(self.text)
    }

    /// The text of an array's element; `None` for NULL, which is the unquoted word `NULL`.
    pub(super) fn element(self) -> Option<Cow<'a, [u8]>> {
        (self.quoted || &*self.text != b"NULL").then_some(self.text)
    }
}

impl<'a> Tokens<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        Self { rest: text }
    }

    pub(super) fn peek(self) -> Option<u8> {
        self.rest.first().copied()
    }

    pub(super) fn next(&mut self) -> Option<u8> {
        let (&first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }

    pub(super) fn expect(&mut self, byte: u8) -> Result<()> {
        if self.next() == Some(byte) {
            Ok(())
        } else {
            Err(MalformedValue)
        }
    }

    /// Consumes `word` if the text continues with it; returns whether it did.
    pub(super) fn word(&mut self, word: &[u8]) -> bool {
        let Some(rest) = self.rest.strip_prefix(word) else {
            return false;
        };
        self.rest = rest;
        true
    }

    /// Skips all bytes before `byte`.
    pub(super) fn skip_to(&mut self, byte: u8) {
        let at = memchr::memchr(byte, self.rest).unwrap_or(self.rest.len());
        self.rest = &self.rest[at..];
    }

    /// Checks that all bytes were read.
    pub(super) fn end(self) -> Result<()> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(MalformedValue)
        }
    }

    /// Reads the value up to the first of the bytes `stops`, or up to the end. The stop byte itself
    /// is not consumed.
    pub(super) fn token(&mut self, stops: &[u8]) -> TextToken<'a> {
        let plain = |byte: &u8| !stops.contains(byte) && *byte != b'"' && *byte != b'\\';
        let length = self.rest.iter().take_while(|byte| plain(byte)).count();
        let (head, rest) = self.rest.split_at(length);
        if rest.first().is_none_or(|byte| stops.contains(byte)) {
            self.rest = rest;
            return TextToken {
                text: Cow::Borrowed(head),
                quoted: false,
            };
        }
        self.quoted(stops)
    }

    /// Reads a value that has quotes or backslashes.
    fn quoted(&mut self, stops: &[u8]) -> TextToken<'a> {
        let mut text = Vec::new();
        let mut inside = false;
        while let Some((&byte, rest)) = self.rest.split_first() {
            if !inside && stops.contains(&byte) {
                break;
            }
            self.rest = rest;
            match (byte, self.peek()) {
                (b'\\', Some(escaped)) => {
                    text.push(escaped);
                    self.rest = &self.rest[1..];
                }
                (b'"', Some(b'"')) if inside => {
                    text.push(b'"');
                    self.rest = &self.rest[1..];
                }
                (b'"', _) => inside = !inside,
                _ => text.push(byte),
            }
        }
        TextToken {
            text: Cow::Owned(text),
            quoted: true,
        }
    }
}

/// Parses a number with Rust's parser, which accepts all texts that PostgreSQL writes.
pub(super) fn parse<N: std::str::FromStr>(raw: &[u8]) -> Result<N> {
    let text = std::str::from_utf8(raw).map_err(|_| MalformedValue)?;
    text.parse().map_err(|_| MalformedValue)
}
