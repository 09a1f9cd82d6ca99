//! The tables of the memory store, and the steps that touch one table.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::flows::Flows;
use crate::{
    AnonymousSql, AttemptCounter, AttemptKey, AuditEntry, AuditEvent, AuditPage, AuditSince,
    Client, EndReason, EndedSession, GrantKind, KeyState, LinkedIdentity, PurgeBefore,
    RefreshOutcome, Session, SessionEnd, SessionId, SigningKeyRecord, Timestamp, UnlinkOutcome,
    User, UserKey, WriteOutcome,
};

#[derive(Debug, Default)]
pub(super) struct Tables {
    pub(super) master_key: Option<String>,
    pub(super) clients: BTreeMap<String, Client>,
    pub(super) anonymous_sql: HashMap<String, AnonymousSql>,
    pub(super) without_impersonation: HashSet<String>,
    pub(super) users: BTreeMap<UserKey, User>,
    pub(super) identities: BTreeMap<[String; 3], (UserKey, LinkedIdentity)>,
    pub(super) sessions: HashMap<SessionId, Session>,
    pub(super) keys: Vec<SigningKeyRecord>,
    pub(super) attempts: HashMap<AttemptKey, AttemptCounter>,
    pub(super) flows: Flows,
    pub(super) audit: Vec<(u64, AuditEvent)>,
    pub(super) audited: u64,
}

impl Tables {
    pub(super) fn insert_client(&mut self, client: &Client) -> WriteOutcome {
        if self.clients.contains_key(&client.id) {
            return WriteOutcome::Taken;
        }
        self.clients.insert(client.id.clone(), client.clone());
        WriteOutcome::Done
    }

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

    /// A tenant exists while it has a user.
    pub(super) fn has_tenant(&self, database: &str) -> bool {
        self.users.keys().any(|user| user.database == database)
    }

    pub(super) fn set_impersonation(&mut self, database: &str, allowed: bool) -> bool {
        if allowed {
            self.without_impersonation.remove(database);
        } else {
            self.without_impersonation.insert(database.to_owned());
        }
        self.has_tenant(database)
    }

    pub(super) fn set_anonymous_sql(&mut self, database: &str, setting: AnonymousSql) -> bool {
        let known = self.has_tenant(database);
        if known {
            self.anonymous_sql.insert(database.to_owned(), setting);
        }
        known
    }

    pub(super) fn redirect_uris_from(&self, start: &str) -> Vec<String> {
        let all = self.clients.values().flat_map(|c| &c.redirect_uris);
        all.filter(|uri| uri.starts_with(start)).cloned().collect()
    }

    /// Deletes a tenant's clients and their codes.
    pub(super) fn drop_clients(&mut self, database: &str) {
        let of = |client: &Client| client.belongs_to(database);
        let clients = &self.clients;
        self.flows
            .forget_clients(|id| clients.get(id).is_some_and(of));
        self.clients.retain(|_, client| !of(client));
    }

    pub(super) fn default_user(&self, database: &str) -> Option<&User> {
        self.users
            .values()
            .find(|user| user.key.database == database && user.default_user)
    }

    pub(super) fn users_with_email(&self, database: &str, email: &str) -> Vec<User> {
        let email = email.to_lowercase();
        let with = |user: &&User| {
            let own = user.email.as_ref().map(|own| own.to_lowercase());
            user.key.database == database && own.as_ref() == Some(&email)
        };
        self.users.values().filter(with).take(10).cloned().collect()
    }

    pub(super) fn insert_identity(&mut self, key: &UserKey, identity: &LinkedIdentity) -> bool {
        let name = [&*key.database, &*identity.issuer, &*identity.subject].map(str::to_owned);
        let free = !self.identities.contains_key(&name);
        if free {
            let link = (key.clone(), identity.clone());
            self.identities.insert(name, link);
        }
        free
    }

    pub(super) fn identities_of(&self, key: &UserKey) -> Vec<LinkedIdentity> {
        let own = self.identities.values().filter(|(user, _)| user == key);
        own.map(|(_, identity)| identity.clone()).collect()
    }

    pub(super) fn delete_identity(&mut self, key: &UserKey, name: &[String; 3]) -> UnlinkOutcome {
        if self
            .identities
            .get(name)
            .is_none_or(|(user, _)| user != key)
        {
            return UnlinkOutcome::Missing;
        }
        let user = self.users.get(key);
        let password = user.is_some_and(|user| user.password_hash.is_some());
        if !password && self.identities_of(key).len() == 1 {
            return UnlinkOutcome::LastCredential;
        }
        self.identities.remove(name);
        UnlinkOutcome::Done
    }

