//! What flows through a browser leaves behind: codes, device codes, browser sessions, second factors.

mod browser;
mod code;
mod device;
mod identity;
mod pkce;
mod second_factor;
mod totp;

pub use browser::{BrowserSession, Visit};
pub use code::AuthorizationCode;
pub use device::{Approval, DeviceCode, DeviceState, Polled};
pub use identity::{LinkedIdentity, Unlinked};
pub use second_factor::SecondFactor;

pub(crate) use device::UserCode;
pub(crate) use pkce::Challenge;
pub(crate) use second_factor::RecoveryCode;
pub(crate) use totp::{SECRET_BYTES, Totp};
