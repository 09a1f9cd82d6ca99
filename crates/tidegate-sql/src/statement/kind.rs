//! What kind of statement it is, and which kinds are refused.
//!
//! The refusals guard atomicity and give good messages; the security boundary is the login role.

use std::borrow::Cow;

use super::lexer::{Token, TokenKind};
use super::names::Lower;
use super::{Kind, escaped};
use crate::error::InputError;

const LEADING: usize = 4;

const TRANSACTION: &str = "each request is a transaction of its own; send an array of requests to \
                           run several statements in one";
const ROLE: &str = "statements run as the role of the token";
const PREPARED: &str = "statements are prepared by the server; write placeholders instead";
const NOTICES: &str = "a session does not outlive its request; subscribe to change events instead";

/// The words of a row lock in front of `UPDATE`.
const LOCK: [&str; 3] = ["for", "no", "key"];

/// Reads the leading words and what else decides about the kind.
#[derive(Debug, Default)]
pub(super) struct KindReader<'a> {
    words: [Cow<'a, str>; LEADING],
    count: usize,
    /// `U&"…"` in front of `UESCAPE`.
    quoted: Option<&'a str>,
    stage: Stage,
    explain: Explain,
    /// The word `WITH` has been seen.
    with: bool,
    /// How many words of [`LOCK`] stand directly in front.
    lock: usize,
    /// The last word was an `UPDATE` that may write.
    update: bool,
    origin: Origin,
    effect: Effect,
}

/// Whether the statement is explained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Explain {
    #[default]
    No,
    /// It is planned only.
    Planned,
    /// It runs too.
    Analyzed,
}

/// Where the rows of a new table come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Origin {
    /// Nothing has been seen yet.
    #[default]
    Open,
    /// A query, in which a name may stand behind `AS`.
    Query,
    /// `CREATE TABLE … AS EXECUTE`.
    Prepared,
}

/// What a `SELECT` does beside reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Effect {
    #[default]
    None,
    /// `INTO` makes a table.
    Into,
    /// A part of a `WITH` writes.
    Writes,
}

/// Where in the statement the reader is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    /// Collecting the leading words.
    #[default]
    Leading,
    /// Behind `EXPLAIN`, in front of the statement that it explains.
    Explain,
    /// Behind the parenthesis that follows `EXPLAIN`: options or the statement.
    ExplainParen,
    /// Among the options of `EXPLAIN`.
    ExplainOptions,
    /// Behind the leading words.
    Body,
}

impl<'a> KindReader<'a> {
    /// Takes the next token.
    pub(super) fn see(&mut self, token: &Token<'a>, previous: Option<&Token<'a>>) {
        match self.stage {
            Stage::Leading => self.lead(token, previous),
            Stage::Explain => self.explain(token, previous),
            Stage::ExplainParen => match token.kind {
                TokenKind::OpenParen => self.stage = Stage::Leading,
                TokenKind::Word
                    if Lower::of(token.text).any(&["select", "values", "table", "with"]) =>
                {
                    self.stage = Stage::Leading;
                    self.lead(token, previous);
                }
                _ => {
                    self.stage = Stage::ExplainOptions;
                    self.option(token);
                }
            },
            Stage::ExplainOptions => self.option(token),
            Stage::Body => {}
        }
        if token.kind == TokenKind::Word || self.update {
            self.body(token, previous);
        }
        self.follow_lock(token);
    }

    /// Whether the first word is `CREATE`.
    pub(super) fn creates(&self) -> bool {
        self.words[0].eq_ignore_ascii_case("create")
    }

    /// The kind, or the refusal.
    pub(super) fn finish(&self) -> Result<Kind, InputError> {
        let words = self.words.each_ref().map(|word| Lower::of(word));
        let words = words.each_ref().map(Lower::as_str);
        if self.origin == Origin::Prepared {
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

    /// The keywords of a statement that a role with several users may not run: one of them would
    /// change the role for the others, or run a text that nothing has read.
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
            // It takes the role out of the policies that name it, for all who share it.
            ["drop", "owned", ..] => Some("DROP OWNED"),
            ["reassign", "owned", ..] => Some("REASSIGN OWNED"),
            _ => None,
        }
    }

    fn lead(&mut self, token: &Token<'a>, previous: Option<&Token<'a>>) {
        let behind_quoted = previous.filter(|previous| previous.kind == TokenKind::Quoted);
        match token.kind {
            TokenKind::Word if behind_quoted.is_some() && token.is("uescape") => {
                self.quoted = behind_quoted.map(|quoted| quoted.text);
            }
            TokenKind::String if self.quoted.is_some() => {
                let quoted = self.quoted.take().unwrap_or_default();
                self.words[self.count - 1] = escaped::name_with(quoted, token.text).into();
            }
            TokenKind::Word
                if self.count == 0 && token.is("explain") && self.explain == Explain::No =>
            {
                self.explain = Explain::Planned;
                self.stage = Stage::Explain;
            }
            TokenKind::Word => self.push(token.text.into()),
            TokenKind::Quoted if self.count > 0 => self.push(escaped::name(token.text)),
            TokenKind::OpenParen if self.count == 0 => {}
            _ => self.stage = Stage::Body,
        }
    }

    fn push(&mut self, word: Cow<'a, str>) {
        self.words[self.count] = word;
        self.count += 1;
        if self.count == LEADING {
            self.stage = Stage::Body;
        }
    }

    fn explain(&mut self, token: &Token<'a>, previous: Option<&Token<'a>>) {
        if token.kind == TokenKind::OpenParen {
            self.stage = Stage::ExplainParen;
        } else if token.is("analyze") || token.is("analyse") {
            self.explain = Explain::Analyzed;
        } else if !token.is("verbose") {
            self.stage = Stage::Leading;
            self.lead(token, previous);
        }
    }

    /// `analyze off` counts as `analyze`, which is the careful side.
    fn option(&mut self, token: &Token<'a>) {
        if token.kind == TokenKind::CloseParen {
            self.stage = Stage::Explain;
        } else if token.is("analyze") || token.is("analyse") {
            self.explain = Explain::Analyzed;
        }
    }

    /// Finds the writing parts of a `WITH`, and `SELECT … INTO`.
    ///
    /// `INTO` and `FROM` follow `INSERT`, `MERGE` and `DELETE` directly. `UPDATE` is followed by a
    /// name and may stand behind anything, such as the `SET column` of a `SEARCH` clause: in a
    /// statement with a `WITH` it counts as a write unless it is certain that it is none.
    fn body(&mut self, token: &Token<'a>, previous: Option<&Token<'a>>) {
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
        if self.origin == Origin::Open && self.creates() {
            match word.as_str() {
                "select" | "values" | "with" => self.origin = Origin::Query,
                "execute" if previous.is("as") => self.origin = Origin::Prepared,
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

    /// Counts the words of `FOR` and `FOR NO KEY`, which nothing but `UPDATE` completes. `FOR` is
    /// reserved, so that it is no name; `KEY` alone can be one.
    fn follow_lock(&mut self, token: &Token<'a>) {
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

/// The keywords of a refused statement and the reason; `words` are its leading ones.
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

/// Which settings may not be set or reset: keywords for `SET`, for `RESET`, and the reason.
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
