//! The table of OAuth sessions. A session has one row, even after many refreshes.

use tidegate_identity::{EndReason, SecretHash, SessionId, Timestamp, UserKey};
use tidegate_oauth::{
    EndedSession, GrantKind, PersonalToken, RefreshOutcome, Scopes, Session, SessionEnd,
};

use crate::error::{Error, Result};
use crate::query::{Argument, Database, Query};
use crate::row::{self, Record};

static INSERT: Query = Query::new(
    "insert into tidegate.sessions (id, database, user_name, client_id, grant_kind, presented, \
       created_at, refreshed_at, expires_at, closes_at, scope, authenticated_at, token_name, \
       token_hash, ended_at, end_reason) \
     values (:id::uuid, :database, :user_name, :client_id, :grant_kind, :presented::bigint, \
       :created_at::timestamptz, :refreshed_at::timestamptz, :expires_at::timestamptz, \
       :closes_at::timestamptz, :scope, :authenticated_at::timestamptz, :token_name, \
       :token_hash::bytea, :ended_at::timestamptz, :end_reason)",
);
static FIND: Query = Query::new(
    "select id, database, user_name, client_id, grant_kind, presented, created_at, refreshed_at, \
     expires_at, closes_at, scope, \
     coalesce(authenticated_at, created_at), token_name, token_hash, ended_at, end_reason from tidegate.sessions where id = :id::uuid",
);
/// Records the number of a presented refresh token, unless a higher number has been presented.
/// Parallel calls run one after the other, and each sees the row that the previous call wrote.
static PRESENT: Query = Query::new(
    "update tidegate.sessions set presented = :number::bigint, refreshed_at = :now::timestamptz, \
       expires_at = least(:expires_at::timestamptz, closes_at) \
     where id = :id::uuid and ended_at is null and expires_at > :now::timestamptz \
       and closes_at > :now::timestamptz and presented <= :number::bigint \
     returning id, database, user_name, client_id, grant_kind, presented, created_at, \
       refreshed_at, expires_at, closes_at, scope, \
     coalesce(authenticated_at, created_at), token_name, token_hash, ended_at, end_reason",
);
static USE_TOKEN: Query = Query::new(
    "update tidegate.sessions set refreshed_at = :now::timestamptz \
     where token_hash = :hash::bytea and ended_at is null and expires_at > :now::timestamptz \
     returning id, database, user_name, client_id, grant_kind, presented, created_at, \
       refreshed_at, expires_at, closes_at, scope, \
     coalesce(authenticated_at, created_at), token_name, token_hash, ended_at, end_reason",
);
static END: Query = Query::new(
    "with ended as (update tidegate.sessions \
       set ended_at = :at::timestamptz, end_reason = :reason \
       where id = :id::uuid and ended_at is null returning id) \
     select pg_catalog.count(pg_catalog.pg_notify('tidegate', 'sessions')) from ended",
);
// When a browser session is deleted, foreign keys invalidate the codes that were approved in it.
// For authorization codes, `browser` is set to NULL, which makes unused codes invalid. Device codes
// are deleted.
static END_OF_USER: Query = Query::new(
    "with browsers as (delete from tidegate.browser_sessions \
       where database = :database and user_name = :name), \
     ended as (update tidegate.sessions \
       set ended_at = :at::timestamptz, end_reason = :reason \
       where database = :database and user_name = :name and ended_at is null returning id) \
     select id, pg_catalog.pg_notify('tidegate', 'sessions')::text from ended",
);
static END_OF_CLIENT: Query = Query::new(
    "with ended as (update tidegate.sessions \
       set ended_at = :at::timestamptz, end_reason = :reason \
       where client_id = :client and grant_kind = :grant and ended_at is null returning id) \
     select pg_catalog.count(pg_catalog.pg_notify('tidegate', 'sessions')) from ended",
);
static ENDED: Query = Query::new(
    "select id, ended_at from tidegate.sessions \
     where ended_at >= :since::timestamptz and ended_at is not null",
);

static PURGE_GUESTS: Query = Query::new(
    "with guests as (select id, refreshed_at, pg_catalog.row_number() over \
         (partition by database order by refreshed_at desc, id desc) as place \
       from tidegate.sessions where grant_kind = :guest), \
     gone as (delete from tidegate.sessions session using guests \
       where session.id = guests.id and guests.place > :kept::bigint \
         and session.refreshed_at < :before::timestamptz returning 1) \
     select pg_catalog.count(*) from gone",
);

