//! The table of external issuers.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use tidegate_identity::StoreResult;
use tidegate_issuers::{ExternalIssuerStore, IssuerRecord, NamedRole};
use tidegate_sql::Executor;

use crate::error::{Error, Result};
use crate::query::{Argument, Database, Query};
use crate::row::{self, Record};

static VERSION: Query = Query::new(
    "select pg_catalog.concat(pg_catalog.count(*), ' ', pg_catalog.max(version)) \
     from tidegate.issuers",
);
static ALL: Query = Query::new(
    "select database, name, settings, created_at from tidegate.issuers \
     order by created_at, database collate \"C\", name collate \"C\"",
);
static LIST: Query = Query::new(
    "select database, name, settings, created_at from tidegate.issuers \
     where database = :database order by name collate \"C\"",
);
static NAMES: Query = Query::new(
    "select name from tidegate.issuers where database = :database order by name collate \"C\"",
);
static INSERT: Query = Query::new(
    "with added as (insert into tidegate.issuers (database, name, settings, created_at) \
     values (:database, :name, :settings::json, :created_at::timestamptz) \
     on conflict do nothing returning name) \
     select pg_catalog.count(pg_catalog.pg_notify('tidegate', 'issuers')) from added",
);
static UPDATE: Query = Query::new(
    "with changed as (update tidegate.issuers set settings = :settings::json, \
       version = pg_catalog.nextval('tidegate.issuer_versions') \
     where database = :database and name = :name and settings::jsonb = :read::jsonb \
     returning name) \
     select pg_catalog.count(pg_catalog.pg_notify('tidegate', 'issuers')) from changed",
);
static DELETE: Query = Query::new(
    "with gone as (delete from tidegate.issuers where database = :database and name = :name \
     returning name) \
     select pg_catalog.count(pg_catalog.pg_notify('tidegate', 'issuers')) from gone",
);
/// Finds the first name in `:names` that is a group or a user of the tenant. A group is found by
/// its role: roles are the same in all databases of a cluster, so the control database has them
/// too.
static NAMED: Query = Query::new(
    "select named.name, r.rolname is not null, coalesce(r.rolcanlogin, false) \
     from pg_catalog.json_array_elements_text(:names::json) with ordinality as named (name, place) \
     left join pg_catalog.pg_roles r \
       on r.rolname::text = pg_catalog.concat(:database::text, '/group/', named.name) \
     left join tidegate.users u on u.database = :database and u.name = named.name \
     where named.name <> :database and (r.rolname is not null or u.name is not null) \
     order by named.place limit 1",
);

/// The external issuers in the schema `tidegate` of the control database.
#[derive(Clone)]
pub struct PgIssuerStore {
    database: Database,
}

impl PgIssuerStore {
    /// A store in the control database that `executor` uses. [`crate::migrate`] must have run
    /// before.
    pub fn new(executor: Arc<dyn Executor>) -> Self {
        Self {
            database: Database::new(executor),
        }
    }

    /// The issuers that `query` selects, without those whose settings this release cannot read.
    async fn readable(
        &self,
        query: &'static Query,
        values: &[Argument<'_>],
    ) -> Result<Vec<IssuerRecord>> {
        let records = self.database.rows(query, values, read).await?;
        Ok(records.into_iter().flatten().collect())
    }
}

impl fmt::Debug for PgIssuerStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PgIssuerStore")
    }
}

#[async_trait]
impl ExternalIssuerStore for PgIssuerStore {
    async fn issuers_version(&self) -> StoreResult<String> {
        let version = self.database.row(&VERSION, &[], row::string).await?;
        Ok(version.ok_or_else(|| Error::failed("a version was expected"))?)
    }

    async fn all_issuers(&self) -> StoreResult<Vec<IssuerRecord>> {
        Ok(self.readable(&ALL, &[]).await?)
    }

    async fn issuers(&self, database: &str) -> StoreResult<Vec<IssuerRecord>> {
        Ok(self.readable(&LIST, &[&database]).await?)
    }

    async fn issuer_names(&self, database: &str) -> StoreResult<Vec<String>> {
        let values: [Argument<'_>; 1] = [&database];
        Ok(self.database.rows(&NAMES, &values, row::string).await?)
    }

    async fn insert_issuer(&self, record: &IssuerRecord) -> StoreResult<bool> {
        let settings = serde_json::to_string(&record.settings).map_err(Error::failed)?;
        let values: [Argument<'_>; 4] = [
            &record.database,
            &record.name,
            &settings,
            &record.created_at,
        ];
        let added = self.database.row(&INSERT, &values, row::count).await?;
        Ok(added == Some(1))
    }

    async fn update_issuer(&self, read: &IssuerRecord, record: &IssuerRecord) -> StoreResult<bool> {
        let before = serde_json::to_string(&read.settings).map_err(Error::failed)?;
        let after = serde_json::to_string(&record.settings).map_err(Error::failed)?;
        let values: [Argument<'_>; 4] = [&after, &record.database, &record.name, &before];
        let changed = self.database.row(&UPDATE, &values, row::count).await?;
        Ok(changed == Some(1))
    }

    async fn delete_issuer(&self, database: &str, name: &str) -> StoreResult<bool> {
        let values: [Argument<'_>; 2] = [&database, &name];
        let gone = self.database.row(&DELETE, &values, row::count).await?;
        Ok(gone == Some(1))
    }

    async fn named_role(&self, database: &str, names: &[String]) -> StoreResult<Option<NamedRole>> {
        let names = serde_json::to_string(names).map_err(Error::failed)?;
        let values: [Argument<'_>; 2] = [&names, &database];
        Ok(self.database.row(&NAMED, &values, read_named).await?)
    }
}

/// Reads an issuer; `None` if this release cannot read the settings, for example because a later
/// release has stored an unknown algorithm. Such settings must not make the other issuers
/// unreadable.
fn read(row: &mut Record<'_>) -> Result<Option<IssuerRecord>> {
    let (database, name) = (row.string()?, row.string()?);
    let settings = match serde_json::from_str(row.text()?) {
        Ok(settings) => settings,
        Err(error) => {
            tracing::warn!(database, name, %error, "the tokens of an issuer are refused");
            return Ok(None);
        }
    };
    Ok(Some(IssuerRecord {
        database,
        name,
        settings,
        created_at: row.timestamp()?,
    }))
}

fn read_named(row: &mut Record<'_>) -> Result<NamedRole> {
    let (name, is_group, can_log_in) = (row.string()?, row.boolean()?, row.boolean()?);
    Ok(if is_group {
        NamedRole::Group {
            group: name,
            can_log_in,
        }
    } else {
        NamedRole::User(name)
    })
}
