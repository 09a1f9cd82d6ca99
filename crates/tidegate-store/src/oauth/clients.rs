//! The table of OAuth clients.

use tidegate_identity::{EndReason, SecretHash, SignUpUser, Timestamp, UserKind};
use tidegate_oauth::{Client, ClientAuthentication, ExpiringSecret, GrantKind, GrantSet};

use crate::error::{Error, Result};
use crate::query::{Argument, Database, Query};
use crate::row::{self, Record};

static FIND: Query = Query::new(
    "select id, database, name, redirect_uris, homepage, description, secret_hash, \
     previous_secret_hash, previous_secret_expires_at, confirm, two_factor, allow_signup, \
     social_signup, signup_kind, signup_group, grants, service_user, created_at from tidegate.clients where id = :id",
);
static LIST: Query = Query::new(
    "select id, database, name, redirect_uris, homepage, description, secret_hash, \
     previous_secret_hash, previous_secret_expires_at, confirm, two_factor, allow_signup, \
     social_signup, signup_kind, signup_group, grants, service_user, created_at from tidegate.clients where database = :database \
     order by id collate \"C\"",
);
static REDIRECT_URIS: Query = Query::new(
    "select distinct uri from tidegate.clients, \
     pg_catalog.json_array_elements_text(redirect_uris) as uri \
     where pg_catalog.starts_with(uri, :start)",
);
static INSERT: Query = Query::new(
    "with added as (insert into tidegate.clients (id, name, redirect_uris, homepage, description, \
       secret_hash, previous_secret_hash, previous_secret_expires_at, confirm, two_factor, \
       allow_signup, social_signup, signup_kind, signup_group, grants, service_user, database, created_at) \
     values (:id, :name, :redirect_uris::json, :homepage, :description, :secret_hash::bytea, \
       :previous_secret_hash::bytea, :previous_secret_expires_at::timestamptz, \
       :confirm::boolean, :two_factor::boolean, :allow_signup::boolean, \
       :social_signup::boolean, :signup_kind, :signup_group, :grants::json, :service_user, :database, :created_at::timestamptz) \
     on conflict (id) do nothing returning id) \
     select pg_catalog.count(pg_catalog.pg_notify('tidegate', 'client ' || id)) from added",
);
static UPDATE: Query = Query::new(
    "with changed as (update tidegate.clients set (name, redirect_uris, homepage, description, \
       secret_hash, previous_secret_hash, previous_secret_expires_at, confirm, two_factor, \
       allow_signup, social_signup, signup_kind, signup_group, grants, service_user) = \
     (:name, :redirect_uris::json, :homepage, :description, :secret_hash::bytea, \
       :previous_secret_hash::bytea, :previous_secret_expires_at::timestamptz, \
       :confirm::boolean, :two_factor::boolean, :allow_signup::boolean, \
       :social_signup::boolean, :signup_kind, :signup_group, :grants::json, :service_user) \
     where id = :id and (name, redirect_uris::jsonb, homepage, description, secret_hash, \
       previous_secret_hash, previous_secret_expires_at, confirm, two_factor, allow_signup, \
       social_signup, signup_kind, signup_group, grants::jsonb, service_user) is not distinct from \
     (:read_name, :read_redirect_uris::jsonb, :read_homepage, :read_description, \
       :read_secret_hash::bytea, :read_previous_secret_hash::bytea, \
       :read_previous_secret_expires_at::timestamptz, :read_confirm::boolean, \
       :read_two_factor::boolean, :read_allow_signup::boolean, :read_social_signup::boolean, \
       :read_signup_kind, :read_signup_group, :read_grants::jsonb, :read_service_user) returning id) \
     select pg_catalog.count(pg_catalog.pg_notify('tidegate', 'client ' || id)) from changed",
);
static DELETE: Query = Query::new(
    "with gone as (delete from tidegate.clients where id = :id returning id, database), \
     codes as (delete from tidegate.authorization_codes where client_id = :id), \
     devices as (delete from tidegate.device_codes where client_id = :id), \
     consents as (delete from tidegate.consents where client_id = :id), \
     ended as (update tidegate.sessions \
       set ended_at = :at::timestamptz, end_reason = :reason \
       where client_id = :id and ended_at is null \
         and database = (select database from gone) returning id) \
     select (select pg_catalog.count(pg_catalog.pg_notify('tidegate', 'client ' || id)) from gone), \
       (select pg_catalog.count(pg_catalog.pg_notify('tidegate', 'sessions')) from ended)",
);

pub(super) async fn find(database: &Database, id: &str) -> Result<Option<Client>> {
    database.row(&FIND, &[&id], read).await
}

pub(super) async fn list(database: &Database, tenant: &str) -> Result<Vec<Client>> {
    database.rows(&LIST, &[&tenant], read).await
}

pub(super) async fn redirect_uris_from(database: &Database, start: &str) -> Result<Vec<String>> {
    database.rows(&REDIRECT_URIS, &[&start], row::string).await
}