static OF_USER: Query = Query::new(
    "select id, database, user_name, client_id, grant_kind, presented, created_at, refreshed_at, \
     expires_at, closes_at, scope, \
     coalesce(authenticated_at, created_at), token_name, token_hash, ended_at, end_reason from tidegate.sessions \
     where database = :database and user_name = :name and ended_at is null \
       and (:client::text is null or client_id = :client::text) \
       and expires_at > :now::timestamptz and closes_at > :now::timestamptz \
     order by refreshed_at desc, id limit 1000",
);

static OF_TENANT: Query = Query::new(
    "select id, database, user_name, client_id, grant_kind, presented, created_at, refreshed_at, \
     expires_at, closes_at, scope, \
     coalesce(authenticated_at, created_at), token_name, token_hash, ended_at, end_reason from tidegate.sessions \
     where database = :database and ended_at is null and grant_kind <> 'guest' \
       and expires_at > :now::timestamptz and closes_at > :now::timestamptz \
     order by refreshed_at desc, id limit :limit::bigint",
);

static TOKENS: Query = Query::new(
    "select id, database, user_name, client_id, grant_kind, presented, created_at, refreshed_at, \
     expires_at, closes_at, scope, \
     coalesce(authenticated_at, created_at), token_name, token_hash, ended_at, end_reason \
     from tidegate.sessions \
     where database = :database and (:name::text is null or user_name = :name::text) \
       and token_hash is not null and ended_at is null and expires_at > :now::timestamptz \
     order by refreshed_at desc, id limit :limit::bigint",
);

/// The values of a session that is opened by redeeming a code, for the columns from `database` to
/// `authenticated_at`. The statements that redeem a code bind the id and `created_at` before these
/// values, because the placeholders `:id` and `:created_at` occur earlier.
pub(super) fn session_values<'a>(
    session: &'a Session,
    grant: &'a &'static str,
) -> [Argument<'a>; 10] {
    [
        &session.user.database,
        &session.user.name,
        &session.client_id,
        grant,
        &session.presented,
        &session.refreshed_at,
        &session.expires_at,
        &session.closes_at,
        &session.scopes,
        &session.authenticated_at,
    ]
}

