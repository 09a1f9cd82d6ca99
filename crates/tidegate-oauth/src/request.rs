//! Requests as data, decoded by the server.

mod basic;
mod credentials;
mod parameters;
pub(crate) mod percent;

pub use basic::BasicCredentials;
pub use credentials::ClientCredentials;
pub use parameters::Parameters;

use crate::{Error, GrantKind, Result};
use tidegate_identity::Secret;

/// A request to the token endpoint (RFC 6749, sections 4.1.3, 4.3.2 and 6; RFC 8628, section 3.4).
#[derive(Clone, Debug)]
pub struct TokenRequest {
    /// The client's credentials.
    pub client: ClientCredentials,
    /// The grant.
    pub grant: GrantParameters,
}

/// The parameters of a grant.
#[derive(Clone, Debug)]
pub enum GrantParameters {
    /// A user name and a password.
    Password {
        /// The user.
        username: String,
        /// The password.
        password: Secret,
        /// The tenant; `None` when the user is its owner.
        database: Option<String>,
    },
    /// A refresh token.
    RefreshToken {
        /// The token.
        token: Secret,
    },
    /// An authorization code.
    AuthorizationCode {
        /// The code.
        code: Secret,
        /// The redirect URI of the authorization request.
        redirect_uri: String,
        /// The code verifier (RFC 7636, section 4.5).
        verifier: Secret,
    },
    /// A device code.
    DeviceCode {
        /// The device code.
        code: Secret,
    },
}

impl TokenRequest {
    /// Parses a token request. `scope` is accepted and ignored.
    ///
    /// `invalid_request` for missing, repeated and ill-typed parameters, then
    /// `unsupported_grant_type`.
    pub fn parse(parameters: &Parameters, basic: Option<&BasicCredentials>) -> Result<Self> {
        parameters.reject_duplicates()?;
        let grant_type = parameters.required("grant_type")?;
        let client = ClientCredentials::parse(parameters, basic)?;
        parameters.text("scope")?;
        let grant = match grant_type {
            "password" => GrantParameters::Password {
                username: parameters.required("username")?.to_owned(),
                password: parameters.required_secret("password")?,
                database: parameters.text("database")?.map(str::to_owned),
            },
            "refresh_token" => GrantParameters::RefreshToken {
                token: parameters.required_secret("refresh_token")?,
            },
            "authorization_code" => GrantParameters::AuthorizationCode {
                code: parameters.required_secret("code")?,
                redirect_uri: parameters.required("redirect_uri")?.to_owned(),
                verifier: parameters.required_secret("code_verifier")?,
            },
            "device_code" | GrantKind::DEVICE_URN => GrantParameters::DeviceCode {
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
    /// The client's credentials.
    pub client: ClientCredentials,
    /// The tenant.
    pub database: String,
}

impl GuestRequest {
    /// Parses a guest request; `invalid_request` as for [`TokenRequest::parse`].
    pub fn parse(parameters: &Parameters, basic: Option<&BasicCredentials>) -> Result<Self> {
        parameters.reject_duplicates()?;
        let client = ClientCredentials::parse(parameters, basic)?;
        let database = parameters.required("database")?.to_owned();
        Ok(Self { client, database })
    }
}

/// A request for a device code (RFC 8628, section 3.1).
#[derive(Clone, Debug)]
pub struct DeviceRequest {
    /// The client's credentials.
    pub client: ClientCredentials,
}

impl DeviceRequest {
    /// Parses a device request; `invalid_request` as for [`TokenRequest::parse`]. `scope` is
    /// accepted and ignored.
    pub fn parse(parameters: &Parameters, basic: Option<&BasicCredentials>) -> Result<Self> {
        parameters.reject_duplicates()?;
        let client = ClientCredentials::parse(parameters, basic)?;
        parameters.text("scope")?;
        Ok(Self { client })
    }
}

/// A revocation (RFC 7009, section 2.1) or introspection request (RFC 7662, section 2.1); both have
/// the same parameters. `token_type_hint` is accepted and ignored.
#[derive(Clone, Debug)]
pub struct TokenManagementRequest {
    /// The client's credentials.
    pub client: ClientCredentials,
    /// The token.
    pub token: Secret,
}

impl TokenManagementRequest {
    /// Parses the request; `invalid_request` as for [`TokenRequest::parse`].
    pub fn parse(parameters: &Parameters, basic: Option<&BasicCredentials>) -> Result<Self> {
        parameters.reject_duplicates()?;
        let client = ClientCredentials::parse(parameters, basic)?;
        parameters.text("token_type_hint")?;
        Ok(Self {
            client,
            token: parameters.required_secret("token")?,
        })
    }
}
