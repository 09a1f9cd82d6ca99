//! Tokens of a condition text.

use crate::error::{Error, Result};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ConditionToken {
    pub(super) kind: ConditionTokenKind,
    /// The position of the token's first character, from 1.
    pub(super) position: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ConditionTokenKind {
    /// A keyword or an unquoted column name, in its own letter case.
    Word(String),
    /// A quoted column name.
    Name(String),
    /// A quoted string.
    Text(String),
    /// A number with its sign.
    Number(String),
    /// A comparison operator or punctuation.
    Symbol(&'static str),
    /// The end of the text.
    End,
}

impl ConditionTokenKind {
    /// Whether the token is this keyword, in any letter case.
    pub(super) fn is(&self, keyword: &str) -> bool {
        matches!(self, Self::Word(word) if word.eq_ignore_ascii_case(keyword))
    }
}

impl std::fmt::Display for ConditionTokenKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Word(text) | Self::Number(text) => write!(f, "`{text}`"),
            Self::Name(name) => write!(f, "the name `{name}`"),
            Self::Text(_) => f.write_str("a text"),
            Self::Symbol(symbol) => write!(f, "`{symbol}`"),
            Self::End => f.write_str("the end"),
        }
    }
}

/// The comparison operators and punctuation. If a symbol is the beginning of a longer one, the
/// longer one comes first.
const SYMBOLS: [&str; 10] = ["<>", "!=", "<=", ">=", "=", "<", ">", "(", ")", ","];

/// Splits a text into tokens. The last token is `ConditionTokenKind::End`.
pub(super) fn tokens(text: &str) -> Result<Vec<ConditionToken>> {
    let mut lexer = Lexer {
        rest: text,
        position: 1,
    };
    let mut tokens = Vec::new();
    loop {
        lexer.take_while(char::is_whitespace);
        let position = lexer.position;
        let kind = lexer.next()?;
        let last = kind == ConditionTokenKind::End;
        tokens.push(ConditionToken { kind, position });
        if last {
            return Ok(tokens);
        }
    }
}

struct Lexer<'a> {
    rest: &'a str,
    position: usize,
}

impl<'a> Lexer<'a> {
    fn next(&mut self) -> Result<ConditionTokenKind> {
        let Some(first) = self.rest.chars().next() else {
            return Ok(ConditionTokenKind::End);
        };
        if first == '\'' {
            return Ok(ConditionTokenKind::Text(self.quoted('\'')?));
        }
        if first == '"' {
            return Ok(ConditionTokenKind::Name(self.quoted('"')?));
        }
        if first.is_alphabetic() || first == '_' {
            let word = self.take_while(|c| c.is_alphanumeric() || matches!(c, '_' | '$'));
            return Ok(ConditionTokenKind::Word(word.to_owned()));
        }
        let is_fraction = first == '.' && self.rest[1..].starts_with(|c: char| c.is_ascii_digit());
        if first.is_ascii_digit() || matches!(first, '-' | '+') || is_fraction {
            return self.number();
        }
        let symbol = SYMBOLS
            .iter()
            .find(|symbol| self.rest.starts_with(**symbol));
        let symbol = symbol.ok_or_else(|| self.error(format!("`{first}` has no meaning here")))?;
        self.take(symbol.len());
        Ok(ConditionTokenKind::Symbol(symbol))
    }

    /// Reads a text in quotes; `mark` is the quote character. Two quotes in a row stand for one
    /// quote in the text.
    fn quoted(&mut self, mark: char) -> Result<String> {
        let unclosed = self.error(format!("the {mark} is never closed"));
        self.take(1);
        let mut quoted = String::new();
        loop {
            quoted.push_str(self.take_while(|c| c != mark));
            if self.rest.is_empty() {
                return Err(unclosed);
            }
            self.take(1);
            if !self.rest.starts_with(mark) {
                break;
            }
            quoted.push(mark);
            self.take(1);
        }
        if quoted.contains('\0') {
            return Err(
                self.error("the character U+0000, which PostgreSQL cannot store".to_owned())
            );
        }
        Ok(quoted)
    }

    fn number(&mut self) -> Result<ConditionTokenKind> {
        let whole = self.rest;
        let wrong = self.error("not a valid number".to_owned());
        self.take(usize::from(whole.starts_with(['-', '+'])));
        let digits = self.take_while(|c| c.is_ascii_digit()).len();
        let fraction = if self.rest.starts_with('.') {
            self.take(1);
            self.take_while(|c| c.is_ascii_digit()).len()
        } else {
            0
        };
        let mut fits = digits + fraction > 0;
        if self.rest.starts_with(['e', 'E']) {
            self.take(1);
            self.take(usize::from(self.rest.starts_with(['-', '+'])));
            fits &= !self.take_while(|c| c.is_ascii_digit()).is_empty();
        }
        fits &= !self
            .rest
            .starts_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '.'));
        if !fits {
            return Err(wrong);
        }
        Ok(ConditionTokenKind::Number(
            whole[..whole.len() - self.rest.len()].to_owned(),
        ))
    }

    fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> &'a str {
        let length = self.rest.find(|c| !wanted(c)).unwrap_or(self.rest.len());
        self.take(length)
    }

    fn take(&mut self, length: usize) -> &'a str {
        let (head, rest) = self.rest.split_at(length);
        self.position += head.chars().count();
        self.rest = rest;
        head
    }

    fn error(&self, problem: String) -> Error {
        Error::Condition {
            position: self.position,
            problem,
        }
    }
}
