//! From the caller's text to a statement, in one pass over its tokens.

use std::collections::HashMap;
use std::fmt::Write;

use super::kind::KindReader;
use super::lexer::{Lexer, Token, TokenKind, Unreadable, begins_word, continues_word};
use super::names;
use super::trust::TrustReader;
use super::{Kind, Statement, Trust};
use crate::error::InputError;

/// PostgreSQL counts a statement's parameters with 16 bits.
const MAX_PLACEHOLDERS: usize = 65_535;

/// From this many names on they are looked up by hash.
const MANY_NAMES: usize = 16;

/// What an open parenthesis or bracket belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Open {
    Paren,
    /// The parenthesis of `cast(`.
    Cast,
    Bracket,
}

/// Reads one statement; see [`Statement::parse`].
pub(super) fn read(q: &str) -> Result<Statement, InputError> {
    let mut reader = Reader::new(q);
    reader.run().map_err(|failure| failure.in_text(q))?;
    reader.finish()
}

/// Why reading stopped; offsets are in bytes.
enum Failure {
    Unreadable(Unreadable),
    Several { semicolon: usize },
}

impl From<Unreadable> for Failure {
    fn from(unreadable: Unreadable) -> Self {
        Self::Unreadable(unreadable)
    }
}

impl Failure {
    fn in_text(self, q: &str) -> InputError {
        let position = |at: usize| q[..at].chars().count() + 1;
        match self {
            Self::Unreadable(Unreadable { what, at }) => InputError::UnreadableStatement {
                what,
                position: position(at),
            },
            Self::Several { semicolon } => InputError::SeveralStatements {
                position: position(semicolon),
            },
        }
    }
}

struct Reader<'a> {
    q: &'a str,
    lexer: Lexer<'a>,
    previous: Option<Token<'a>>,
    /// Whether anything but a semicolon has been seen.
    begun: bool,
    nesting: Vec<Open>,
    /// How many `END`s an SQL-standard function body still needs.
    body: usize,
    /// The semicolon that ends the statement.
    end: Option<usize>,
    rewrite: Rewrite<'a>,
    kind: KindReader<'a>,
    trust: TrustReader<'a>,
}

impl<'a> Reader<'a> {
    fn new(q: &'a str) -> Self {
        Self {
            q,
            lexer: Lexer::new(q),
            previous: None,
            begun: false,
            nesting: Vec::new(),
            body: 0,
            end: None,
            rewrite: Rewrite::new(q),
            kind: KindReader::default(),
            trust: TrustReader::default(),
        }
    }

    fn run(&mut self) -> Result<(), Failure> {
        if let Some(at) = memchr::memchr(0, self.q.as_bytes()) {
            return Err(Unreadable {
                what: "the character U+0000",
                at,
            }
            .into());
        }
        while let Some(mut token) = self.lexer.next()? {
            if let Some(semicolon) = self.end {
                return Err(Failure::Several { semicolon });
            }
            self.take(&mut token)?;
            self.begun |= token.kind != TokenKind::Semicolon;
            self.kind
                .see(&token, self.previous.as_ref(), self.nesting.len());
            self.trust.see(&token, self.nesting.last().copied());
            self.previous = Some(token);
        }
        Ok(())
    }

    fn take(&mut self, token: &mut Token<'a>) -> Result<(), Failure> {
        match token.kind {
            TokenKind::Colon if self.placeholder_begins() => {
                let name = self.lexer.name()?;
                self.rewrite.placeholder(token.start, name)?;
                token.kind = TokenKind::Placeholder;
            }
            TokenKind::EncodedPlus => self.rewrite.replace(token.start, token.text.len(), "+"),
            TokenKind::Numbered => {
                let what = "a numbered parameter (write a named placeholder such as `:name`)";
                return Err(Unreadable {
                    what,
                    at: token.start,
                }
                .into());
            }
            TokenKind::OpenParen if self.previous.is_some_and(|word| word.is("cast")) => {
                self.nesting.push(Open::Cast);
            }
            TokenKind::OpenParen => self.nesting.push(Open::Paren),
            TokenKind::OpenBracket => self.nesting.push(Open::Bracket),
            TokenKind::CloseParen | TokenKind::CloseBracket => {
                self.nesting.pop();
            }
            TokenKind::Semicolon if self.nesting.is_empty() && self.body == 0 => {
                self.end = Some(token.start);
            }
            TokenKind::Word => self.follow_body(token),
            _ => {}
        }
        Ok(())
    }

    /// A colon in front of a name; but inside brackets a colon behind an operand is a slice.
    fn placeholder_begins(&self) -> bool {
        let name = self
            .lexer
            .peek()
            .is_some_and(|byte| begins_word(byte) && byte.is_ascii());
        let slice = self.nesting.last() == Some(&Open::Bracket)
            && self.previous.as_ref().is_some_and(is_operand);
        name && !slice
    }

