//! Writes methods. A write changes all its methods or none of them. The writes of a tenant are
//! serialised.

use std::collections::{BTreeMap, BTreeSet};

use tidegate_methods::store::{MayRemove, NewMethod, Revise};
use tidegate_methods::{MethodName, Record, WriteOutcome};
use tidegate_sql::DatabaseName;

use super::row::{self, Author, NewRow};
use crate::error::Result;
use crate::query::{Argument, Database, OpenTransaction, Query};
use crate::row::{nothing, string};

// The lock is taken by a separate statement, so that later statements of the transaction see the
// rows that previous writers committed.
static LOCK_TENANT_METHODS: Query = Query::new(
    "select 1::bigint from pg_catalog.pg_advisory_xact_lock(\
     7628146, pg_catalog.hashtext(:database))",
);
static READ: Query = Query::new(
    "select name, q, type_hints, type_formats, output_format, creator, by_owner, \
     signature, version \
     from tidegate.methods where database = :database \
     and name in (select pg_catalog.json_array_elements_text(:names::json)) for update",
);
static INSERT: Query = Query::new(
    "insert into tidegate.methods \
       (database, name, q, type_hints, type_formats, output_format, creator, by_owner, signature) \
     select :database, name, q, type_hints, type_formats, output_format, creator, by_owner, \
       signature \
     from pg_catalog.json_to_recordset(:methods::json) as new (name text, q text, \
       type_hints json, type_formats json, output_format text, creator text, by_owner boolean, \
       signature text) \
     on conflict do nothing returning name",
);
static DELETE: Query = Query::new(
    "delete from tidegate.methods where database = :database \
     and name in (select pg_catalog.json_array_elements_text(:names::json))",
);
static NOTIFY: Query = Query::new(
    "select pg_catalog.count(pg_catalog.pg_notify('tidegate', \
       'method ' || name || ' ' || :database::text)) \
     from pg_catalog.json_array_elements_text(:names::json) as name",
);

/// Adds methods; see [`tidegate_methods::MethodStore::insert`].
pub(super) async fn insert(
    database: &Database,
    tenant: &DatabaseName,
    methods: &[NewMethod],
) -> Result<WriteOutcome> {
    let rows: Vec<_> = methods
        .iter()
        .map(|new| {
            let author = Author {
                creator: &new.creator,
                by_owner: new.by_owner,
            };
            NewRow::of(&new.definition, author, None)
        })
        .collect();
    let mut transaction = LockedTransaction::take(database, tenant).await?;
    let names = methods.iter().map(|new| &new.definition.name);
    let taken = transaction.insert(&rows, names).await?;
    transaction.end(taken).await
}

/// Changes methods; see [`tidegate_methods::MethodStore::update`].
pub(super) async fn update(
    database: &Database,
    tenant: &DatabaseName,
    names: &[MethodName],
    revise: &Revise<'_>,
) -> Result<WriteOutcome> {
    let mut transaction = LockedTransaction::take(database, tenant).await?;
    let before = match transaction.read(names).await? {
        Ok(before) => before,
        Err(missing) => return Ok(missing),
    };
    let (mut revisions, mut refused) = (Vec::with_capacity(names.len()), Vec::new());
    for record in &before {
        match revise(record) {
            Some(revision) => revisions.push((revision, record)),
            None => refused.push(record.definition.name.clone()),
        }
    }
    if !refused.is_empty() {
        return Ok(WriteOutcome::Refused(refused));
    }
    // The old rows are deleted first, so that methods can swap their names.
    transaction.delete(names).await?;
    let rows: Vec<_> = revisions
        .iter()
        .map(|(revision, before)| {
            let signature = before.signature.as_ref();
            let signature = signature.filter(|_| revision.keeps_signature);
            let author = Author {
                creator: &before.creator,
                by_owner: revision.by_owner,
            };
            NewRow::of(&revision.definition, author, signature)
        })
        .collect();
    let names = revisions.iter().map(|(after, _)| &after.definition.name);
    let taken = transaction.insert(&rows, names).await?;
    transaction.end(taken).await
}

