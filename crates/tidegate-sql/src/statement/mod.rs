//! Statements as text with named placeholders.

mod bound;
mod builtins;
mod kind;
mod lexer;
mod params;
mod purity;
mod quoting;
mod reader;
mod rewrite;
mod unicode_identifier;
mod untrusted_names;
mod writer;

use std::hash::{Hash, Hasher};

pub use bound::{BoundStatement, TypeHint};
pub use params::{ParameterSet, Params};
pub use untrusted_names::UntrustedNames;
pub use writer::SqlWriter;

use crate::error::InputError;

/// A parsed SQL statement: its text with `$n` in place of `:name`, and the properties that the
/// parser has found.
#[expect(clippy::struct_excessive_bools, reason = "they are separate facts")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    text: String,
    placeholders: Vec<String>,
    /// The points where the text differs from the caller's text. Each entry has a byte offset in
    /// `text`, and a number of characters. Adding this number to a position after the offset gives
    /// the position in the caller's text.
    shifts: Vec<(u32, i32)>,
    kind: Kind,
    purity: Purity,
    plain: bool,
    calls: bool,
    calls_claims: bool,
    fills_rows: bool,
    refused_for_shared: Option<&'static str>,
    names_login: bool,
}

impl Hash for Statement {
    /// Only the text is hashed, because it is enough to distinguish nearly all statements.
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

/// The kind of a statement, by its keywords.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `SHOW`, `VALUES`, `TABLE` or `SELECT`, if the statement has no `INTO` and no `WITH` that
    /// writes. Also `EXPLAIN`, unless it runs a statement of another kind.
    Read,
    /// `INSERT`, `UPDATE`, `DELETE`, `MERGE`, or a `WITH` that contains one of these.
    Write,
    /// `DO` and `CALL`.
    Procedural,
    /// All other statements, such as DDL and maintenance.
    Other,
}

/// Whether a statement may leave session state, decided from its text alone. A statement is
/// [`Purity::Stateless`] only if its text proves it.
///
/// A [`Kind::Read`] is stateless if all calls, casts and typed literals in it name built-in
/// functions and types without side effects. Calls of claims functions are allowed too; see
/// [`Statement::calls_claims`].
///
/// The text does not show the objects to which its names refer in a database. Views, policies,
/// operators, and overloads of built-in functions may run other code. [`UntrustedNames`] finds the
/// names that may lead to such code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Purity {
    /// The statement leaves no session state, because it calls only built-in functions without side
    /// effects, and claims functions.
    Stateless,
    /// The statement may leave session state.
    Stateful,
}

impl Statement {
    /// Parses one statement.
    ///
    /// `:name` is a placeholder, except inside strings, quoted identifiers and comments, in `::`
    /// and `:=`, and in brackets after an operand, where the colon belongs to a slice. `%2B` is a
    /// plus outside strings, quoted identifiers and comments. The statement may end in one
    /// semicolon.
    ///
    /// # Errors
    ///
    /// The variants of [`InputError`] that are about `q`.
    pub fn parse(q: &str) -> Result<Self, InputError> {
        reader::read(q)
    }

    /// Parses `q`, a query that Tidegate generated around `expression`. The expression is stored in
    /// a database, for example as the condition of a policy, and is written as PostgreSQL prints it
    /// with an empty `search_path`. The statement has the purity of the expression, because the
    /// rest of `q` leaves no session state after the transaction. [`Self::fills_rows`] is true,
    /// because the rest of `q` may fill rows from parameters.
    ///
    /// # Errors
    ///
    /// The variants of [`InputError`] that are about `q`.
    pub fn around(q: &str, expression: &str) -> Result<Self, InputError> {
        let statement = Self::parse(q)?;
        let inner = Self::parse(&format!("SELECT {expression}"))?;
        Ok(Self {
            purity: inner.purity,
            plain: inner.purity == Purity::Stateless,
            calls: inner.calls,
            calls_claims: inner.calls_claims,
            fills_rows: true,
            ..statement
        })
    }

    /// The text for PostgreSQL, with `$1`, `$2` … in place of the placeholders.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The placeholder names in the order of their first use. The n-th one, from 1, is `$n`.
    pub fn placeholders(&self) -> &[String] {
        &self.placeholders
    }

    /// The statement's kind.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether the text shows that the statement only reads: it is a [`Kind::Read`]. Such a
    /// statement may still lock rows (`FOR UPDATE`) or call a function that writes. PostgreSQL
    /// rejects both only in a transaction with [`Mode::Snapshot`](crate::Mode::Snapshot) (25006).
    pub fn is_read(&self) -> bool {
        self.kind == Kind::Read
    }

    /// Rejects statements that must not run as a role with several users, even if the tenant's
    /// owner wrote them: `DO`, `GRANT`, `REVOKE`, `ALTER ROLE`, `ALTER USER`, `ALTER GROUP`, `ALTER
    /// DEFAULT PRIVILEGES`, `DROP OWNED` and `REASSIGN OWNED`.
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

    /// Whether the statement may leave session state, decided from its text alone.
    pub fn purity(&self) -> Purity {
        self.purity
    }

    /// Whether all calls, casts and typed literals in the text name built-in functions and types
    /// without side effects. Unlike [`Self::purity`], the result does not depend on the kind of the
    /// statement.
    pub fn is_plain(&self) -> bool {
        self.plain
    }

    /// Whether the statement is a [`Kind::Read`] that may call a user-defined function, or a
    /// built-in function that is not known to be without side effects. Calls of claims functions do
    /// not count; see [`Self::calls_claims`].
    pub fn calls(&self) -> bool {
        self.calls
    }

    /// Whether the text calls `tidegate.user_id()`, `tidegate.claims()` or `tidegate.claim()`. Such
    /// a call has no side effects if these functions are the service's; otherwise it may run any
    /// code.
    pub fn calls_claims(&self) -> bool {
        self.calls_claims
    }

    /// Whether the statement may fill rows of a table from parameters ([`Self::around`]). Filling a
    /// row runs the checks of the columns' domains.
    pub fn fills_rows(&self) -> bool {
        self.fills_rows
    }

    /// Whether the text may read the name of the role that the session logged in as: it has
    /// `session_user`, `system_user` or `session_authorization`, or a name that could be one of
    /// them.
    pub fn names_login(&self) -> bool {
        self.names_login
    }

    /// Converts the position of an error, as PostgreSQL reports it, into a position in the caller's
    /// text. PostgreSQL reports a position in [`text`](Self::text). Both positions count characters
    /// from 1.
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

    /// Replaces `$n` by the placeholder `:name` in a message of PostgreSQL. The caller's own
    /// text has no `$n` outside strings and quoted identifiers. So a `$n` in a message is always a
    /// placeholder.
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
