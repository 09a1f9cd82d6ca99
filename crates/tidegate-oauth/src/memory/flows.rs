//! [`FlowStore`] in memory.

use std::collections::HashMap;

use super::{MemoryStore, done};
use crate::{
    Approval, AuthorizationCode, BrowserSession, DeviceCode, DevicePoll, DeviceState, FlowStore,
    SecondFactor, SecretHash, Session, StoreFuture, Timestamp, UserKey,
};

#[derive(Debug, Default)]
pub(super) struct Flows {
    codes: HashMap<SecretHash, AuthorizationCode>,
    devices: HashMap<SecretHash, DeviceCode>,
    browsers: HashMap<SecretHash, BrowserSession>,
    factors: HashMap<UserKey, (SecondFactor, Vec<SecretHash>)>,
}

impl Flows {
    /// Deletes what belongs to deleted users.
    pub(super) fn forget(&mut self, gone: impl Fn(&UserKey) -> bool) {
        self.leave(|browser| gone(&browser.user));
        self.factors.retain(|user, _| !gone(user));
    }

    /// Deletes browser sessions, and voids what was approved in them.
    pub(super) fn leave(&mut self, gone: impl Fn(&BrowserSession) -> bool) -> usize {
        let before = self.browsers.len();
        self.browsers.retain(|_, browser| !gone(browser));
        let known = |id: &SecretHash| self.browsers.contains_key(id);
        self.devices.retain(|_, device| match &device.state {
            DeviceState::Approved(approval) => known(&approval.browser),
            _ => true,
        });
        for code in self.codes.values_mut() {
            code.browser = code.browser.filter(known);
        }
        before - self.browsers.len()
    }

    /// Deletes the codes of deleted clients.
    pub(super) fn forget_clients(&mut self, gone: impl Fn(&str) -> bool) {
        self.codes.retain(|_, code| !gone(&code.client_id));
        self.devices.retain(|_, device| !gone(&device.client_id));
    }

    fn device(&mut self, user_code: &str) -> Option<&mut DeviceCode> {
        self.devices
            .values_mut()
            .find(|device| device.user_code == user_code)
    }

    fn purge(&mut self, before: Timestamp) -> usize {
        let rows = |flows: &Self| flows.codes.len() + flows.devices.len() + flows.browsers.len();
        let all = rows(self);
        self.codes.retain(|_, code| code.expires_at >= before);
        self.devices.retain(|_, device| device.expires_at >= before);
        let gone = all - rows(self);
        gone + self.leave(|browser| browser.expires_at < before)
    }
}

impl FlowStore for MemoryStore {
    fn insert_code<'a>(&'a self, code: &'a AuthorizationCode) -> StoreFuture<'a, ()> {
        self.tables().flows.codes.insert(code.hash, code.clone());
        done(())
    }

