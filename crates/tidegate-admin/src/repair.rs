//! Repairs the logins of roles whose password was changed, or whose settings prevent every session
//! from starting.

use SqlPart::{Name, Syntax};
use tidegate_pool::{Cause, Connector as _, OpenError, PoolKey};
use tidegate_postgres::RoleConnector;
use tidegate_sql::{DatabaseError, DatabaseName, RoleName};
use tidegate_wire::ConnectError;

use super::script::{Script, SqlPart};
use super::session::{self, Session};
use super::{Admin, Error, Result, authenticator, role};

impl Admin {
    /// The authenticators of a tenant, by name.
    pub async fn authenticators(&self, database: &DatabaseName) -> Result<Vec<RoleName>> {
        let names =
            authenticator::of_tenant(&self.open_admin_database().await?, database.as_str()).await?;
        Ok(names.into_iter().map(RoleName::new).collect())
    }

    /// Sets the password of a role that Tidegate created, and logs in as this role with
    /// `connector`. As long as PostgreSQL refuses the login because of settings of the role, resets
    /// the settings that the error names, and tries again. `shared` says whether anonymous callers
    /// or the members of a group share the role. Returns the statements that reset settings.
    ///
    /// # Errors
    ///
    /// [`Error::NoRole`], [`Error::RoleNotManaged`]; [`Error::LoginRefused`] if the login is
    /// refused for another reason.
    pub async fn repair_login(
        &self,
        connector: &RoleConnector,
        key: &PoolKey,
        shared: bool,
    ) -> Result<Vec<String>> {
        let home = self.open_admin_database().await?;
        let name = key.role.as_str();
        match role::origin(&home, name).await? {
            role::RoleOrigin::Tidegate => {}
            role::RoleOrigin::Missing => return Err(Error::NoRole(name.to_owned())),
            role::RoleOrigin::Other => return Err(Error::RoleNotManaged(name.to_owned())),
        }
        let password = role::password(name, &self.passwords.verifier(name));
        session::retry_on_conflict(|| password.run(&home)).await?;
        let mut done = Vec::new();
        loop {
            let refused = match connector.open(key, shared).await {
                Ok(connection) => {
                    connector.close(connection).await;
                    return Ok(done);
                }
                Err(refused) => refused,
            };
            let resets = match settings_refused(&refused) {
                Some(reported) => resets(&home, key, reported).await?,
                None => Script::default(),
            };
            let statements = resets.to_string();
            if statements.is_empty() {
                return Err(Error::LoginRefused {
                    role: name.to_owned(),
                    reason: reason(refused),
                });
            }
            session::retry_on_conflict(|| resets.run(&home)).await?;
            done.extend(statements.lines().map(str::to_owned));
        }
    }
}

/// PostgreSQL's error, if a login failed because of a setting that prevents every session from
/// starting; `None` if it failed for another reason.
fn settings_refused(refused: &OpenError) -> Option<&DatabaseError> {
    let OpenError::Login(cause) = refused else {
        return None;
    };
    match cause.downcast_ref() {
        Some(ConnectError::InvalidSettings(reported)) => Some(reported),
        _ => None,
    }
}

fn reason(refused: OpenError) -> Cause {
    match refused {
        OpenError::Unreachable(cause)
        | OpenError::Full(cause)
        | OpenError::Limited(cause)
        | OpenError::Login(cause)
        | OpenError::AccessDenied { cause, .. }
        | OpenError::Internal(cause) => cause,
        OpenError::NoDatabase => std::sync::Arc::new(refused),
    }
}

/// Returns the statements that reset the role's own settings. Settings that the error message does
/// not name are skipped. If the script is empty, the cause is in the database, for example an event
/// trigger.
async fn resets(home: &Session, key: &PoolKey, reported: &DatabaseError) -> Result<Script> {
    let (role, database) = (key.role.as_str(), key.database.as_str());
    let rows = home.client.query(SETTINGS, &[&role, &database]).await?;
    let mut script = Script::default();
    for row in &rows {
        // A setting that is not valid UTF-8 is skipped. The message is UTF-8, so it cannot name
        // such a setting.
        let Ok(setting) = row.try_get::<_, &str>(1) else {
            continue;
        };
        let (name, value) = setting.split_once('=').unwrap_or((setting, ""));
        if !is_named(&reported.message, name, value) {
            continue;
        }
        let mut parts = vec![Syntax("ALTER ROLE "), Name(role)];
        if row.get(0) {
            parts.extend([Syntax(" IN DATABASE "), Name(database)]);
        }
        parts.extend([Syntax(" RESET "), Name(name)]);
        script.push(&parts);
    }
    Ok(script)
}

/// Selects the settings of the role `$1` that apply in the database `$2`. The first column says
/// whether the setting applies in this database only. The second column is the text of the setting,
/// `name=value`.
const SETTINGS: &str = "SELECT s.setdatabase <> 0, c.setting \
     FROM pg_catalog.pg_db_role_setting s \
     CROSS JOIN LATERAL pg_catalog.unnest(s.setconfig) AS c (setting) \
     JOIN pg_catalog.pg_roles r ON r.oid = s.setrole \
     LEFT JOIN pg_catalog.pg_database d ON d.oid = s.setdatabase \
     WHERE r.rolname = $1 AND (s.setdatabase = 0 OR d.datname = $2)";

/// Whether a message, in any language, names a setting or a library that the setting loads.
fn is_named(message: &str, name: &str, value: &str) -> bool {
    let names = |word: &str| {
        let inside = |char: char| char.is_alphanumeric() || char == '_';
        !word.is_empty()
            && message.match_indices(word).any(|(at, _)| {
                let (before, after) = (&message[..at], &message[at + word.len()..]);
                !before.ends_with(inside) && !after.starts_with(inside)
            })
    };
    let libraries = name.ends_with("_preload_libraries");
    let mut values = value.split(',').map(|part| part.trim().trim_matches('"'));
    names(name) || libraries && values.any(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_names_whole_words_in_any_language() {
        let german = "ungültiger Wert für Parameter »work_mem«: »much«";
        assert!(is_named(german, "work_mem", "much"));
        assert!(!is_named(german, "mem", ""));
        assert!(!is_named(
            "relation \"search_paths\" does not exist",
            "search_path",
            "x"
        ));
        let library = "could not access file \"gone\": No such file or directory";
        assert!(is_named(
            library,
            "session_preload_libraries",
            "plpgsql, gone"
        ));
        assert!(!is_named(library, "search_path", "gone"));
    }
}
