//! Checks the roles whose connections are open, because roles change without a notification.

use tidegate_sql::Result;

use super::UserExecutor;

impl UserExecutor {
    /// Closes the connections of roles that may no longer log in (`NOLOGIN`, `VALID UNTIL`,
    /// `CONNECT`), or whose sessions would start with other settings (`ALTER ROLE … SET`). Idle
    /// connections are closed immediately, others when they are returned. Also checks whether users
    /// may still share connections. Call it when roles may have changed.
    ///
    /// # Errors
    ///
    /// Errors of the queries that the service runs.
    pub async fn check_logins(&self) -> Result<()> {
        if let Some(authentication) = &self.authentication {
            authentication.refresh().await?;
        }
        self.check_open_logins().await
    }

    /// Closes connections as [`Self::check_logins`] does, without checking whether users may still
    /// share connections. Call it at least every second, because `VALID UNTIL` passes without a
    /// change of roles.
    ///
    /// # Errors
    ///
    /// Errors of the queries that the service runs.
    pub async fn check_open_logins(&self) -> Result<()> {
        match &self.service {
            Some(service) => {
                let logins = self.pool.connector().logins();
                logins.compare(&**service, &self.pool).await
            }
            None => Ok(()),
        }
    }
}