    fn code(&self, hash: SecretHash) -> StoreFuture<'_, Option<AuthorizationCode>> {
        done(self.tables().flows.codes.get(&hash).cloned())
    }

    fn redeem_code<'a>(&'a self, hash: SecretHash, session: &'a Session) -> StoreFuture<'a, bool> {
        let mut tables = self.tables();
        let code = tables.flows.codes.get_mut(&hash);
        let code = code
            .filter(|c| c.session.is_none() && c.browser.is_some())
            .filter(|c| session.created_at < c.expires_at);
        let redeemed = code.map(|code| code.session = Some(session.id)).is_some();
        if redeemed {
            tables.sessions.insert(session.id, session.clone());
        }
        done(redeemed)
    }

    fn insert_device_code<'a>(&'a self, device: &'a DeviceCode) -> StoreFuture<'a, bool> {
        let flows = &mut self.tables().flows;
        let free = flows.device(&device.user_code).is_none();
        if free {
            flows.devices.insert(device.hash, device.clone());
        }
        done(free)
    }

    fn device_code<'a>(&'a self, user_code: &'a str) -> StoreFuture<'a, Option<DeviceCode>> {
        done(self.tables().flows.device(user_code).cloned())
    }

    fn poll_device_code<'a>(
        &'a self,
        hash: SecretHash,
        client_id: &'a str,
        now: Timestamp,
    ) -> StoreFuture<'a, Option<DevicePoll>> {
        let flows = &mut self.tables().flows;
        let device = flows.devices.get_mut(&hash);
        let device = device.filter(|device| device.client_id == client_id);
        done(device.map(|device| {
            let polled = device.clone().polled(now);
            device.clone_from(&polled.device);
            polled
        }))
    }

    fn decide_device_code<'a>(
        &'a self,
        user_code: &'a str,
        approval: Option<&'a Approval>,
        now: Timestamp,
    ) -> StoreFuture<'a, bool> {
        let flows = &mut self.tables().flows;
        let device = flows.device(user_code);
        let device = device.filter(|d| d.state == DeviceState::Pending && now < d.expires_at);
        let state = approval.map_or(DeviceState::Denied, |approval| {
            DeviceState::Approved(approval.clone())
        });
        done(device.map(|device| device.state = state).is_some())
    }

    fn redeem_device_code<'a>(
        &'a self,
        hash: SecretHash,
        session: &'a Session,
    ) -> StoreFuture<'a, bool> {
        let mut tables = self.tables();
        let device = tables.flows.devices.get_mut(&hash).filter(|device| {
            matches!(device.state, DeviceState::Approved(_))
                && session.created_at < device.expires_at
        });
        let redeemed = device
            .map(|device| device.state = DeviceState::Consumed)
            .is_some();
        if redeemed {
            tables.sessions.insert(session.id, session.clone());
        }
        done(redeemed)
    }

    fn sessions_of_user<'a>(
        &'a self,
        key: &'a UserKey,
        now: Timestamp,
    ) -> StoreFuture<'a, Vec<Session>> {
        let tables = self.tables();
        let sessions = tables.sessions.values();
        let mut sessions: Vec<_> = sessions
            .filter(|session| session.user == *key && session.is_alive(now))
            .cloned()
            .collect();
        sessions.sort_by_key(|session| (std::cmp::Reverse(session.refreshed_at), session.id));
        done(sessions)
    }

    fn insert_browser_session<'a>(&'a self, session: &'a BrowserSession) -> StoreFuture<'a, ()> {
        let flows = &mut self.tables().flows;
        flows.browsers.insert(session.id, session.clone());
        done(())
    }

    fn browser_session(&self, id: SecretHash) -> StoreFuture<'_, Option<BrowserSession>> {
        done(self.tables().flows.browsers.get(&id).cloned())
    }

    fn touch_browser_session(
        &self,
        id: SecretHash,
        seen_at: Timestamp,
        expires_at: Timestamp,
    ) -> StoreFuture<'_, ()> {
        if let Some(session) = self.tables().flows.browsers.get_mut(&id) {
            (session.seen_at, session.expires_at) = (seen_at, expires_at);
        }
        done(())
    }

    fn delete_browser_session(&self, id: SecretHash) -> StoreFuture<'_, bool> {
        done(self.tables().flows.leave(|browser| browser.id == id) == 1)
    }

    fn browser_sessions_of_user<'a>(
        &'a self,
        key: &'a UserKey,
        now: Timestamp,
    ) -> StoreFuture<'a, Vec<BrowserSession>> {
        let tables = self.tables();
        let browsers = tables.flows.browsers.values();
        let mut browsers: Vec<_> = browsers
            .filter(|browser| browser.user == *key && now < browser.expires_at)
            .cloned()
            .collect();
        browsers.sort_by_key(|browser| (std::cmp::Reverse(browser.seen_at), browser.id));
        done(browsers)
    }

    fn second_factor<'a>(&'a self, key: &'a UserKey) -> StoreFuture<'a, Option<SecondFactor>> {
        let tables = self.tables();
        let found = tables.flows.factors.get(key);
        done(found.map(|(factor, codes)| SecondFactor {
            recovery_codes: codes.len() as u64,
            ..factor.clone()
        }))
    }

    fn insert_second_factor<'a>(
        &'a self,
        key: &'a UserKey,
        factor: &'a SecondFactor,
        recovery_codes: &'a [SecretHash],
    ) -> StoreFuture<'a, bool> {
        let flows = &mut self.tables().flows;
        let free = !flows.factors.contains_key(key);
        if free {
            let factor = (factor.clone(), recovery_codes.to_vec());
            flows.factors.insert(key.clone(), factor);
        }
        done(free)
    }

    fn use_second_factor_step<'a>(&'a self, key: &'a UserKey, step: u64) -> StoreFuture<'a, bool> {
        let flows = &mut self.tables().flows;
        let factor = flows.factors.get_mut(key);
        let factor = factor.filter(|(factor, _)| factor.used_step < step);
        done(factor.map(|(factor, _)| factor.used_step = step).is_some())
    }

    fn use_recovery_code<'a>(
        &'a self,
        key: &'a UserKey,
        code: SecretHash,
    ) -> StoreFuture<'a, bool> {
        let flows = &mut self.tables().flows;
        let codes = flows.factors.get_mut(key).map(|(_, codes)| codes);
        done(codes.is_some_and(|codes| {
            let before = codes.len();
            codes.retain(|known| *known != code);
            codes.len() < before
        }))
    }

    fn delete_second_factor<'a>(&'a self, key: &'a UserKey) -> StoreFuture<'a, bool> {
        done(self.tables().flows.factors.remove(key).is_some())
    }

    fn purge_flows(&self, before: Timestamp) -> StoreFuture<'_, u64> {
        done(self.tables().flows.purge(before) as u64)
    }
}
