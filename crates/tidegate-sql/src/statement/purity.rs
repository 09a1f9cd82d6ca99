//! Determines whether a statement may call a user-defined function, or a built-in function with
//! side effects. Calls of claims functions are recorded separately and count as neither.

use super::builtins;
use super::lexer::{SqlToken, TokenKind};

const HISTORY: usize = 4;

/// The kind of an open parenthesis or bracket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bracket {
    Paren,
    /// The parenthesis after `cast`.
    Cast,
    Square,
}

/// Searches the tokens of a statement for calls, casts and typed literals.
#[derive(Debug, Default)]
pub(super) struct PurityReader<'a> {
    stateful: bool,
    /// Whether a call was found that may call something other than a built-in function without side
    /// effects.
    calls: bool,
    /// Whether a call of a claims function, such as `tidegate.claims()`, was found.
    calls_claims: bool,
    /// The most recent tokens, as a ring buffer.
    last: [Option<SqlToken<'a>>; HISTORY],
    count: usize,
    type_name: TypeName,
}

/// How much of the type name in a cast was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum TypeName {
    /// No type name is being read.
    #[default]
    None,
    /// The next token must be a type name.
    Expected,
    /// The most recent token was `pg_catalog`, so a dot must follow.
    Catalog,
    /// The most recent token was a word that names a type, unless a dot follows. With a dot, the
    /// word is the name of a schema.
    Complete,
}

impl<'a> PurityReader<'a> {
    /// Processes the next token; `innermost` is the parenthesis or bracket that encloses it.
    pub(super) fn process(&mut self, token: &SqlToken<'a>, innermost: Option<Bracket>) {
        if !self.calls {
            self.follow_type(token);
            self.calls = match token.kind {
                TokenKind::OpenParen if self.follows_claims() => {
                    self.calls_claims = true;
                    false
                }
                TokenKind::OpenParen => self.calls_unknown(),
                TokenKind::Word | TokenKind::Quoted => self.calls_attribute(token),
                _ => false,
            };
            let may_be_stateful = match token.kind {
                TokenKind::String => self.types_literal(),
                TokenKind::Word if innermost == Some(Bracket::Cast) && token.is("as") => {
                    self.type_name = TypeName::Expected;
                    false
                }
                TokenKind::Cast => {
                    self.type_name = TypeName::Expected;
                    false
                }
                _ => self.calls,
            };
            self.stateful |= may_be_stateful;
        }
        self.last[self.count % HISTORY] = Some(*token);
        self.count += 1;
    }

    /// Whether all calls, casts and typed literals that were found use only built-in functions and
    /// types without side effects.
    pub(super) fn calls_only_stateless(&self) -> bool {
        !self.stateful && !matches!(self.type_name, TypeName::Expected | TypeName::Catalog)
    }

    /// Whether a call was found that may call something other than a built-in function without side
    /// effects.
    pub(super) fn calls(&self) -> bool {
        self.calls
    }

    /// Whether a call of a claims function, such as `tidegate.claims()`, was found.
    pub(super) fn calls_claims(&self) -> bool {
        self.calls_claims
    }

