//! Migrates the control schema.

use std::sync::Arc;
use std::time::Instant;

use tidegate_sql::{Executor, Mode, Principal, QueryOptions, Statement, Transaction};
use tracing::info;

use crate::error::{Error, Result};
use crate::query::{OpenTransaction, Query, bind};
use crate::row::{self, RowCollector};

/// The migrations in the order in which they are applied: the number, the name and the SQL of each.
/// Released migrations are never edited. Numbers may have gaps. Each migration that the database
/// lacks is applied, whatever its number, so that parallel branches of the code can add migrations.
const MIGRATIONS: &[(u32, &str, &str)] = &[
    (
        1,
        "identity",
        include_str!("../migrations/0001_identity.sql"),
    ),
    (2, "methods", include_str!("../migrations/0002_methods.sql")),
    (
        10,
        "audit_pages",
        include_str!("../migrations/0010_audit_pages.sql"),
    ),
    (
        11,
        "identities",
        include_str!("../migrations/0011_identities.sql"),
    ),
    (20, "flows", include_str!("../migrations/0020_flows.sql")),
    (
        24,
        "identity_names",
        include_str!("../migrations/0024_identity_names.sql"),
    ),
    (
        25,
        "code_browsers",
        include_str!("../migrations/0025_code_browsers.sql"),
    ),
    (
        30,
        "anonymous_sql",
        include_str!("../migrations/0030_anonymous_sql.sql"),
    ),
    (
        35,
        "method_authors",
        include_str!("../migrations/0035_method_authors.sql"),
    ),
    (
        40,
        "builtin_clients",
        include_str!("../migrations/0040_builtin_clients.sql"),
    ),
    (
        52,
        "claims_generation",
        include_str!("../migrations/0052_claims_generation.sql"),
    ),
    (
        53,
        "user_names",
        include_str!("../migrations/0053_user_names.sql"),
    ),
    (60, "scopes", include_str!("../migrations/0060_scopes.sql")),
    (
        80,
        "issuers",
        include_str!("../migrations/0080_issuers.sql"),
    ),
    (90, "openid", include_str!("../migrations/0090_openid.sql")),
    (
        100,
        "members",
        include_str!("../migrations/0100_members.sql"),
    ),
    (
        110,
        "disabled_users",
        include_str!("../migrations/0110_disabled_users.sql"),
    ),
    (
        120,
        "passkeys",
        include_str!("../migrations/0120_passkeys.sql"),
    ),
    (
        130,
        "identifiers",
        include_str!("../migrations/0130_identifiers.sql"),
    ),
];

/// The key of the advisory lock that serialises migrations by several nodes. The number is the
/// ASCII text `tidegate`.
const LOCK: i64 = 0x7469_6465_6761_7465;

static LOCK_MIGRATIONS: Query =
    Query::new("select 1::bigint from pg_catalog.pg_advisory_xact_lock(:lock::bigint)");
static NO_TIMEOUT: Query = Query::new(
    "select pg_catalog.set_config('statement_timeout', '0', true), \
     pg_catalog.set_config('lock_timeout', '0', true)",
);
static CREATE_SCHEMA: Query = Query::new("create schema if not exists tidegate");
static CREATE_TABLE: Query = Query::new(
    "create table if not exists tidegate.migrations (\
     number integer primary key, name text not null, \
     applied_at timestamptz not null default pg_catalog.now())",
);
static APPLIED: Query =
    Query::new("select number::bigint from tidegate.migrations order by number");
static RECORD: Query =
    Query::new("insert into tidegate.migrations (number, name) values (:number::integer, :name)");

/// The result of a migration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migrated {
    /// The version of the schema before the migration; 0 if there was no schema.
    pub from: u32,
    /// The version of the schema after the migration.
    pub to: u32,
}

/// The version of the schema to which this program migrates.
pub fn newest_version() -> u32 {
    MIGRATIONS.last().map_or(0, |(number, ..)| *number)
}

/// Migrates the schema `tidegate` of the control database in one transaction, and creates it if it
/// is missing. Concurrent calls wait for each other; only the first call has something to migrate.
///
/// # Errors
///
/// [`Error::NewerSchema`] when a newer version has migrated the schema, [`Error::Unavailable`], and
/// [`Error::Failed`] when a statement is refused, for example because of missing privileges.
pub async fn migrate(executor: &Arc<dyn Executor>) -> Result<Migrated> {
    let options = long_deadline();
    let begun = executor.begin(&Principal::Control, Mode::ReadWrite, &options);
    let mut open = OpenTransaction(begun.await?);
    open.row(&NO_TIMEOUT, &[], row::nothing).await?;
    open.row(&LOCK_MIGRATIONS, &[&LOCK], row::nothing).await?;
    open.execute(&CREATE_SCHEMA, &[]).await?;
    open.execute(&CREATE_TABLE, &[]).await?;
    let applied = open.rows(&APPLIED, &[], row::count).await?;
    let from = newest(&applied)?;
    let known = newest_version();
    if let Some(found) = unknown(&applied) {
        return Err(Error::NewerSchema { found, known });
    }
    let missing = MIGRATIONS
        .iter()
        .filter(|(number, ..)| !applied.contains(&u64::from(*number)));
    for (number, name, text) in missing {
        apply(&mut open.0, text).await?;
        open.execute(&RECORD, &[&i64::from(*number), name]).await?;
        info!(number, name, "migrated the control schema");
    }
    open.commit().await?;
    Ok(Migrated { from, to: known })
}

fn newest(applied: &[u64]) -> Result<u32> {
    u32::try_from(applied.last().copied().unwrap_or(0)).map_err(Error::failed)
}

/// The lowest number of an applied migration that this program does not have; `None` if it has all
/// of them.
fn unknown(applied: &[u64]) -> Option<u32> {
    let known = |found: &u32| MIGRATIONS.iter().any(|(number, ..)| number == found);
    applied
        .iter()
        .map(|number| u32::try_from(*number).unwrap_or(u32::MAX))
        .find(|found| !known(found))
}

/// Query options with a long deadline, because a migration may take long, and a migration by
/// another node may have to end first.
fn long_deadline() -> QueryOptions {
    QueryOptions {
        deadline: Some(Instant::now() + std::time::Duration::from_mins(10)),
        ..QueryOptions::default()
    }
}

async fn apply(transaction: &mut Box<dyn Transaction>, text: &str) -> Result<()> {
    for statement in statements(text) {
        let statement = Statement::parse(statement).map_err(Error::failed)?;
        let bound = bind(Arc::new(statement), Vec::new())?;
        let mut nothing = RowCollector::new(row::nothing);
        transaction.query(&bound, &mut nothing).await?;
    }
    Ok(())
}

/// The statements of a migration's text. Each statement ends with a semicolon at the end of a line.
fn statements(text: &str) -> impl Iterator<Item = &str> {
    text.split(";\n")
        .map(str::trim)
        .filter(|statement| !statement.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_grow() {
        assert!(MIGRATIONS.is_sorted_by(|one, next| one.0 < next.0));
    }

    #[test]
    fn every_migration_is_a_list_of_readable_statements() {
        for (_, name, text) in MIGRATIONS {
            assert!(text.ends_with(";\n"), "{name} ends with a statement");
            for statement in statements(text) {
                let read = Statement::parse(statement);
                assert!(read.is_ok(), "{name}: {statement}\n{read:?}");
                assert!(read.unwrap().placeholders().is_empty());
            }
        }
    }
}
