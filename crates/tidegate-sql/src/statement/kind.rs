//! Determines the kind of a statement, and rejects some kinds.
//!
//! Statements are rejected to protect atomicity and to give clear errors. The security boundary is
//! the login role.

use std::borrow::Cow;

use super::builtins::Lower;
use super::lexer::{SqlToken, TokenKind};
use super::{Kind, unicode_identifier};
use crate::error::InputError;

const LEADING: usize = 4;

const TRANSACTION: &str = "each request is a transaction of its own; send an array of requests to \
                           run several statements in one";
const ROLE: &str = "statements run as the role of the token";
const PREPARED: &str = "statements are prepared by the server; write placeholders instead";
const NOTICES: &str = "a session does not outlive its request; subscribe to change events instead";

/// The keywords that precede `UPDATE` in a row lock: `FOR UPDATE` and `FOR NO KEY UPDATE`.
const LOCK: [&str; 3] = ["for", "no", "key"];

/// Reads the leading keywords of a statement, and the later keywords that determine its kind.
#[derive(Debug, Default)]
pub(super) struct KindReader<'a> {
    words: [Cow<'a, str>; LEADING],
    count: usize,
    /// The quoted identifier `U&"…"` to which a `UESCAPE` belongs; `None` if there is no `UESCAPE`,
    /// or if its escape character was already read.
    quoted: Option<&'a str>,
    position: Position,
    explain: Explain,
    /// Whether the keyword `WITH` was read.
    with: bool,
    /// The number of keywords of [`LOCK`] that the most recent tokens match.
    lock: usize,
    /// Whether the most recent token was an `UPDATE` that may begin a writing statement.
    update: bool,
    origin: RowSource,
    effect: Effect,
}

/// Whether the statement is under an `EXPLAIN`, and if so, whether the `EXPLAIN` runs it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Explain {
    /// There is no `EXPLAIN`.
    #[default]
    No,
    /// The statement is planned and does not run.
    Planned,
    /// The statement runs.
    Analyzed,
}

/// The source of the rows of a new table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum RowSource {
    /// The source has not been read yet.
    #[default]
    Open,
    /// The rows come from a query. In a query, `AS execute` only names a column.
    Query,
    /// The rows come from `CREATE TABLE … AS EXECUTE`.
    Prepared,
}

/// The effect of a `SELECT` besides reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Effect {
    /// The `SELECT` only reads.
    #[default]
    None,
    /// `INTO` creates a table.
    Into,
    /// A statement in `WITH` writes.
    Writes,
}

/// The part of the statement to which the next token belongs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Position {
    /// The leading keywords.
    #[default]
    Leading,
    /// After `EXPLAIN`, before the explained statement.
    Explain,
    /// After the parenthesis that follows `EXPLAIN`: options or the statement.
    ExplainParen,
    /// The options of `EXPLAIN`.
    ExplainOptions,
    /// After the leading keywords.
    Body,
}

impl<'a> KindReader<'a> {
    /// Processes the next token of the statement.
    pub(super) fn process(&mut self, token: &SqlToken<'a>, previous: Option<&SqlToken<'a>>) {
        match self.position {
            Position::Leading => self.read_leading(token, previous),
            Position::Explain => self.explain(token, previous),
            Position::ExplainParen => match token.kind {
                TokenKind::OpenParen => self.position = Position::Leading,
                TokenKind::Word
                    if Lower::of(token.text).any(&["select", "values", "table", "with"]) =>
                {
                    self.position = Position::Leading;
                    self.read_leading(token, previous);
                }
                _ => {
                    self.position = Position::ExplainOptions;
                    self.option(token);
                }
            },
            Position::ExplainOptions => self.option(token),
            Position::Body => {}
        }
        if token.kind == TokenKind::Word || self.update {
            self.body(token, previous);
        }
        self.follow_lock(token);
    }

    /// Whether the first keyword is `CREATE`.
    pub(super) fn creates(&self) -> bool {
        self.words[0].eq_ignore_ascii_case("create")
    }

    /// The kind of the statement, or the error for a rejected kind.
    pub(super) fn finish(&self) -> Result<Kind, InputError> {
        let words = self.words.each_ref().map(|word| Lower::of(word));
        let words = words.each_ref().map(Lower::as_str);
        if self.origin == RowSource::Prepared {
            let (keyword, reason) = ("EXECUTE", PREPARED);
            return Err(InputError::StatementNotAllowed { keyword, reason });
        }
        if let Some((keyword, reason)) = refusal(&words) {
            return Err(InputError::StatementNotAllowed { keyword, reason });
        }
        let kind = match words[0] {
            "select" | "values" | "table" | "with" | "show" => match self.effect {
                Effect::None => Kind::Read,
                Effect::Into => Kind::Other,
                Effect::Writes => Kind::Write,
            },
            "insert" | "update" | "delete" | "merge" => Kind::Write,
            "do" | "call" => Kind::Procedural,
            _ => Kind::Other,
        };
        Ok(match self.explain {
            Explain::Planned => Kind::Read,
            Explain::Analyzed if kind != Kind::Read => Kind::Other,
            Explain::No | Explain::Analyzed => kind,
        })
    }

