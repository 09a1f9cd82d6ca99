//! The issuer's store in memory, for tests, examples and embedding without a database.

mod tables;

use tidegate_identity::{EndReason, SecretHash, SessionId, StoreFuture, Timestamp, UserKey};

use crate::{
    Approval, AuthorizationCode, Client, Consent, DeviceCode, DevicePoll, DeviceState,
    EndedSession, GrantKind, IssuerStore, PurgeBefore, RefreshOutcome, Session, SessionEnd,
    SigningKeyRecord,
};

pub use tables::IssuerTables;

/// An issuer's store that keeps all records in this process. One lock makes every step atomic.
pub type MemoryStore = tidegate_identity::MemoryStore<IssuerTables>;

/// Wraps a finished result as a future.
fn done<'a, T: Send + 'a>(value: T) -> StoreFuture<'a, T> {
    Box::pin(std::future::ready(Ok(value)))
}

impl IssuerStore for MemoryStore {
    fn claim_master_key<'a>(&'a self, fingerprint: &'a str) -> StoreFuture<'a, String> {
        done(self.step(|tables| {
            let claimed = &mut tables.master_key;
            claimed
                .get_or_insert_with(|| fingerprint.to_owned())
                .clone()
        }))
    }

    fn client<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<Client>> {
        done(self.step(|tables| tables.clients.get(id).cloned()))
    }

    fn clients<'a>(&'a self, database: &'a str) -> StoreFuture<'a, Vec<Client>> {
        done(self.step(|tables| {
            let clients = tables.clients.values();
            let of_tenant = clients.filter(|client| client.belongs_to(database));
            of_tenant.cloned().collect()
        }))
    }

    fn redirect_uris_from<'a>(&'a self, start: &'a str) -> StoreFuture<'a, Vec<String>> {
        done(self.step(|tables| {
            let uris = tables
                .clients
                .values()
                .flat_map(|client| &client.redirect_uris);
            uris.filter(|uri| uri.starts_with(start)).cloned().collect()
        }))
    }

    fn insert_client<'a>(&'a self, client: &'a Client) -> StoreFuture<'a, bool> {
        done(self.step(|tables| {
            let is_free = !tables.clients.contains_key(&client.id);
            if is_free {
                tables.clients.insert(client.id.clone(), client.clone());
            }
            is_free
        }))
    }

