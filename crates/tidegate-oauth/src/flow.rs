//! Records of flows through a browser: authorization codes, device codes, browser sessions, linked
//! identities, second factors.

mod browser_session;
mod code;
mod device;
mod identity;
mod pkce;
mod second_factor;
mod totp;

pub use browser_session::{BrowserSession, RequestContext};
pub use code::AuthorizationCode;
pub use device::{Approval, DeviceCode, DevicePoll, DeviceState};
pub use identity::{LinkedIdentity, UnlinkOutcome};
pub use second_factor::SecondFactor;

pub(crate) use device::UserCode;
pub(crate) use pkce::Challenge;
pub(crate) use second_factor::RecoveryCode;
pub(crate) use totp::{SECRET_BYTES, Totp};
