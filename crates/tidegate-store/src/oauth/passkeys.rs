//! The table of passkeys.

use tidegate_identity::{Passkey, RemovalOutcome, Timestamp, UserKey};

use super::identities::{LOCK_USER, delete_credential};
use crate::error::Result;
use crate::query::{Argument, Database, Query};
use crate::row::{self, Record};

static FIND: Query = Query::new(
    "select id, name, record, created_at, used_at, database, user_name from tidegate.passkeys \
     where id = :id",
);
static LIST: Query = Query::new(
    "select id, name, record, created_at, used_at from tidegate.passkeys \
     where database = :database and user_name = :user_name \
     order by created_at, id collate \"C\"",
);
static INSERT: Query = Query::new(
    "insert into tidegate.passkeys (id, database, user_name, name, record, created_at, used_at) \
     values (:id, :database, :user_name, :name, :record, :created_at::timestamptz, \
       :used_at::timestamptz) on conflict do nothing",
);
static RENAME: Query = Query::new(
    "update tidegate.passkeys set name = :name \
     where database = :database and user_name = :user_name and id = :id",
);
static USE: Query = Query::new(
    "update tidegate.passkeys set record = :record, used_at = :at::timestamptz \
     where id = :id and record = :read",
);
static DELETE: Query = Query::new(
    "delete from tidegate.passkeys \
     where database = :database and user_name = :user_name and id = :id",
);

pub(super) async fn find(database: &Database, id: &str) -> Result<Option<(UserKey, Passkey)>> {
    database
        .row(&FIND, &[&id], |row| {
            let passkey = read(row)?;
            Ok((UserKey::new(row.string()?, row.string()?), passkey))
        })
        .await
}

pub(super) async fn list(database: &Database, key: &UserKey) -> Result<Vec<Passkey>> {
    let values: [Argument<'_>; 2] = [&key.database, &key.name];
    database.rows(&LIST, &values, read).await
}

/// Inserts a passkey, unless the user has the maximum number. Returns whether it was inserted.
pub(super) async fn insert(database: &Database, key: &UserKey, passkey: &Passkey) -> Result<bool> {
    let user: [Argument<'_>; 2] = [&key.database, &key.name];
    let mut open = database.begin().await?;
    open.row(&LOCK_USER, &user, row::boolean).await?;
    if open.rows(&LIST, &user, read).await?.len() >= Passkey::MAX_COUNT {
        return Ok(false);
    }
    let values: [Argument<'_>; 7] = [
        &passkey.id,
        &key.database,
        &key.name,
        &passkey.name,
        &passkey.record,
        &passkey.created_at,
        &passkey.used_at,
    ];
    let inserted = open.execute(&INSERT, &values).await? == 1;
    open.commit().await?;
    Ok(inserted)
}

pub(super) async fn rename(
    database: &Database,
    key: &UserKey,
    (id, name): (&str, &str),
) -> Result<bool> {
    let values: [Argument<'_>; 4] = [&name, &key.database, &key.name, &id];
    Ok(database.execute(&RENAME, &values).await? == 1)
}

pub(super) async fn update(
    database: &Database,
    before: &Passkey,
    record: &str,
    at: Timestamp,
) -> Result<bool> {
    let values: [Argument<'_>; 4] = [&record, &at, &before.id, &before.record];
    Ok(database.execute(&USE, &values).await? == 1)
}

/// Deletes a passkey, unless the user would have no credential left.
pub(super) async fn delete(database: &Database, key: &UserKey, id: &str) -> Result<RemovalOutcome> {
    let values: [Argument<'_>; 3] = [&key.database, &key.name, &id];
    delete_credential(database, key, (&DELETE, &values)).await
}

fn read(row: &mut Record<'_>) -> Result<Passkey> {
    Ok(Passkey {
        id: row.string()?,
        name: row.string()?,
        record: row.string()?,
        created_at: row.timestamp()?,
        used_at: row.optional_timestamp()?,
    })
}
