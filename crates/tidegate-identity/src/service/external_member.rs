//! Records of people who have tokens of an external issuer. The record of a person is created at
//! the person's first request.

use std::slice;

use data_encoding::HEXLOWER;

use super::IdentityService;
use super::provider_sign_up::name_stem;
use crate::directory::check;
use crate::{
    AttemptKey, AuditEvent, AuditKind, EndReason, Error, Result, User, UserKey, WriteOutcome,
    rate_limit,
};

/// A person with a token of an external issuer. The token names the person's group.
#[derive(Clone, Copy, Debug)]
pub struct ExternalMember<'a> {
    /// The tenant's database.
    pub database: &'a str,
    /// The tenant's name for the issuer.
    pub issuer: &'a str,
    /// The value that `tidegate.user_id()` returns: the issuer's name, a colon and the subject.
    pub id: &'a str,
    /// The group that the token names.
    pub group: &'a str,
    /// The person's name at the issuer.
    pub name: &'a str,
}

impl IdentityService {
    /// The record of the person with this [`ExternalMember::id`]; `None` if there is none.
    pub async fn external_member(&self, database: &str, id: &str) -> Result<Option<User>> {
        Ok(self.ports.store.user_with_id(database, id).await?)
    }

    /// The record of a person. A missing record is created. If the person's token now names another
    /// group, the record is changed to this group. The role of the group must already be able to
    /// log in.
    ///
    /// Returns `None` if the issuer has reached the limit on new records per minute, or if the new
    /// record's random name is taken. A later request then records the person.
    ///
    /// Errors: [`Error::InvalidField`] for an id that is too long.
    pub async fn record_external_member(
        &self,
        person: &ExternalMember<'_>,
    ) -> Result<Option<User>> {
        let store = &self.ports.store;
        if let Some(user) = store.user_with_id(person.database, person.id).await? {
            return self.in_group(user, person.group).await.map(Some);
        }
        let key = format!("{}\0{}", person.database, person.issuer);
        let key = AttemptKey::of_text(rate_limit::EXTERNAL_MEMBER, &key);
        let limit = &self.settings.limits.external_members;
        match self.attempts().count(key, limit).await {
            Err(Error::TooManyAttempts { .. }) => return Ok(None),
            counted => counted?,
        }
        let member = self.new_external_member(person)?;
        let created = store.insert_members(slice::from_ref(&member)).await?;
        if created.is_some() {
            // A parallel request has recorded the person, or the random name is taken.
            return Ok(store.user_with_id(person.database, person.id).await?);
        }
        let event = AuditEvent::new(
            member.created_at,
            AuditKind::UserCreated,
            Some(person.database),
        );
        let event = event.with_user(&member.key.name).with_detail(person.issuer);
        self.ports.audit(event).await;
        Ok(Some(member))
    }

    /// A new record of a person. Its name ends with random hexadecimal digits, so that no other
    /// user can take the name beforehand.
    fn new_external_member(&self, person: &ExternalMember<'_>) -> Result<User> {
        let suffix = HEXLOWER.encode(&self.ports.random.bytes::<3>()?);
        let name = format!("{}-{suffix}", name_stem(person.name));
        let member = User {
            key: UserKey::new(person.database, name),
            role: None,
            id: Some(person.id.to_owned()),
            password_hash: None,
            email: None,
            confirmed_email: None,
            properties: None,
            user_groups: vec![person.group.to_owned()],
            default_user: false,
            disabled: false,
            created_at: self.ports.clock.now(),
        };
        check(&member)?;
        Ok(member)
    }

    /// Records the group that the person's token names now. If it is another group than before,
    /// ends the sessions of the member.
    async fn in_group(&self, user: User, group: &str) -> Result<User> {
        if !user.is_member() || user.user_groups == [group] {
            return Ok(user);
        }
        let moved = User {
            user_groups: vec![group.to_owned()],
            ..user.clone()
        };
        // If a concurrent change prevents this update, the next request records the group.
        Ok(match self.ports.store.update_user(&user, &moved).await? {
            WriteOutcome::Done => {
                // Tokens that this service issued to the member contain the previous group, so the
                // member's sessions are ended.
                let (reason, now) = (EndReason::UserChanged, self.ports.clock.now());
                let ended = self
                    .ports
                    .store
                    .end_sessions_of_user(&moved.key, reason, now);
                ended.await?;
                moved
            }
            _ => user,
        })
    }
}
