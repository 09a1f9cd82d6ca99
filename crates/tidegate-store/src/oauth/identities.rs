//! The table of linked accounts.

use tidegate_identity::{LinkedIdentity, RemovalOutcome, User, UserKey};

use super::users;
use crate::error::Result;
use crate::query::{Argument, Database, Query};
use crate::row::{self, Record};

static USER: Query = Query::new(concat!(
    "select ",
    users::columns!(),
    " from tidegate.users u \
     join tidegate.identities i on i.database = u.database and i.user_name = u.name \
     where i.database = :database and i.issuer = :issuer and i.subject = :subject",
));
static INSERT: Query = Query::new(
    "insert into tidegate.identities \
       (database, issuer, subject, user_name, provider, name, linked_at) \
     values (:database, :issuer, :subject, :user_name, :provider, :name, :linked_at::timestamptz) \
     on conflict do nothing",
);
static LIST: Query = Query::new(
    "select provider, issuer, subject, name, linked_at from tidegate.identities \
     where database = :database and user_name = :user_name \
     order by issuer collate \"C\", subject collate \"C\"",
);
/// Locks a user's row, so that two transactions never count or remove credentials of the same user
/// at the same time. Each transaction sees the changes of the previous one.
pub(super) static LOCK_USER: Query = Query::new(
    "select password_hash is not null from tidegate.users \
     where database = :database and name = :user_name for update",
);
static DELETE: Query = Query::new(
    "delete from tidegate.identities \
     where database = :database and user_name = :user_name \
       and issuer = :issuer and subject = :subject",
);
/// Whether a user has a passkey or a linked account.
static HAS_CREDENTIAL: Query = Query::new(
    "select exists (select from tidegate.passkeys \
       where database = :database and user_name = :user_name) \
     or exists (select from tidegate.identities \
       where database = :database and user_name = :user_name)",
);

pub(super) async fn user(
    database: &Database,
    tenant: &str,
    issuer: &str,
    subject: &str,
) -> Result<Option<User>> {
    let values: [Argument<'_>; 3] = [&tenant, &issuer, &subject];
    database.row(&USER, &values, users::read).await
}

pub(super) async fn insert(
    database: &Database,
    key: &UserKey,
    identity: &LinkedIdentity,
) -> Result<bool> {
    let values: [Argument<'_>; 7] = [
        &key.database,
        &identity.issuer,
        &identity.subject,
        &key.name,
        &identity.provider,
        &identity.name,
        &identity.linked_at,
    ];
    Ok(database.execute(&INSERT, &values).await? == 1)
}

pub(super) async fn list(database: &Database, key: &UserKey) -> Result<Vec<LinkedIdentity>> {
    database
        .rows(&LIST, &[&key.database, &key.name], read)
        .await
}

/// Unlinks an account, unless the user would have no other way to sign in.
pub(super) async fn delete(
    database: &Database,
    key: &UserKey,
    issuer: &str,
    subject: &str,
) -> Result<RemovalOutcome> {
    let values: [Argument<'_>; 4] = [&key.database, &key.name, &issuer, &subject];
    delete_credential(database, key, (&DELETE, &values)).await
}

/// Runs a statement that deletes a credential of a user. Rolls the deletion back if the user would
/// have no credential left.
pub(super) async fn delete_credential(
    database: &Database,
    key: &UserKey,
    (delete, values): (&Query, &[Argument<'_>]),
) -> Result<RemovalOutcome> {
    let user: [Argument<'_>; 2] = [&key.database, &key.name];
    let mut open = database.begin().await?;
    let has_password = open.row(&LOCK_USER, &user, row::boolean).await?;
    if open.execute(delete, values).await? == 0 {
        return Ok(RemovalOutcome::Missing);
    }
    let left = open.row(&HAS_CREDENTIAL, &user, row::boolean).await?;
    if has_password != Some(true) && left != Some(true) {
        return Ok(RemovalOutcome::LastCredential);
    }
    open.commit().await?;
    Ok(RemovalOutcome::Done)
}

fn read(row: &mut Record<'_>) -> Result<LinkedIdentity> {
    Ok(LinkedIdentity {
        provider: row.optional_string()?,
        issuer: row.string()?,
        subject: row.string()?,
        name: row.optional_string()?,
        linked_at: row.optional_timestamp()?,
    })
}