    /// The keywords of a statement that must not run as a role with several users. With such a
    /// statement, one user could change the role for the others, or run SQL that was not checked.
    /// `None` for other statements.
    pub(super) fn refused_for_shared(&self) -> Option<&'static str> {
        let words = self.words.each_ref().map(|word| Lower::of(word));
        match words.each_ref().map(Lower::as_str) {
            ["do", ..] => Some("DO"),
            ["grant", ..] => Some("GRANT"),
            ["revoke", ..] => Some("REVOKE"),
            ["alter", "user", "mapping", "for"] => None,
            ["alter", "role", ..] => Some("ALTER ROLE"),
            ["alter", "user", ..] => Some("ALTER USER"),
            ["alter", "group", ..] => Some("ALTER GROUP"),
            ["alter", "default", "privileges", ..] => Some("ALTER DEFAULT PRIVILEGES"),
            // The statement would remove the role from policies, for all users who share the role.
            ["drop", "owned", ..] => Some("DROP OWNED"),
            ["reassign", "owned", ..] => Some("REASSIGN OWNED"),
            _ => None,
        }
    }

    fn read_leading(&mut self, token: &SqlToken<'a>, previous: Option<&SqlToken<'a>>) {
        let after_quoted = previous.filter(|previous| previous.kind == TokenKind::Quoted);
        match token.kind {
            TokenKind::Word if after_quoted.is_some() && token.is("uescape") => {
                self.quoted = after_quoted.map(|quoted| quoted.text);
            }
            TokenKind::String if self.quoted.is_some() => {
                let quoted = self.quoted.take().unwrap_or_default();
                self.words[self.count - 1] =
                    unicode_identifier::name_with(quoted, token.text).into();
            }
            TokenKind::Word
                if self.count == 0 && token.is("explain") && self.explain == Explain::No =>
            {
                self.explain = Explain::Planned;
                self.position = Position::Explain;
            }
            TokenKind::Word => self.push(token.text.into()),
            TokenKind::Quoted if self.count > 0 => self.push(unicode_identifier::name(token.text)),
            TokenKind::OpenParen if self.count == 0 => {}
            _ => self.position = Position::Body,
        }
    }

    fn push(&mut self, word: Cow<'a, str>) {
        self.words[self.count] = word;
        self.count += 1;
        if self.count == LEADING {
            self.position = Position::Body;
        }
    }

    fn explain(&mut self, token: &SqlToken<'a>, previous: Option<&SqlToken<'a>>) {
        if token.kind == TokenKind::OpenParen {
            self.position = Position::ExplainParen;
        } else if token.is("analyze") || token.is("analyse") {
            self.explain = Explain::Analyzed;
        } else if !token.is("verbose") {
            self.position = Position::Leading;
            self.read_leading(token, previous);
        }
    }

    /// Reads an option of `EXPLAIN`. `analyze off` counts as `analyze`, so that a write that may
    /// run never counts as a read.
    fn option(&mut self, token: &SqlToken<'a>) {
        if token.kind == TokenKind::CloseParen {
            self.position = Position::Explain;
        } else if token.is("analyze") || token.is("analyse") {
            self.explain = Explain::Analyzed;
        }
    }

    /// Reads a token after the leading keywords. Finds writing statements in a `WITH`, and `SELECT
    /// … INTO`.
    ///
    /// `INSERT` and `MERGE` are recognised by the `INTO` after them, and `DELETE` by the `FROM`
    /// after it. `UPDATE` has no such keyword after it, and `update` may also be the name of a
    /// column. So in a statement with `WITH`, `UPDATE` counts as a write unless the tokens around
    /// it exclude this.
    fn body(&mut self, token: &SqlToken<'a>, previous: Option<&SqlToken<'a>>) {
        if std::mem::take(&mut self.update) {
            let target = matches!(token.kind, TokenKind::Word | TokenKind::Quoted);
            self.affect(
                Effect::Writes,
                target && !Lower::of(token.text).any(&["as", "from"]),
            );
        }
        if !matches!(token.text.len(), 4..=7) {
            return;
        }
        self.with |= token.is("with");
        let Some(previous) = previous else {
            return;
        };
        let word = Lower::of(token.text);
        if self.origin == RowSource::Open && self.creates() {
            match word.as_str() {
                "select" | "values" | "with" => self.origin = RowSource::Query,
                "execute" if previous.is("as") => self.origin = RowSource::Prepared,
                _ => {}
            }
        }
        match word.as_str() {
            "into" => {
                self.affect(Effect::Into, !previous.is("as"));
                self.affect(
                    Effect::Writes,
                    previous.is("insert") || previous.is("merge"),
                );
            }
            "from" => self.affect(Effect::Writes, previous.is("delete")),
            "update" => {
                let locks = matches!(self.lock, 1 | 3);
                let names = previous.is("as") || previous.kind == TokenKind::Dot;
                self.update = self.with && !locks && !names;
            }
            _ => {}
        }
    }

    /// Updates `lock`. If the token is not the next keyword of [`LOCK`], the count starts again: at
    /// 1 for the keyword `FOR`, otherwise at 0.
    fn follow_lock(&mut self, token: &SqlToken<'a>) {
        let goes_on = LOCK.get(self.lock).is_some_and(|word| token.is(word));
        self.lock = if goes_on {
            self.lock + 1
        } else {
            usize::from(token.is("for"))
        };
    }

    fn affect(&mut self, effect: Effect, seen: bool) {
        if seen {
            self.effect = self.effect.max(effect);
        }
    }
}