    /// An earlier token, counted backwards from 1 for the most recent token; `None` before the
    /// first token.
    fn last(&self, back: usize) -> Option<SqlToken<'a>> {
        self.last[(self.count + HISTORY - back) % HISTORY]
    }

    fn follow_type(&mut self, token: &SqlToken<'a>) {
        let (next, known) = match (self.type_name, token.kind) {
            (TypeName::None, _) => return,
            (TypeName::Expected, TokenKind::Word) if token.is("pg_catalog") => {
                (TypeName::Catalog, true)
            }
            (TypeName::Expected, TokenKind::Word) => {
                (TypeName::Complete, builtins::is_built_in_type(token.text))
            }
            (TypeName::Catalog, TokenKind::Dot) => (TypeName::Expected, true),
            (TypeName::Complete, kind) => (TypeName::None, kind != TokenKind::Dot),
            (TypeName::Expected | TypeName::Catalog, _) => (TypeName::None, false),
        };
        self.type_name = next;
        self.stateful |= !known;
    }

    /// Whether the parenthesis that follows the most recent token begins a call of a function that
    /// may not be built in or may have side effects.
    fn calls_unknown(&self) -> bool {
        let (Some(name), before) = (self.last(1), self.last(2)) else {
            return false;
        };
        if self.follows_target() {
            return false;
        }
        match name.kind {
            TokenKind::Word if before.is_some_and(|token| token.kind == TokenKind::Dot) => {
                !self.in_catalog() || !builtins::is_stateless_function(name.text)
            }
            TokenKind::Word => {
                !names_columns(before)
                    && !builtins::is_stateless_function(name.text)
                    && !builtins::is_built_in_type(name.text)
                    && !builtins::precedes_parenthesis(name.text)
                    && !is_clause(&name, before)
            }
            TokenKind::Quoted => !names_columns(before),
            _ => false,
        }
    }

    /// Whether the most recent tokens are `into name` or `into schema.name`, so that a column list
    /// follows.
    fn follows_target(&self) -> bool {
        let is = |back: usize, what: fn(&SqlToken<'_>) -> bool| {
            self.last(back).is_some_and(|token| what(&token))
        };
        let into = |token: &SqlToken<'_>| token.kind == TokenKind::Word && token.is("into");
        is(2, into) || is(2, |token| token.kind == TokenKind::Dot) && is(4, into)
    }

    /// Whether `name` follows a dot and may call a function. The argument of the function would be
    /// the value before the dot. If this value is an expression, as in `(4242).pg_advisory_lock`,
    /// the result is true. An identifier before the dot is usually a relation, and `name` is then
    /// usually a column. In this case, the result is true only if a function with side effects may
    /// have this name, because that function could be called with a row of the relation.
    fn calls_attribute(&self, name: &SqlToken<'_>) -> bool {
        let (Some(dot), Some(before)) = (self.last(1), self.last(2)) else {
            return false;
        };
        if dot.kind != TokenKind::Dot {
            return false;
        }
        let of_relation = matches!(before.kind, TokenKind::Word | TokenKind::Quoted);
        let plain = name.text.trim_matches('"');
        !of_relation || plain.contains(['"', '\\']) || builtins::is_stateful_attribute(plain)
    }

    /// Whether the next string may be a literal of a type that is not built in.
    fn types_literal(&self) -> bool {
        let (Some(name), before) = (self.last(1), self.last(2)) else {
            return false;
        };
        match name.kind {
            TokenKind::Quoted => true,
            TokenKind::Word if before.is_some_and(|token| token.kind == TokenKind::Dot) => {
                !self.in_catalog() || !builtins::is_built_in_type(name.text)
            }
            TokenKind::Word => {
                !builtins::is_built_in_type(name.text) && !builtins::precedes_string(name.text)
            }
            _ => false,
        }
    }

    /// Whether the most recent tokens are the name of a claims function, such as `tidegate.claims`,
    /// with no database name before it.
    fn follows_claims(&self) -> bool {
        let (Some(name), Some(dot), Some(schema)) = (self.last(1), self.last(2), self.last(3))
        else {
            return false;
        };
        let is_word = |token: &SqlToken<'_>| token.kind == TokenKind::Word;
        is_word(&name)
            && ["user_id", "claims", "claim"]
                .iter()
                .any(|known| name.is(known))
            && dot.kind == TokenKind::Dot
            && is_word(&schema)
            && schema.is("tidegate")
            && self
                .last(4)
                .is_none_or(|token| token.kind != TokenKind::Dot)
    }

    /// Whether the third most recent token is `pg_catalog`. The calling functions have checked that
    /// the two tokens after it are a dot and a word.
    fn in_catalog(&self) -> bool {
        self.last(3).is_some_and(|token| token.is("pg_catalog"))
    }
}

/// Whether parentheses after `before` and a name contain columns, as in `with t(a, b)`, and not
/// arguments.
fn names_columns(before: Option<SqlToken<'_>>) -> bool {
    before.is_some_and(|token| token.is("as") || token.is("with") || token.is("recursive"))
}

/// Whether a word that could name a function is a keyword in this position.
fn is_clause(word: &SqlToken<'_>, before: Option<SqlToken<'_>>) -> bool {
    let Some(before) = before else {
        return word.is("explain");
    };
    let follows = |keywords: &[&str]| keywords.iter().any(|keyword| before.is(keyword));
    match builtins::Lower::of(word.text).as_str() {
        "by" => follows(&["group", "order", "partition"]),
        "over" | "filter" => before.kind == TokenKind::CloseParen,
        "group" => follows(&["within"]),
        "sets" => follows(&["grouping"]),
        "rollup" | "cube" => follows(&["by"]),
        "materialized" => follows(&["as", "not"]),
        "from" => follows(&["rows"]),
        "join" => {
            !builtins::needs_operand(before.text)
                && matches!(
                    before.kind,
                    TokenKind::Word | TokenKind::Quoted | TokenKind::CloseParen
                )
        }
        "zone" => follows(&["time"]),
        _ => false,
    }
}
