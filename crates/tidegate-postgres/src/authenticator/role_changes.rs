//! Checks whether only users were added since the previous comparison of roles.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, LazyLock};

use tidegate_sql::{Error, Executor, Principal, Result, Statement};

use super::decide::options;
use crate::purity::{bind, statement, text_rows};

static ROLE_CHANGES: LazyLock<Arc<Statement>> =
    LazyLock::new(|| statement(include_str!("role_changes.sql")));

/// The maximum number of rows that are compared. If there are more rows, the result is
/// [`RoleChange::Unknown`]. All rows newer than the oldest running transaction are compared, so
/// their number grows during a long transaction.
const MAX_ROWS: usize = 1000;

/// The result of `role_changes.sql`. `rows` identifies the rows about roles, memberships, settings
/// and databases that were written by the oldest transaction that ran during the previous query, or
/// by a later transaction. The other fields are needed for the next query and comparison.
pub(super) struct RoleRows {
    bound: String,
    newest: String,
    count: usize,
    rows: HashSet<String>,
}

/// The change since the previous comparison.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RoleChange {
    Nothing,
    /// Only plain users were added. Maps the name of each tenant to the OIDs of its new roles.
    Users(HashMap<String, Vec<String>>),
    /// Anything may have changed, or there was no comparison before.
    Unknown,
}

/// Runs `role_changes.sql`. Returns the rows for the next comparison, and the change since the
/// previous comparison. `before` contains the rows of the previous comparison; it is `None` if
/// there was none.
///
/// # Errors
///
/// If the statement fails, or does not return the row with the number of rows.
pub(super) async fn role_changes(
    service: &dyn Executor,
    before: Option<&RoleRows>,
) -> Result<(RoleRows, RoleChange)> {
    let bound = before.map_or("", |before| &before.bound);
    let newest = before.map_or("0", |before| &before.newest);
    let values = [("bound", bound), ("newest", newest)];
    let bound = bind(&ROLE_CHANGES, &values)?;
    let rows = text_rows(service, &Principal::Control, &bound, &options()).await?;
    let rows: Vec<[String; 4]> = rows
        .into_iter()
        .filter_map(|row| row.try_into().ok())
        .collect();
    compare(before, rows).ok_or_else(|| Error::internal("role_changes.sql returned no state"))
}

fn compare(before: Option<&RoleRows>, rows: Vec<[String; 4]>) -> Option<(RoleRows, RoleChange)> {
    let mut rows = rows.into_iter();
    let [_, bound, count, newest] = rows.next()?;
    let mut known = RoleRows {
        bound,
        newest,
        count: count.parse().ok()?,
        rows: HashSet::new(),
    };
    let mut users: HashMap<String, Vec<String>> = HashMap::new();
    let (mut added, mut is_plain) = (0, true);
    for [kind, id, tenant, plain] in rows {
        let id = format!("{kind} {id}");
        if !before.is_some_and(|before| before.rows.contains(&id)) {
            added += 1;
            is_plain &= !plain.is_empty();
            if kind == "role" {
                users.entry(tenant).or_default().push(plain);
            }
        }
        known.rows.insert(id);
    }
    let change = match before {
        // The query does not return deleted rows, so they are detected by a lower total count.
        Some(before) if before.count + added != known.count => RoleChange::Unknown,
        Some(_) if known.rows.len() > MAX_ROWS || !is_plain => RoleChange::Unknown,
        Some(_) if added == 0 => RoleChange::Nothing,
        Some(_) => RoleChange::Users(users),
        None => RoleChange::Unknown,
    };
    Some((known, change))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(before: Option<&RoleRows>, count: &str, rows: &[[&str; 4]]) -> (RoleRows, RoleChange) {
        let state = ["state", "700", count, "20"];
        let rows = std::iter::once(&state).chain(rows);
        let rows = rows.map(|row| row.map(str::to_owned)).collect();
        compare(before, rows).unwrap()
    }

    #[test]
    fn only_plain_users_that_were_not_seen_are_added() {
        let old = ["role", "19 701", "t", ""];
        let user = ["role", "21 702", "t", "21"];
        let member = ["member", "5 21 702", "t", "member"];
        let (first, change) = seen(None, "10", &[]);
        assert_eq!(change, RoleChange::Unknown);
        let (second, change) = seen(Some(&first), "10", &[]);
        assert_eq!(change, RoleChange::Nothing);
        let added = RoleChange::Users(HashMap::from([("t".to_owned(), vec!["21".to_owned()])]));
        let (third, change) = seen(Some(&second), "12", &[user, member]);
        assert_eq!(change, added);
        // While a transaction is open, the rows since its start are read again each time.
        assert_eq!(
            seen(Some(&third), "12", &[user, member]).1,
            RoleChange::Nothing
        );
        // The change is `Unknown` after a row was deleted or changed, and for a new role that is
        // not a plain user.
        assert_eq!(
            seen(Some(&second), "11", &[user, member]).1,
            RoleChange::Unknown
        );
        assert_eq!(seen(Some(&second), "10", &[old]).1, RoleChange::Unknown);
        assert_eq!(
            seen(Some(&second), "13", &[user, member, old]).1,
            RoleChange::Unknown
        );
        assert_eq!(seen(Some(&second), "9", &[]).1, RoleChange::Unknown);
    }
}
