#![doc = include_str!("../README.md")]

mod accounts;
mod anonymous;
mod attempt;
mod audit;
mod client;
mod denylist;
mod directory;
mod error;
mod flow;
mod grant;
mod issuer;
mod json;
mod key;
mod memory;
mod name;
mod outbound;
mod password;
mod random;
mod redirect;
mod request;
mod role;
mod secret;
mod session;
mod settings;
mod store;
mod throttle;
mod timestamp;
mod token;
mod user;

pub use accounts::Accounts;
pub use anonymous::AnonymousSql;
pub use attempt::{AttemptCounter, AttemptKey, AttemptLimit, AttemptScope, Counted};
pub use audit::{AuditEntry, AuditEvent, AuditKind, AuditPage, AuditSince};
pub use client::{Client, ClientAuthentication, ExpiringSecret, GrantKind, GrantSet, SecretHash};
pub use directory::{
    ClientChange, CreatedClient, Directory, NewClient, NewOwner, NewUser, UserChange,
};
pub use error::{Error, Fault, Result, TokenFault};
pub use flow::{
    Approval, AuthorizationCode, BrowserSession, DeviceCode, DeviceState, LinkedIdentity, Polled,
    SecondFactor, Unlinked, Visit,
};
pub use issuer::{
    Account, ActiveToken, Arrival, AuthorizationRequest, Browser, DeviceAuthorization, Endpoints,
    Enrolment, Introspection, Issuer, Ports, Refusal, Return, WaitingDevice,
};
pub use key::{KeyState, MasterKey, SigningKeyRecord};
pub use memory::MemoryStore;
pub use name::{TenantName, UserName, group_role};
pub use outbound::{
    ExternalIdentity, IdentityProviders, Letter, Mail, OutboundError, OutboundFuture, ProviderName,
    Trip,
};
pub use password::{PasswordCost, PasswordHasher};
pub use random::{SecureRandom, SystemRandom};
pub use request::{
    AboutToken, BasicCredentials, ClientCredentials, DeviceRequest, Grant, GuestRequest,
    Parameters, TokenRequest,
};
pub use role::{GroupTurn, RoleAdmin, RoleError, RoleFuture};
pub use secret::Secret;
pub use session::{EndReason, EndedSession, Session, SessionEnd, SessionId};
pub use settings::{Lifetimes, Settings};
pub use store::{FlowStore, Presented, PurgeBefore, Store, StoreError, StoreFuture, Written};
pub use throttle::Limits;
pub use timestamp::{Clock, ManualClock, Timestamp};
pub use token::{Claims, TokenResponse};
pub use user::{User, UserKey};
