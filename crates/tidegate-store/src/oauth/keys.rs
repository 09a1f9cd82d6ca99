//! The table of signing keys, whose private keys are encrypted.

use tidegate_identity::Timestamp;
use tidegate_oauth::{KeyState, SigningKeyRecord};

use crate::error::{Error, Result};
use crate::query::{Argument, Database, Query};
use crate::row::{self, Record};

static LIST: Query = Query::new(
    "select id, state, since, public_key, sealed_private_key, created_at \
     from tidegate.signing_keys order by created_at, id",
);
static INSERT: Query = Query::new(
    "with added as (insert into tidegate.signing_keys \
       (id, state, since, public_key, sealed_private_key, created_at) \
     values (:id, :state, :since::timestamptz, :public_key::bytea, :sealed::bytea, \
       :created_at::timestamptz) \
     on conflict do nothing returning id) \
     select pg_catalog.count(pg_catalog.pg_notify('tidegate', 'keys')) from added",
);
static MOVE: Query = Query::new(
    "with moved as (update tidegate.signing_keys set state = :to, since = :at::timestamptz \
       where id = :id and state = :from returning id) \
     select pg_catalog.count(pg_catalog.pg_notify('tidegate', 'keys')) from moved",
);
static DELETE: Query = Query::new(
    "with gone as (delete from tidegate.signing_keys \
       where id = :id and state = 'retired' returning id) \
     select pg_catalog.count(pg_catalog.pg_notify('tidegate', 'keys')) from gone",
);

pub(super) async fn list(database: &Database) -> Result<Vec<SigningKeyRecord>> {
    database.rows(&LIST, &[], read).await
}

pub(super) async fn insert(database: &Database, key: &SigningKeyRecord) -> Result<bool> {
    let since = match key.state {
        KeyState::Next => None,
        KeyState::Active { since } | KeyState::Retired { since } => Some(since),
    };
    let (state, public) = (key.state.name(), key.public_key.as_slice());
    let sealed = key.sealed_private_key.as_slice();
    let values: [Argument<'_>; 6] = [&key.id, &state, &since, &public, &sealed, &key.created_at];
    Ok(database.row(&INSERT, &values, row::count).await? == Some(1))
}

/// Makes the next key the active key, in one transaction. Two statements are needed, because the
/// unique index on the state does not allow two active keys, even within one statement.
pub(super) async fn promote(
    database: &Database,
    next: &str,
    active: &str,
    at: Timestamp,
) -> Result<bool> {
    let mut open = database.begin().await?;
    for (id, from, to) in [(active, "active", "retired"), (next, "next", "active")] {
        let values: [Argument<'_>; 4] = [&to, &at, &id, &from];
        if open.row(&MOVE, &values, row::count).await? != Some(1) {
            return Ok(false);
        }
    }
    open.commit().await?;
    Ok(true)
}

pub(super) async fn delete(database: &Database, id: &str) -> Result<bool> {
    Ok(database.row(&DELETE, &[&id], row::count).await? == Some(1))
}

fn read(row: &mut Record<'_>) -> Result<SigningKeyRecord> {
    Ok(SigningKeyRecord {
        id: row.string()?,
        state: state(row)?,
        public_key: row.bytes()?.to_vec(),
        sealed_private_key: row.bytes()?.to_vec(),
        created_at: row.timestamp()?,
    })
}

fn state(row: &mut Record<'_>) -> Result<KeyState> {
    match (row.text()?, row.optional_timestamp()?) {
        ("next", None) => Ok(KeyState::Next),
        ("active", Some(since)) => Ok(KeyState::Active { since }),
        ("retired", Some(since)) => Ok(KeyState::Retired { since }),
        (name, _) => Err(Error::failed(format!("a signing key is in state `{name}`"))),
    }
}
