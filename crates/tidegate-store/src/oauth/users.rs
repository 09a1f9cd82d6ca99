//! The table of users.

use serde_json::{Map, Value as Json};
use tidegate_identity::{EndReason, Timestamp, User, UserKey, WriteOutcome};

use crate::error::{Error, Result};
use crate::query::{Argument, Database, Query};
use crate::row::{self, Record};

/// The columns of a user, in the order in which [`read`] decodes them.
macro_rules! columns {
    () => {
        "u.database, u.name, u.role, u.id, u.password_hash, u.email, u.confirmed_email, \
         u.properties, u.user_group, u.default_user, u.disabled, u.created_at"
    };
}
pub(super) use columns;

static FIND: Query = Query::new(concat!(
    "select ",
    columns!(),
    " from tidegate.users u where u.database = :database and u.name = :name",
));
static FIND_BY_ID: Query = Query::new(concat!(
    "select ",
    columns!(),
    " from tidegate.users u where u.database = :database and coalesce(u.id, u.name) = :id",
));
static WITH_ROLE: Query = Query::new(concat!(
    "select ",
    columns!(),
    " from tidegate.users u where u.database = :database and u.kind = 'role' \
     order by u.name collate \"C\"",
));
static WITH_EMAIL: Query = Query::new(concat!(
    "select ",
    columns!(),
    " from tidegate.users u \
     where u.database = :database and pg_catalog.lower(u.email) = pg_catalog.lower(:email) \
     order by u.name collate \"C\" limit 10",
));
static HAS_SIMILAR: Query = Query::new(
    "select exists (select from tidegate.users where database = :database \
       and pg_catalog.lower(name collate \"C\") = pg_catalog.lower(:name collate \"C\")) \
     or exists (select from tidegate.dropped_ids where database = :database and id = :name)",
);
static RESERVE_ID: Query = Query::new(
    "insert into tidegate.dropped_ids (database, id) values (:database, :id) on conflict do nothing",
);
static FIND_DEFAULT: Query = Query::new(concat!(
    "select ",
    columns!(),
    " from tidegate.users u where u.database = :database and u.default_user",
));
static INSERT: Query = Query::new(
    "with added as (insert into tidegate.users (database, name, kind, role, id, password_hash, \
       email, confirmed_email, properties, user_group, default_user, created_at) \
     values (:database, :name, :kind, :role, :id, :password_hash, :email, :confirmed_email, \
       :properties::json, :user_group, :default_user::boolean, :created_at::timestamptz) \
     on conflict do nothing returning database) \
     select pg_catalog.count(pg_catalog.pg_notify('tidegate', 'users ' || database)) from added",
);
static IS_TAKEN: Query = Query::new(
    "select exists (select from tidegate.users \
     where (database = :database and name = :name) or role = :role \
        or (database = :database and coalesce(id, name) = coalesce(:id, :name)))",
);
// Other nodes are not notified of changes of members, because they cache data about members only
// for a short time. They are notified when a user becomes a member, because its role is then
// dropped.
static UPDATE: Query = Query::new(
    "with changed as (update tidegate.users set kind = :kind, role = :role, id = :id, \
       email = :email, confirmed_email = :confirmed_email, properties = :properties::json, \
       user_group = :user_group, default_user = :default_user::boolean, \
       disabled = :disabled::boolean \
     where database = :database and name = :name \
       and (role, id, email, confirmed_email, properties::text, user_group, default_user, \
         disabled) is not distinct from \
         (:read_role, :read_id, :read_email, :read_confirmed_email, :read_properties, \
          :read_user_group, :read_default_user::boolean, :read_disabled::boolean) \
       returning database, kind), \
     announced as (select pg_catalog.pg_notify('tidegate', 'users ' || database) \
       from changed where kind = 'role' or :read_role is not null) \
     select pg_catalog.count(*) from changed left join announced on true",
);
static SET_PASSWORD_HASH: Query = Query::new(
    "update tidegate.users set password_hash = :hash \
     where database = :database and name = :name \
     and (:before::text is null or password_hash = :before::text)",
);
// The user's methods pass to the owner, so that a later user of the same name does not get them.
// Clients that act as the user lose their service user, so that they do not act as a later user of
// the same name.
static DELETE: Query = Query::new(
    "with gone as (delete from tidegate.users \
       where database = :database and name = :name returning database), \
     ended as (update tidegate.sessions \
       set ended_at = :at::timestamptz, end_reason = :reason \
       where database = :database and user_name = :name and ended_at is null returning id), \
     clients as (update tidegate.clients set service_user = null \
       where database = :database and service_user = :name), \
     given as (update tidegate.methods set creator = :database \
       where database = :database and creator = :name) \
     select \
       (select pg_catalog.count(pg_catalog.pg_notify('tidegate', 'users ' || database)) from gone), \
       (select pg_catalog.count(pg_catalog.pg_notify('tidegate', 'sessions')) from ended)",
);

pub(super) async fn find(database: &Database, key: &UserKey) -> Result<Option<User>> {
    database.row(&FIND, &[&key.database, &key.name], read).await
}

pub(super) async fn find_by_id(
    database: &Database,
    tenant: &str,
    id: &str,
) -> Result<Option<User>> {
    database.row(&FIND_BY_ID, &[&tenant, &id], read).await
}

