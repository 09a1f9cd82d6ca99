//! Requests as data: what the edge decodes into, and what it means.

mod basic;
mod credentials;
mod parameters;
pub(crate) mod percent;

pub use basic::BasicCredentials;
pub use credentials::ClientCredentials;
pub use parameters::Parameters;

use crate::{Error, GrantKind, Result, Secret};

/// A request to the token endpoint (RFC 6749, sections 4.1.3, 4.3.2 and 6; RFC 8628, section 3.4).
#[derive(Clone, Debug)]
pub struct TokenRequest {
    /// Who asks.
    pub client: ClientCredentials,
    /// With what.
    pub grant: Grant,
}

/// What a token is asked for with.
#[derive(Clone, Debug)]
pub enum Grant {
    /// A user name and a password.
    Password {
        /// The user.
        username: String,
        /// The password.
        password: Secret,
        /// The tenant; none when the user is its owner.
        database: Option<String>,
    },
    /// A refresh token.
    RefreshToken {
        /// The token.
        token: Secret,
    },
    /// A code that a browser brought back.
    AuthorizationCode {
        /// The code.
        code: Secret,
        /// The address that it was sent to.
        redirect_uri: String,
        /// What the code's challenge was made of (RFC 7636, section 4.5).
        verifier: Secret,
    },
    /// A device asks whether a person has decided.
    DeviceCode {
        /// The device code.
        code: Secret,
    },
}

impl TokenRequest {
    /// Reads a token request. `scope` is accepted and means nothing.
    ///
    /// `invalid_request` for missing, doubled and ill-typed parameters, then
    /// `unsupported_grant_type`.
    pub fn parse(parameters: &Parameters, basic: Option<&BasicCredentials>) -> Result<Self> {
        parameters.each_once()?;
        let grant_type = parameters.required("grant_type")?;
        let client = ClientCredentials::parse(parameters, basic)?;
        parameters.text("scope")?;
        let grant = match grant_type {
            "password" => Grant::Password {
                username: parameters.required("username")?.to_owned(),
                password: parameters.required_secret("password")?,
                database: parameters.text("database")?.map(str::to_owned),
            },
            "refresh_token" => Grant::RefreshToken {
                token: parameters.required_secret("refresh_token")?,
            },
            "authorization_code" => Grant::AuthorizationCode {
                code: parameters.required_secret("code")?,
                redirect_uri: parameters.required("redirect_uri")?.to_owned(),
                verifier: parameters.required_secret("code_verifier")?,
            },
            "device_code" | GrantKind::DEVICE_URN => Grant::DeviceCode {
                code: parameters.required_secret("device_code")?,
            },
            _ => return Err(Error::UnsupportedGrantType),
        };
        Ok(Self { client, grant })
    }
}

/// A request for a token of a tenant's default user.
#[derive(Clone, Debug)]
pub struct GuestRequest {
    /// Who asks.
    pub client: ClientCredentials,
    /// The tenant.
    pub database: String,
}

impl GuestRequest {
    /// Reads a guest request; `invalid_request` as for [`TokenRequest::parse`].
    pub fn parse(parameters: &Parameters, basic: Option<&BasicCredentials>) -> Result<Self> {
        parameters.each_once()?;
        let client = ClientCredentials::parse(parameters, basic)?;
        let database = parameters.required("database")?.to_owned();
        Ok(Self { client, database })
    }
}

/// A request for a device code (RFC 8628, section 3.1).
#[derive(Clone, Debug)]
pub struct DeviceRequest {
    /// Who asks.
    pub client: ClientCredentials,
}

impl DeviceRequest {
    /// Reads a device request; `invalid_request` as for [`TokenRequest::parse`]. `scope` is accepted
    /// and means nothing.
    pub fn parse(parameters: &Parameters, basic: Option<&BasicCredentials>) -> Result<Self> {
        parameters.each_once()?;
        let client = ClientCredentials::parse(parameters, basic)?;
        parameters.text("scope")?;
        Ok(Self { client })
    }
}

/// A request about a token: to revoke it (RFC 7009, section 2.1) or to tell about it (RFC 7662,
/// section 2.1). `token_type_hint` is accepted and not needed.
#[derive(Clone, Debug)]
pub struct AboutToken {
    /// Who asks.
    pub client: ClientCredentials,
    /// The token.
    pub token: Secret,
}

impl AboutToken {
    /// Reads the request; `invalid_request` as for [`TokenRequest::parse`].
    pub fn parse(parameters: &Parameters, basic: Option<&BasicCredentials>) -> Result<Self> {
        parameters.each_once()?;
        let client = ClientCredentials::parse(parameters, basic)?;
        parameters.text("token_type_hint")?;
        Ok(Self {
            client,
            token: parameters.required_secret("token")?,
        })
    }
}
