//! The table of authorization codes.

use tidegate_identity::{SecretHash, SessionId, UserKey};
use tidegate_oauth::{AuthorizationCode, Session};

use super::sessions;
use crate::error::Result;
use crate::query::{Argument, Database, Query};
use crate::row::{self, Record};

static INSERT: Query = Query::new(
    "insert into tidegate.authorization_codes (hash, client_id, redirect_uri, challenge, database, \
       user_name, browser, expires_at, session, scope, nonce) \
     values (:hash::bytea, :client_id, :redirect_uri, :challenge, :database, :user_name, \
       :browser::bytea, :expires_at::timestamptz, :session::uuid, :scope, :nonce)",
);
static FIND: Query = Query::new(
    "select hash, client_id, redirect_uri, challenge, database, user_name, browser, expires_at, \
     session, scope, nonce \
     from tidegate.authorization_codes where hash = :hash::bytea",
);
/// Redeems a code. If several calls run in parallel, only one update finds the code unused. The
/// other updates wait until the first one is committed, and then find the code used.
static REDEEM: Query = Query::new(
    "with used as (update tidegate.authorization_codes set session = :id::uuid \
       where hash = :hash::bytea and session is null and browser is not null \
         and expires_at > :created_at::timestamptz \
       returning 1), \
     opened as (insert into tidegate.sessions (id, database, user_name, client_id, grant_kind, \
         presented, created_at, refreshed_at, expires_at, closes_at, scope, authenticated_at) \
       select :id::uuid, :database, :user_name, :client_id, :grant_kind, :presented::bigint, \
         :created_at::timestamptz, :refreshed_at::timestamptz, :expires_at::timestamptz, \
         :closes_at::timestamptz, :scope, :authenticated_at::timestamptz from used returning 1) \
     select pg_catalog.count(*) from opened",
);

pub(super) async fn insert(database: &Database, code: &AuthorizationCode) -> Result<()> {
    let hash = &code.hash.as_bytes()[..];
    let browser = code.browser.as_ref().map(|browser| &browser.as_bytes()[..]);
    let values: [Argument<'_>; 11] = [
        &hash,
        &code.client_id,
        &code.redirect_uri,
        &code.challenge,
        &code.user.database,
        &code.user.name,
        &browser,
        &code.expires_at,
        &code.session,
        &code.scopes,
        &code.nonce,
    ];
    database.execute(&INSERT, &values).await?;
    Ok(())
}

pub(super) async fn find(
    database: &Database,
    hash: SecretHash,
) -> Result<Option<AuthorizationCode>> {
    database.row(&FIND, &[&&hash.as_bytes()[..]], read).await
}

pub(super) async fn redeem(
    database: &Database,
    hash: SecretHash,
    session: &Session,
) -> Result<bool> {
    let (hash, grant) = (&hash.as_bytes()[..], session.grant.name());
    let mut values: Vec<Argument<'_>> = vec![&session.id, &hash, &session.created_at];
    values.extend(sessions::session_values(session, &grant));
    let opened = database.row(&REDEEM, &values, row::count).await?;
    Ok(opened == Some(1))
}

fn read(row: &mut Record<'_>) -> Result<AuthorizationCode> {
    Ok(AuthorizationCode {
        hash: row.array().map(SecretHash::from_bytes)?,
        client_id: row.string()?,
        redirect_uri: row.string()?,
        challenge: row.string()?,
        user: UserKey::new(row.text()?, row.text()?),
        browser: row.optional_array()?.map(SecretHash::from_bytes),
        expires_at: row.timestamp()?,
        session: row.optional_array()?.map(SessionId::from_bytes),
        scopes: sessions::scopes(row)?,
        nonce: row.optional_string()?,
    })
}
