//! The login credentials of users' roles.

use std::fmt;
use std::sync::Arc;

use tidegate_pool::{OpenError, PoolKey};
use tidegate_postgres::{Admission, Credential, Credentials, LOGIN_STATE};
use tidegate_sql::{
    BoundStatement, BoxFuture, Executor, Flow, Principal, QueryOptions, Result, RowSink, Statement,
};
use tidegate_values::{Column, Parameter, RawRow};
use tidegate_wire::{Secret, StartupParameters};

use super::RolePasswords;

/// Selects the `search_path` configured for a role in a database. PostgreSQL uses the setting for
/// this role in this database, or else the setting of the role, or else that of the database
/// ("ALTER ROLE").
const SEARCH_PATH: &str = "\
    (SELECT 'search_path', pg_catalog.substr(c.setting, 13) \
    FROM pg_catalog.pg_db_role_setting s \
    CROSS JOIN LATERAL pg_catalog.unnest(s.setconfig) AS c (setting) \
    LEFT JOIN pg_catalog.pg_roles r ON r.oid = s.setrole \
    LEFT JOIN pg_catalog.pg_database d ON d.oid = s.setdatabase \
    WHERE (s.setrole = 0 OR r.rolname = :role) AND (s.setdatabase = 0 OR d.datname = :database) \
      AND pg_catalog.starts_with(c.setting, 'search_path=') \
    ORDER BY s.setrole = 0, s.setdatabase = 0 LIMIT 1)";

/// Returns the end of the queries [`SEARCH_PATH`] and [`DEFAULTS`]. It adds two rows, under names
/// that no setting has: the login state, and whether the role may log in.
fn login_rows() -> String {
    format!(
        " UNION ALL SELECT 'login state', {LOGIN_STATE} FROM pg_catalog.pg_roles r, pg_catalog.pg_database d \
      WHERE r.rolname = :role AND d.datname = :database \
     UNION ALL SELECT 'admission', CASE \
        WHEN NOT EXISTS (SELECT FROM pg_catalog.pg_database d WHERE d.datname = :database) \
             THEN 'no database' \
        WHEN NOT EXISTS (SELECT FROM pg_catalog.pg_roles r \
                         WHERE r.rolname = :role AND r.rolcanlogin \
                           AND coalesce(r.rolvaliduntil >= pg_catalog.now(), true)) \
             THEN 'barred' \
        ELSE 'admitted' END"
    )
}

/// Selects the settings for a session of a role that anonymous callers or the members of a group
/// share. They replace the role's own settings, which an earlier caller could have changed (`ALTER
/// ROLE … SET`). Each value is the value configured for the database, or else the value of the
/// server.
///
/// The rows are all settings of PostgreSQL that a role may change, because a concurrent change may
/// affect any of them. The rows also include the settings of extensions that the role has changed
/// (at most 32). Such a setting gets the default of the library that declares it. An empty value
/// could be invalid, and PostgreSQL refuses a login with an invalid value. If no library declares
/// the setting, it gets an empty value. Settings that the role cannot have changed are left out.
///
/// `statement_timeout` is left out too. Operators limit anonymous callers with it, and anonymous
/// callers cannot change it, because they cannot run `ALTER ROLE`
/// (`Statement::check_for_shared_role`).
const DEFAULTS: &str = "\
    WITH given AS ( \
        SELECT pg_catalog.split_part(c.setting, '=', 1) AS name, \
               pg_catalog.substr(c.setting, pg_catalog.strpos(c.setting, '=') + 1) AS value, \
               s.setrole <> 0 AS own, s.setdatabase <> 0 AS here \
        FROM pg_catalog.pg_db_role_setting s \
        CROSS JOIN LATERAL pg_catalog.unnest(s.setconfig) AS c (setting) \
        LEFT JOIN pg_catalog.pg_roles r ON r.oid = s.setrole \
        LEFT JOIN pg_catalog.pg_database d ON d.oid = s.setdatabase \
        WHERE (s.setrole = 0 OR r.rolname = :role) AND (s.setdatabase = 0 OR d.datname = :database) \
    ), known AS ( \
        SELECT p.name, p.context IN ('user', 'backend') AS free, \
               CASE WHEN p.source IN ('client', 'session', 'user', 'database', 'database user') \
                    THEN p.boot_val ELSE p.reset_val END AS value \
        FROM pg_catalog.pg_settings p \
    ), free AS ( \
        SELECT k.name, k.value FROM known k \
        WHERE k.free AND pg_catalog.strpos(k.name, '.') = 0 AND k.name NOT IN \
              ('statement_timeout', 'transaction_isolation', 'transaction_read_only', \
               'transaction_deferrable') \
        UNION ALL ( \
            SELECT DISTINCT g.name, k.value FROM given g \
            LEFT JOIN known k ON pg_catalog.lower(k.name) = pg_catalog.lower(g.name) \
            WHERE g.own AND pg_catalog.strpos(g.name, '.') > 0 AND pg_catalog.length(g.name) < 64 \
              AND coalesce(k.free, NOT EXISTS (SELECT FROM known p WHERE pg_catalog.starts_with( \
                  p.name, pg_catalog.split_part(g.name, '.', 1) || '.'))) \
            ORDER BY 1 LIMIT 32) \
    ) \
    SELECT f.name, coalesce((SELECT g.value FROM given g WHERE g.name = f.name AND NOT g.own \
                             ORDER BY NOT g.here LIMIT 1), f.value, '') \
    FROM free f";

