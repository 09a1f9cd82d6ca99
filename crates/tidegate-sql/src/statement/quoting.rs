//! Reads quoted tokens: strings, quoted identifiers and dollar-quoted strings.

use memchr::{memchr, memchr2, memmem};

use super::lexer::{Lexer, Scan, TokenKind, Unreadable, begins_word, is_space};

impl Lexer<'_> {
    /// Reads a string from its opening quote to its closing quote. A doubled quote is part of the
    /// string.
    pub(super) fn string(&mut self, start: usize) -> Scan<TokenKind> {
        self.until_quote(b'\'').ok_or(Unreadable {
            what: "a string without its closing quote",
            at: start,
        })?;
        Ok(TokenKind::String)
    }

    pub(super) fn quoted(&mut self, start: usize) -> Scan<TokenKind> {
        self.until_quote(b'"').ok_or(Unreadable {
            what: "a quoted identifier without its closing quote",
            at: start,
        })?;
        Ok(TokenKind::Quoted)
    }

    fn until_quote(&mut self, quote: u8) -> Option<()> {
        self.at += 1;
        loop {
            self.at += memchr(quote, self.rest())? + 1;
            if self.peek() != Some(quote) {
                return Some(());
            }
            self.at += 1;
        }
    }

    /// Reads a string `E'…'`, in which a backslash escapes the next byte. A continuation of the
    /// string after a line break has the same rules.
    pub(super) fn escape_string(&mut self, start: usize) -> Scan<TokenKind> {
        let open = Unreadable {
            what: "a string without its closing quote",
            at: start,
        };
        self.at += 1;
        loop {
            self.at += memchr2(b'\'', b'\\', self.rest()).ok_or(open)?;
            match (self.bytes[self.at], self.byte(1)) {
                (b'\\', None) => return Err(open),
                (b'\\', Some(_)) | (b'\'', Some(b'\'')) => self.at += 2,
                _ => {
                    self.at += 1;
                    match self.continuation() {
                        Some(quote) => self.at = quote + 1,
                        None => return Ok(TokenKind::String),
                    }
                }
            }
        }
    }

    /// The offset of the quote that continues the string after white space with a line break;
    /// `None` if the string does not continue. Line comments count as white space here.
    fn continuation(&self) -> Option<usize> {
        let mut ahead = self.clone();
        let mut broken = false;
        loop {
            match ahead.rest() {
                [b'\'', ..] if broken => return Some(ahead.at),
                [b'-', b'-', ..] => ahead.line_comment(),
                [byte, ..] if is_space(*byte) => {
                    broken |= matches!(byte, b'\n' | b'\r');
                    ahead.at += 1;
                }
                _ => return None,
            }
        }
    }

    /// Reads a dollar-quoted string `$tag$…$tag$`, a parameter `$1`, or a lone dollar.
    pub(super) fn dollar(&mut self) -> Scan<TokenKind> {
        let start = self.at;
        self.at += 1;
        if self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.skip_while(|byte| byte.is_ascii_digit());
            return Ok(TokenKind::Numbered);
        }
        let mut ahead = self.clone();
        ahead.skip_while(|byte| begins_word(byte) || byte.is_ascii_digit());
        if ahead.peek() != Some(b'$') {
            return Ok(TokenKind::Operator);
        }
        self.at = ahead.at + 1;
        let tag = &self.bytes[start..self.at];
        let end = memmem::find(self.rest(), tag).ok_or(Unreadable {
            what: "a dollar-quoted string without its end",
            at: start,
        })?;
        self.at += end + tag.len();
        Ok(TokenKind::String)
    }
}
