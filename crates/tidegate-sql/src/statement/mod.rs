//! Statements as text with named placeholders.

mod bound;
mod escaped;
mod kind;
mod lexer;
mod names;
mod params;
mod quoted;
mod reader;
mod rewrite;
mod suspects;
mod trust;
mod writer;

use std::hash::{Hash, Hasher};

pub use bound::{BoundStatement, TypeHint};
pub use params::{ParameterSet, Params};
pub use suspects::Suspects;
pub use writer::SqlWriter;

use crate::error::InputError;

/// One SQL statement, read once: its text with `$n` in place of `:name`, and what the lexer
/// learnt of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    text: String,
    placeholders: Vec<String>,
    /// Where the rewritten text departs from the caller's: (byte offset in `text`, characters
    /// that the caller's text is ahead from there on).
    shifts: Vec<(u32, i32)>,
    kind: Kind,
    trust: Trust,
    plain: bool,
    calls: bool,
    refused_for_shared: Option<&'static str>,
}

impl Hash for Statement {
    /// The text decides nearly always, so that nothing else is hashed.
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

/// The kind of a statement, from its first keyword.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `SELECT`, `VALUES`, `TABLE`, `SHOW`, `EXPLAIN` and `WITH` without a writing part.
    Read,
    /// `INSERT`, `UPDATE`, `DELETE`, `MERGE`, or a `WITH` that holds one.
    Write,
    /// `DO` and `CALL`.
    Procedural,
    /// Everything else: DDL, maintenance.
    Other,
}

/// What a statement may leave behind in the session, decided conservatively by the lexer: by its
/// text alone, without asking PostgreSQL what a name means.
///
/// A statement is stateless when it is a [`Kind::Read`] in which every call, every cast and every
/// typed literal names something built in that keeps nothing. What its names mean in a database
/// stands in no text: code behind a view, a policy, an operator, or an overload that fits better
/// than the built-in function of the same name. Who runs the statement asks [`Suspects`] for that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Trust {
    /// Cannot leave session state: it calls only built-in functions known to be stateless.
    Stateless,
    /// May leave session state.
    Stateful,
}

impl Statement {
    /// Reads one statement.
    ///
    /// `:name` is a placeholder, except inside strings, quoted identifiers and comments, in `::`
    /// and `:=`, and inside brackets behind an operand, where the colon is that of a slice.
    /// `%2B` is a plus outside strings, quoted identifiers and comments. One semicolon may end
    /// the statement.
    ///
    /// # Errors
    ///
    /// Every variant of [`InputError`] that speaks of `q`.
    pub fn parse(q: &str) -> Result<Self, InputError> {
        reader::read(q)
    }

    /// The text for PostgreSQL, with `$1`, `$2` … in place of the placeholders.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The placeholder names in the order of their first use; `$n` is the n-th, from 1.
    pub fn placeholders(&self) -> &[String] {
        &self.placeholders
    }

    /// The statement's kind.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether the statement only reads, as far as its text tells: it is a [`Kind::Read`]. It may
    /// still lock rows (`FOR UPDATE`) or call a function that writes. Only a transaction with
    /// [`Mode::Snapshot`](crate::Mode::Snapshot) makes PostgreSQL refuse that (25006).
    pub fn is_read(&self) -> bool {
        self.kind == Kind::Read
    }

    /// Refuses what nobody may run as a role that several users share, whoever wrote it: `DO`, and
    /// `ALTER ROLE`, `ALTER USER`, `ALTER GROUP`,
    /// `ALTER DEFAULT PRIVILEGES`, `DROP OWNED` and `REASSIGN OWNED`.
    ///
    /// # Errors
    ///
    /// [`InputError::StatementNotAllowed`].
    pub fn check_for_shared_role(&self) -> Result<(), InputError> {
        match self.refused_for_shared {
            Some(keyword) => Err(InputError::StatementNotAllowed {
                keyword,
                reason: "several users share this role",
            }),
            None => Ok(()),
        }
    }

    /// Whether the statement may leave session state.
    pub fn trust(&self) -> Trust {
        self.trust
    }

    /// Whether every call, every cast and every typed literal in the text names something built in
    /// that keeps nothing, whatever the kind of the statement.
    pub fn is_plain(&self) -> bool {
        self.plain
    }

    /// Whether this is a [`Kind::Read`] whose text calls what may be a function of the database's
    /// own, which can do anything.
    pub fn calls(&self) -> bool {
        self.calls
    }

    /// The position in the caller's text that belongs to PostgreSQL's position in
    /// [`text`](Self::text); both count characters from 1.
    pub fn caller_position(&self, position: u32) -> u32 {
        let before = usize::try_from(position.saturating_sub(1)).unwrap_or(usize::MAX);
        let offset = self
            .text
            .char_indices()
            .nth(before)
            .map_or(self.text.len(), |(at, _)| at);
        let passed = self
            .shifts
            .partition_point(|(at, _)| usize::try_from(*at).is_ok_and(|at| at <= offset));
        let ahead = passed.checked_sub(1).map_or(0, |last| self.shifts[last].1);
        position.saturating_add_signed(ahead)
    }

    /// What PostgreSQL says of [`text`](Self::text) in the caller's words: `:name` for `$1`. The
    /// caller's own text holds no `$1` outside strings and quoted identifiers.
    pub fn caller_message(&self, message: &str) -> String {
        let mut pieces = message.split('$');
        let mut words = pieces.next().unwrap_or_default().to_owned();
        for piece in pieces {
            let digits = piece.bytes().take_while(u8::is_ascii_digit).count();
            let number = piece[..digits].parse::<usize>().ok();
            let name = number.and_then(|number| self.placeholders.get(number.checked_sub(1)?));
            match name {
                Some(name) => words.extend([":", name, &piece[digits..]]),
                None => words.extend(["$", piece]),
            }
        }
        words
    }
}
