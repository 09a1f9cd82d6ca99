//! Keeping clients and users: what a command line and a management API do.

mod clients;
mod users;

pub use clients::{CreatedClient, NewClient};
pub use users::{NewOwner, NewUser, UserChange};

use crate::{AuditEvent, AuditKind, Ports};

/// The records of clients and users.
///
/// It keeps records only. The PostgreSQL roles that users run as are made and dropped by whoever
/// calls it: the role before its record, the record before its role. Sessions that a change ends are
/// refused by an [`Issuer`](crate::Issuer) after its next `refresh_denylist`.
#[derive(Clone, Debug)]
pub struct Directory {
    ports: Ports,
}

impl Directory {
    /// The directory over these ports.
    pub fn new(ports: Ports) -> Self {
        Self { ports }
    }

    fn event(&self, kind: AuditKind, database: &str) -> AuditEvent {
        AuditEvent::new(self.ports.clock.now(), kind, Some(database))
    }
}