pub(super) async fn of_user(
    database: &Database,
    key: &UserKey,
    client_id: Option<&str>,
    now: Timestamp,
) -> Result<Vec<Session>> {
    let values: [Argument<'_>; 4] = [&key.database, &key.name, &client_id, &now];
    database.rows(&OF_USER, &values, read).await
}

pub(super) async fn of_tenant(
    database: &Database,
    tenant: &str,
    (now, limit): (Timestamp, u32),
) -> Result<Vec<Session>> {
    let values: [Argument<'_>; 3] = [&tenant, &now, &u64::from(limit)];
    database.rows(&OF_TENANT, &values, read).await
}

pub(super) async fn insert(database: &Database, session: &Session) -> Result<()> {
    let (key, grant) = (&session.user, session.grant.name());
    let token = session.personal.as_ref();
    let name = token.map(|token| &token.name);
    let hash = token.map(|token| &token.hash.as_bytes()[..]);
    let (ended_at, reason) = (
        session.ended.map(|end| end.at),
        session.ended.map(|end| end.reason.name()),
    );
    let values: [Argument<'_>; 16] = [
        &session.id,
        &key.database,
        &key.name,
        &session.client_id,
        &grant,
        &session.presented,
        &session.created_at,
        &session.refreshed_at,
        &session.expires_at,
        &session.closes_at,
        &session.scopes,
        &session.authenticated_at,
        &name,
        &hash,
        &ended_at,
        &reason,
    ];
    database.execute(&INSERT, &values).await?;
    Ok(())
}

pub(super) async fn find(database: &Database, id: SessionId) -> Result<Option<Session>> {
    database.row(&FIND, &[&id], read).await
}

pub(super) async fn present(
    database: &Database,
    id: SessionId,
    number: u64,
    (now, expires_at): (Timestamp, Timestamp),
) -> Result<RefreshOutcome> {
    let values: [Argument<'_>; 4] = [&number, &now, &expires_at, &id];
    if let Some(session) = database.row(&PRESENT, &values, read).await? {
        return Ok(RefreshOutcome::Accepted(session));
    }
    let session = find(database, id).await?;
    Ok(match session {
        Some(session) if session.is_alive(now) && session.presented > number => {
            RefreshOutcome::Reused
        }
        _ => RefreshOutcome::Invalid,
    })
}

pub(super) async fn tokens(
    database: &Database,
    (tenant, name): (&str, Option<&str>),
    (now, limit): (Timestamp, u32),
) -> Result<Vec<Session>> {
    let values: [Argument<'_>; 4] = [&tenant, &name, &now, &u64::from(limit)];
    database.rows(&TOKENS, &values, read).await
}

pub(super) async fn use_token(
    database: &Database,
    hash: SecretHash,
    now: Timestamp,
) -> Result<Option<Session>> {
    let values: [Argument<'_>; 2] = [&now, &&hash.as_bytes()[..]];
    database.row(&USE_TOKEN, &values, read).await
}

pub(super) async fn end(
    database: &Database,
    id: SessionId,
    reason: EndReason,
    at: Timestamp,
) -> Result<bool> {
    let values: [Argument<'_>; 3] = [&at, &reason.name(), &id];
    Ok(database.row(&END, &values, row::count).await? == Some(1))
}

pub(super) async fn end_of_client(
    database: &Database,
    id: &str,
    grant: GrantKind,
    end: SessionEnd,
) -> Result<()> {
    let values: [Argument<'_>; 4] = [&end.at, &end.reason.name(), &id, &grant.name()];
    database.row(&END_OF_CLIENT, &values, row::count).await?;
    Ok(())
}

pub(super) async fn end_of_user(
    database: &Database,
    key: &UserKey,
    reason: EndReason,
    at: Timestamp,
) -> Result<Vec<SessionId>> {
    let values: [Argument<'_>; 4] = [&key.database, &key.name, &at, &reason.name()];
    database.rows(&END_OF_USER, &values, id).await
}

pub(super) async fn ended(database: &Database, since: Timestamp) -> Result<Vec<EndedSession>> {
    database.rows(&ENDED, &[&since], read_ended).await
}

fn read_ended(row: &mut Record<'_>) -> Result<EndedSession> {
    Ok(EndedSession {
        id: id(row)?,
        at: row.timestamp()?,
    })
}

fn id(row: &mut Record<'_>) -> Result<SessionId> {
    row.array().map(SessionId::from_bytes)
}

fn read(row: &mut Record<'_>) -> Result<Session> {
    Ok(Session {
        id: id(row)?,
        user: UserKey::new(row.text()?, row.text()?),
        client_id: row.string()?,
        grant: grant(row.text()?)?,
        presented: row.count()?,
        created_at: row.timestamp()?,
        refreshed_at: row.timestamp()?,
        expires_at: row.timestamp()?,
        closes_at: row.timestamp()?,
        scopes: scopes(row)?,
        authenticated_at: row.timestamp()?,
        personal: personal(row)?,
        ended: session_end(row)?,
    })
}

fn grant(name: &str) -> Result<GrantKind> {
    let unknown = || {
        Error::failed(format!(
            "a session was opened by the unknown grant `{name}`"
        ))
    };
    GrantKind::of_session(name).ok_or_else(unknown)
}

pub(super) fn scopes(row: &mut Record<'_>) -> Result<Scopes> {
    Scopes::parse(row.text()?).map_err(Error::failed)
}

fn personal(row: &mut Record<'_>) -> Result<Option<Box<PersonalToken>>> {
    let (name, hash) = (row.optional_string()?, row.optional_array()?);
    let token = name.zip(hash.map(SecretHash::from_bytes));
    Ok(token.map(|(name, hash)| Box::new(PersonalToken { name, hash })))
}

fn session_end(row: &mut Record<'_>) -> Result<Option<SessionEnd>> {
    let (at, reason) = (row.optional_timestamp()?, row.optional_text()?);
    let Some((at, name)) = at.zip(reason) else {
        return Ok(None);
    };
    // An unknown reason, which a newer version may have stored, is read as `Revoked`, because the
    // session has ended in any case.
    let reason = EndReason::from_name(name).unwrap_or(EndReason::Revoked);
    Ok(Some(SessionEnd { at, reason }))
}

pub(super) async fn purge_guests(database: &Database, before: Timestamp, kept: u32) -> Result<u64> {
    let (guest, kept) = (GrantKind::Guest.name(), u64::from(kept));
    let values: [Argument<'_>; 3] = [&guest, &kept, &before];
    let gone = database.row(&PURGE_GUESTS, &values, row::count).await?;
    Ok(gone.unwrap_or(0))
}
