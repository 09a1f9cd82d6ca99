//! The records of users, for the command line and the management API.

mod check;
mod credentials;
mod members;
mod prepare;
mod tenants;
mod users;

use std::net::IpAddr;

pub(crate) use check::{check, check_groups};
pub(crate) use users::refuse_owner;
pub use users::{NewOwner, NewUser, UserChange};

use crate::{AuditEvent, AuditKind, EndReason, Ports, Result, SessionId, UserKey};

/// The records of users, and the settings of tenants.
///
/// The directory manages records only; [`Accounts`](crate::Accounts) manages records together with
/// PostgreSQL roles. A change may end sessions. An issuer refuses the tokens of an ended session as
/// soon as it has read the list of ended sessions again.
#[derive(Clone, Debug)]
pub struct UserDirectory {
    ports: Ports,
    actor: Option<String>,
    address: Option<IpAddr>,
}

impl UserDirectory {
    /// A directory that works on `ports`.
    pub fn new(ports: Ports) -> Self {
        Self {
            ports,
            actor: None,
            address: None,
        }
    }

    /// The same directory, but its audit events name the user `actor` and the `address` of the
    /// request instead of the operator.
    pub fn acting_as(&self, actor: &str, address: Option<IpAddr>) -> Self {
        Self {
            ports: self.ports.clone(),
            actor: Some(actor.to_owned()),
            address,
        }
    }

    fn event(&self, kind: AuditKind, database: &str) -> AuditEvent {
        let event = AuditEvent::new(self.ports.clock.now(), kind, Some(database));
        event
            .with_acting_user(self.actor.clone())
            .with_address(self.address)
    }

    /// Ends all sessions of a user, including browser sessions, and writes an audit event for each
    /// OAuth session.
    pub(crate) async fn end_sessions(&self, key: &UserKey, reason: EndReason) -> Result<()> {
        let now = self.ports.clock.now();
        let store = &self.ports.store;
        let ended = store.end_sessions_of_user(key, reason, now).await?;
        let event = |id: &SessionId| {
            let event = self.event(AuditKind::SessionEnded(reason), &key.database);
            event.with_user(&key.name).with_session(*id)
        };
        let events: Vec<_> = ended.iter().map(event).collect();
        self.ports.store.append_audit_or_log(&events).await;
        Ok(())
    }
}
