//! The table of consents: the scopes that users have granted to clients.

use tidegate_identity::UserKey;
use tidegate_oauth::Consent;

use super::sessions;
use crate::error::Result;
use crate::query::{Argument, Database, Query};
use crate::row::Record;

static FIND: Query = Query::new(
    "select client_id, scope, given_at from tidegate.consents \
     where database = :database and user_name = :name and client_id = :client_id",
);
static LIST: Query = Query::new(
    "select client_id, scope, given_at from tidegate.consents \
     where database = :database and user_name = :name order by client_id collate \"C\"",
);
static PUT: Query = Query::new(
    "insert into tidegate.consents (database, user_name, client_id, scope, given_at) \
     values (:database, :name, :client_id, :scope, :given_at::timestamptz) \
     on conflict (database, user_name, client_id) \
     do update set scope = excluded.scope, given_at = excluded.given_at",
);
static DELETE: Query = Query::new(
    "with codes as (delete from tidegate.authorization_codes \
       where database = :database and user_name = :name and client_id = :client_id \
         and session is null), \
     devices as (delete from tidegate.device_codes \
       where database = :database and user_name = :name and client_id = :client_id \
         and state = 'approved') \
     delete from tidegate.consents \
     where database = :database and user_name = :name and client_id = :client_id",
);

pub(super) async fn find(
    database: &Database,
    key: &UserKey,
    client_id: &str,
) -> Result<Option<Consent>> {
    let values: [Argument<'_>; 3] = [&key.database, &key.name, &client_id];
    database.row(&FIND, &values, read).await
}

pub(super) async fn list(database: &Database, key: &UserKey) -> Result<Vec<Consent>> {
    database
        .rows(&LIST, &[&key.database, &key.name], read)
        .await
}

pub(super) async fn put(database: &Database, key: &UserKey, consent: &Consent) -> Result<()> {
    let values: [Argument<'_>; 5] = [
        &key.database,
        &key.name,
        &consent.client_id,
        &consent.scopes,
        &consent.given_at,
    ];
    database.execute(&PUT, &values).await?;
    Ok(())
}

pub(super) async fn delete(database: &Database, key: &UserKey, client_id: &str) -> Result<bool> {
    let values: [Argument<'_>; 3] = [&key.database, &key.name, &client_id];
    Ok(database.execute(&DELETE, &values).await? == 1)
}

fn read(row: &mut Record<'_>) -> Result<Consent> {
    Ok(Consent {
        client_id: row.string()?,
        scopes: sessions::scopes(row)?,
        given_at: row.timestamp()?,
    })
}
