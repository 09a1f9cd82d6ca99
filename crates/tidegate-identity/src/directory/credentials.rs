//! The credentials of users, which the tenant's owner and the operator can list and remove.

use super::UserDirectory;
use crate::{AuditKind, CredentialKind, Credentials, EndReason, Result, UserKey};

impl UserDirectory {
    /// The credentials of a user. Errors: [`Error::NotFound`](crate::Error::NotFound).
    pub async fn credentials(&self, key: &UserKey) -> Result<Credentials> {
        let (store, user) = (&self.ports.store, self.user(key).await?);
        let factor = store.second_factor(key).await?;
        Ok(Credentials {
            password: user.password_hash.is_some(),
            passkeys: store.passkeys_of_user(key).await?,
            linked_accounts: store.identities_of_user(key).await?,
            recovery_codes: factor.map(|factor| factor.recovery_codes),
        })
    }

    /// Removes all of the user's credentials of the given kinds, even if the user then cannot sign
    /// in any more. Ends the user's sessions.
    ///
    /// Errors: [`Error::NotFound`](crate::Error::NotFound).
    pub async fn remove_credentials(&self, key: &UserKey, kinds: &[CredentialKind]) -> Result<()> {
        self.user(key).await?;
        // Sessions are ended before the removal, because a browser session can add a passkey. They
        // are ended again afterwards, because a sign-in may have read a credential before it was
        // removed.
        self.end_sessions(key, EndReason::UserChanged).await?;
        self.delete_credentials(key, kinds).await?;
        self.end_sessions(key, EndReason::UserChanged).await
    }

    /// Deletes all of the user's credentials of the given kinds, and writes an audit event for each
    /// credential.
    pub(crate) async fn delete_credentials(
        &self,
        key: &UserKey,
        kinds: &[CredentialKind],
    ) -> Result<()> {
        for kind in kinds {
            let event = match kind {
                CredentialKind::Passkeys => AuditKind::PasskeyRemoved,
                CredentialKind::LinkedAccounts => AuditKind::IdentityUnlinked,
                CredentialKind::SecondFactor => AuditKind::SecondFactorRemoved,
            };
            let event = self.event(event, &key.database).with_user(&key.name);
            let removed = self.ports.store.delete_credentials(key, *kind).await?;
            let events: Vec<_> = removed
                .iter()
                .map(|name| match &**name {
                    "" => event.clone(),
                    name => event.clone().with_detail(name),
                })
                .collect();
            self.ports.store.append_audit_or_log(&events).await;
        }
        Ok(())
    }
}
