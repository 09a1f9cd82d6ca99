//! Settings of a tenant.

use super::Directory;
use crate::{AnonymousSql, AuditKind, Error, Result};

impl Directory {
    /// What the tenant lets its default user do with raw SQL; [`AnonymousSql::Off`] when there is
    /// no such tenant.
    pub async fn anonymous_sql(&self, database: &str) -> Result<AnonymousSql> {
        Ok(self.ports.store.anonymous_sql(database).await?)
    }

    /// Sets what the tenant lets its default user do with raw SQL, and notes it in the audit log.
    ///
    /// [`Error::NotFound`].
    pub async fn set_anonymous_sql(&self, database: &str, setting: AnonymousSql) -> Result<()> {
        let store = &self.ports.store;
        if !store.set_anonymous_sql(database, setting).await? {
            return Err(Error::NotFound("tenant"));
        }
        let event = self.event(AuditKind::TenantChanged, database);
        let event = event.about(&format!("anonymous_sql={}", setting.name()));
        self.ports.audit(event).await;
        Ok(())
    }
}
