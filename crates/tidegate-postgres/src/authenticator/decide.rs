//! Decides whether the users of a database may share connections, and stores the decision in the
//! database.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use tidegate_service::ROLE_MARK;
use tidegate_sql::statement::{BoundStatement, Statement};
use tidegate_sql::{
    DatabaseName, Executor, Mode, Principal, QueryOptions, Result, TextRows, Transaction,
};

use super::Objection;
use crate::purity::{bind, statement, text_rows};

/// The time limit of each statement that a decision runs.
const LIMIT: Duration = Duration::from_secs(10);

const LOCK_NOT_AVAILABLE: &str = "55P03";

/// The reason against shared connections while the transaction of a user's DDL statement or grant
/// is open.
const UNCOMMITTED: &str = "a user's definition or grant is not committed yet";

static OWNER: LazyLock<Arc<Statement>> =
    LazyLock::new(|| statement("SELECT owner_role FROM tidegate.tenants WHERE name = :database"));
static UNDISPUTED: LazyLock<Arc<Statement>> = LazyLock::new(|| {
    statement("SELECT 'yes' WHERE NOT EXISTS (SELECT FROM tidegate_catalog.objections)")
});
static HAS_TABLE: LazyLock<Arc<Statement>> = LazyLock::new(|| {
    statement(
        "SELECT 'yes' WHERE pg_catalog.to_regclass('tidegate_catalog.objections') IS NOT NULL",
    )
});
/// Limits the wait for a lock, because requests of the tenant's users wait for the decision.
static LIMIT_WAIT: LazyLock<Arc<Statement>> =
    LazyLock::new(|| statement("SELECT pg_catalog.set_config('lock_timeout', '500ms', true)"));
/// Allows only one decision at a time. The lock blocks no role switch. It blocks a DDL statement
/// only if this statement also locks the table (`announce_function.sql` of `tidegate-service`).
static LOCK: LazyLock<Arc<Statement>> = LazyLock::new(|| {
    statement("LOCK TABLE ONLY tidegate_catalog.objections IN SHARE UPDATE EXCLUSIVE MODE")
});
/// Deletes the stored objections. Skips rows that sessions with uncommitted DDL statements have
/// locked.
static CLEAR_OBJECTIONS: LazyLock<Arc<Statement>> = LazyLock::new(|| {
    statement(
        "DELETE FROM tidegate_catalog.objections WHERE tx IN ( \
         SELECT o.tx FROM tidegate_catalog.objections o FOR UPDATE SKIP LOCKED)",
    )
});
static INSERT_OBJECTION: LazyLock<Arc<Statement>> = LazyLock::new(|| {
    statement(
        "INSERT INTO tidegate_catalog.objections (tx, reason) \
         VALUES (pg_catalog.pg_current_xact_id(), :reason)",
    )
});
static DECIDE: LazyLock<Arc<Statement>> = LazyLock::new(|| statement(tidegate_service::DECIDE_SQL));
static MEMBERS: LazyLock<Arc<Statement>> = LazyLock::new(|| statement(include_str!("members.sql")));
static UNUSABLE: LazyLock<Arc<Statement>> =
    LazyLock::new(|| statement(include_str!("unusable.sql")));
/// Selects the same rows as `MEMBERS`, but only for the users whose roles have the OIDs `:users`.
static MEMBERS_OF: LazyLock<Arc<Statement>> = LazyLock::new(|| {
    let sql = include_str!("members.sql")
        .replace(
            "/* of new users */",
            "AND m.member = ANY (:users::pg_catalog.oid[])",
        )
        .replace(
            "/* new users */",
            "AND m.roleid = ANY (:users::pg_catalog.oid[])",
        );
    statement(&sql)
});
static ROLE_FINGERPRINTS: LazyLock<Arc<Statement>> =
    LazyLock::new(|| statement(include_str!("fingerprint.sql")));

/// Decides for one database whether its users may share connections.
pub(super) struct DecisionQuery<'a> {
    pub(super) service: &'a dyn Executor,
    pub(super) database: &'a DatabaseName,
}

/// The result of a decision.
pub(super) struct DecisionOutcome {
    /// The reasons for which connections are not shared; empty if they are shared.
    pub(super) objections: Vec<Objection>,
    /// Entries for authenticators that cannot be used or are missing. The users of such an
    /// authenticator log in as themselves.
    pub(super) unusable: Vec<Objection>,
    /// The users that have an authenticator.
    pub(super) members: Vec<AuthenticatorMember>,
}

impl DecisionOutcome {
    /// A decision against shared connections, for the reason in `objection`.
    pub(super) fn against(objection: Objection) -> Self {
        Self {
            objections: vec![objection],
            unusable: Vec::new(),
            members: Vec::new(),
        }
    }
}

/// A user with an authenticator.
pub(super) struct AuthenticatorMember {
    pub(super) user: String,
    pub(super) authenticator: String,
    /// How long the user may still log in; `None` if there is no limit.
    pub(super) valid_for: Option<Duration>,
}

