//! The tables of second factors and recovery codes.

use tidegate_identity::{SecondFactor, SecretHash, UserKey};

use crate::error::{Error, Result};
use crate::query::{Argument, Database, Query, hex};
use crate::row::{self, Record};

static FIND: Query = Query::new(
    "select sealed_secret, used_step, (select pg_catalog.count(*) from tidegate.recovery_codes \
       where database = factor.database and user_name = factor.user_name) \
     from tidegate.second_factors as factor where database = :database and user_name = :name",
);
static INSERT: Query = Query::new(
    "insert into tidegate.second_factors (database, user_name, sealed_secret, used_step) \
     values (:database, :name, :sealed_secret::bytea, :used_step::bigint) on conflict do nothing",
);
static INSERT_CODES: Query = Query::new(
    "insert into tidegate.recovery_codes (database, user_name, hash) \
     select :database, :name, pg_catalog.decode(code, 'hex') \
     from pg_catalog.json_array_elements_text(:codes::json) as code",
);
static USE_STEP: Query = Query::new(
    "update tidegate.second_factors set used_step = :step::bigint \
     where database = :database and user_name = :name and used_step < :step::bigint",
);
static USE_CODE: Query = Query::new(
    "delete from tidegate.recovery_codes \
     where database = :database and user_name = :name and hash = :hash::bytea",
);
static DELETE: Query = Query::new(
    "delete from tidegate.second_factors where database = :database and user_name = :name",
);

pub(super) async fn find(database: &Database, key: &UserKey) -> Result<Option<SecondFactor>> {
    let values: [Argument<'_>; 2] = [&key.database, &key.name];
    database.row(&FIND, &values, read).await
}

pub(super) async fn insert(
    database: &Database,
    key: &UserKey,
    factor: &SecondFactor,
    codes: &[SecretHash],
) -> Result<bool> {
    let sealed = &factor.sealed_secret[..];
    let mut open = database.begin().await?;
    let values: [Argument<'_>; 4] = [&key.database, &key.name, &sealed, &factor.used_step];
    if open.execute(&INSERT, &values).await? == 0 {
        return Ok(false);
    }
    let codes: Vec<String> = codes.iter().map(|code| hex("", code.as_bytes())).collect();
    let codes = serde_json::to_string(&codes).map_err(Error::failed)?;
    let values: [Argument<'_>; 3] = [&key.database, &key.name, &codes];
    open.execute(&INSERT_CODES, &values).await?;
    open.commit().await?;
    Ok(true)
}

pub(super) async fn use_step(database: &Database, key: &UserKey, step: u64) -> Result<bool> {
    let values: [Argument<'_>; 3] = [&step, &key.database, &key.name];
    Ok(database.execute(&USE_STEP, &values).await? == 1)
}

pub(super) async fn use_code(database: &Database, key: &UserKey, code: SecretHash) -> Result<bool> {
    let hash = &code.as_bytes()[..];
    let values: [Argument<'_>; 3] = [&key.database, &key.name, &hash];
    Ok(database.execute(&USE_CODE, &values).await? == 1)
}

pub(super) async fn delete(database: &Database, key: &UserKey) -> Result<bool> {
    let values: [Argument<'_>; 2] = [&key.database, &key.name];
    Ok(database.execute(&DELETE, &values).await? == 1)
}

fn read(row: &mut Record<'_>) -> Result<SecondFactor> {
    Ok(SecondFactor {
        sealed_secret: row.bytes()?.to_vec(),
        used_step: row.count()?,
        recovery_codes: row::count(row)?,
    })
}
