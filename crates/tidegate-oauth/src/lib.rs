#![doc = include_str!("../README.md")]

mod attempt;
mod audit;
mod client;
mod key;
mod session;
mod store;
mod timestamp;
mod user;

pub use attempt::{AttemptCounter, AttemptKey, AttemptLimit, AttemptScope, Counted};
pub use audit::{AuditEvent, AuditKind};
pub use client::{Client, ClientAuthentication, ExpiringSecret, GrantKind, GrantSet, SecretHash};
pub use key::{KeyState, SigningKeyRecord};
pub use session::{EndReason, EndedSession, Session, SessionEnd, SessionId};
pub use store::{Presented, PurgeBefore, Store, StoreError, StoreFuture, Written};
pub use timestamp::{Clock, ManualClock, Timestamp};
pub use user::{User, UserKey};
