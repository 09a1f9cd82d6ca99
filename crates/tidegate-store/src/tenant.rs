//! The tenants of this service.

use std::sync::Arc;

use tidegate_identity::{AnonymousSql, Timestamp};
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

/// A tenant: a database that the service provides access to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tenant {
    /// The database's name.
    pub name: String,
    /// The owner's role.
    pub owner_role: String,
    /// Whether the database existed before and was adopted.
    pub adopted: bool,
    /// What adopting it granted and revoked, as a JSON document, to undo it.
    pub grants: Option<String>,
    /// Which SQL its default user may run; changed by [`tidegate_identity::IdentityStore::set_anonymous_sql`].
    pub anonymous_sql: AnonymousSql,
    /// When it was created or adopted.
    pub created_at: Timestamp,
}

/// The table of tenants. Users, clients and sessions of a tenant are deleted by
/// [`tidegate_identity::IdentityStore::delete_tenant`].
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

    /// Adds a tenant; `false` when its name or its owner's role exists already.
    ///
    /// # Errors
    ///
    /// [`crate::Error::Unavailable`] and [`crate::Error::Failed`], like all methods.
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

    /// Stores what adopting granted and revoked; `false` when the tenant does not exist.
    pub async fn set_grants(&self, name: &str, grants: Option<&str>) -> Result<bool> {
        let written = self.database.execute(&GRANTS, &[&grants, &name]).await?;
        Ok(written == 1)
    }

    /// Deletes a tenant's row; `false` when it does not exist.
    pub async fn delete(&self, name: &str) -> Result<bool> {
        let gone = self.database.row(&DELETE, &[&name], row::count).await?;
        Ok(gone == Some(1))
    }
}

/// Decodes the next value, which a check constraint limits to the known ones.
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
