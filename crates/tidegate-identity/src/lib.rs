#![doc = include_str!("../README.md")]

mod accounts;
mod anonymous;
mod audit;
mod browser_session;
mod credential;
mod directory;
mod error;
mod inexact_number;
mod linked_identity;
mod master_key;
mod memory;
mod name;
mod passkey;
mod password;
mod percent;
mod ports;
mod providers;
mod random;
mod rate_limit;
mod role;
mod second_factor;
mod secret;
mod service;
mod session;
mod settings;
mod store;
mod timestamp;
mod totp;
mod user;

pub use accounts::{Accounts, Conversion};
pub use anonymous::AnonymousSql;
pub use audit::{AuditEntry, AuditEvent, AuditKind, AuditPage, AuditSince};
pub use browser_session::{BrowserSession, RequestContext};
pub use credential::{CredentialKind, Credentials};
pub use directory::{NewOwner, NewUser, UserChange, UserDirectory};
pub use error::{Error, Result, StoreError};
pub use inexact_number::inexact_number;
pub use linked_identity::{LinkedIdentity, RemovalOutcome};
pub use master_key::MasterKey;
pub use memory::{DependentTables, MemoryStore};
pub use name::{TenantName, UserName, group_role};
pub use passkey::Passkey;
pub use password::{PasswordCost, PasswordHash, PasswordHasher};
pub use percent::percent_encode;
pub use ports::Ports;
pub use providers::{
    Email, ExternalIdentity, IdentityProviders, LoginState, Mailer, OutboundError, OutboundResult,
    ProviderName,
};
pub use random::{SecureRandom, SystemRandom, system_source};
pub use rate_limit::{AttemptCounter, AttemptKey, AttemptLimit, AttemptOutcome, RateLimits};
pub use role::{GroupLock, RoleAdmin, RoleError, RoleResult};
pub use second_factor::SecondFactor;
pub use secret::{Secret, SecretHash};
pub use service::{
    Browser, CountedAttempts, EmailSignIn, Enrolment, ExternalMember, IdentityService,
    LoginAttempt, LoginPurpose, PasskeyRequest, PendingSignIn, SignUpApplication, SignUpLink,
    SignUpUser, SignedIn,
};
pub use session::{EndReason, SessionId};
pub use settings::{Lifetimes, Settings};
pub use store::{IdentityStore, StoreResult, UserQuery, WriteOutcome};
pub use timestamp::{Clock, ManualClock, Timestamp};
pub use user::{User, UserKey, UserKind};
