//! The issuer's store in memory, for tests, examples and embedding without a database.

mod tables;

use async_trait::async_trait;
use tidegate_identity::{EndReason, SecretHash, SessionId, StoreResult, Timestamp, UserKey};

use crate::{
    Approval, AuthorizationCode, Client, Consent, DeviceCode, DevicePoll, DeviceState,
    EndedSession, GrantKind, IssuerStore, PurgeBefore, RefreshOutcome, Session, SessionEnd,
    SigningKeyRecord,
};

pub use tables::IssuerTables;

/// An issuer's store that keeps all records in this process. One lock makes every step atomic.
pub type MemoryStore = tidegate_identity::MemoryStore<IssuerTables>;

#[async_trait]
impl IssuerStore for MemoryStore {
    async fn claim_master_key(&self, fingerprint: &str) -> StoreResult<String> {
        Ok(self.step(|tables| {
            let claimed = &mut tables.master_key;
            claimed
                .get_or_insert_with(|| fingerprint.to_owned())
                .clone()
        }))
    }

    async fn client(&self, id: &str) -> StoreResult<Option<Client>> {
        Ok(self.step(|tables| tables.clients.get(id).cloned()))
    }

    async fn clients(&self, database: &str) -> StoreResult<Vec<Client>> {
        Ok(self.step(|tables| {
            let clients = tables.clients.values();
            let of_tenant = clients.filter(|client| client.belongs_to(database));
            of_tenant.cloned().collect()
        }))
    }

    async fn redirect_uris_from(&self, start: &str) -> StoreResult<Vec<String>> {
        Ok(self.step(|tables| {
            let uris = tables
                .clients
                .values()
                .flat_map(|client| &client.redirect_uris);
            uris.filter(|uri| uri.starts_with(start)).cloned().collect()
        }))
    }

    async fn insert_client(&self, client: &Client) -> StoreResult<bool> {
        Ok(self.step(|tables| {
            let is_free = !tables.clients.contains_key(&client.id);
            if is_free {
                tables.clients.insert(client.id.clone(), client.clone());
            }
            is_free
        }))
    }

    async fn update_client(&self, read: &Client, client: &Client) -> StoreResult<bool> {
        Ok(self.step(|tables| tables.update_client(read, client)))
    }

    async fn delete_client(&self, id: &str, at: Timestamp) -> StoreResult<bool> {
        Ok(self.step(|tables| {
            tables.end_where(
                |session| session.client_id == id,
                EndReason::ClientDropped,
                at,
            );
            tables.delete_client(id)
        }))
    }

    async fn end_sessions_of_client(
        &self,
        id: &str,
        grant: GrantKind,
        end: SessionEnd,
    ) -> StoreResult<()> {
        let is_wanted = |session: &Session| session.client_id == id && session.grant == grant;
        self.step(|tables| tables.end_where(is_wanted, end.reason, end.at));
        Ok(())
    }

    async fn insert_session(&self, session: &Session) -> StoreResult<()> {
        self.step(|tables| tables.sessions.insert(session.id, session.clone()));
        Ok(())
    }

    async fn session(&self, id: SessionId) -> StoreResult<Option<Session>> {
        Ok(self.step(|tables| tables.sessions.get(&id).cloned()))
    }