    /// `BEGIN ATOMIC … END` of `CREATE FUNCTION` and `CREATE PROCEDURE` holds semicolons.
    fn follow_body(&mut self, token: &Token<'a>) {
        let Some(previous) = self.previous.as_ref() else {
            return;
        };
        if self.body == 0 {
            let opens = token.is("atomic") && previous.is("begin") && self.kind.creates();
            self.body = usize::from(opens);
        } else if previous.is("as") || previous.kind == TokenKind::Dot {
            // A label or a column with that name.
        } else if token.is("case") {
            self.body += 1;
        } else if token.is("end") {
            self.body -= 1;
        }
    }

    fn finish(self) -> Result<Statement, InputError> {
        if !self.begun {
            return Err(InputError::EmptyStatement);
        }
        let kind = self.kind.finish()?;
        let trust = match kind {
            Kind::Read if self.trust.calls_only_stateless() => Trust::Stateless,
            _ => Trust::Stateful,
        };
        Ok(self.rewrite.finish(kind, trust))
    }
}

fn is_operand(token: &Token<'_>) -> bool {
    match token.kind {
        TokenKind::Word => !names::wants_operand(token.text),
        TokenKind::Quoted
        | TokenKind::Number
        | TokenKind::String
        | TokenKind::Placeholder
        | TokenKind::CloseParen
        | TokenKind::CloseBracket => true,
        _ => false,
    }
}

/// The text for PostgreSQL while it grows.
struct Rewrite<'a> {
    q: &'a str,
    /// Bytes of `q` that `text` covers.
    copied: usize,
    text: String,
    shifts: Vec<(u32, i32)>,
    ahead: i32,
    names: Vec<&'a str>,
    index: HashMap<&'a str, usize>,
}

impl<'a> Rewrite<'a> {
    fn new(q: &'a str) -> Self {
        Self {
            q,
            copied: 0,
            text: String::new(),
            shifts: Vec::new(),
            ahead: 0,
            names: Vec::new(),
            index: HashMap::new(),
        }
    }

    fn placeholder(&mut self, start: usize, name: &'a str) -> Result<(), Unreadable> {
        let number = self.number(name);
        if number > MAX_PLACEHOLDERS {
            return Err(Unreadable {
                what: "one placeholder more than 65,535",
                at: start,
            });
        }
        self.copy_to(start);
        if self
            .text
            .as_bytes()
            .last()
            .is_some_and(|byte| continues_word(*byte))
        {
            // `a:b` must not become the identifier `a$1`.
            self.text.push(' ');
            self.shift(-1);
        }
        let before = self.text.len();
        let _ = write!(self.text, "${number}");
        let written = self.text.len() - before;
        self.skip(1 + name.len(), written);
        Ok(())
    }

    /// The number of a name, from 1.
    fn number(&mut self, name: &'a str) -> usize {
        if self.names.len() < MANY_NAMES {
            if let Some(index) = self.names.iter().position(|known| *known == name) {
                return index + 1;
            }
            self.names.push(name);
            return self.names.len();
        }
        if self.index.is_empty() {
            self.index.extend(
                self.names
                    .iter()
                    .enumerate()
                    .map(|(index, name)| (*name, index + 1)),
            );
        }
        let next = self.names.len() + 1;
        let number = *self.index.entry(name).or_insert(next);
        if number == next {
            self.names.push(name);
        }
        number
    }

    fn replace(&mut self, start: usize, length: usize, by: &str) {
        self.copy_to(start);
        self.text.push_str(by);
        self.skip(length, by.len());
    }

    fn copy_to(&mut self, end: usize) {
        if self.text.is_empty() {
            self.text.reserve(self.q.len() + 16);
        }
        self.text.push_str(&self.q[self.copied..end]);
        self.copied = end;
    }

    /// Everything that is replaced or inserted is ASCII, so that bytes are characters here.
    fn skip(&mut self, length: usize, written: usize) {
        self.copied += length;
        let length = i32::try_from(length).unwrap_or(i32::MAX);
        let written = i32::try_from(written).unwrap_or(i32::MAX);
        self.shift(length - written);
    }

    fn shift(&mut self, by: i32) {
        if by != 0 {
            self.ahead = self.ahead.saturating_add(by);
            self.shifts.push((
                u32::try_from(self.text.len()).unwrap_or(u32::MAX),
                self.ahead,
            ));
        }
    }

    fn finish(mut self, kind: Kind, trust: Trust) -> Statement {
        self.copy_to(self.q.len());
        let placeholders = self.names.into_iter().map(str::to_owned).collect();
        Statement {
            text: self.text,
            placeholders,
            shifts: self.shifts,
            kind,
            trust,
        }
    }
}