/// The keywords of a rejected statement and the reason; `None` if the statement is not rejected.
/// `words` are its leading keywords.
fn refusal(words: &[&str; LEADING]) -> Option<(&'static str, &'static str)> {
    Some(match words {
        ["begin", ..] => ("BEGIN", TRANSACTION),
        ["start", ..] => ("START TRANSACTION", TRANSACTION),
        ["commit", "prepared", ..] => ("COMMIT PREPARED", TRANSACTION),
        ["commit", ..] => ("COMMIT", TRANSACTION),
        ["end", ..] => ("END", TRANSACTION),
        ["rollback", "prepared", ..] => ("ROLLBACK PREPARED", TRANSACTION),
        ["rollback", ..] => ("ROLLBACK", TRANSACTION),
        ["abort", ..] => ("ABORT", TRANSACTION),
        ["savepoint", ..] => ("SAVEPOINT", TRANSACTION),
        ["release", ..] => ("RELEASE SAVEPOINT", TRANSACTION),
        ["prepare", "transaction", ..] => ("PREPARE TRANSACTION", TRANSACTION),
        ["prepare", ..] => ("PREPARE", PREPARED),
        ["execute", ..] => ("EXECUTE", PREPARED),
        ["deallocate", ..] => ("DEALLOCATE", PREPARED),
        ["copy", ..] => (
            "COPY",
            "send rows as a list of parameter sets, and read many with `output_format` `csv` or \
             `ndjson`",
        ),
        ["listen", ..] => ("LISTEN", NOTICES),
        ["unlisten", ..] => ("UNLISTEN", NOTICES),
        ["notify", ..] => ("NOTIFY", NOTICES),
        ["discard", ..] => (
            "DISCARD",
            "every request starts from the session's initial state",
        ),
        ["load", ..] => ("LOAD", "libraries are loaded by the server's administrator"),
        ["set", rest @ ..] => return setting(rest).map(|(set, _, reason)| (set, reason)),
        ["reset", rest @ ..] => return setting(rest).map(|(_, reset, reason)| (reset, reason)),
        _ => return None,
    })
}

/// The keywords of `SET` and `RESET` for a setting that may not be changed, and the reason; `None`
/// for other settings.
fn setting(words: &[&str]) -> Option<(&'static str, &'static str, &'static str)> {
    Some(match words {
        ["local", rest @ ..] => return setting(rest),
        ["role", ..] | ["session", "role", ..] => ("SET ROLE", "RESET ROLE", ROLE),
        ["session_authorization", ..]
        | ["session", "authorization" | "session_authorization", ..] => (
            "SET SESSION AUTHORIZATION",
            "RESET SESSION AUTHORIZATION",
            ROLE,
        ),
        ["session", "characteristics", ..] => {
            ("SET SESSION CHARACTERISTICS", "RESET SESSION", TRANSACTION)
        }
        ["session", "transaction", ..]
        | [
            "transaction"
            | "transaction_isolation"
            | "transaction_read_only"
            | "transaction_deferrable",
            ..,
        ] => ("SET TRANSACTION", "RESET TRANSACTION", TRANSACTION),
        ["session", ..] => (
            "SET SESSION",
            "RESET SESSION",
            "a session does not outlive its request",
        ),
        _ => return None,
    })
}
