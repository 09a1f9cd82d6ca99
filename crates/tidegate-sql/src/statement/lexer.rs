//! Splits SQL into tokens (PostgreSQL, "Lexical Structure", with `standard_conforming_strings` on).
//! The lexer works on bytes.
//!
//! It distinguishes only the tokens that the other modules need. All other characters are
//! operators, which PostgreSQL checks.

use memchr::memchr2;

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// A keyword or an unquoted identifier.
    Word,
    /// A quoted identifier: `"…"` or `U&"…"`.
    Quoted,
    Number,
    /// A string: `'…'` with any prefix, or dollar-quoted.
    String,
    /// A parameter that the caller numbered, such as `$1`.
    Numbered,
    /// A placeholder. The lexer never returns it; `StatementReader` sets it for a colon before a
    /// name.
    Placeholder,
    Operator,
    /// A percent-encoded plus, `%2B`.
    EncodedPlus,
    Colon,
    /// The operator `::`.
    Cast,
    /// The operator `:=`.
    Assign,
    OpenParen,
    CloseParen,
    OpenBracket,
    CloseBracket,
    Comma,
    Dot,
    Semicolon,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct SqlToken<'a> {
    pub(super) kind: TokenKind,
    pub(super) text: &'a str,
    /// The offset of the token in bytes.
    pub(super) start: usize,
}

impl SqlToken<'_> {
    /// Whether the token is this keyword, given in lower case.
    pub(super) fn is(&self, keyword: &str) -> bool {
        self.kind == TokenKind::Word && self.text.eq_ignore_ascii_case(keyword)
    }
}

/// The reason why the text cannot be read, and the byte offset of the problem.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unreadable {
    pub(super) what: &'static str,
    pub(super) at: usize,
}

pub(super) type Scan<T> = Result<T, Unreadable>;

/// An iterator over the tokens of a text.
#[derive(Clone, Debug)]
pub(super) struct Lexer<'a> {
    text: &'a str,
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
    /// The byte offset of the end of a run of operator characters: the run in which the most recent
    /// operator or comment began.
    run_ends: usize,
    /// The number of bytes that PostgreSQL's lexer will read in runs of operator characters, for
    /// the operators and comments found so far. A byte counts each time that PostgreSQL will read
    /// it.
    reread: usize,
}

/// The limit of `Lexer::reread`, in bytes. For each operator and comment that begins in a run of
/// operator characters, PostgreSQL reads the run to its end. PostgreSQL cannot be cancelled while
/// it reads a run, and for a mebibyte of `+` it would take minutes.
const MAX_REREAD: usize = 64 << 20;

/// A percent-encoded plus, which PostgreSQL gets as `+`.
const ENCODED_PLUS: &[u8] = b"%2B";

const BEGINS_WORD: u8 = 1;
const CONTINUES_WORD: u8 = 2;
const OPERATOR: u8 = 4;
const SPACE: u8 = 8;

/// The class of each byte. A table is faster than comparisons.
const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut index = 0;
    while index < classes.len() {
        classes[index] = match index.to_le_bytes()[0] {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | 0x80.. => BEGINS_WORD | CONTINUES_WORD,
            b'0'..=b'9' | b'$' => CONTINUES_WORD,
            b'~' | b'!' | b'@' | b'#' | b'^' | b'&' | b'|' | b'`' | b'?' | b'+' | b'-' | b'*'
            | b'/' | b'%' | b'<' | b'>' | b'=' => OPERATOR,
            b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c => SPACE,
            _ => 0,
        };
        index += 1;
    }
    classes
};

fn is(byte: u8, class: u8) -> bool {
    CLASSES[usize::from(byte)] & class != 0
}

/// Whether the byte can begin an identifier. Bytes beyond ASCII count as letters.
pub(super) fn begins_word(byte: u8) -> bool {
    is(byte, BEGINS_WORD)
}

/// Whether the byte can continue an identifier.
pub(super) fn continues_word(byte: u8) -> bool {
    is(byte, CONTINUES_WORD)
}

fn is_operator(byte: u8) -> bool {
    is(byte, OPERATOR)
}

/// The length in bytes of the run of operator characters at the start of `text`. An encoded plus is
/// part of the run, because PostgreSQL gets it as `+`.
fn run(text: &[u8]) -> usize {
    let mut length = 0;
    while let Some(&byte) = text.get(length).filter(|byte| is_operator(**byte)) {
        let encoded = byte == b'%' && text[length..].starts_with(ENCODED_PLUS);
        length += if encoded { ENCODED_PLUS.len() } else { 1 };
    }
    length
}

