//! The tables of the memory store, and the steps that touch one table.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use crate::{
    AnonymousSql, AttemptCounter, AttemptKey, AttemptLimit, AttemptOutcome, AuditEntry, AuditEvent,
    AuditPage, AuditSince, BrowserSession, CredentialKind, LinkedIdentity, Passkey, RemovalOutcome,
    SecondFactor, SecretHash, Timestamp, User, UserKey, UserQuery, WriteOutcome,
};

#[derive(Debug, Default)]
pub(super) struct Tables {
    pub(super) anonymous_sql: HashMap<String, AnonymousSql>,
    pub(super) without_impersonation: HashSet<String>,
    pub(super) users: BTreeMap<UserKey, User>,
    /// The databases and ids of dropped users.
    pub(super) dropped_ids: HashSet<(String, String)>,
    pub(super) identities: BTreeMap<[String; 3], (UserKey, LinkedIdentity)>,
    pub(super) browsers: HashMap<SecretHash, BrowserSession>,
    pub(super) factors: HashMap<UserKey, (SecondFactor, Vec<SecretHash>)>,
    pub(super) passkeys: HashMap<String, (UserKey, Passkey)>,
    pub(super) attempts: HashMap<AttemptKey, AttemptCounter>,
    pub(super) audit: Vec<(u64, AuditEvent)>,
    /// The number of the last audit event.
    pub(super) audited: u64,
}

impl Tables {
    /// Whether the tenant exists. A tenant exists as long as it has a user.
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

    pub(super) fn delete_identity(&mut self, key: &UserKey, name: &[String; 3]) -> RemovalOutcome {
        if self
            .identities
            .get(name)
            .is_none_or(|(user, _)| user != key)
        {
            return RemovalOutcome::Missing;
        }
        let user = self.users.get(key);
        let password = user.is_some_and(|user| user.password_hash.is_some());
        if !password && self.identities_of(key).len() == 1 && self.passkeys_of(key).is_empty() {
            return RemovalOutcome::LastCredential;
        }
        self.identities.remove(name);
        RemovalOutcome::Done
    }

    pub(super) fn insert_user(&mut self, user: &User) -> WriteOutcome {
        let same = |known: &User| {
            known.key == user.key
                || known.role.is_some() && known.role == user.role
                || known.key.database == user.key.database && known.user_id() == user.user_id()
        };
        if self.users.values().any(same) {
            return WriteOutcome::Taken;
        }
        if user.default_user && self.default_user(&user.key.database).is_some() {
            return WriteOutcome::DefaultUserTaken;
        }
        self.users.insert(user.key.clone(), user.clone());
        WriteOutcome::Done
    }

    /// Adds all members or none. Returns the index of the first member that cannot be added, `None`
    /// if all were added.
    pub(super) fn insert_members(&mut self, members: &[User]) -> Option<usize> {
        for (index, member) in members.iter().enumerate() {
            if self.insert_user(member) != WriteOutcome::Done {
                for added in &members[..index] {
                    self.users.remove(&added.key);
                }
                return Some(index);
            }
        }
        None
    }

    pub(super) fn user_page(&self, database: &str, query: &UserQuery) -> Vec<User> {
        let wanted = |user: &&User| {
            user.key.database == database
                && query.kind.is_none_or(|kind| kind == user.kind())
                && query
                    .after
                    .as_ref()
                    .is_none_or(|after| user.key.name > *after)
                && (query.group.as_ref()).is_none_or(|group| user.user_groups.contains(group))
        };
        let users = self.users.values().filter(wanted).cloned();
        users.take(query.limit as usize).collect()
    }

    /// The groups of the tenant that have members.
    pub(super) fn member_groups(&self, database: &str) -> Vec<String> {
        let members = self.users.values();
        let members = members.filter(|user| user.key.database == database && user.is_member());
        let groups: BTreeSet<_> = members.flat_map(|user| user.user_groups.clone()).collect();
        groups.into_iter().collect()
    }

    pub(super) fn user_with_id(&self, database: &str, id: &str) -> Option<&User> {
        let mut users = self.users.values();
        users.find(|user| user.key.database == database && user.user_id() == id)
    }

    pub(super) fn reserve_id(&mut self, user: &User) {
        let id = (user.key.database.clone(), user.user_id().to_owned());
        self.dropped_ids.insert(id);
    }

    /// Whether a user has this name, ignoring case, or a dropped user had this name as its id.
    pub(super) fn has_similar_user(&self, database: &str, name: &str) -> bool {
        let same = |key: &UserKey| key.database == database && key.name.eq_ignore_ascii_case(name);
        let dropped = (database.to_owned(), name.to_owned());
        self.dropped_ids.contains(&dropped) || self.users.keys().any(same)
    }

    /// Deletes all users of a tenant, and the recorded ids of its dropped users.
    pub(super) fn delete_users(&mut self, database: &str) {
        self.users.retain(|key, _| key.database != database);
        self.dropped_ids.retain(|(tenant, _)| tenant != database);
    }

