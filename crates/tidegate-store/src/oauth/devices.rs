//! The table of device codes.

use std::time::Duration;

use tidegate_identity::{SecretHash, Timestamp, UserKey};
use tidegate_oauth::{Approval, DeviceCode, DevicePoll, DeviceState, Session};

use super::sessions;
use crate::error::{Error, Result};
use crate::query::{Argument, Database, Query};
use crate::row::{self, Record};

static INSERT: Query = Query::new(
    "insert into tidegate.device_codes (hash, user_code, client_id, state, pause, poll_at, \
       expires_at, scope) \
     values (:hash::bytea, :user_code, :client_id, :state, :pause::bigint, \
       :poll_at::timestamptz, :expires_at::timestamptz, :scope) \
     on conflict do nothing",
);
static FIND: Query = Query::new(
    "select hash, user_code, client_id, state, database, user_name, browser, pause, poll_at, \
     expires_at, scope, early from tidegate.device_codes where user_code = :user_code",
);
/// Records a poll by the rule of [`DeviceCode::polled`]. The row lock serialises parallel polls.
static POLL: Query = Query::new(
    "update tidegate.device_codes as old set (early, pause, poll_at) = ( \
       select new.early, new.pause, \
         :now::timestamptz + new.pause::double precision * interval '1 second' \
       from ( \
         select coalesce(:forgiven::timestamptz < old.poll_at, false) as early, \
           case when :forgiven::timestamptz < old.poll_at then old.pause + :slower::bigint \
             else old.pause end as pause \
       ) as new \
     ) \
     where hash = :hash::bytea and client_id = :client_id \
     returning hash, user_code, client_id, state, database, user_name, browser, pause, poll_at, \
       expires_at, scope, early",
);
static DECIDE: Query = Query::new(
    "update tidegate.device_codes set state = :state, database = :database, \
       user_name = :user_name, browser = :browser::bytea \
     where user_code = :user_code and state = 'pending' and expires_at > :now::timestamptz",
);
static REDEEM: Query = Query::new(
    "with used as (update tidegate.device_codes set state = 'consumed' \
       where hash = :hash::bytea and state = 'approved' and browser is not null \
         and expires_at > :created_at::timestamptz returning 1), \
     opened as (insert into tidegate.sessions (id, database, user_name, client_id, grant_kind, \
         presented, created_at, refreshed_at, expires_at, closes_at, scope, authenticated_at) \
       select :id::uuid, :database, :user_name, :client_id, :grant_kind, :presented::bigint, \
         :created_at::timestamptz, :refreshed_at::timestamptz, :expires_at::timestamptz, \
         :closes_at::timestamptz, :scope, :authenticated_at::timestamptz from used returning 1) \
     select pg_catalog.count(*) from opened",
);

pub(super) async fn insert(database: &Database, device: &DeviceCode) -> Result<bool> {
    let (hash, state) = (&device.hash.as_bytes()[..], device.state.name());
    let pause = device.interval.as_secs();
    let values: [Argument<'_>; 8] = [
        &hash,
        &device.user_code,
        &device.client_id,
        &state,
        &pause,
        &device.poll_at,
        &device.expires_at,
        &device.scopes,
    ];
    Ok(database.execute(&INSERT, &values).await? == 1)
}

pub(super) async fn find(database: &Database, user_code: &str) -> Result<Option<DeviceCode>> {
    let found = database.row(&FIND, &[&user_code], read).await?;
    Ok(found.map(|polled| polled.device))
}

pub(super) async fn poll(
    database: &Database,
    hash: SecretHash,
    client_id: &str,
    now: Timestamp,
) -> Result<Option<DevicePoll>> {
    let (hash, slower) = (&hash.as_bytes()[..], DeviceCode::SLOWER.as_secs());
    let forgiven = now.plus(DeviceCode::GRACE);
    let values: [Argument<'_>; 5] = [&now, &forgiven, &slower, &hash, &client_id];
    database.row(&POLL, &values, read).await
}

pub(super) async fn decide(
    database: &Database,
    user_code: &str,
    approval: Option<&Approval>,
    now: Timestamp,
) -> Result<bool> {
    let state = if approval.is_some() {
        "approved"
    } else {
        "denied"
    };
    let user = approval.map(|approval| &approval.user);
    let (tenant, name) = (user.map(|u| &u.database), user.map(|u| &u.name));
    let browser = approval.map(|approval| &approval.browser.as_bytes()[..]);
    let values: [Argument<'_>; 6] = [&state, &tenant, &name, &browser, &user_code, &now];
    Ok(database.execute(&DECIDE, &values).await? == 1)
}

pub(super) async fn redeem(
    database: &Database,
    hash: SecretHash,
    session: &Session,
) -> Result<bool> {
    let (hash, grant) = (&hash.as_bytes()[..], session.grant.name());
    let mut values: Vec<Argument<'_>> = vec![&hash, &session.created_at, &session.id];
    values.extend(sessions::session_values(session, &grant));
    let opened = database.row(&REDEEM, &values, row::count).await?;
    Ok(opened == Some(1))
}

fn read(row: &mut Record<'_>) -> Result<DevicePoll> {
    Ok(DevicePoll {
        device: DeviceCode {
            hash: row.array().map(SecretHash::from_bytes)?,
            user_code: row.string()?,
            client_id: row.string()?,
            state: state(row)?,
            interval: row.count().map(Duration::from_secs)?,
            poll_at: row.optional_timestamp()?,
            expires_at: row.timestamp()?,
            scopes: sessions::scopes(row)?,
        },
        early: row.boolean()?,
    })
}

fn state(row: &mut Record<'_>) -> Result<DeviceState> {
    let (name, tenant, user) = (row.text()?, row.optional_text()?, row.optional_text()?);
    let user = tenant.zip(user);
    let user = user.map(|(tenant, user)| UserKey::new(tenant, user));
    let browser = row.optional_array()?.map(SecretHash::from_bytes);
    match (name, user.zip(browser)) {
        ("pending", _) => Ok(DeviceState::Pending),
        ("approved", Some((user, browser))) => {
            Ok(DeviceState::Approved(Approval { user, browser }))
        }
        ("denied", _) => Ok(DeviceState::Denied),
        ("consumed", _) => Ok(DeviceState::Consumed),
        _ => Err(Error::failed("a device code is in an unknown state")),
    }
}
