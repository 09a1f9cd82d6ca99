//! Whether a statement calls anything but built-in functions that are known to be stateless.

use super::lexer::{Token, TokenKind};
use super::names;
use super::reader::Open;

const HISTORY: usize = 4;

/// Looks for calls, casts and typed literals.
#[derive(Debug, Default)]
pub(super) struct TrustReader<'a> {
    stateful: bool,
    /// Whether one of them is a call.
    calls: bool,
    /// The last tokens, in turn.
    last: [Option<Token<'a>>; HISTORY],
    count: usize,
    type_name: TypeName,
}

/// Where in the name of a cast's type the reader is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum TypeName {
    #[default]
    None,
    /// A type's name must follow.
    Expected,
    /// Behind `pg_catalog`, which a dot must follow.
    Catalog,
    /// Behind a built-in name; a dot would make it a schema.
    Complete,
}

impl<'a> TrustReader<'a> {
    /// Takes the next token; `innermost` is what encloses it.
    pub(super) fn see(&mut self, token: &Token<'a>, innermost: Option<Open>) {
        if !self.calls {
            self.follow_type(token);
            self.calls = match token.kind {
                TokenKind::OpenParen => self.calls_unknown(),
                TokenKind::Word | TokenKind::Quoted => self.calls_attribute(token),
                _ => false,
            };
            let suspicious = match token.kind {
                TokenKind::String => self.types_literal(),
                TokenKind::Word if innermost == Some(Open::Cast) && token.is("as") => {
                    self.type_name = TypeName::Expected;
                    false
                }
                TokenKind::Cast => {
                    self.type_name = TypeName::Expected;
                    false
                }
                _ => self.calls,
            };
            self.stateful |= suspicious;
        }
        self.last[self.count % HISTORY] = Some(*token);
        self.count += 1;
    }

    /// Whether nothing else was found.
    pub(super) fn calls_only_stateless(&self) -> bool {
        !self.stateful && !matches!(self.type_name, TypeName::Expected | TypeName::Catalog)
    }

    /// Whether a call was found.
    pub(super) fn calls(&self) -> bool {
        self.calls
    }

    /// The token before the current one, and those before that.
    fn last(&self, back: usize) -> Option<Token<'a>> {
        self.last[(self.count + HISTORY - back) % HISTORY]
    }

    fn follow_type(&mut self, token: &Token<'a>) {
        let (next, known) = match (self.type_name, token.kind) {
            (TypeName::None, _) => return,
            (TypeName::Expected, TokenKind::Word) if token.is("pg_catalog") => {
                (TypeName::Catalog, true)
            }
            (TypeName::Expected, TokenKind::Word) => {
                (TypeName::Complete, names::is_built_in_type(token.text))
            }
            (TypeName::Catalog, TokenKind::Dot) => (TypeName::Expected, true),
            (TypeName::Complete, kind) => (TypeName::None, kind != TokenKind::Dot),
            (TypeName::Expected | TypeName::Catalog, _) => (TypeName::None, false),
        };
        self.type_name = next;
        self.stateful |= !known;
    }

    /// Whether the parenthesis that follows belongs to the call of an unknown function.
    fn calls_unknown(&self) -> bool {
        let (Some(name), before) = (self.last(1), self.last(2)) else {
            return false;
        };
        if self.follows_target() {
            return false;
        }
        match name.kind {
            TokenKind::Word if before.is_some_and(|token| token.kind == TokenKind::Dot) => {
                !self.in_catalog() || !names::is_stateless_function(name.text)
            }
            TokenKind::Word => {
                !names_columns(before)
                    && !names::is_stateless_function(name.text)
                    && !names::is_built_in_type(name.text)
                    && !names::precedes_parenthesis(name.text)
                    && !is_clause(&name, before)
            }
            TokenKind::Quoted => !names_columns(before),
            _ => false,
        }
    }

    /// Whether the last tokens are `into name` or `into schema.name`: columns follow.
    fn follows_target(&self) -> bool {
        let is = |back: usize, what: fn(&Token<'_>) -> bool| {
            self.last(back).is_some_and(|token| what(&token))
        };
        let into = |token: &Token<'_>| token.kind == TokenKind::Word && token.is("into");
        is(2, into) || is(2, |token| token.kind == TokenKind::Dot) && is(4, into)
    }

    /// Whether this name behind a dot may call a function with what stands before the dot: of any
    /// value in the text (`(4242).pg_advisory_lock`), else where the name is that of a function
    /// that leaves something, since a relation can be a function's value.
    fn calls_attribute(&self, name: &Token<'_>) -> bool {
        let (Some(dot), Some(before)) = (self.last(1), self.last(2)) else {
            return false;
        };
        if dot.kind != TokenKind::Dot {
            return false;
        }
        let of_relation = matches!(before.kind, TokenKind::Word | TokenKind::Quoted);
        let plain = name.text.trim_matches('"');
        !of_relation || plain.contains(['"', '\\']) || names::is_stateful_attribute(plain)
    }

    /// Whether the string that follows is the literal of a type that is not built in.
    fn types_literal(&self) -> bool {
        let (Some(name), before) = (self.last(1), self.last(2)) else {
            return false;
        };
        match name.kind {
            TokenKind::Quoted => true,
            TokenKind::Word if before.is_some_and(|token| token.kind == TokenKind::Dot) => {
                !self.in_catalog() || !names::is_built_in_type(name.text)
            }
            TokenKind::Word => {
                !names::is_built_in_type(name.text) && !names::precedes_string(name.text)
            }
            _ => false,
        }
    }

    /// Whether the last three tokens are `pg_catalog.name`.
    fn in_catalog(&self) -> bool {
        self.last(3).is_some_and(|token| token.is("pg_catalog"))
    }
}

/// Whether a name behind this token is that of a column list: `as t(a, b)`, `with t(a, b)`.
fn names_columns(before: Option<Token<'_>>) -> bool {
    before.is_some_and(|token| token.is("as") || token.is("with") || token.is("recursive"))
}

/// Words that could be a function's name, but are none where they stand.
fn is_clause(word: &Token<'_>, before: Option<Token<'_>>) -> bool {
    let Some(before) = before else {
        return word.is("explain");
    };
    let behind = |keywords: &[&str]| keywords.iter().any(|keyword| before.is(keyword));
    match names::Lower::of(word.text).as_str() {
        "by" => behind(&["group", "order", "partition"]),
        "over" | "filter" => before.kind == TokenKind::CloseParen,
        "group" => behind(&["within"]),
        "sets" => behind(&["grouping"]),
        "rollup" | "cube" => behind(&["by"]),
        "materialized" => behind(&["as", "not"]),
        "from" => behind(&["rows"]),
        "join" => {
            !names::wants_operand(before.text)
                && matches!(
                    before.kind,
                    TokenKind::Word | TokenKind::Quoted | TokenKind::CloseParen
                )
        }
        "zone" => behind(&["time"]),
        _ => false,
    }
}
