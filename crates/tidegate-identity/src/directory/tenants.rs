//! Settings of a tenant.

use super::UserDirectory;
use crate::{AnonymousSql, AuditKind, Error, Result};

impl UserDirectory {
    /// The kind of SQL statements that the tenant's default user may send; [`AnonymousSql::Off`]
    /// when the tenant does not exist.
    pub async fn anonymous_sql(&self, database: &str) -> Result<AnonymousSql> {
        Ok(self.ports.store.anonymous_sql(database).await?)
    }

    /// Sets the kind of SQL statements that the tenant's default user may send, and writes an audit
    /// event.
    ///
    /// Errors: [`Error::NotFound`] when the tenant does not exist.
    pub async fn set_anonymous_sql(&self, database: &str, setting: AnonymousSql) -> Result<()> {
        let store = &self.ports.store;
        if !store.set_anonymous_sql(database, setting).await? {
            return Err(Error::NotFound("tenant"));
        }
        let event = self.event(AuditKind::TenantChanged, database);
        let event = event.with_detail(&format!("anonymous_sql={}", setting.name()));
        self.ports.audit(event).await;
        Ok(())
    }

    /// Whether the tenant's owner may act as its users; `false` when the tenant does not exist.
    pub async fn impersonation(&self, database: &str) -> Result<bool> {
        Ok(self.ports.store.impersonation(database).await?)
    }

    /// Sets whether the tenant's owner may act as its users, and writes an audit event.
    ///
    /// Errors: [`Error::NotFound`] when the tenant does not exist.
    pub async fn set_impersonation(&self, database: &str, allowed: bool) -> Result<()> {
        let store = &self.ports.store;
        if !store.set_impersonation(database, allowed).await? {
            return Err(Error::NotFound("tenant"));
        }
        let event = self.event(AuditKind::TenantChanged, database);
        let event = event.with_detail(&format!("impersonation={allowed}"));
        self.ports.audit(event).await;
        Ok(())
    }
}
