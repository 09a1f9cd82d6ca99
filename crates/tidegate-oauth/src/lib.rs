#![doc = include_str!("../README.md")]

mod accounts;
mod anonymous;
mod audit;
mod builtin;
mod client;
mod denylist;
mod directory;
mod error;
mod flow;
mod identity;
mod issuer;
mod json;
mod key;
mod memory;
mod name;
mod password;
mod ports;
mod providers;
mod random;
mod rate_limit;
mod redirect;
mod request;
mod role;
mod secret;
mod session;
mod settings;
mod store;
mod timestamp;
mod token;
mod user;

pub use accounts::Accounts;
pub use anonymous::AnonymousSql;
pub use audit::{AuditEntry, AuditEvent, AuditKind, AuditPage, AuditSince};
pub use builtin::BuiltinClients;
pub use client::{Client, ClientAuthentication, ExpiringSecret, GrantKind, GrantSet, SecretHash};
pub use directory::{
    ClientChange, CreatedClient, Directory, NewClient, NewOwner, NewUser, UserChange,
};
pub use error::{Error, ErrorKind, Result, StoreError, TokenError};
pub use flow::{
    Approval, AuthorizationCode, BrowserSession, DeviceCode, DevicePoll, DeviceState,
    LinkedIdentity, RequestContext, SecondFactor, UnlinkOutcome,
};
pub use identity::{Browser, Enrolment, Identity};
pub use issuer::{
    Account, ActiveToken, AuthorizationError, AuthorizationRequest, DeviceAuthorization, Endpoints,
    ImpersonationToken, Introspection, Issuer, LoginOutcome, PendingDevice, ProviderCallback,
};
pub use key::{KeyState, MasterKey, SigningKeyRecord};
pub use memory::MemoryStore;
pub use name::{TenantName, UserName, group_role};
pub use password::{PasswordCost, PasswordHasher};
pub use ports::Ports;
pub use providers::{
    Email, ExternalIdentity, IdentityProviders, LoginState, Mailer, OutboundError, OutboundFuture,
    ProviderName,
};
pub use random::{SecureRandom, SystemRandom};
pub use rate_limit::{
    AttemptCounter, AttemptKey, AttemptLimit, AttemptOutcome, AttemptScope, RateLimits,
};
pub use request::{
    BasicCredentials, ClientCredentials, DeviceRequest, Grant, GuestRequest, Parameters,
    TokenManagementRequest, TokenRequest,
};
pub use role::{GroupLock, RoleAdmin, RoleError, RoleFuture};
pub use secret::Secret;
pub use session::{EndReason, EndedSession, Session, SessionEnd, SessionId};
pub use settings::{Lifetimes, Settings};
pub use store::{FlowStore, PurgeBefore, RefreshOutcome, Store, StoreFuture, WriteOutcome};
pub use timestamp::{Clock, ManualClock, Timestamp};
pub use token::{Claims, TokenResponse};
pub use user::{User, UserKey};
