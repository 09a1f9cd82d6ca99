//! Keeping clients and users: what a command line and a management API do.

mod clients;
mod tenants;
mod users;

use std::net::IpAddr;

pub use clients::{ClientChange, CreatedClient, NewClient};
pub(crate) use users::refuse_owner;
pub use users::{NewOwner, NewUser, UserChange};

use crate::{AuditEvent, AuditKind, EndReason, Ports, Result, SessionId, UserKey};

/// The records of clients and users.
///
/// It keeps records only. The PostgreSQL roles that users run as are made and dropped by whoever
/// calls it: the role before its record, the record before its role. Sessions that a change ends are
/// refused by an [`Issuer`](crate::Issuer) after its next `refresh_denylist`.
#[derive(Clone, Debug)]
pub struct Directory {
    ports: Ports,
    actor: Option<String>,
    address: Option<IpAddr>,
}

impl Directory {
    /// The directory over these ports.
    pub fn new(ports: Ports) -> Self {
        Self {
            ports,
            actor: None,
            address: None,
        }
    }

    /// The same directory, where the audit log says that the user `actor` did it, from `address`.
    /// Without this it was the operator.
    pub fn acting_as(&self, actor: &str, address: Option<IpAddr>) -> Self {
        Self {
            ports: self.ports.clone(),
            actor: Some(actor.to_owned()),
            address,
        }
    }

    fn event(&self, kind: AuditKind, database: &str) -> AuditEvent {
        let event = AuditEvent::new(self.ports.clock.now(), kind, Some(database));
        event.by(self.actor.clone()).from(self.address)
    }

    /// Ends all sessions of a user and tells the audit log of each.
    async fn end_sessions(&self, key: &UserKey, reason: EndReason) -> Result<()> {
        let now = self.ports.clock.now();
        let store = &self.ports.store;
        let ended = store.end_sessions_of_user(key, reason, now).await?;
        let event = |id: &SessionId| {
            let event = self.event(AuditKind::SessionEnded(reason), &key.database);
            event.of_user(&key.name).in_session(*id)
        };
        let events: Vec<_> = ended.iter().map(event).collect();
        self.ports.audit_all(&events).await;
        Ok(())
    }
}
