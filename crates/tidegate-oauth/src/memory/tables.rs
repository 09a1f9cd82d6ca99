//! The issuer's tables in memory, and operations on them. The store runs each operation under its
//! lock.

use std::collections::{BTreeMap, HashMap};

use tidegate_identity::{DependentTables, EndReason, SecretHash, SessionId, Timestamp, UserKey};

use crate::{
    AuthorizationCode, Client, Consent, DeviceCode, DeviceState, EndedSession, GrantKind, KeyState,
    RefreshOutcome, Session, SessionEnd, SigningKeyRecord,
};

/// The issuer's tables in a [`MemoryStore`](crate::MemoryStore).
#[derive(Debug, Default)]
pub struct IssuerTables {
    pub(super) master_key: Option<String>,
    pub(super) clients: BTreeMap<String, Client>,
    pub(super) sessions: HashMap<SessionId, Session>,
    pub(super) keys: Vec<SigningKeyRecord>,
    pub(super) codes: HashMap<SecretHash, AuthorizationCode>,
    pub(super) devices: HashMap<SecretHash, DeviceCode>,
    /// The consents, by user and client id.
    pub(super) consents: BTreeMap<(UserKey, String), Consent>,
}

impl DependentTables for IssuerTables {
    fn end_sessions(
        &mut self,
        is_affected: &dyn Fn(&UserKey) -> bool,
        reason: EndReason,
        at: Timestamp,
    ) -> Vec<SessionId> {
        if matches!(reason, EndReason::UserDropped | EndReason::TenantDropped) {
            self.consents.retain(|(user, _), _| !is_affected(user));
            for client in self.clients.values_mut() {
                let named = client
                    .database
                    .as_deref()
                    .zip(client.service_user.as_deref());
                if named.is_some_and(|(database, name)| is_affected(&UserKey::new(database, name)))
                {
                    client.service_user = None;
                }
            }
        }
        self.end_where(|session| is_affected(&session.user), reason, at)
    }

    fn void_approvals(&mut self, exists: &dyn Fn(&SecretHash) -> bool) {
        self.devices.retain(|_, device| match &device.state {
            DeviceState::Approved(approval) => exists(&approval.browser),
            _ => true,
        });
        for code in self.codes.values_mut() {
            code.browser = code.browser.filter(exists);
        }
    }

    fn delete_tenant(&mut self, database: &str) {
        let clients = self.clients.values();
        let clients: Vec<_> = clients
            .filter(|client| client.belongs_to(database))
            .map(|client| client.id.clone())
            .collect();
        for id in clients {
            self.delete_client(&id);
        }
    }
}

impl IssuerTables {
    pub(super) fn update_client(&mut self, read: &Client, client: &Client) -> bool {
        let known = self.clients.get_mut(&client.id);
        let Some(known) = known.filter(|known| *known == read) else {
            return false;
        };
        let (database, created_at) = (known.database.clone(), known.created_at);
        *known = Client {
            database,
            created_at,
            ..client.clone()
        };
        true
    }

    /// Deletes a client with its codes and consents; returns whether it existed.
    pub(super) fn delete_client(&mut self, id: &str) -> bool {
        self.codes.retain(|_, code| code.client_id != id);
        self.devices.retain(|_, device| device.client_id != id);
        self.consents.retain(|(_, client), _| client != id);
        self.clients.remove(id).is_some()
    }

    /// Deletes a consent with the codes of this user and client that are not redeemed yet; returns
    /// whether the consent existed.
    pub(super) fn delete_consent(&mut self, user: &UserKey, client_id: &str) -> bool {
        self.codes.retain(|_, code| {
            code.session.is_some() || code.client_id != client_id || code.user != *user
        });
        self.devices.retain(|_, device| match &device.state {
            DeviceState::Approved(approval) => {
                device.client_id != client_id || approval.user != *user
            }
            _ => true,
        });
        let key = (user.clone(), client_id.to_owned());
        self.consents.remove(&key).is_some()
    }

    /// The sessions that are alive at `now` and for which `is_wanted` returns `true`, the most
    /// recently used first.
    pub(super) fn sessions_where(
        &self,
        now: Timestamp,
        is_wanted: impl Fn(&Session) -> bool,
    ) -> Vec<Session> {
        let sessions = self.sessions.values();
        let mut sessions: Vec<_> = sessions
            .filter(|session| session.is_alive(now) && is_wanted(session))
            .cloned()
            .collect();
        sessions.sort_by_key(|session| (std::cmp::Reverse(session.refreshed_at), session.id));
        sessions
    }

