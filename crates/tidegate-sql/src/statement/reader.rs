//! From the caller's text to a statement, in one pass over its tokens.

use super::kind::KindReader;
use super::lexer::{Lexer, Token, TokenKind, Unreadable, begins_word};
use super::names;
use super::rewrite::Rewrite;
use super::trust::TrustReader;
use super::{Kind, Statement, Trust};
use crate::error::InputError;

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
            self.kind.see(&token, self.previous.as_ref());
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
        let plain = self.trust.calls_only_stateless();
        let trust = match kind {
            Kind::Read if plain => Trust::Stateless,
            _ => Trust::Stateful,
        };
        let mut statement = self.rewrite.finish(kind, trust);
        statement.plain = plain;
        statement.refused_for_shared = self.kind.refused_for_shared();
        statement.calls = kind == Kind::Read && self.trust.calls();
        Ok(statement)
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