/// Removes methods; see [`tidegate_methods::MethodStore::remove`].
pub(super) async fn remove(
    database: &Database,
    tenant: &DatabaseName,
    names: &[MethodName],
    may_remove: &MayRemove<'_>,
) -> Result<WriteOutcome> {
    let mut transaction = LockedTransaction::take(database, tenant).await?;
    let before = match transaction.read(names).await? {
        Ok(before) => before,
        Err(missing) => return Ok(missing),
    };
    let refused = before.iter().filter(|record| !may_remove(record));
    let refused: Vec<_> = refused
        .map(|record| record.definition.name.clone())
        .collect();
    if !refused.is_empty() {
        return Ok(WriteOutcome::Refused(refused));
    }
    transaction.delete(names).await?;
    transaction.end(Vec::new()).await
}

/// A transaction that holds the write lock of a tenant. Dropping it rolls it back.
struct LockedTransaction<'a> {
    open: OpenTransaction,
    tenant: &'a str,
}

impl<'a> LockedTransaction<'a> {
    async fn take(database: &Database, tenant: &'a DatabaseName) -> Result<Self> {
        let tenant = tenant.as_str();
        let mut open = database.begin().await?;
        open.row(&LOCK_TENANT_METHODS, &[&tenant], nothing).await?;
        Ok(Self { open, tenant })
    }

    /// The methods with these names, in this order. If some do not exist, the inner error is
    /// [`WriteOutcome::Missing`] with their names.
    async fn read(&mut self, names: &[MethodName]) -> Result<Result<Vec<Record>, WriteOutcome>> {
        let wanted = row::names(names)?;
        let values: [Argument<'_>; 2] = [&self.tenant, &wanted];
        let found = self.open.rows(&READ, &values, row::read).await?;
        let keyed = |record: Record| (record.definition.name.clone(), record);
        let mut known: BTreeMap<MethodName, Record> = found.into_iter().map(keyed).collect();
        let (mut records, mut missing) = (Vec::with_capacity(names.len()), Vec::new());
        for name in names {
            match known.remove(name) {
                Some(record) => records.push(record),
                None => missing.push(name.clone()),
            }
        }
        Ok(if missing.is_empty() {
            Ok(records)
        } else {
            Err(WriteOutcome::Missing(missing))
        })
    }

    /// Inserts rows. Returns the names of the rows that were not inserted, because a method or an
    /// earlier row has the same name.
    async fn insert<'b>(
        &mut self,
        rows: &[NewRow<'_>],
        names: impl Iterator<Item = &'b MethodName>,
    ) -> Result<Vec<MethodName>> {
        let rows = row::document(rows)?;
        let values: [Argument<'_>; 2] = [&self.tenant, &rows];
        let added = self.open.rows(&INSERT, &values, string).await?;
        let mut free: BTreeSet<String> = added.into_iter().collect();
        let taken = names.filter(|name| !free.remove(name.as_str()));
        Ok(taken.cloned().collect())
    }

    /// Deletes methods and notifies the other nodes.
    async fn delete(&mut self, names: &[MethodName]) -> Result<()> {
        let names = row::names(names)?;
        let values: [Argument<'_>; 2] = [&self.tenant, &names];
        self.open.execute(&DELETE, &values).await?;
        self.open
            .row(&NOTIFY, &[&self.tenant, &names], nothing)
            .await?;
        Ok(())
    }

    /// Commits the transaction, or rolls it back if `taken` is not empty. `taken` has the names
    /// that could not be inserted, because other methods have them.
    async fn end(self, taken: Vec<MethodName>) -> Result<WriteOutcome> {
        if !taken.is_empty() {
            return Ok(WriteOutcome::Taken(taken));
        }
        self.open.commit().await?;
        Ok(WriteOutcome::Done)
    }
}