pub(super) async fn with_role(database: &Database, tenant: &str) -> Result<Vec<User>> {
    database.rows(&WITH_ROLE, &[&tenant], read).await
}

pub(super) async fn with_email(
    database: &Database,
    tenant: &str,
    email: &str,
) -> Result<Vec<User>> {
    database.rows(&WITH_EMAIL, &[&tenant, &email], read).await
}

pub(super) async fn has_similar(database: &Database, tenant: &str, name: &str) -> Result<bool> {
    let names: [Argument<'_>; 2] = [&tenant, &name];
    let found = database.row(&HAS_SIMILAR, &names, row::boolean).await?;
    Ok(found == Some(true))
}

pub(super) async fn reserve_id(database: &Database, user: &User) -> Result<()> {
    let values: [Argument<'_>; 2] = [&user.key.database, &user.user_id()];
    database.execute(&RESERVE_ID, &values).await?;
    Ok(())
}

pub(super) async fn find_default(database: &Database, tenant: &str) -> Result<Option<User>> {
    database.row(&FIND_DEFAULT, &[&tenant], read).await
}

pub(super) async fn insert(database: &Database, user: &User) -> Result<WriteOutcome> {
    let (key, properties, groups) = (&user.key, properties(user)?, joined(user));
    let values: [Argument<'_>; 12] = [
        &key.database,
        &key.name,
        &user.kind().name(),
        &user.role,
        &user.id,
        &user.password_hash,
        &user.email,
        &user.confirmed_email,
        &properties,
        &groups,
        &user.default_user,
        &user.created_at,
    ];
    if database.row(&INSERT, &values, row::count).await? == Some(1) {
        return Ok(WriteOutcome::Done);
    }
    let names: [Argument<'_>; 4] = [&key.database, &key.name, &user.role, &user.id];
    let taken = database.row(&IS_TAKEN, &names, row::boolean).await?;
    // If no name, role or id is taken, the conflict is a second default user.
    Ok(match taken {
        Some(false) if user.default_user => WriteOutcome::DefaultUserTaken,
        _ => WriteOutcome::Taken,
    })
}

pub(super) async fn update(database: &Database, read: &User, user: &User) -> Result<WriteOutcome> {
    let (key, read_properties, properties) = (&user.key, properties(read)?, properties(user)?);
    let (read_groups, groups) = (joined(read), joined(user));
    let values: [Argument<'_>; 19] = [
        &user.kind().name(),
        &user.role,
        &user.id,
        &user.email,
        &user.confirmed_email,
        &properties,
        &groups,
        &user.default_user,
        &user.disabled,
        &key.database,
        &key.name,
        &read.role,
        &read.id,
        &read.email,
        &read.confirmed_email,
        &read_properties,
        &read_groups,
        &read.default_user,
        &read.disabled,
    ];
    match database.row(&UPDATE, &values, row::count).await {
        Ok(Some(1)) => Ok(WriteOutcome::Done),
        Ok(_) => Ok(WriteOutcome::Missing),
        Err(error) if error.broken_constraint() == Some("users_default") => {
            Ok(WriteOutcome::DefaultUserTaken)
        }
        Err(error) if error.broken_constraint() == Some("users_role") => Ok(WriteOutcome::Taken),
        Err(error) => Err(error),
    }
}

pub(super) async fn set_password_hash(
    database: &Database,
    key: &UserKey,
    before: Option<&str>,
    hash: &str,
) -> Result<bool> {
    let values: [Argument<'_>; 4] = [&hash, &key.database, &key.name, &before];
    Ok(database.execute(&SET_PASSWORD_HASH, &values).await? == 1)
}

pub(super) async fn delete(database: &Database, key: &UserKey, at: Timestamp) -> Result<bool> {
    let reason = EndReason::UserDropped.name();
    let values: [Argument<'_>; 4] = [&key.database, &key.name, &at, &reason];
    let gone = database.row(&DELETE, &values, row::count).await?;
    Ok(gone == Some(1))
}

/// The groups of a user in the form in which they are stored: separated by commas. Names of groups
/// contain no commas. `None` without groups.
pub(super) fn joined(user: &User) -> Option<String> {
    (!user.user_groups.is_empty()).then(|| user.user_groups.join(","))
}

fn groups(joined: Option<&str>) -> Vec<String> {
    let names = joined.map(|names| names.split(',').map(str::to_owned));
    names.into_iter().flatten().collect()
}

fn properties(user: &User) -> Result<Option<String>> {
    let text = user.properties.as_ref().map(serde_json::to_string);
    text.transpose().map_err(Error::failed)
}

pub(super) fn read(row: &mut Record<'_>) -> Result<User> {
    Ok(User {
        key: UserKey::new(row.text()?, row.text()?),
        role: row.optional_string()?,
        id: row.optional_string()?,
        password_hash: row.optional_string()?,
        email: row.optional_string()?,
        confirmed_email: row.optional_string()?,
        properties: object(row)?,
        user_groups: groups(row.optional_text()?),
        default_user: row.boolean()?,
        disabled: row.boolean()?,
        created_at: row.timestamp()?,
    })
}

fn object(row: &mut Record<'_>) -> Result<Option<Map<String, Json>>> {
    let text = row.optional_text()?;
    text.map(serde_json::from_str)
        .transpose()
        .map_err(Error::failed)
}
