//! Parses the caller's text into a statement, in one pass over its tokens.

use super::builtins;
use super::kind::KindReader;
use super::lexer::{Lexer, SqlToken, TokenKind, Unreadable, begins_word};
use super::purity::{Bracket, PurityReader};
use super::rewrite::Rewrite;
use super::{Kind, Purity, Statement};
use crate::error::InputError;

/// Parses one statement; see [`Statement::parse`].
pub(super) fn read(q: &str) -> Result<Statement, InputError> {
    let mut reader = StatementReader::new(q);
    reader.run().map_err(|failure| failure.in_text(q))?;
    reader.finish()
}

/// The reason why parsing stopped. Offsets are in bytes.
enum ParseFailure {
    Unreadable(Unreadable),
    Several { semicolon: usize },
}

impl From<Unreadable> for ParseFailure {
    fn from(unreadable: Unreadable) -> Self {
        Self::Unreadable(unreadable)
    }
}

impl ParseFailure {
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

struct StatementReader<'a> {
    q: &'a str,
    lexer: Lexer<'a>,
    previous: Option<SqlToken<'a>>,
    /// Whether a token other than a semicolon was read.
    begun: bool,
    nesting: Vec<Bracket>,
    /// The number of `END` keywords that are still needed to end the SQL-standard function body; 0
    /// outside of such a body.
    body: usize,
    /// The byte offset of the semicolon that ends the statement; `None` until it is read.
    end: Option<usize>,
    rewrite: Rewrite<'a>,
    kind: KindReader<'a>,
    purity: PurityReader<'a>,
}

impl<'a> StatementReader<'a> {
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
            purity: PurityReader::default(),
        }
    }

    fn run(&mut self) -> Result<(), ParseFailure> {
        if let Some(at) = memchr::memchr(0, self.q.as_bytes()) {
            return Err(Unreadable {
                what: "the character U+0000",
                at,
            }
            .into());
        }
        while let Some(mut token) = self.lexer.next()? {
            if let Some(semicolon) = self.end {
                return Err(ParseFailure::Several { semicolon });
            }
            self.take(&mut token)?;
            self.begun |= token.kind != TokenKind::Semicolon;
            self.kind.process(&token, self.previous.as_ref());
            self.purity.process(&token, self.nesting.last().copied());
            self.previous = Some(token);
        }
        Ok(())
    }

    fn take(&mut self, token: &mut SqlToken<'a>) -> Result<(), ParseFailure> {
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
                self.nesting.push(Bracket::Cast);
            }
            TokenKind::OpenParen => self.nesting.push(Bracket::Paren),
            TokenKind::OpenBracket => self.nesting.push(Bracket::Square),
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

    /// Whether a colon begins a placeholder: a name follows the colon, and the colon does not
    /// separate the bounds of a slice.
    fn placeholder_begins(&self) -> bool {
        let name = self
            .lexer
            .peek()
            .is_some_and(|byte| begins_word(byte) && byte.is_ascii());
        let slice = self.nesting.last() == Some(&Bracket::Square)
            && self.previous.as_ref().is_some_and(is_operand);
        name && !slice
    }

    /// Tracks the body `BEGIN ATOMIC … END` of `CREATE FUNCTION` and `CREATE PROCEDURE`. The
    /// semicolons in such a body do not end the statement.
    fn follow_body(&mut self, token: &SqlToken<'a>) {
        let Some(previous) = self.previous.as_ref() else {
            return;
        };
        if self.body == 0 {
            let opens = token.is("atomic") && previous.is("begin") && self.kind.creates();
            self.body = usize::from(opens);
        } else if previous.is("as") || previous.kind == TokenKind::Dot {
            // After `AS` or a dot, `case` and `end` are names and not keywords.
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
        let plain = self.purity.calls_only_stateless();
        let purity = match kind {
            Kind::Read if plain => Purity::Stateless,
            _ => Purity::Stateful,
        };
        let mut statement = self.rewrite.finish(kind, purity);
        statement.plain = plain && !self.purity.calls_claims();
        statement.refused_for_shared = self.kind.refused_for_shared();
        statement.names_login = names_login(&statement.text);
        statement.calls_claims = self.purity.calls_claims();
        statement.calls = kind == Kind::Read && self.purity.calls();
        Ok(statement)
    }
}

/// See [`Statement::names_login`]. Any text with `U&"…"` counts, because Unicode escapes can spell
/// one of the names.
fn names_login(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    let has_name = |name: &str| {
        text.match_indices(name).any(|(at, _)| {
            !text[..at].ends_with(is_name) && !text[at + name.len()..].starts_with(is_name)
        })
    };
    text.contains("u&\"")
        || ["session_user", "system_user", "session_authorization"]
            .iter()
            .any(|name| has_name(name))
}

fn is_operand(token: &SqlToken<'_>) -> bool {
    match token.kind {
        TokenKind::Word => !builtins::needs_operand(token.text),
        TokenKind::Quoted
        | TokenKind::Number
        | TokenKind::String
        | TokenKind::Placeholder
        | TokenKind::CloseParen
        | TokenKind::CloseBracket => true,
        _ => false,
    }
}