/// Provides the credentials of roles: derives passwords from the master secret, and reads the
/// `search_path` configured for the role. If anonymous callers or the members of a group share the
/// role, also provides values for all settings that they could have changed.
pub struct RoleCredentials {
    control: Arc<dyn Executor>,
    passwords: RolePasswords,
    server_version: u32,
    search_path: Arc<Statement>,
    defaults: Arc<Statement>,
}

impl RoleCredentials {
    /// Creates a provider that reads the settings of roles through `control`, which runs statements
    /// as the administrator. `server_version` is `server_version_num`.
    pub fn new(
        control: Arc<dyn Executor>,
        passwords: RolePasswords,
        server_version: u32,
    ) -> Result<Self> {
        let login_rows = login_rows();
        let search_path = Arc::new(Statement::parse(&format!("{SEARCH_PATH}{login_rows}"))?);
        let defaults = Arc::new(Statement::parse(&format!("{DEFAULTS}{login_rows}"))?);
        Ok(Self {
            control,
            passwords,
            server_version,
            search_path,
            defaults,
        })
    }

    async fn credential(&self, key: &PoolKey, shared: bool) -> Result<Credential, OpenError> {
        let bound = bind(
            if shared {
                &self.defaults
            } else {
                &self.search_path
            },
            key,
        );
        let mut settings = Settings(Vec::new());
        let asked = self
            .control
            .query(
                &Principal::Control,
                &bound,
                &QueryOptions::default(),
                &mut settings,
            )
            .await;
        asked.map_err(|error| match error {
            error @ (tidegate_sql::Error::Unavailable { .. }
            | tidegate_sql::Error::PoolTimeout { .. }) => OpenError::Unreachable(Arc::new(error)),
            error => OpenError::Internal(Arc::new(error)),
        })?;
        let mut defaults = settings.0;
        let mut take = |wanted: &str| {
            let place = defaults.iter().position(|(name, _)| name == wanted);
            place.map(|place| defaults.swap_remove(place).1)
        };
        let state = take("login state");
        let admission = match take("admission").as_deref() {
            Some("no database") => Admission::NoDatabase,
            Some("barred") => Admission::AccessDenied,
            _ => Admission::Admitted,
        };
        let search_path = take("search_path");
        Ok(Credential {
            password: Secret::new(self.passwords.password(key.role.as_str())),
            startup: StartupParameters {
                search_path,
                defaults,
                server_version: self.server_version,
            },
            state,
            admission,
        })
    }
}

fn bind(statement: &Arc<Statement>, key: &PoolKey) -> BoundStatement {
    let value = |name: &str| match name {
        "role" => key.role.as_str(),
        _ => key.database.as_str(),
    };
    let names = statement.placeholders();
    let values = names.iter().map(|name| Parameter::Text(value(name).into()));
    BoundStatement::with_values(statement.clone(), values.collect())
}

impl Credentials for RoleCredentials {
    fn of<'a>(
        &'a self,
        key: &'a PoolKey,
        shared: bool,
    ) -> BoxFuture<'a, Result<Credential, OpenError>> {
        Box::pin(self.credential(key, shared))
    }
}

impl fmt::Debug for RoleCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RoleCredentials").finish_non_exhaustive()
    }
}

/// Collects rows with a name and a value as text. Skips rows with a NULL.
struct Settings(Vec<(String, String)>);

impl RowSink for Settings {
    fn columns(&mut self, _columns: &[Column]) -> Result<()> {
        Ok(())
    }

    fn row(&mut self, row: RawRow<'_>) -> Result<Flow> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut values = row.values().map(|value| value.map(text));
        if let (Some(Some(name)), Some(Some(value))) = (values.next(), values.next()) {
            self.0.push((name, value));
        }
        Ok(Flow::Continue)
    }
}
