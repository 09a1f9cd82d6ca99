//! Members: users without a role, who share the role of a group.

use std::collections::HashSet;

use data_encoding::HEXLOWER;

use super::UserDirectory;
use super::users::written;
use crate::{
    AuditEvent, AuditKind, EndReason, Error, Result, SecureRandom, Timestamp, User, UserKey,
    UserName,
};

impl UserDirectory {
    /// Creates members of one tenant, all or none, in one statement.
    ///
    /// Errors, with the index of the member in `members`: [`Error::Taken`] if the member's name is
    /// taken, [`Error::IdTaken`] if only its id is taken.
    pub(crate) async fn create_members(
        &self,
        members: Vec<User>,
    ) -> Result<Vec<User>, (usize, Error)> {
        if let Some((index, error)) = first_repetition(&members) {
            return Err((index, error));
        }
        let taken = self.ports.store.insert_members(&members).await;
        if let Some(index) = taken.map_err(|error| (0, error.into()))? {
            let namesake = self.ports.store.user(&members[index].key).await;
            return Err(match namesake.map_err(|error| (index, error.into()))? {
                Some(_) => (index, Error::Taken("user")),
                None => (index, Error::IdTaken),
            });
        }
        let events: Vec<AuditEvent> = members
            .iter()
            .map(|member| {
                let event = self.event(AuditKind::UserCreated, &member.key.database);
                event.with_user(&member.key.name)
            })
            .collect();
        self.ports.store.append_audit_or_log(&events).await;
        Ok(members)
    }

    /// Reserves the id of a user that is about to be dropped, if the id is a valid user name. Then
    /// no person can sign up with this name. The id of a user with a role is its name, so the new
    /// user would otherwise have the id by which policies and applications know the dropped user.
    pub(crate) async fn reserve_id(&self, user: &User) -> Result<()> {
        if UserName::parse(user.user_id()).is_ok() {
            self.ports.store.reserve_id(user).await?;
        }
        Ok(())
    }

    /// The groups of a tenant that have members.
    pub(crate) async fn member_groups(&self, database: &str) -> Result<Vec<String>> {
        Ok(self.ports.store.member_groups(database).await?)
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.ports.clock.now()
    }

    /// Replaces the record of a user that is converted. [`Error::NotFound`] if the stored record is
    /// not `before` any more.
    pub(crate) async fn replace(&self, before: &User, after: &User) -> Result<()> {
        written(self.ports.store.update_user(before, after).await?)
    }

    /// Ends the sessions of a user that was converted, because tokens of these sessions are for the
    /// previous kind of the user. Writes the audit event of the change.
    pub(crate) async fn end_converted(&self, key: &UserKey) -> Result<()> {
        self.end_sessions(key, EndReason::UserChanged).await?;
        self.audit_user(AuditKind::UserChanged, key).await;
        Ok(())
    }

    /// The given id of a new member; a random UUID if no id is given.
    pub(super) fn member_id(&self, given: Option<&String>) -> Result<String> {
        match given {
            Some(id) => Ok(id.clone()),
            None => new_id(&*self.ports.random),
        }
    }
}

/// The index of the first member that has the name or the id of an earlier member, and the error.
fn first_repetition(members: &[User]) -> Option<(usize, Error)> {
    let (mut names, mut ids) = (HashSet::new(), HashSet::new());
    members.iter().enumerate().find_map(|(index, member)| {
        let is_new_id = ids.insert(member.user_id());
        if !names.insert(&member.key.name) {
            Some((index, Error::Taken("user")))
        } else if is_new_id {
            None
        } else {
            Some((index, Error::IdTaken))
        }
    })
}

/// A random UUID (RFC 9562, section 5.4).
fn new_id(random: &dyn SecureRandom) -> Result<String> {
    let mut bytes = random.bytes::<16>()?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let digits = HEXLOWER.encode(&bytes);
    let parts = [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| &digits[part]);
    Ok(parts.join("-"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SystemRandom;

    #[test]
    fn new_ids_are_random_uuids() {
        let ids = [(); 2].map(|()| new_id(&SystemRandom::new()).unwrap());
        assert_ne!(ids[0], ids[1]);
        for id in ids {
            assert_eq!(id.len(), 36);
            assert_eq!(&id[14..15], "4", "{id}");
            assert!("89ab".contains(&id[19..20]), "{id}");
        }
    }
}
