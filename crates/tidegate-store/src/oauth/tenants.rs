//! The settings of tenants, which all nodes cache.

use tidegate_identity::AnonymousSql;

use crate::error::Result;
use crate::query::{Database, Query};
use crate::row;
use crate::tenant::read_anonymous_sql;

static ANONYMOUS_SQL: Query =
    Query::new("select anonymous_sql from tidegate.tenants where name = :name");
static SET_ANONYMOUS_SQL: Query = Query::new(
    "with changed as (update tidegate.tenants set anonymous_sql = :setting \
       where name = :name returning name) \
     select pg_catalog.count(pg_catalog.pg_notify('tidegate', 'settings ' || name)) from changed",
);

static IMPERSONATION: Query =
    Query::new("select impersonation from tidegate.tenants where name = :name");
static SET_IMPERSONATION: Query = Query::new(
    "with changed as (update tidegate.tenants set impersonation = :allowed::boolean \
       where name = :name returning name) \
     select pg_catalog.count(pg_catalog.pg_notify('tidegate', 'settings ' || name)) from changed",
);

pub(super) async fn anonymous_sql(database: &Database, tenant: &str) -> Result<AnonymousSql> {
    let found = database
        .row(&ANONYMOUS_SQL, &[&tenant], read_anonymous_sql)
        .await?;
    Ok(found.unwrap_or_default())
}

pub(super) async fn set_anonymous_sql(
    database: &Database,
    tenant: &str,
    setting: AnonymousSql,
) -> Result<bool> {
    let changed = database
        .row(&SET_ANONYMOUS_SQL, &[&setting.name(), &tenant], row::count)
        .await?;
    Ok(changed == Some(1))
}

pub(super) async fn impersonation(database: &Database, tenant: &str) -> Result<bool> {
    let found = database
        .row(&IMPERSONATION, &[&tenant], row::boolean)
        .await?;
    Ok(found.unwrap_or(false))
}

pub(super) async fn set_impersonation(
    database: &Database,
    tenant: &str,
    allowed: bool,
) -> Result<bool> {
    let changed = database
        .row(&SET_IMPERSONATION, &[&allowed, &tenant], row::count)
        .await?;
    Ok(changed == Some(1))
}