    pub(super) fn update_user(&mut self, read: &User, user: &User) -> WriteOutcome {
        let other = self
            .default_user(&user.key.database)
            .is_some_and(|known| known.key != user.key);
        let same = |known: &&mut User| {
            known.role == read.role
                && known.id == read.id
                && known.email == read.email
                && known.confirmed_email == read.confirmed_email
                && known.properties == read.properties
                && known.user_groups == read.user_groups
                && known.default_user == read.default_user
                && known.disabled == read.disabled
        };
        let role_is_taken = user.role.is_some()
            && (self.users.values()).any(|known| known.key != user.key && known.role == user.role);
        let Some(known) = self.users.get_mut(&user.key).filter(same) else {
            return WriteOutcome::Missing;
        };
        if role_is_taken {
            return WriteOutcome::Taken;
        }
        if user.default_user && other {
            return WriteOutcome::DefaultUserTaken;
        }
        known.disabled = user.disabled;
        known.role.clone_from(&user.role);
        known.id.clone_from(&user.id);
        known.email.clone_from(&user.email);
        known.confirmed_email.clone_from(&user.confirmed_email);
        known.properties.clone_from(&user.properties);
        known.user_groups.clone_from(&user.user_groups);
        known.default_user = user.default_user;
        WriteOutcome::Done
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

    pub(super) fn browser_sessions_of(&self, key: &UserKey, now: Timestamp) -> Vec<BrowserSession> {
        let browsers = self.browsers.values();
        let mut browsers: Vec<_> = browsers
            .filter(|browser| browser.user == *key && now < browser.expires_at)
            .cloned()
            .collect();
        browsers.sort_by_key(|browser| (Reverse(browser.seen_at), browser.id));
        browsers
    }

    pub(super) fn passkeys_of(&self, key: &UserKey) -> Vec<Passkey> {
        let own = self.passkeys.values().filter(|(user, _)| user == key);
        let mut own: Vec<_> = own.map(|(_, passkey)| passkey.clone()).collect();
        own.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
        own
    }

    pub(super) fn insert_passkey(&mut self, key: &UserKey, passkey: &Passkey) -> bool {
        let free = !self.passkeys.contains_key(&passkey.id);
        let added = free && self.passkeys_of(key).len() < Passkey::MAX_COUNT;
        if added {
            let row = (key.clone(), passkey.clone());
            self.passkeys.insert(passkey.id.clone(), row);
        }
        added
    }

    pub(super) fn rename_passkey(&mut self, key: &UserKey, id: &str, name: &str) -> bool {
        let own = self.passkeys.get_mut(id).filter(|(user, _)| user == key);
        own.map(|(_, passkey)| name.clone_into(&mut passkey.name))
            .is_some()
    }

    pub(super) fn use_passkey(&mut self, read: &Passkey, record: &str, at: Timestamp) -> bool {
        let known = self.passkeys.get_mut(&read.id).map(|(_, passkey)| passkey);
        let known = known.filter(|passkey| passkey.record == read.record);
        let Some(passkey) = known else { return false };
        record.clone_into(&mut passkey.record);
        passkey.used_at = Some(at);
        true
    }

    pub(super) fn delete_passkey(&mut self, key: &UserKey, id: &str) -> RemovalOutcome {
        let own = self.passkeys_of(key);
        if own.iter().all(|passkey| passkey.id != id) {
            return RemovalOutcome::Missing;
        }
        let user = self.users.get(key);
        let password = user.is_some_and(|user| user.password_hash.is_some());
        if !password && own.len() == 1 && self.identities_of(key).is_empty() {
            return RemovalOutcome::LastCredential;
        }
        self.passkeys.remove(id);
        RemovalOutcome::Done
    }

    pub(super) fn count_attempt(
        &mut self,
        key: &AttemptKey,
        limit: &AttemptLimit,
        now: Timestamp,
    ) -> AttemptOutcome {
        let before = self.attempts.get(key).copied();
        let (after, counted) = AttemptCounter::count(before, limit, now);
        self.attempts.insert(key.clone(), after);
        counted
    }

    pub(super) fn refund_attempt(&mut self, key: &AttemptKey) {
        if let Some(counter) = self.attempts.get_mut(key) {
            *counter = counter.refund();
        }
    }

    pub(super) fn delete_credentials(
        &mut self,
        key: &UserKey,
        kind: CredentialKind,
    ) -> Vec<String> {
        match kind {
            CredentialKind::Passkeys => {
                let own = self.passkeys.extract_if(|_, (user, _)| user == key);
                own.map(|(_, (_, passkey))| passkey.name).collect()
            }
            CredentialKind::LinkedAccounts => {
                let own = self.identities.extract_if(.., |_, (user, _)| user == key);
                own.map(|(_, (_, identity))| identity.issuer).collect()
            }
            CredentialKind::SecondFactor => {
                let factor = self.factors.remove(key);
                factor.map(|_| String::new()).into_iter().collect()
            }
        }
    }

    pub(super) fn delete_users_data(&mut self, is_deleted: impl Fn(&UserKey) -> bool) {
        self.identities.retain(|_, (user, _)| !is_deleted(user));
        self.browsers
            .retain(|_, browser| !is_deleted(&browser.user));
        self.factors.retain(|user, _| !is_deleted(user));
        self.passkeys.retain(|_, (user, _)| !is_deleted(user));
    }

    pub(super) fn purge(
        &mut self,
        attempts: Timestamp,
        audit: Timestamp,
        browsers: Timestamp,
    ) -> u64 {
        let rows =
            |tables: &Self| tables.attempts.len() + tables.audit.len() + tables.browsers.len();
        let before = rows(self);
        self.attempts
            .retain(|_, counter| counter.expires_at >= attempts);
        self.audit.retain(|(_, event)| event.at >= audit);
        self.browsers
            .retain(|_, browser| browser.expires_at >= browsers);
        (before - rows(self)) as u64
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
