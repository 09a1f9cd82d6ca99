//! Finds out whether only users were added since roles were last compared.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, LazyLock};

use tidegate_sql::{Error, Executor, Principal, Result, Statement};

use super::decide::{bind, options, statement};
use crate::suspects::texts;

static ADDITIONS: LazyLock<Arc<Statement>> =
    LazyLock::new(|| statement(include_str!("additions.sql")));

/// Rows that are newer than the oldest running transaction are compared with those of the last time.
/// If there are more, because a transaction runs very long, everything is compared instead.
const MOST_ROWS: usize = 1000;

/// The roles, memberships, settings and databases of a cluster when they were last read.
pub(super) struct RoleRows {
    bound: String,
    newest: String,
    count: usize,
    rows: HashSet<String>,
}

/// What has changed since.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// Nothing.
    Nothing,
    /// Plain users were added: the numbers of their roles, by tenant.
    Users(HashMap<String, Vec<String>>),
    /// Anything may have changed.
    Other,
}

/// Reads what has changed since `before` (`additions.sql`).
///
/// # Errors
///
/// Those of the statement.
pub(super) async fn additions(
    service: &dyn Executor,
    before: Option<&RoleRows>,
) -> Result<(RoleRows, Change)> {
    let bound = before.map_or("", |before| &before.bound);
    let newest = before.map_or("0", |before| &before.newest);
    let values = [("bound", bound), ("newest", newest)];
    let bound = bind(&ADDITIONS, &values)?;
    let rows = texts(service, &Principal::Control, &bound, &options()).await?;
    let rows: Vec<[String; 4]> = rows
        .into_iter()
        .filter_map(|row| row.try_into().ok())
        .collect();
    compare(before, rows).ok_or_else(|| Error::internal("additions.sql returned no state"))
}

fn compare(before: Option<&RoleRows>, rows: Vec<[String; 4]>) -> Option<(RoleRows, Change)> {
    let mut rows = rows.into_iter();
    let [_, bound, count, newest] = rows.next()?;
    let mut known = RoleRows {
        bound,
        newest,
        count: count.parse().ok()?,
        rows: HashSet::new(),
    };
    let mut users: HashMap<String, Vec<String>> = HashMap::new();
    let (mut fresh, mut is_plain) = (0, true);
    for [kind, id, tenant, plain] in rows {
        let id = format!("{kind} {id}");
        if !before.is_some_and(|before| before.rows.contains(&id)) {
            fresh += 1;
            is_plain &= !plain.is_empty();
            if kind == "role" {
                users.entry(tenant).or_default().push(plain);
            }
        }
        known.rows.insert(id);
    }
    let change = match before {
        // A row that was deleted leaves nothing but a lower count.
        Some(before) if before.count + fresh != known.count => Change::Other,
        Some(_) if known.rows.len() > MOST_ROWS || !is_plain => Change::Other,
        Some(_) if fresh == 0 => Change::Nothing,
        Some(_) => Change::Users(users),
        None => Change::Other,
    };
    Some((known, change))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(before: Option<&RoleRows>, count: &str, rows: &[[&str; 4]]) -> (RoleRows, Change) {
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
        assert_eq!(change, Change::Other);
        let (second, change) = seen(Some(&first), "10", &[]);
        assert_eq!(change, Change::Nothing);
        let added = Change::Users(HashMap::from([("t".to_owned(), vec!["21".to_owned()])]));
        let (third, change) = seen(Some(&second), "12", &[user, member]);
        assert_eq!(change, added);
        // A transaction that is still open has the same rows read again.
        assert_eq!(seen(Some(&third), "12", &[user, member]).1, Change::Nothing);
        // One was deleted, changed, or is of another kind.
        assert_eq!(seen(Some(&second), "11", &[user, member]).1, Change::Other);
        assert_eq!(seen(Some(&second), "10", &[old]).1, Change::Other);
        assert_eq!(
            seen(Some(&second), "13", &[user, member, old]).1,
            Change::Other
        );
        assert_eq!(seen(Some(&second), "9", &[]).1, Change::Other);
    }
}
