//! With what the roles of users log in.

use std::fmt;
use std::sync::Arc;

use tidegate_sql::{
    BoundStatement, BoxFuture, Column, Executor, Flow, Parameter, Principal, RawRow, Result,
    RowSink, Statement, Terms,
};

use super::RolePasswords;
use crate::config::Secret;
use crate::connection::StartupPins;
use crate::executor::{Credential, Credentials};
use crate::pool::{Key, OpenError};

/// The `search_path` that is configured for a role in a database, by the precedence of PostgreSQL
/// ("ALTER ROLE": settings for role and database, then role, then database).
const SEARCH_PATH: &str = "\
    SELECT pg_catalog.substr(c.setting, 13) \
    FROM pg_catalog.pg_db_role_setting s \
    CROSS JOIN LATERAL pg_catalog.unnest(s.setconfig) AS c (setting) \
    LEFT JOIN pg_catalog.pg_roles r ON r.oid = s.setrole \
    LEFT JOIN pg_catalog.pg_database d ON d.oid = s.setdatabase \
    WHERE (s.setrole = 0 OR r.rolname = :role) AND (s.setdatabase = 0 OR d.datname = :database) \
      AND pg_catalog.starts_with(c.setting, 'search_path=') \
    ORDER BY s.setrole = 0, s.setdatabase = 0 LIMIT 1";

/// Derives passwords from the master secret, and pins the `search_path` that PostgreSQL has
/// configured for the role.
pub struct RoleCredentials {
    control: Arc<dyn Executor>,
    passwords: RolePasswords,
    server_version: u32,
    search_path: Arc<Statement>,
}

impl RoleCredentials {
    /// `control` runs statements as the service; `server_version` is `server_version_num`.
    pub fn new(
        control: Arc<dyn Executor>,
        passwords: RolePasswords,
        server_version: u32,
    ) -> Result<Self> {
        let search_path = Arc::new(Statement::parse(SEARCH_PATH)?);
        Ok(Self {
            control,
            passwords,
            server_version,
            search_path,
        })
    }

    async fn credential(&self, key: &Key) -> Result<Credential, OpenError> {
        let bound = self.bind(key);
        let mut first = FirstText(None);
        let asked = self
            .control
            .query(&Principal::Control, &bound, &Terms::default(), &mut first)
            .await;
        asked.map_err(|error| match error {
            error @ (tidegate_sql::Error::Unavailable { .. }
            | tidegate_sql::Error::PoolTimeout { .. }) => OpenError::Unreachable(Arc::new(error)),
            error => OpenError::Internal(Arc::new(error)),
        })?;
        Ok(Credential {
            password: Secret::new(self.passwords.password(key.role.as_str())),
            pins: StartupPins {
                search_path: first.0,
                server_version: self.server_version,
            },
        })
    }

    fn bind(&self, key: &Key) -> BoundStatement {
        let text = |value: &str| Parameter::Text(value.into());
        BoundStatement {
            statement: self.search_path.clone(),
            hints: vec![None, None],
            formats: vec![None, None],
            sets: vec![vec![text(key.role.as_str()), text(key.database.as_str())]],
            listed: false,
        }
    }
}

impl Credentials for RoleCredentials {
    fn of<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Credential, OpenError>> {
        Box::pin(self.credential(key))
    }
}

impl fmt::Debug for RoleCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RoleCredentials").finish_non_exhaustive()
    }
}

/// Keeps the first value of the first row, which is text.
struct FirstText(Option<String>);

impl RowSink for FirstText {
    fn columns(&mut self, _columns: &[Column]) -> Result<()> {
        Ok(())
    }

    fn row(&mut self, row: RawRow<'_>) -> Result<Flow> {
        let value = row.values().next().flatten();
        self.0 = value.map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        Ok(Flow::Continue)
    }

    fn ready(&mut self) -> BoxFuture<'_, Result<()>> {
        Box::pin(std::future::ready(Ok(())))
    }
}
