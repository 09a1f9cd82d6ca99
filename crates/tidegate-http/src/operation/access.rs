//! Decides whether callers may run SQL statements that they write themselves.
//!
//! Users run what their privileges allow. For callers that run as the default user, the tenant's
//! setting `anonymous_sql` decides. The setting is needed, because anyone can call as the default
//! user, and PostgreSQL lets every role use memory, disk and locks of the whole cluster. Members of
//! a group run no SQL of their own, because they share a role.

use std::time::{Duration, Instant};

use http::StatusCode;
use tidegate_identity::AnonymousSql;
use tidegate_sql::{
    BoundStatement, Completion, Executor, Mode, Principal, QueryOptions, Result, RowSink,
};

use crate::app::{App, ReadSlot};
use crate::authenticate::{self, Caller};
use crate::error::ApiError;

/// How long a statement may take if the tenant's `anonymous_sql` is `read` and the caller runs as
/// the default user. Includes the wait for its slot.
const DEADLINE: Duration = Duration::from_secs(5);

/// The SQL that a caller may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// All SQL that the caller's privileges allow.
    Full,
    /// The caller may run read-only statements, one in each request.
    Read,
}

impl Access {
    /// Determines the SQL that the caller may run.
    ///
    /// # Errors
    ///
    /// 401 without a token, and 403 with a token of the default user, if the tenant's
    /// `anonymous_sql` is `off`. 403 for a member of a group. 503 if the store is down and the
    /// setting is not cached.
    pub async fn of(app: &App, caller: &Caller) -> Result<Self, ApiError> {
        caller.require_own_role()?;
        let Some(login) = caller.default_user() else {
            return Ok(Self::Full);
        };
        match authenticate::anonymous_sql(app, &login.database).await? {
            AnonymousSql::On => Ok(Self::Full),
            AnonymousSql::Read => Ok(Self::Read),
            AnonymousSql::Off => Err(sql_switched_off(caller)),
        }
    }

    /// Checks that the caller may run an array of statements.
    ///
    /// # Errors
    ///
    /// 403 if the caller may run only one statement at a time.
    pub fn admit_array(self) -> Result<(), ApiError> {
        match self {
            Self::Full => Ok(()),
            Self::Read => Err(not_a_read()),
        }
    }

    /// Checks that the caller may run the statement. With [`Access::Read`] the statement must be a
    /// read, and this function waits for a slot of the database. The statement must then end within
    /// five seconds of the beginning of this wait, or at the deadline of the request if that is
    /// earlier.
    ///
    /// # Errors
    ///
    /// 403 for a statement that the caller may not run; 503 if no slot becomes free before the
    /// deadline.
    pub async fn permit(
        self,
        app: &App,
        caller: &Caller,
        statement: &BoundStatement,
        options: QueryOptions,
    ) -> Result<Permit, ApiError> {
        let (Self::Read, Some(login)) = (self, caller.default_user()) else {
            return Ok(Permit::full(options));
        };
        if !statement.statement.is_read() {
            return Err(not_a_read());
        }
        let latest = Instant::now() + DEADLINE;
        let deadline = options.deadline.map_or(latest, |asked| asked.min(latest));
        let slot = app.read_slots().enter(&login.database, deadline).await;
        let slot = slot.ok_or_else(|| {
            let text = "too many statements of anonymous callers run in this database; try again";
            ApiError::unavailable("POOL_TIMEOUT", text, Duration::from_secs(1))
        })?;
        Ok(Permit {
            options: QueryOptions {
                deadline: Some(deadline),
                ..QueryOptions::default()
            },
            slot: Some(slot),
        })
    }
}

/// The permission to run a statement.
pub struct Permit {
    options: QueryOptions,
    /// The slot of a statement with [`Access::Read`]; `None` for a statement with full access.
    slot: Option<ReadSlot>,
}

opaque_debug!(Permit);

impl Permit {
    /// The permission for a caller with full access. The statement is restricted only by `options`.
    pub fn full(options: QueryOptions) -> Self {
        Self {
            options,
            slot: None,
        }
    }

    /// Runs the statement, in a read-only transaction if only reading is allowed.
    ///
    /// # Errors
    ///
    /// As [`Executor::query`].
    pub async fn run(
        &self,
        executor: &dyn Executor,
        principal: &Principal,
        statement: &BoundStatement,
        sink: &mut dyn RowSink,
    ) -> Result<Completion> {
        if self.slot.is_none() {
            return executor
                .query(principal, statement, &self.options, sink)
                .await;
        }
        // A transaction of the mode `Snapshot` is read-only, so PostgreSQL itself refuses writes,
        // including writes in functions.
        let mut transaction = executor
            .begin(principal, Mode::Snapshot, &self.options)
            .await?;
        let completion = transaction.query(statement, sink).await?;
        transaction.commit().await?;
        Ok(completion)
    }
}

fn sql_switched_off(caller: &Caller) -> ApiError {
    if caller.anonymous {
        ApiError::missing_token(
            "SQL needs a token here: `anonymous_sql` of the database is off; its owner changes \
             that with PATCH /api/v4/tenant, the operator with `tidegate tenant set`",
        )
    } else {
        ApiError::insufficient_privileges(
            "the default user runs no SQL of its own here: `anonymous_sql` of the database is \
             off; its owner changes that with PATCH /api/v4/tenant, the operator with \
             `tidegate tenant set`",
        )
    }
}

fn not_a_read() -> ApiError {
    ApiError::new(
        StatusCode::FORBIDDEN,
        "STATEMENT_NOT_ALLOWED",
        "`anonymous_sql` of the database is read: without a user's token only one reading \
         statement runs (SELECT, VALUES, TABLE, WITH, SHOW, EXPLAIN)",
    )
}
