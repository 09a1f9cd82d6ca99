//! What raw SQL a caller may run.
//!
//! Users run what their rights allow. Of callers who run as the default user the tenant decides
//! (`anonymous_sql`): PostgreSQL lets every role take memory, disk and locks of the whole cluster,
//! and these callers can be anybody.

use std::time::{Duration, Instant};

use http::StatusCode;
use tidegate_identity::AnonymousSql;
use tidegate_sql::{BoundStatement, Completion, Executor, Mode, Principal, Result, RowSink, Terms};

use crate::app::{App, ReadSlot};
use crate::authenticate::{self, Caller};
use crate::error::Failure;

/// How long a statement of an anonymous caller may take, with the wait for its place.
const DEADLINE: Duration = Duration::from_secs(5);

/// What a caller may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Everything that its rights allow.
    Full,
    /// One reading statement at a time.
    Read,
}

impl Access {
    /// What the caller may run.
    ///
    /// # Errors
    ///
    /// 401 without a token, and 403 with a token of the default user, where the tenant runs no raw
    /// SQL of its default user; 503 when that is not known.
    pub async fn of(app: &App, caller: &Caller) -> Result<Self, Failure> {
        let Some(login) = caller.default_user() else {
            return Ok(Self::Full);
        };
        match authenticate::anonymous_sql(app, &login.database).await? {
            AnonymousSql::On => Ok(Self::Full),
            AnonymousSql::Read => Ok(Self::Read),
            AnonymousSql::Off => Err(switched_off(caller)),
        }
    }

    /// Refuses an array of statements where only one may run.
    ///
    /// # Errors
    ///
    /// 403.
    pub fn admit_array(self) -> Result<(), Failure> {
        match self {
            Self::Full => Ok(()),
            Self::Read => Err(not_a_read()),
        }
    }

    /// Lets one statement run, when it is its turn.
    ///
    /// # Errors
    ///
    /// 403 for a statement that the caller may not run, 503 when too many run already.
    pub async fn permit(
        self,
        app: &App,
        caller: &Caller,
        statement: &BoundStatement,
        terms: Terms,
    ) -> Result<Permit, Failure> {
        let (Self::Read, Some(login)) = (self, caller.default_user()) else {
            return Ok(Permit::full(terms));
        };
        if !statement.statement.is_read() {
            return Err(not_a_read());
        }
        let latest = Instant::now() + DEADLINE;
        let deadline = terms.deadline.map_or(latest, |asked| asked.min(latest));
        let slot = app.read_slots().enter(&login.database, deadline).await;
        let slot = slot.ok_or_else(|| {
            let text = "too many statements of anonymous callers run in this database; try again";
            Failure::unavailable("POOL_TIMEOUT", text, Duration::from_secs(1))
        })?;
        Ok(Permit {
            terms: Terms {
                deadline: Some(deadline),
                ..Terms::default()
            },
            slot: Some(slot),
        })
    }
}

/// A statement that may run.
pub struct Permit {
    terms: Terms,
    /// The place of a read-only statement, until it has ended.
    slot: Option<ReadSlot>,
}

opaque_debug!(Permit);

impl Permit {
    /// For a statement without bounds but its terms.
    pub fn full(terms: Terms) -> Self {
        Self { terms, slot: None }
    }

    /// Runs the statement, in a read-only transaction where that is all that is allowed.
    ///
    /// # Errors
    ///
    /// As [`Executor::query`].
    pub async fn run(
        &self,
        executor: &dyn Executor,
        who: &Principal,
        statement: &BoundStatement,
        sink: &mut dyn RowSink,
    ) -> Result<Completion> {
        if self.slot.is_none() {
            return executor.query(who, statement, &self.terms, sink).await;
        }
        // PostgreSQL decides what a write is, also of what a function does.
        let mut transaction = executor.begin(who, Mode::Snapshot, &self.terms).await?;
        let completion = transaction.query(statement, sink).await?;
        transaction.commit().await?;
        Ok(completion)
    }
}

fn switched_off(caller: &Caller) -> Failure {
    if caller.anonymous {
        Failure::missing_token(
            "SQL needs a token here: `anonymous_sql` of the database is off; its owner changes \
             that with PATCH /api/v4/tenant, the operator with `tidegate tenant set`",
        )
    } else {
        Failure::insufficient_privileges(
            "the default user runs no SQL of its own here: `anonymous_sql` of the database is \
             off; its owner changes that with PATCH /api/v4/tenant, the operator with \
             `tidegate tenant set`",
        )
    }
}

fn not_a_read() -> Failure {
    Failure::new(
        StatusCode::FORBIDDEN,
        "STATEMENT_NOT_ALLOWED",
        "`anonymous_sql` of the database is read: without a user's token only one reading \
         statement runs (SELECT, VALUES, TABLE, WITH, SHOW, EXPLAIN)",
    )
}