impl DecisionQuery<'_> {
    /// Whether no objection is stored. In this case the most recent decision allowed shared
    /// connections, and no DDL statement or grant has inserted an objection since then.
    pub(super) async fn is_undisputed(&self) -> Result<bool> {
        let who = Principal::Catalog(self.database.clone());
        let bound = BoundStatement::without_values(&UNDISPUTED)?;
        Ok(!text_rows(self.service, &who, &bound, &options())
            .await?
            .is_empty())
    }

    /// Decides whether connections may be shared. Replaces the stored objections by the first
    /// objection that `decide.sql` finds, if any.
    ///
    /// If a transaction that inserted an objection commits during the decision, its objection is
    /// not deleted, because the DELETE does not see it.
    pub(super) async fn decide(&self) -> Result<DecisionOutcome> {
        let Some(owner) = self.owner().await? else {
            return Ok(DecisionOutcome::against(objection(
                "the database is no tenant's",
                "",
            )));
        };
        let who = Principal::Catalog(self.database.clone());
        let options = options();
        let has_table = BoundStatement::without_values(&HAS_TABLE)?;
        if text_rows(self.service, &who, &has_table, &options)
            .await?
            .is_empty()
        {
            let reason = "there is no event trigger, which tidegate user repair, with --all, makes if \
                          the service is a superuser and max_prepared_transactions is 0";
            return Ok(DecisionOutcome::against(objection(reason, "")));
        }
        let mut transaction = self.service.begin(&who, Mode::ReadWrite, &options).await?;
        rows(&mut *transaction, &LIMIT_WAIT, &[]).await?;
        if let Err(error) = rows(&mut *transaction, &LOCK, &[]).await {
            // A session with an uncommitted DDL statement or grant may hold a lock on the table.
            // Connections are not shared until its transaction ends.
            return if error.sqlstate() == Some(LOCK_NOT_AVAILABLE) {
                Ok(DecisionOutcome::against(objection(UNCOMMITTED, "")))
            } else {
                Err(error)
            };
        }
        rows(&mut *transaction, &CLEAR_OBJECTIONS, &[]).await?;
        let values = [
            ("owner", owner.as_str()),
            ("source", tidegate_service::event_trigger_source()),
        ];
        let found = rows(&mut *transaction, &DECIDE, &values).await?;
        let mut objections: Vec<_> = found
            .iter()
            .map(|row| objection(&row[0], &row[1]))
            .collect();
        if objections.is_empty() && rows(&mut *transaction, &UNDISPUTED, &[]).await?.is_empty() {
            objections.push(objection(UNCOMMITTED, ""));
        } else if let Some(first) = objections.first() {
            let reason = [("reason", first.reason.as_str())];
            rows(&mut *transaction, &INSERT_OBJECTION, &reason).await?;
        }
        let mark = [("mark", ROLE_MARK)];
        let members = rows(&mut *transaction, &MEMBERS, &mark).await?;
        let unusable = rows(&mut *transaction, &UNUSABLE, &mark).await?;
        transaction.commit().await?;
        Ok(DecisionOutcome {
            objections,
            unusable: unusable
                .iter()
                .map(|row| objection(&row[0], &row[1]))
                .collect(),
            members: members.into_iter().filter_map(member).collect(),
        })
    }

    /// The users among `users` (values of `pg_roles.oid`) that have an authenticator.
    pub(super) async fn members(&self, users: &[String]) -> Result<Vec<AuthenticatorMember>> {
        let users = format!("{{{}}}", users.join(","));
        let bound = bind(&MEMBERS_OF, &[("mark", ROLE_MARK), ("users", &users)])?;
        let who = Principal::Catalog(self.database.clone());
        let rows = text_rows(self.service, &who, &bound, &options()).await?;
        Ok(rows.into_iter().filter_map(member).collect())
    }

    async fn owner(&self) -> Result<Option<String>> {
        let bound = bind(&OWNER, &[("database", self.database.as_str())])?;
        let rows = text_rows(self.service, &Principal::Control, &bound, &options()).await?;
        Ok(rows.into_iter().flatten().next())
    }
}

/// The fingerprint of the roles of each tenant, by the tenant's name (`fingerprint.sql`).
pub(super) async fn roles(service: &dyn Executor) -> Result<HashMap<String, String>> {
    let bound = BoundStatement::without_values(&ROLE_FINGERPRINTS)?;
    let rows = text_rows(service, &Principal::Control, &bound, &options()).await?;
    let pair = |row: Vec<String>| <[String; 2]>::try_from(row).ok().map(Into::into);
    Ok(rows.into_iter().filter_map(pair).collect())
}

pub(super) fn options() -> QueryOptions {
    QueryOptions {
        deadline: Some(Instant::now() + LIMIT),
        ..QueryOptions::default()
    }
}

async fn rows(
    transaction: &mut dyn Transaction,
    statement: &Arc<Statement>,
    values: &[(&str, &str)],
) -> Result<Vec<Vec<String>>> {
    let bound = bind(statement, values)?;
    let mut texts = TextRows::default();
    transaction.query(&bound, &mut texts).await?;
    Ok(texts.0)
}

fn objection(reason: &str, remedy: &str) -> Objection {
    Objection {
        reason: reason.to_owned(),
        remedy: remedy.to_owned(),
    }
}

fn member(row: Vec<String>) -> Option<AuthenticatorMember> {
    let [user, authenticator, seconds]: [String; 3] = row.try_into().ok()?;
    let valid_for = if seconds.is_empty() {
        None
    } else {
        // A negative or unreadable time counts as zero.
        let seconds: f64 = seconds.parse().unwrap_or_default();
        Some(Duration::try_from_secs_f64(seconds).unwrap_or_default())
    };
    Some(AuthenticatorMember {
        user,
        authenticator,
        valid_for,
    })
}
