//! The members of tenants, and pages of users. A tenant may have millions of members.

use serde::Serialize;
use tidegate_identity::{User, UserKind, UserQuery};

use super::users::{self, columns};
use crate::error::{Error, Result};
use crate::query::{Argument, Database, Query};
use crate::row::Record;

// The query has a branch for each kind of user, so that PostgreSQL can read each kind in the order
// of an index.
static PAGE: Query = Query::new(concat!(
    "select * from ((select ",
    columns!(),
    " from tidegate.users u where u.database = :database and u.kind = 'member' \
       and :members::boolean and u.name collate \"C\" > :after \
     order by u.name collate \"C\" limit :limit::bigint) union all (select ",
    columns!(),
    " from tidegate.users u where u.database = :database and u.kind = 'role' \
       and :roles::boolean and u.name collate \"C\" > :after \
     order by u.name collate \"C\" limit :limit::bigint)) u \
     order by u.name collate \"C\" limit :limit::bigint",
));
static PAGE_OF_GROUP: Query = Query::new(concat!(
    "select * from ((select ",
    columns!(),
    " from tidegate.users u where u.database = :database and u.kind = 'member' \
       and :members::boolean and u.user_group = :group and u.name collate \"C\" > :after \
     order by u.name collate \"C\" limit :limit::bigint) union all (select ",
    columns!(),
    " from tidegate.users u where u.database = :database and u.kind = 'role' \
       and :roles::boolean and :group = any (pg_catalog.string_to_array(u.user_group, ',')) \
       and u.name collate \"C\" > :after \
     order by u.name collate \"C\" limit :limit::bigint)) u \
     order by u.name collate \"C\" limit :limit::bigint",
));
// Each step of the recursion looks up the next name of a group in the index, so that not all
// members have to be read.
static GROUPS: Query = Query::new(
    "with recursive groups (name) as ( \
       select pg_catalog.min(user_group) from tidegate.users \
         where database = :database and kind = 'member' \
       union all \
       select (select pg_catalog.min(u.user_group) from tidegate.users u \
         where u.database = :database and u.kind = 'member' and u.user_group > groups.name) \
       from groups where groups.name is not null) \
     select name from groups where name is not null order by name collate \"C\"",
);
// New members make no cached data stale, so other nodes are not notified of them.
static INSERT: Query = Query::new(
    "with new as (select * from pg_catalog.json_to_recordset(:members::json) \
       as new (place bigint, name text, id text, password_hash text, email text, \
               confirmed_email text, properties json, user_group text)), \
     added as (insert into tidegate.users (database, name, kind, id, password_hash, email, \
         confirmed_email, properties, user_group, default_user, created_at) \
       select :database, name, 'member', id, password_hash, email, confirmed_email, properties, \
         user_group, false, :created_at::timestamptz from new order by place \
       on conflict do nothing returning name) \
     select new.place from new left join added using (name) where added.name is null \
     order by new.place limit 1",
);

/// A row for [`INSERT`].
#[derive(Serialize)]
struct StoredMember<'a> {
    place: usize,
    name: &'a str,
    id: &'a str,
    password_hash: Option<&'a str>,
    email: Option<&'a str>,
    confirmed_email: Option<&'a str>,
    properties: Option<&'a serde_json::Map<String, serde_json::Value>>,
    user_group: Option<String>,
}

impl<'a> StoredMember<'a> {
    fn of((place, member): (usize, &'a User)) -> Self {
        Self {
            place,
            name: member.key.name.as_str(),
            id: member.user_id(),
            password_hash: member.password_hash.as_deref(),
            email: member.email.as_deref(),
            confirmed_email: member.confirmed_email.as_deref(),
            properties: member.properties.as_ref(),
            user_group: users::joined(member),
        }
    }
}

pub(super) async fn page(
    database: &Database,
    tenant: &str,
    query: &UserQuery,
) -> Result<Vec<User>> {
    let of_kind = |kind| query.kind.is_none_or(|wanted| wanted == kind);
    let (members, roles) = (of_kind(UserKind::Member), of_kind(UserKind::Role));
    let after = query.after.as_deref().unwrap_or_default();
    let limit = u64::from(query.limit);
    match &query.group {
        None => {
            let values: [Argument<'_>; 5] = [&tenant, &members, &after, &limit, &roles];
            database.rows(&PAGE, &values, users::read).await
        }
        Some(group) => {
            let values: [Argument<'_>; 6] = [&tenant, &members, group, &after, &limit, &roles];
            database.rows(&PAGE_OF_GROUP, &values, users::read).await
        }
    }
}

pub(super) async fn groups(database: &Database, tenant: &str) -> Result<Vec<String>> {
    let name = |row: &mut Record<'_>| row.string();
    database.rows(&GROUPS, &[&tenant], name).await
}

/// Adds all members or none of them, in one statement. If names or ids are taken, returns the index
/// of the first member whose name or id is taken.
pub(super) async fn insert(database: &Database, members: &[User]) -> Result<Option<usize>> {
    let Some(first) = members.first() else {
        return Ok(None);
    };
    let rows: Vec<_> = members.iter().enumerate().map(StoredMember::of).collect();
    let rows = serde_json::to_string(&rows).map_err(Error::failed)?;
    let mut transaction = database.begin().await?;
    let values: [Argument<'_>; 3] = [&rows, &first.key.database, &first.created_at];
    let taken = transaction.row(&INSERT, &values, place).await?;
    if taken.is_none() {
        transaction.commit().await?;
    }
    Ok(taken)
}

fn place(row: &mut Record<'_>) -> Result<usize> {
    usize::try_from(row.count()?).map_err(Error::failed)
}
