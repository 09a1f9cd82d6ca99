//! The records of clients and users, for the command line and the management API.

mod clients;
mod tenants;
mod users;

use std::net::IpAddr;
use std::sync::Arc;

pub use clients::{ClientChange, CreatedClient, NewClient};
pub(crate) use users::refuse_owner;
pub use users::{NewOwner, NewUser, UserChange};

use crate::{AuditEvent, AuditKind, EndReason, Ports, Result, SessionId, UserKey};

/// The records of clients and users.
///
/// It manages records only; [`Accounts`](crate::Accounts) manages the PostgreSQL roles with them.
/// An [`Issuer`](crate::Issuer) refuses sessions that a change ended after its next
/// `refresh_denylist`.
#[derive(Clone, Debug)]
pub struct Directory {
    ports: Ports,
    actor: Option<String>,
    address: Option<IpAddr>,
    /// Ids that no client may have.
    reserved_ids: Arc<[String]>,
}

impl Directory {
    /// A directory over these ports.
    pub fn new(ports: Ports) -> Self {
        Self {
            ports,
            actor: None,
            address: None,
            reserved_ids: Arc::default(),
        }
    }

    /// The same directory, with the user `actor` and `address` in the audit log. Without this, the
    /// actor is the operator.
    pub fn acting_as(&self, actor: &str, address: Option<IpAddr>) -> Self {
        Self {
            ports: self.ports.clone(),
            actor: Some(actor.to_owned()),
            address,
            reserved_ids: Arc::clone(&self.reserved_ids),
        }
    }

    /// The same directory, which refuses new clients with one of these ids: those of built-in
    /// clients.
    pub fn reserving_client_ids(self, ids: &[String]) -> Self {
        Self {
            reserved_ids: ids.into(),
            ..self
        }
    }

    fn event(&self, kind: AuditKind, database: &str) -> AuditEvent {
        let event = AuditEvent::new(self.ports.clock.now(), kind, Some(database));
        event
            .with_actor(self.actor.clone())
            .with_address(self.address)
    }

    /// Ends all sessions of a user and writes an audit event for each.
    async fn end_sessions(&self, key: &UserKey, reason: EndReason) -> Result<()> {
        let now = self.ports.clock.now();
        let store = &self.ports.store;
        let ended = store.end_sessions_of_user(key, reason, now).await?;
        let event = |id: &SessionId| {
            let event = self.event(AuditKind::SessionEnded(reason), &key.database);
            event.with_user(&key.name).with_session(*id)
        };
        let events: Vec<_> = ended.iter().map(event).collect();
        self.ports.audit_all(&events).await;
        Ok(())
    }
}