pub(super) fn is_space(byte: u8) -> bool {
    is(byte, SPACE)
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            text,
            bytes: text.as_bytes(),
            at: 0,
            run_ends: 0,
            reread: 0,
        }
    }

    /// The byte after the most recent token; `None` at the end of the text.
    pub(super) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// The next token; `None` at the end of the text.
    pub(super) fn next(&mut self) -> Scan<Option<SqlToken<'a>>> {
        self.skip_space_and_comments()?;
        let start = self.at;
        let Some(byte) = self.peek() else {
            return Ok(None);
        };
        let kind = match byte {
            _ if begins_word(byte) => self.word()?,
            b'0'..=b'9' => self.number()?,
            b'.' if self.byte(1).is_some_and(|next| next.is_ascii_digit()) => self.number()?,
            b'\'' => self.string(start)?,
            b'"' => self.quoted(start)?,
            b'$' => self.dollar()?,
            b':' => self.colon(),
            _ if is_operator(byte) => self.operator()?,
            _ => self.single(byte),
        };
        Ok(Some(SqlToken {
            kind,
            text: &self.text[start..self.at],
            start,
        }))
    }

    /// Reads the name of a placeholder. The calling function has checked that a name begins here.
    pub(super) fn name(&mut self) -> Scan<&'a str> {
        let start = self.at;
        self.skip_while(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        match self.peek() {
            Some(byte) if continues_word(byte) => Err(Unreadable {
                what: "a placeholder's name with a character other than letters, digits and `_`",
                at: self.at,
            }),
            _ => Ok(&self.text[start..self.at]),
        }
    }

    pub(super) fn byte(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    pub(super) fn skip_while(&mut self, wanted: impl Fn(u8) -> bool) {
        while self.peek().is_some_and(&wanted) {
            self.at += 1;
        }
    }

    fn skip_space_and_comments(&mut self) -> Scan<()> {
        loop {
            self.skip_while(is_space);
            match self.rest() {
                [b'-', b'-', ..] => self.line_comment(),
                [b'/', b'*', ..] => self.block_comment()?,
                _ => return Ok(()),
            }
        }
    }

    pub(super) fn line_comment(&mut self) {
        self.at = memchr2(b'\n', b'\r', self.rest()).map_or(self.bytes.len(), |end| self.at + end);
    }

    /// Adds to `reread` the bytes that PostgreSQL reads for the operators and comments that begin
    /// here. `beginnings` is the number of these operators and comments. For each of them,
    /// PostgreSQL reads the rest of the run. An encoded plus counts as three bytes, although
    /// PostgreSQL gets one byte. So `reread` may be too high, but never too low.
    fn count_reread(&mut self, beginnings: usize) -> Scan<()> {
        if self.at >= self.run_ends {
            self.run_ends = self.at + run(self.rest());
        }
        let run = (self.run_ends - self.at).saturating_mul(beginnings);
        self.reread = self.reread.saturating_add(run);
        if self.reread <= MAX_REREAD {
            return Ok(());
        }
        Err(Unreadable {
            what: "operators and comments without end, with no space between them",
            at: self.at,
        })
    }

    /// Skips a comment `/* … */`, which can be nested.
    fn block_comment(&mut self) -> Scan<()> {
        let start = self.at;
        let mut depth = 0_usize;
        loop {
            let Some(offset) = memchr2(b'/', b'*', self.rest()) else {
                return Err(Unreadable {
                    what: "a comment without its end",
                    at: start,
                });
            };
            self.at += offset;
            match self.rest() {
                [b'/', b'*', ..] => {
                    self.count_reread(1)?;
                    depth += 1;
                    self.at += 2;
                }
                [b'*', b'/', ..] => {
                    depth -= 1;
                    self.at += 2;
                    if depth == 0 {
                        return Ok(());
                    }
                }
                _ => self.at += 1,
            }
        }
    }

    /// Reads a word. If the word is the prefix of a string or quoted identifier, reads the whole
    /// string or identifier.
    fn word(&mut self) -> Scan<TokenKind> {
        let start = self.at;
        match (self.bytes[start], self.byte(1), self.byte(2)) {
            (b'e' | b'E', Some(b'\''), _) => {
                self.at += 1;
                return self.escape_string(start);
            }
            (b'b' | b'B' | b'x' | b'X' | b'n' | b'N', Some(b'\''), _) => {
                self.at += 1;
                return self.string(start);
            }
            (b'u' | b'U', Some(b'&'), Some(b'\'')) => {
                self.at += 2;
                return self.string(start);
            }
            (b'u' | b'U', Some(b'&'), Some(b'"')) => {
                self.at += 2;
                return self.quoted(start);
            }
            _ => {}
        }
        self.skip_while(continues_word);
        Ok(TokenKind::Word)
    }

    /// Reads a number. PostgreSQL 13 and 14 read `_` after a digit as the start of a name.
    /// PostgreSQL 15 rejects it. PostgreSQL 16 and later read it as part of the number.
    ///
    /// A number is rejected if `$` directly follows it. A number with `_` is also rejected if a
    /// name directly follows it. In these cases, the versions could split the rest of the text into
    /// different tokens.
    fn number(&mut self) -> Scan<TokenKind> {
        let start = self.at;
        self.skip_while(|byte| byte.is_ascii_digit() || byte == b'_');
        if self.peek() == Some(b'.') && self.byte(1) != Some(b'.') {
            self.at += 1;
            self.skip_while(|byte| byte.is_ascii_digit() || byte == b'_');
        }
        let sign = usize::from(matches!(self.byte(1), Some(b'+' | b'-')));
        if matches!(self.peek(), Some(b'e' | b'E'))
            && self
                .byte(1 + sign)
                .is_some_and(|byte| byte.is_ascii_digit())
        {
            self.at += 1 + sign;
            self.skip_while(|byte| byte.is_ascii_digit() || byte == b'_');
        }
        let grouped = self.bytes[start..self.at].contains(&b'_');
        let joined = |byte: u8| byte == b'$' || (grouped && continues_word(byte));
        if self.peek().is_some_and(joined) {
            return Err(Unreadable {
                what: "a number that something directly follows (write a space between them)",
                at: self.at,
            });
        }
        Ok(TokenKind::Number)
    }

    fn colon(&mut self) -> TokenKind {
        let kind = match self.byte(1) {
            Some(b':') => TokenKind::Cast,
            Some(b'=') => TokenKind::Assign,
            _ => TokenKind::Colon,
        };
        self.at += if kind == TokenKind::Colon { 1 } else { 2 };
        kind
    }

    /// Reads a run of operator characters, up to a comment or an encoded plus.
    fn operator(&mut self) -> Scan<TokenKind> {
        if self.rest().starts_with(ENCODED_PLUS) {
            self.count_reread(1)?;
            self.at += ENCODED_PLUS.len();
            return Ok(TokenKind::EncodedPlus);
        }
        let start = self.at;
        self.at += 1;
        while self.peek().is_some_and(is_operator) {
            let rest = self.rest();
            if rest.starts_with(b"--") || rest.starts_with(b"/*") || rest.starts_with(ENCODED_PLUS)
            {
                break;
            }
            self.at += 1;
        }
        // PostgreSQL reads `+++` as three operators, so each of them counts.
        let end = std::mem::replace(&mut self.at, start);
        self.count_reread(end - start)?;
        self.at = end;
        Ok(TokenKind::Operator)
    }

    fn single(&mut self, byte: u8) -> TokenKind {
        self.at += 1;
        match byte {
            b'(' => TokenKind::OpenParen,
            b')' => TokenKind::CloseParen,
            b'[' => TokenKind::OpenBracket,
            b']' => TokenKind::CloseBracket,
            b',' => TokenKind::Comma,
            b'.' => TokenKind::Dot,
            b';' => TokenKind::Semicolon,
            _ => TokenKind::Operator,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_readable(text: &str) -> bool {
        let mut lexer = Lexer::new(text);
        loop {
            match lexer.next() {
                Ok(Some(_)) => {}
                Ok(None) => return true,
                Err(unreadable) => {
                    assert!(unreadable.what.contains("no space"), "{unreadable:?}");
                    return false;
                }
            }
        }
    }

    #[test]
    fn what_postgresql_would_read_again_and_again_is_refused() {
        let nested = format!("{}{}", "/*".repeat(10_000), "*/".repeat(10_000));
        for text in [
            "+".repeat(1 << 20),
            "/**/".repeat(1 << 18),
            "+/**/".repeat(1 << 17),
            nested,
            "%2B".repeat(349_000),
            "+%2B".repeat(1 << 18),
            "%2B/**/".repeat(149_000),
        ] {
            assert!(!is_readable(&text), "{}", &text[..8]);
            // PostgreSQL reads a string only once, so a long one is allowed.
            assert!(is_readable(&format!("'{text}'")));
        }
    }

    #[test]
    fn a_mebibyte_of_operators_and_comments_as_people_write_them_is_read() {
        for part in [
            "1+1-1<>2->>3@>4 ",
            "a||b||",
            "/**/ ",
            "/* a /* b */ c */\n",
            "- - +",
            "1%2B1 - %2B%2B2",
            "\n/*******************************************************************************/\n",
            "\n------------------------------------------------------------------------------\n",
        ] {
            assert!(is_readable(&part.repeat((1 << 20) / part.len())), "{part}");
        }
    }
}
