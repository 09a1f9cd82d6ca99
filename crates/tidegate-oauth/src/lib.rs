#![doc = include_str!("../README.md")]

mod authorization_code;
mod builtin;
mod client;
mod clients;
mod consent;
mod device_code;
mod error;
mod issuer;
mod json;
mod key;
mod memory;
mod pkce;
mod ports;
mod rate_limit;
mod redirect;
mod request;
mod scope;
mod session;
mod settings;
mod store;
mod token;

pub use authorization_code::AuthorizationCode;
pub use builtin::BuiltinClients;
pub use client::{Client, ClientAuthentication, ExpiringSecret, GrantKind, GrantSet};
pub use clients::{ClientChange, ClientDirectory, CreatedClient, NewClient};
pub use consent::Consent;
pub use device_code::{Approval, DeviceCode, DevicePoll, DeviceState};
pub use error::{Error, ErrorKind, Result, TokenError};
pub use issuer::{
    Account, ActiveToken, AuthorizationError, AuthorizationRequest, CreatedPersonalToken,
    DeviceAuthorization, Endpoints, ImpersonationToken, Introspection, Issuer, LoginOutcome,
    LogoutRequest, NewPersonalToken, OpenIdRequest, PendingDevice, Prompt, ProviderCallback,
};
pub use key::{KeyState, SigningKeyRecord};
pub use memory::{IssuerTables, MemoryStore};
pub use ports::Ports;
pub use rate_limit::RateLimits;
pub use request::{
    BasicCredentials, ClientCredentials, DeviceRequest, GrantParameters, GuestRequest, Parameters,
    TokenManagementRequest, TokenRequest,
};
pub use scope::{Scope, Scopes};
pub use session::{EndedSession, PersonalToken, Session, SessionEnd};
pub use settings::{Lifetimes, Settings};
pub use store::{IssuerStore, PurgeBefore, RefreshOutcome};
pub use token::{Claims, MemberClaims, TokenResponse};
