//! The sessions of a tenant's users. The owner may see and end all of them. Any other user may see
//! and end only its own sessions.

use std::net::IpAddr;

use super::Issuer;
use crate::{Claims, Result, Session};
use tidegate_identity::{AuditKind, EndReason, Error as IdentityError, SessionId, UserKey};

/// The maximum number of sessions that a list of sessions returns.
const MAX_LISTED: u32 = 1_000;

impl Issuer {
    /// The live sessions that the caller may see, the most recently used first, at most 1,000.
    /// Without `user` the owner gets all sessions of the tenant except those of anonymous callers.
    /// An anonymous caller gets only its own session.
    ///
    /// Errors: [`IdentityError::NotFound`] when a user who is not the owner names another user.
    pub async fn sessions(&self, caller: &Claims, user: Option<&str>) -> Result<Vec<Session>> {
        let now = self.ports.clock.now();
        if caller.shared {
            // Anonymous callers share a user, but each has a session of its own.
            let session = self.ports.store.session(caller.session).await?;
            return Ok(session.into_iter().collect());
        }
        let own = Some(caller.user.as_str());
        let user = if caller.owner { user } else { user.or(own) };
        if !caller.owner && user != own {
            return Err(IdentityError::NotFound("user").into());
        }
        let Some(name) = user else {
            return Ok(self
                .ports
                .store
                .sessions(&caller.database, now, MAX_LISTED)
                .await?);
        };
        let key = UserKey::new(&caller.database, name);
        let mut sessions = self.ports.store.sessions_of_user(&key, None, now).await?;
        sessions.truncate(MAX_LISTED as usize);
        Ok(sessions)
    }

    /// Ends sessions that the caller may see. The end takes effect on this node immediately, and on
    /// other nodes after their next refresh of the denylist.
    ///
    /// Errors: [`IdentityError::NotFound`] if the caller may not see one of the sessions, or if a
    /// session is not alive. In this case no session is ended.
    pub async fn end_sessions(
        &self,
        caller: &Claims,
        ids: &[SessionId],
        address: Option<IpAddr>,
    ) -> Result<()> {
        let (store, now) = (&self.ports.store, self.ports.clock.now());
        let mut found = Vec::with_capacity(ids.len());
        for id in ids {
            let session = store.session(*id).await?.filter(|session| {
                let key = &session.user;
                let own = if caller.shared {
                    session.id == caller.session
                } else {
                    caller.owner || key.name == caller.user
                };
                key.database == caller.database && own && session.is_alive(now)
            });
            found.push(session.ok_or(IdentityError::NotFound("session"))?);
        }
        for session in found {
            let ended = store.end_session(session.id, EndReason::Ended, now).await?;
            self.denylist.add(session.id, now);
            if !ended {
                continue;
            }
            let kind = AuditKind::SessionEnded(EndReason::Ended);
            let event = self.ports.event(kind, Some(&caller.database));
            let event = event
                .with_user(&session.user.name)
                .with_client(Some(&session.client_id))
                .with_session(session.id)
                .with_acting_user(Some(caller.acting().to_owned()));
            self.ports.audit(event.with_address(address)).await;
        }
        Ok(())
    }
}