    pub(super) fn insert_user(&mut self, user: &User) -> WriteOutcome {
        let same = |known: &User| known.key == user.key || known.role == user.role;
        if self.users.values().any(same) {
            return WriteOutcome::Taken;
        }
        if user.default_user && self.default_user(&user.key.database).is_some() {
            return WriteOutcome::DefaultUserTaken;
        }
        self.users.insert(user.key.clone(), user.clone());
        WriteOutcome::Done
    }

    pub(super) fn update_user(&mut self, read: &User, user: &User) -> WriteOutcome {
        let other = self
            .default_user(&user.key.database)
            .is_some_and(|known| known.key != user.key);
        let same = |known: &&mut User| {
            known.email == read.email
                && known.properties == read.properties
                && known.user_groups == read.user_groups
                && known.default_user == read.default_user
        };
        let Some(known) = self.users.get_mut(&user.key).filter(same) else {
            return WriteOutcome::Missing;
        };
        if user.default_user && other {
            return WriteOutcome::DefaultUserTaken;
        }
        known.email.clone_from(&user.email);
        known.properties.clone_from(&user.properties);
        known.user_groups.clone_from(&user.user_groups);
        known.default_user = user.default_user;
        WriteOutcome::Done
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

    pub(super) fn end_where(
        &mut self,
        which: impl Fn(&Session) -> bool,
        reason: EndReason,
        at: Timestamp,
    ) -> Vec<SessionId> {
        let open = self
            .sessions
            .values_mut()
            .filter(|session| session.ended.is_none());
        open.filter(|session| which(session))
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
        let place = |id: &str, state: &str| {
            self.keys
                .iter()
                .position(|key| key.id == id && key.state.name() == state)
        };
        let (Some(next), Some(active)) = (place(next, "next"), place(active, "active")) else {
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

    pub(super) fn append_audit(&mut self, events: &[AuditEvent]) {
        for event in events {
            self.audited += 1;
            self.audit.push((self.audited, event.clone()));
        }
    }

    pub(super) fn audit(&self, database: &str, since: AuditSince, limit: u32) -> AuditPage {
        let wanted = |(number, event): &&(u64, AuditEvent)| {
            event.database.as_deref() == Some(database)
                && match since {
                    AuditSince::Number(last) => *number > last,
                    AuditSince::Time(at) => event.at >= at,
                }
        };
        let found = self.audit.iter().filter(wanted).map(entry);
        let found = found.take(limit as usize).collect();
        AuditPage::new(found, limit, since, self.audited)
    }

    pub(super) fn purge(&mut self, before: PurgeBefore) -> u64 {
        let rows =
            |tables: &Self| tables.sessions.len() + tables.attempts.len() + tables.audit.len();
        let all = rows(self);
        self.sessions.retain(|_, session| {
            session.expires_at >= before.sessions
                && session.ended.is_none_or(|end| end.at >= before.sessions)
        });
        self.attempts
            .retain(|_, counter| counter.expires_at >= before.attempts);
        self.audit.retain(|(_, event)| event.at >= before.audit);
        u64::try_from(all - rows(self)).unwrap_or(u64::MAX)
    }
}

impl Tables {
    pub(super) fn purge_guests(&mut self, before: Timestamp, kept: u32) -> u64 {
        let mut guests: BTreeMap<&str, Vec<(Timestamp, SessionId)>> = BTreeMap::new();
        let of_guests = |session: &&Session| session.grant == GrantKind::Guest;
        for session in self.sessions.values().filter(of_guests) {
            let own = guests.entry(&session.user.database).or_default();
            own.push((session.refreshed_at, session.id));
        }
        let mut gone = Vec::new();
        for own in guests.values_mut() {
            own.sort_unstable_by(|a, b| b.cmp(a));
            let beyond = own.iter().skip(kept as usize);
            gone.extend(beyond.filter(|(at, _)| *at < before).map(|(_, id)| *id));
        }
        gone.retain(|id| self.sessions.remove(id).is_some());
        gone.len() as u64
    }
}

fn entry((number, event): &(u64, AuditEvent)) -> AuditEntry {
    AuditEntry {
        number: *number,
        at: event.at,
        event: event.kind.name().to_owned(),
        detail: event.detail().map(str::to_owned),
        user: event.user.clone(),
        client_id: event.client_id.clone(),
        session: event.session,
        address: event.address,
        actor: event.actor.clone(),
    }
}
