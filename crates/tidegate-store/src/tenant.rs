//! The tenants that this service knows.

use std::sync::Arc;

use tidegate_oauth::{AnonymousSql, Timestamp};
use tidegate_sql::Executor;

use crate::error::{Error, Result};
use crate::query::{Argument, Database, Query};
use crate::row::{self, Record};

static INSERT: Query = Query::new(
    "with added as (\
       insert into tidegate.tenants \
         (name, owner_role, adopted, grants, anonymous_sql, created_at) \
       values (:name, :owner_role, :adopted::boolean, :grants::json, :anonymous_sql, \
         :created_at::timestamptz) \
       on conflict do nothing returning name) \
     select pg_catalog.count(pg_catalog.pg_notify('tidegate', 'tenant ' || name)) from added",
);
static FIND: Query = Query::new(
    "select name, owner_role, adopted, grants, anonymous_sql, created_at from tidegate.tenants \
     where name = :name",
);
static LIST: Query = Query::new(
    "select name, owner_role, adopted, grants, anonymous_sql, created_at from tidegate.tenants \
     order by name collate \"C\"",
);
static GRANTS: Query =
    Query::new("update tidegate.tenants set grants = :grants::json where name = :name");
static DELETE: Query = Query::new(
    "with gone as (delete from tidegate.tenants where name = :name returning name) \
     select pg_catalog.count(pg_catalog.pg_notify('tidegate', 'tenant ' || name)) from gone",
);

/// A database that the service stands in front of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tenant {
    /// The database.
    pub name: String,
    /// The role that its owner logs in as.
    pub owner_role: String,
    /// Whether the database was there before the service.
    pub adopted: bool,
    /// What adopting it granted and revoked, as a JSON document, for the way back.
    pub grants: Option<String>,
    /// What its default user may do with raw SQL; changed by
    /// [`tidegate_oauth::Store::set_anonymous_sql`].
    pub anonymous_sql: AnonymousSql,
    /// When it was created or adopted.
    pub created_at: Timestamp,
}

/// The rows of the tenants. Users, clients and sessions of a tenant are the issuer's: see
/// [`tidegate_oauth::Store::delete_tenant`].
#[derive(Clone, Debug)]
pub struct Tenants {
    database: Database,
}

impl Tenants {
    /// The tenants in the control database of this executor.
    pub fn new(executor: Arc<dyn Executor>) -> Self {
        Self {
            database: Database::new(executor),
        }
    }

    /// Adds a tenant; `false` when its name or its owner's role is taken.
    ///
    /// # Errors
    ///
    /// [`crate::Error::Unavailable`] and [`crate::Error::Failed`], as for all of them.
    pub async fn insert(&self, tenant: &Tenant) -> Result<bool> {
        let Tenant {
            name,
            owner_role,
            adopted,
            grants,
            anonymous_sql,
            created_at,
        } = tenant;
        let anonymous_sql = anonymous_sql.name();
        let values: [Argument<'_>; 6] = [
            name,
            owner_role,
            adopted,
            grants,
            &anonymous_sql,
            created_at,
        ];
        let added = self.database.row(&INSERT, &values, row::count).await?;
        Ok(added == Some(1))
    }

    /// The tenant with this name.
    pub async fn find(&self, name: &str) -> Result<Option<Tenant>> {
        self.database.row(&FIND, &[&name], read).await
    }

    /// All tenants, by name.
    pub async fn list(&self) -> Result<Vec<Tenant>> {
        self.database.rows(&LIST, &[], read).await
    }

    /// Notes what adopting granted and revoked; `false` when there is no such tenant.
    pub async fn set_grants(&self, name: &str, grants: Option<&str>) -> Result<bool> {
        let written = self.database.execute(&GRANTS, &[&grants, &name]).await?;
        Ok(written == 1)
    }

    /// Deletes a tenant's row; `false` when there is none.
    pub async fn delete(&self, name: &str) -> Result<bool> {
        let gone = self.database.row(&DELETE, &[&name], row::count).await?;
        Ok(gone == Some(1))
    }
}

/// Reads the next value, which the table's check constraint keeps to the known ones.
pub(crate) fn read_anonymous_sql(row: &mut Record<'_>) -> Result<AnonymousSql> {
    let unknown = || Error::failed("a tenant has an unknown anonymous_sql");
    AnonymousSql::parse(row.text()?).ok_or_else(unknown)
}

fn read(row: &mut Record<'_>) -> Result<Tenant> {
    Ok(Tenant {
        name: row.string()?,
        owner_role: row.string()?,
        adopted: row.boolean()?,
        grants: row.optional_string()?,
        anonymous_sql: read_anonymous_sql(row)?,
        created_at: row.timestamp()?,
    })
}