    fn update_client<'a>(&'a self, read: &'a Client, client: &'a Client) -> StoreFuture<'a, bool> {
        done(self.step(|tables| tables.update_client(read, client)))
    }

    fn delete_client<'a>(&'a self, id: &'a str, at: Timestamp) -> StoreFuture<'a, bool> {
        done(self.step(|tables| {
            tables.end_where(
                |session| session.client_id == id,
                EndReason::ClientDropped,
                at,
            );
            tables.delete_client(id)
        }))
    }

    fn end_sessions_of_client<'a>(
        &'a self,
        id: &'a str,
        grant: GrantKind,
        end: SessionEnd,
    ) -> StoreFuture<'a, ()> {
        let is_wanted = |session: &Session| session.client_id == id && session.grant == grant;
        self.step(|tables| tables.end_where(is_wanted, end.reason, end.at));
        done(())
    }

    fn insert_session<'a>(&'a self, session: &'a Session) -> StoreFuture<'a, ()> {
        self.step(|tables| tables.sessions.insert(session.id, session.clone()));
        done(())
    }

    fn session(&self, id: SessionId) -> StoreFuture<'_, Option<Session>> {
        done(self.step(|tables| tables.sessions.get(&id).cloned()))
    }

    fn sessions<'a>(
        &'a self,
        database: &'a str,
        now: Timestamp,
        limit: u32,
    ) -> StoreFuture<'a, Vec<Session>> {
        let is_listed = |session: &Session| {
            session.user.database == database && session.grant != GrantKind::Guest
        };
        let mut sessions = self.step(|tables| tables.sessions_where(now, is_listed));
        sessions.truncate(limit as usize);
        done(sessions)
    }

    fn sessions_of_user<'a>(
        &'a self,
        key: &'a UserKey,
        client_id: Option<&'a str>,
        now: Timestamp,
    ) -> StoreFuture<'a, Vec<Session>> {
        let is_listed = |session: &Session| {
            session.user == *key && client_id.is_none_or(|client| session.client_id == client)
        };
        done(self.step(|tables| tables.sessions_where(now, is_listed)))
    }

    fn present_refresh_token(
        &self,
        id: SessionId,
        number: u64,
        now: Timestamp,
        expires_at: Timestamp,
    ) -> StoreFuture<'_, RefreshOutcome> {
        done(self.step(|tables| tables.present(id, number, now, expires_at)))
    }

    fn use_personal_token(
        &self,
        hash: SecretHash,
        now: Timestamp,
    ) -> StoreFuture<'_, Option<Session>> {
        done(self.step(|tables| tables.use_personal_token(hash, now)))
    }

    fn personal_tokens<'a>(
        &'a self,
        database: &'a str,
        user: Option<&'a str>,
        now: Timestamp,
        limit: u32,
    ) -> StoreFuture<'a, Vec<Session>> {
        let is_listed = |session: &Session| {
            let named = user.is_none_or(|user| user == session.user.name);
            session.personal.is_some() && session.user.database == database && named
        };
        let mut tokens = self.step(|tables| tables.sessions_where(now, is_listed));
        tokens.truncate(limit as usize);
        done(tokens)
    }

    fn consent<'a>(
        &'a self,
        key: &'a UserKey,
        client_id: &'a str,
    ) -> StoreFuture<'a, Option<Consent>> {
        let key = (key.clone(), client_id.to_owned());
        done(self.step(|tables| tables.consents.get(&key).cloned()))
    }

    fn consents_of_user<'a>(&'a self, key: &'a UserKey) -> StoreFuture<'a, Vec<Consent>> {
        done(self.step(|tables| {
            let own = tables.consents.iter().filter(|((user, _), _)| user == key);
            own.map(|(_, consent)| consent.clone()).collect()
        }))
    }

    fn put_consent<'a>(&'a self, key: &'a UserKey, consent: &'a Consent) -> StoreFuture<'a, ()> {
        let key = (key.clone(), consent.client_id.clone());
        self.step(|tables| tables.consents.insert(key, consent.clone()));
        done(())
    }

    fn delete_consent<'a>(&'a self, key: &'a UserKey, client_id: &'a str) -> StoreFuture<'a, bool> {
        done(self.step(|tables| tables.delete_consent(key, client_id)))
    }

    fn end_session(
        &self,
        id: SessionId,
        reason: EndReason,
        at: Timestamp,
    ) -> StoreFuture<'_, bool> {
        let ended = self.step(|tables| tables.end_where(|session| session.id == id, reason, at));
        done(!ended.is_empty())
    }

    fn ended_sessions(&self, since: Timestamp) -> StoreFuture<'_, Vec<EndedSession>> {
        done(self.step(|tables| tables.ended_since(since)))
    }

    fn signing_keys(&self) -> StoreFuture<'_, Vec<SigningKeyRecord>> {
        done(self.step(|tables| tables.keys.clone()))
    }

    fn insert_signing_key<'a>(&'a self, key: &'a SigningKeyRecord) -> StoreFuture<'a, bool> {
        done(self.step(|tables| tables.insert_key(key)))
    }

    fn promote_signing_key<'a>(
        &'a self,
        next: &'a str,
        active: &'a str,
        at: Timestamp,
    ) -> StoreFuture<'a, bool> {
        done(self.step(|tables| tables.promote_key(next, active, at)))
    }

    fn delete_signing_key<'a>(&'a self, id: &'a str) -> StoreFuture<'a, bool> {
        done(self.step(|tables| tables.delete_key(id)))
    }

    fn insert_code<'a>(&'a self, code: &'a AuthorizationCode) -> StoreFuture<'a, ()> {
        self.step(|tables| tables.codes.insert(code.hash, code.clone()));
        done(())
    }

    fn code(&self, hash: SecretHash) -> StoreFuture<'_, Option<AuthorizationCode>> {
        done(self.step(|tables| tables.codes.get(&hash).cloned()))
    }

    fn redeem_code<'a>(&'a self, hash: SecretHash, session: &'a Session) -> StoreFuture<'a, bool> {
        done(self.step(|tables| {
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

    fn insert_device_code<'a>(&'a self, device: &'a DeviceCode) -> StoreFuture<'a, bool> {
        done(self.step(|tables| {
            let is_free = tables.device(&device.user_code).is_none();
            if is_free {
                tables.devices.insert(device.hash, device.clone());
            }
            is_free
        }))
    }

    fn device_code<'a>(&'a self, user_code: &'a str) -> StoreFuture<'a, Option<DeviceCode>> {
        done(self.step(|tables| tables.device(user_code).cloned()))
    }

    fn poll_device_code<'a>(
        &'a self,
        hash: SecretHash,
        client_id: &'a str,
        now: Timestamp,
    ) -> StoreFuture<'a, Option<DevicePoll>> {
        done(self.step(|tables| {
            let device = tables.devices.get_mut(&hash)?;
            if device.client_id != client_id {
                return None;
            }
            let polled = device.clone().polled(now);
            device.clone_from(&polled.device);
            Some(polled)
        }))
    }

    fn decide_device_code<'a>(
        &'a self,
        user_code: &'a str,
        approval: Option<&'a Approval>,
        now: Timestamp,
    ) -> StoreFuture<'a, bool> {
        let state = approval.map_or(DeviceState::Denied, |approval| {
            DeviceState::Approved(approval.clone())
        });
        done(self.step(|tables| {
            let device = tables.device(user_code);
            let device = device.filter(|d| d.state == DeviceState::Pending && now < d.expires_at);
            device.map(|device| device.state = state).is_some()
        }))
    }

    fn redeem_device_code<'a>(
        &'a self,
        hash: SecretHash,
        session: &'a Session,
    ) -> StoreFuture<'a, bool> {
        done(self.step(|tables| {
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

    fn purge(&self, before: PurgeBefore) -> StoreFuture<'_, u64> {
        let identity = self.purge_identity(before.attempts, before.audit, before.flows);
        done(identity + self.step(|tables| tables.purge(before.sessions, before.flows)))
    }

    fn purge_guests(&self, before: Timestamp, kept: u32) -> StoreFuture<'_, u64> {
        done(self.step(|tables| tables.purge_guests(before, kept)))
    }
}
