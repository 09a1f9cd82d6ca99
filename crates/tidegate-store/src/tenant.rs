//! The table of tenants in the control database.

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
    "select name, owner_role, adopted, grants, anonymous_sql, created_at, \
     claims_generation::bigint from tidegate.tenants \
     where name = :name",
);
static LIST: Query = Query::new(
    "select name, owner_role, adopted, grants, anonymous_sql, created_at, \
     claims_generation::bigint from tidegate.tenants \
     order by name collate \"C\"",
);
static ROTATE_CLAIMS: Query = Query::new(
    "update tidegate.tenants set claims_generation = claims_generation + 1 where name = :name \
     returning claims_generation::bigint",
);
static DELETE: Query = Query::new(
    "with gone as (delete from tidegate.tenants where name = :name returning name) \
     select pg_catalog.count(pg_catalog.pg_notify('tidegate', 'tenant ' || name)) from gone",
);

/// The row of a tenant: a database that the service provides access to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tenant {
    /// The name of the database.
    pub name: String,
    /// The role of the owner.
    pub owner_role: String,
    /// Whether the database existed before the tenant and was adopted.
    pub adopted: bool,
    /// The privileges that were granted and revoked when the database was adopted, as JSON, so that
    /// the changes can be undone. `None` if nothing has to be undone.
    pub grants: Option<String>,
    /// The SQL that the tenant's default user may run.
    /// [`tidegate_identity::IdentityStore::set_anonymous_sql`] changes it.
    pub anonymous_sql: AnonymousSql,
    /// When the tenant was created or adopted.
    pub created_at: Timestamp,
    /// The generation of the key that seals claims in the tenant's database. The first generation
    /// is 1.
    pub claims_generation: i32,
}

/// The table of tenants. Deleting a row does not delete the users, clients and sessions of the
/// tenant; [`tidegate_identity::IdentityStore::delete_tenant`] deletes them.
#[derive(Clone, Debug)]
pub struct Tenants {
    database: Database,
}

impl Tenants {
    /// The table of tenants in the control database that `executor` uses.
    pub fn new(executor: Arc<dyn Executor>) -> Self {
        Self {
            database: Database::new(executor),
        }
    }

    /// Adds a tenant. Returns `false` if another tenant has the same name or the same owner role.
    ///
    /// # Errors
    ///
    /// [`crate::Error::Unavailable`] and [`crate::Error::Failed`], as for all functions of this
    /// type.
    pub async fn insert(&self, tenant: &Tenant) -> Result<bool> {
        let Tenant {
            name,
            owner_role,
            adopted,
            grants,
            anonymous_sql,
            created_at,
            claims_generation: _,
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

    /// The tenant whose database has this name.
    pub async fn find(&self, name: &str) -> Result<Option<Tenant>> {
        self.database.row(&FIND, &[&name], read).await
    }

    /// All tenants, sorted by name.
    pub async fn list(&self) -> Result<Vec<Tenant>> {
        self.database.rows(&LIST, &[], read).await
    }

    /// Increments the generation of the key that seals claims, and returns the new generation;
    /// `None` if the tenant does not exist.
    pub async fn rotate_claims(&self, name: &str) -> Result<Option<i32>> {
        self.database
            .row(&ROTATE_CLAIMS, &[&name], generation)
            .await
    }

    /// Deletes the row of a tenant. Returns `false` if there is no such row.
    pub async fn delete(&self, name: &str) -> Result<bool> {
        let gone = self.database.row(&DELETE, &[&name], row::count).await?;
        Ok(gone == Some(1))
    }
}

/// Decodes the next value as an [`AnonymousSql`]. A check constraint of the table allows only the
/// names of [`AnonymousSql`].
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
        claims_generation: generation(row)?,
    })
}

fn generation(row: &mut Record<'_>) -> Result<i32> {
    i32::try_from(row.integer()?).map_err(Error::failed)
}