pub(super) async fn insert(database: &Database, client: &Client) -> Result<bool> {
    let fields = ClientColumns::of(client)?;
    let mut values: Vec<Argument<'_>> = vec![&client.id];
    values.extend(fields.values(client));
    values.extend([&client.database as Argument<'_>, &client.created_at]);
    let added = database.row(&INSERT, &values, row::count).await?;
    Ok(added == Some(1))
}

pub(super) async fn update(database: &Database, read: &Client, client: &Client) -> Result<bool> {
    let (before, after) = (ClientColumns::of(read)?, ClientColumns::of(client)?);
    let mut values = after.values(client);
    values.push(&client.id);
    values.extend(before.values(read));
    let changed = database.row(&UPDATE, &values, row::count).await?;
    Ok(changed == Some(1))
}

pub(super) async fn delete(database: &Database, id: &str, at: Timestamp) -> Result<bool> {
    let reason = EndReason::ClientDropped.name();
    let gone = database
        .row(&DELETE, &[&id, &at, &reason], row::count)
        .await?;
    Ok(gone == Some(1))
}

/// The fields of a client that must be converted before they are bound.
struct ClientColumns<'a> {
    redirect_uris: String,
    secret: Option<&'a [u8]>,
    previous: Option<&'a [u8]>,
    previous_expires_at: Option<Timestamp>,
    signup_kind: &'static str,
    grants: Option<String>,
}

impl<'a> ClientColumns<'a> {
    fn of(client: &'a Client) -> Result<Self> {
        let (secret, previous) = match &client.authentication {
            ClientAuthentication::Public => (None, None),
            ClientAuthentication::Confidential { current, previous } => {
                (Some(&current.as_bytes()[..]), previous.as_ref())
            }
        };
        let grants = match &client.grants {
            GrantSet::All => None,
            GrantSet::Only(kinds) => {
                let names: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
                Some(serde_json::to_string(&names).map_err(Error::failed)?)
            }
        };
        Ok(Self {
            redirect_uris: serde_json::to_string(&client.redirect_uris).map_err(Error::failed)?,
            secret,
            previous: previous.map(|previous| &previous.hash.as_bytes()[..]),
            previous_expires_at: previous.map(|previous| previous.expires_at),
            signup_kind: client.signup.kind.name(),
            grants,
        })
    }

    /// The values of the columns from `name` to `service_user`, in the order of the placeholders.
    fn values<'b>(&'b self, client: &'b Client) -> Vec<Argument<'b>> {
        vec![
            &client.name,
            &self.redirect_uris,
            &client.homepage,
            &client.description,
            &self.secret,
            &self.previous,
            &self.previous_expires_at,
            &client.confirm,
            &client.two_factor,
            &client.allow_signup,
            &client.social_signup,
            &self.signup_kind,
            &client.signup.group,
            &self.grants,
            &client.service_user,
        ]
    }
}

fn read(row: &mut Record<'_>) -> Result<Client> {
    Ok(Client {
        id: row.string()?,
        database: Some(row.string()?),
        name: row.string()?,
        redirect_uris: serde_json::from_str(row.text()?).map_err(Error::failed)?,
        homepage: row.optional_string()?,
        description: row.optional_string()?,
        authentication: authentication(row)?,
        confirm: row.boolean()?,
        two_factor: row.boolean()?,
        allow_signup: row.boolean()?,
        social_signup: row.boolean()?,
        signup: signup(row)?,
        grants: grants(row)?,
        service_user: row.optional_string()?,
        created_at: row.timestamp()?,
    })
}

fn signup(row: &mut Record<'_>) -> Result<SignUpUser> {
    let kind = UserKind::from_name(row.text()?);
    Ok(SignUpUser {
        kind: kind.ok_or_else(|| Error::failed("a client has an unknown signup_kind"))?,
        group: row.optional_string()?,
    })
}

fn authentication(row: &mut Record<'_>) -> Result<ClientAuthentication> {
    let (current, previous) = (secret(row)?, secret(row)?);
    let expires_at = row.optional_timestamp()?;
    Ok(match current {
        None => ClientAuthentication::Public,
        Some(current) => ClientAuthentication::Confidential {
            current,
            previous: previous
                .zip(expires_at)
                .map(|(hash, expires_at)| ExpiringSecret { hash, expires_at }),
        },
    })
}

fn secret(row: &mut Record<'_>) -> Result<Option<SecretHash>> {
    let bytes = row.optional_bytes()?.map(<[u8; 32]>::try_from).transpose();
    Ok(bytes.map_err(Error::failed)?.map(SecretHash::from_bytes))
}

/// Decodes the grants of a client; NULL means all grants. Unknown grants, which a newer version may
/// have stored, are ignored.
fn grants(row: &mut Record<'_>) -> Result<GrantSet> {
    let Some(text) = row.optional_text()? else {
        return Ok(GrantSet::All);
    };
    let names: Vec<String> = serde_json::from_str(text).map_err(Error::failed)?;
    let known = names.iter().filter_map(|name| GrantKind::from_name(name));
    Ok(GrantSet::Only(known.collect()))
}
