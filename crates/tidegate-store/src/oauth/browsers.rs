//! The table of browser sessions.

use tidegate_identity::{BrowserSession, SecretHash, Timestamp, UserKey};

use crate::error::{Error, Result};
use crate::query::{Argument, Database, Query};
use crate::row::Record;

static INSERT: Query = Query::new(
    "insert into tidegate.browser_sessions (id, database, user_name, stamp, second_factor, agent, \
       address, created_at, seen_at, expires_at) \
     values (:id::bytea, :database, :user_name, :stamp::bytea, :second_factor::boolean, :agent, \
       :address::inet, :created_at::timestamptz, :seen_at::timestamptz, :expires_at::timestamptz)",
);
static FIND: Query = Query::new(
    "select id, database, user_name, stamp, second_factor, agent, pg_catalog.host(address), \
     created_at, seen_at, expires_at from tidegate.browser_sessions where id = :id::bytea",
);
static OF_USER: Query = Query::new(
    "select id, database, user_name, stamp, second_factor, agent, pg_catalog.host(address), \
     created_at, seen_at, expires_at from tidegate.browser_sessions \
     where database = :database and user_name = :name and expires_at > :now::timestamptz \
     order by seen_at desc, id",
);
static TOUCH: Query = Query::new(
    "update tidegate.browser_sessions set seen_at = :seen_at::timestamptz, \
     expires_at = :expires_at::timestamptz where id = :id::bytea",
);
static DELETE: Query = Query::new("delete from tidegate.browser_sessions where id = :id::bytea");

pub(super) async fn insert(database: &Database, session: &BrowserSession) -> Result<()> {
    let (id, fingerprint) = (
        &session.id.as_bytes()[..],
        &session.password_fingerprint.as_bytes()[..],
    );
    let address = session.address.map(|address| address.to_string());
    let values: [Argument<'_>; 10] = [
        &id,
        &session.user.database,
        &session.user.name,
        &fingerprint,
        &session.second_factor,
        &session.agent,
        &address,
        &session.created_at,
        &session.seen_at,
        &session.expires_at,
    ];
    database.execute(&INSERT, &values).await?;
    Ok(())
}

pub(super) async fn find(database: &Database, id: SecretHash) -> Result<Option<BrowserSession>> {
    database.row(&FIND, &[&&id.as_bytes()[..]], read).await
}

pub(super) async fn of_user(
    database: &Database,
    key: &UserKey,
    now: Timestamp,
) -> Result<Vec<BrowserSession>> {
    let values: [Argument<'_>; 3] = [&key.database, &key.name, &now];
    database.rows(&OF_USER, &values, read).await
}

pub(super) async fn touch(
    database: &Database,
    id: SecretHash,
    (seen_at, expires_at): (Timestamp, Timestamp),
) -> Result<()> {
    let id = &id.as_bytes()[..];
    database
        .execute(&TOUCH, &[&seen_at, &expires_at, &id])
        .await?;
    Ok(())
}

pub(super) async fn delete(database: &Database, id: SecretHash) -> Result<bool> {
    let id = &id.as_bytes()[..];
    Ok(database.execute(&DELETE, &[&id]).await? == 1)
}

fn read(row: &mut Record<'_>) -> Result<BrowserSession> {
    Ok(BrowserSession {
        id: row.array().map(SecretHash::from_bytes)?,
        user: UserKey::new(row.text()?, row.text()?),
        password_fingerprint: row.array().map(SecretHash::from_bytes)?,
        second_factor: row.boolean()?,
        agent: row.string()?,
        address: row
            .optional_text()?
            .map(str::parse)
            .transpose()
            .map_err(Error::failed)?,
        created_at: row.timestamp()?,
        seen_at: row.timestamp()?,
        expires_at: row.timestamp()?,
    })
}