    async fn sessions(
        &self,
        database: &str,
        now: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<Session>> {
        let is_listed = |session: &Session| {
            session.user.database == database && session.grant != GrantKind::Guest
        };
        let mut sessions = self.step(|tables| tables.sessions_where(now, is_listed));
        sessions.truncate(limit as usize);
        Ok(sessions)
    }

    async fn sessions_of_user(
        &self,
        key: &UserKey,
        client_id: Option<&str>,
        now: Timestamp,
    ) -> StoreResult<Vec<Session>> {
        let is_listed = |session: &Session| {
            session.user == *key && client_id.is_none_or(|client| session.client_id == client)
        };
        Ok(self.step(|tables| tables.sessions_where(now, is_listed)))
    }

    async fn present_refresh_token(
        &self,
        id: SessionId,
        number: u64,
        now: Timestamp,
        expires_at: Timestamp,
    ) -> StoreResult<RefreshOutcome> {
        Ok(self.step(|tables| tables.present(id, number, now, expires_at)))
    }

    async fn use_personal_token(
        &self,
        hash: SecretHash,
        now: Timestamp,
    ) -> StoreResult<Option<Session>> {
        Ok(self.step(|tables| tables.use_personal_token(hash, now)))
    }

    async fn personal_tokens(
        &self,
        database: &str,
        user: Option<&str>,
        now: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<Session>> {
        let is_listed = |session: &Session| {
            let named = user.is_none_or(|user| user == session.user.name);
            session.personal.is_some() && session.user.database == database && named
        };
        let mut tokens = self.step(|tables| tables.sessions_where(now, is_listed));
        tokens.truncate(limit as usize);
        Ok(tokens)
    }

    async fn consent(&self, key: &UserKey, client_id: &str) -> StoreResult<Option<Consent>> {
        let key = (key.clone(), client_id.to_owned());
        Ok(self.step(|tables| tables.consents.get(&key).cloned()))
    }

    async fn consents_of_user(&self, key: &UserKey) -> StoreResult<Vec<Consent>> {
        Ok(self.step(|tables| {
            let own = tables.consents.iter().filter(|((user, _), _)| user == key);
            own.map(|(_, consent)| consent.clone()).collect()
        }))
    }

    async fn put_consent(&self, key: &UserKey, consent: &Consent) -> StoreResult<()> {
        let key = (key.clone(), consent.client_id.clone());
        self.step(|tables| tables.consents.insert(key, consent.clone()));
        Ok(())
    }

    async fn delete_consent(&self, key: &UserKey, client_id: &str) -> StoreResult<bool> {
        Ok(self.step(|tables| tables.delete_consent(key, client_id)))
    }

    async fn end_session(
        &self,
        id: SessionId,
        reason: EndReason,
        at: Timestamp,
    ) -> StoreResult<bool> {
        let ended = self.step(|tables| tables.end_where(|session| session.id == id, reason, at));
        Ok(!ended.is_empty())
    }

    async fn ended_sessions(&self, since: Timestamp) -> StoreResult<Vec<EndedSession>> {
        Ok(self.step(|tables| tables.ended_since(since)))
    }

    async fn signing_keys(&self) -> StoreResult<Vec<SigningKeyRecord>> {
        Ok(self.step(|tables| tables.keys.clone()))
    }

    async fn insert_signing_key(&self, key: &SigningKeyRecord) -> StoreResult<bool> {
        Ok(self.step(|tables| tables.insert_key(key)))
    }

    async fn promote_signing_key(
        &self,
        next: &str,
        active: &str,
        at: Timestamp,
    ) -> StoreResult<bool> {
        Ok(self.step(|tables| tables.promote_key(next, active, at)))
    }

    async fn delete_signing_key(&self, id: &str) -> StoreResult<bool> {
        Ok(self.step(|tables| tables.delete_key(id)))
    }

    async fn insert_code(&self, code: &AuthorizationCode) -> StoreResult<()> {
        self.step(|tables| tables.codes.insert(code.hash, code.clone()));
        Ok(())
    }

    async fn code(&self, hash: SecretHash) -> StoreResult<Option<AuthorizationCode>> {
        Ok(self.step(|tables| tables.codes.get(&hash).cloned()))
    }

    async fn redeem_code(&self, hash: SecretHash, session: &Session) -> StoreResult<bool> {
        Ok(self.step(|tables| {
            let code = tables.codes.get_mut(&hash);
            let code = code
                .filter(|code| code.session.is_none() && code.browser.is_some())
                .filter(|code| session.created_at < code.expires_at);
            let redeemed = code.map(|code| code.session = Some(session.id)).is_some();
            if redeemed {
                tables.sessions.insert(session.id, session.clone());
            }
            redeemed
        }))
    }

    async fn insert_device_code(&self, device: &DeviceCode) -> StoreResult<bool> {
        Ok(self.step(|tables| {
            let is_free = tables.device(&device.user_code).is_none();
            if is_free {
                tables.devices.insert(device.hash, device.clone());
            }
            is_free
        }))
    }

    async fn device_code(&self, user_code: &str) -> StoreResult<Option<DeviceCode>> {
        Ok(self.step(|tables| tables.device(user_code).cloned()))
    }

    async fn poll_device_code(
        &self,
        hash: SecretHash,
        client_id: &str,
        now: Timestamp,
    ) -> StoreResult<Option<DevicePoll>> {
        Ok(self.step(|tables| {
            let device = tables.devices.get_mut(&hash)?;
            if device.client_id != client_id {
                return None;
            }
            let polled = device.clone().polled(now);
            device.clone_from(&polled.device);
            Some(polled)
        }))
    }

    async fn decide_device_code(
        &self,
        user_code: &str,
        approval: Option<&Approval>,
        now: Timestamp,
    ) -> StoreResult<bool> {
        let state = approval.map_or(DeviceState::Denied, |approval| {
            DeviceState::Approved(approval.clone())
        });
        Ok(self.step(|tables| {
            let device = tables.device(user_code);
            let device = device.filter(|d| d.state == DeviceState::Pending && now < d.expires_at);
            device.map(|device| device.state = state).is_some()
        }))
    }

    async fn redeem_device_code(&self, hash: SecretHash, session: &Session) -> StoreResult<bool> {
        Ok(self.step(|tables| {
            let device = tables.devices.get_mut(&hash).filter(|device| {
                matches!(device.state, DeviceState::Approved(_))
                    && session.created_at < device.expires_at
            });
            let redeemed = device
                .map(|device| device.state = DeviceState::Consumed)
                .is_some();
            if redeemed {
                tables.sessions.insert(session.id, session.clone());
            }
            redeemed
        }))
    }

    async fn purge(&self, before: PurgeBefore) -> StoreResult<u64> {
        let identity = self.purge_identity(before.attempts, before.audit, before.flows);
        Ok(identity + self.step(|tables| tables.purge(before.sessions, before.flows)))
    }

    async fn purge_guests(&self, before: Timestamp, kept: u32) -> StoreResult<u64> {
        Ok(self.step(|tables| tables.purge_guests(before, kept)))
    }
}