    pub(super) fn present(
        &mut self,
        id: SessionId,
        number: u64,
        now: Timestamp,
        expires_at: Timestamp,
    ) -> RefreshOutcome {
        let session = self
            .sessions
            .get_mut(&id)
            .filter(|session| session.is_alive(now));
        let Some(session) = session else {
            return RefreshOutcome::Invalid;
        };
        if session.presented > number {
            return RefreshOutcome::Reused;
        }
        session.presented = number;
        session.refreshed_at = now;
        session.expires_at = expires_at.min(session.closes_at);
        RefreshOutcome::Accepted(session.clone())
    }

    pub(super) fn use_personal_token(
        &mut self,
        hash: SecretHash,
        now: Timestamp,
    ) -> Option<Session> {
        let mut sessions = self.sessions.values_mut();
        let is_wanted = |session: &&mut Session| {
            let token = session.personal.as_ref();
            token.is_some_and(|token| token.hash == hash) && session.is_alive(now)
        };
        let session = sessions.find(is_wanted)?;
        session.refreshed_at = now;
        Some(session.clone())
    }

    pub(super) fn end_where(
        &mut self,
        is_wanted: impl Fn(&Session) -> bool,
        reason: EndReason,
        at: Timestamp,
    ) -> Vec<SessionId> {
        let open = self
            .sessions
            .values_mut()
            .filter(|session| session.ended.is_none());
        open.filter(|session| is_wanted(session))
            .map(|session| {
                session.ended = Some(SessionEnd { at, reason });
                session.id
            })
            .collect()
    }

    pub(super) fn ended_since(&self, since: Timestamp) -> Vec<EndedSession> {
        let ends = self.sessions.values().filter_map(|session| {
            session.ended.map(|end| EndedSession {
                id: session.id,
                at: end.at,
            })
        });
        ends.filter(|end| end.at >= since).collect()
    }

    pub(super) fn insert_key(&mut self, key: &SigningKeyRecord) -> bool {
        let taken = self
            .keys
            .iter()
            .any(|known| known.state.name() == key.state.name());
        if !taken {
            self.keys.push(key.clone());
        }
        !taken
    }

    pub(super) fn promote_key(&mut self, next: &str, active: &str, at: Timestamp) -> bool {
        let index_of = |id: &str, state: &str| {
            self.keys
                .iter()
                .position(|key| key.id == id && key.state.name() == state)
        };
        let (Some(next), Some(active)) = (index_of(next, "next"), index_of(active, "active"))
        else {
            return false;
        };
        self.keys[next].state = KeyState::Active { since: at };
        self.keys[active].state = KeyState::Retired { since: at };
        true
    }

    pub(super) fn delete_key(&mut self, id: &str) -> bool {
        let before = self.keys.len();
        self.keys
            .retain(|key| key.id != id || key.state.name() != "retired");
        self.keys.len() < before
    }

    pub(super) fn device(&mut self, user_code: &str) -> Option<&mut DeviceCode> {
        self.devices
            .values_mut()
            .find(|device| device.user_code == user_code)
    }

    /// Deletes sessions that expired or ended before `sessions`, and authorization codes and device
    /// codes that expired before `flows`. Returns the number of deleted rows.
    pub(super) fn purge(&mut self, sessions: Timestamp, flows: Timestamp) -> u64 {
        let rows =
            |tables: &Self| tables.sessions.len() + tables.codes.len() + tables.devices.len();
        let before = rows(self);
        self.sessions.retain(|_, session| {
            session.expires_at >= sessions && session.ended.is_none_or(|end| end.at >= sessions)
        });
        self.codes.retain(|_, code| code.expires_at >= flows);
        self.devices.retain(|_, device| device.expires_at >= flows);
        (before - rows(self)) as u64
    }

    pub(super) fn purge_guests(&mut self, before: Timestamp, kept: u32) -> u64 {
        let mut guests: BTreeMap<&str, Vec<(Timestamp, SessionId)>> = BTreeMap::new();
        let is_guest = |session: &&Session| session.grant == GrantKind::Guest;
        for session in self.sessions.values().filter(is_guest) {
            let of_tenant = guests.entry(&session.user.database).or_default();
            of_tenant.push((session.refreshed_at, session.id));
        }
        let mut deleted = Vec::new();
        for of_tenant in guests.values_mut() {
            of_tenant.sort_unstable_by(|a, b| b.cmp(a));
            let surplus = of_tenant.iter().skip(kept as usize);
            deleted.extend(surplus.filter(|(at, _)| *at < before).map(|(_, id)| *id));
        }
        for id in &deleted {
            self.sessions.remove(id);
        }
        deleted.len() as u64
    }
}
