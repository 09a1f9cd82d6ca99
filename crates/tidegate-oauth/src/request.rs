//! Requests as data: what the edge decodes into, and what it means.

mod basic;
mod credentials;
mod parameters;
mod percent;

pub use basic::BasicCredentials;
pub use credentials::ClientCredentials;
pub use parameters::Parameters;

use crate::{Error, Result, Secret};

/// A request to the token endpoint (RFC 6749, sections 4.3.2 and 6).
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
}

impl TokenRequest {
    /// Reads a token request. `scope` is accepted and means nothing.
    ///
    /// `invalid_request` for missing, doubled and ill-typed parameters, then
    /// `unsupported_grant_type`.
    pub fn parse(parameters: &Parameters, basic: Option<&BasicCredentials>) -> Result<Self> {
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
        let client = ClientCredentials::parse(parameters, basic)?;
        let database = parameters.required("database")?.to_owned();
        Ok(Self { client, database })
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
        let client = ClientCredentials::parse(parameters, basic)?;
        parameters.text("token_type_hint")?;
        Ok(Self {
            client,
            token: parameters.required_secret("token")?,
        })
    }
}
