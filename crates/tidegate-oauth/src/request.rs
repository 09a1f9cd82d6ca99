//! The requests of the OAuth endpoints, parsed from parameters that the server has decoded.

mod basic;
mod credentials;
mod parameters;
mod percent;

pub use basic::BasicCredentials;
pub use credentials::ClientCredentials;
pub use parameters::Parameters;

use crate::{Error, GrantKind, Result, Scopes};
use tidegate_identity::Secret;

/// A request to the token endpoint (RFC 6749, sections 4.1.3, 4.3.2, 4.4.2 and 6; RFC 8628,
/// section 3.4).
#[derive(Clone, Debug)]
pub struct TokenRequest {
    /// The client's credentials.
    pub client: ClientCredentials,
    /// The grant and its parameters.
    pub grant: GrantParameters,
    /// The tenant's database. It may be left out. A password grant without a database is for an
    /// owner: the user name is then also the name of the database.
    pub database: Option<String>,
    /// The resource that the token is for (RFC 8707, section 2.2).
    pub resource: Option<String>,
}

/// The parameters of each grant.
#[derive(Clone, Debug)]
pub enum GrantParameters {
    /// A user name and a password.
    Password {
        /// The user's name.
        username: String,
        /// The password.
        password: Secret,
        /// The requested scopes.
        scopes: Scopes,
    },
    /// A refresh token.
    RefreshToken {
        /// The refresh token.
        token: Secret,
        /// The scopes of the new access token; if empty, the scopes of the session.
        scopes: Scopes,
    },
    /// An authorization code.
    AuthorizationCode {
        /// The authorization code.
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
    /// The client's own credentials.
    ClientCredentials {
        /// The requested scopes.
        scopes: Scopes,
    },
}

impl TokenRequest {
    /// Parses a token request. In a request that redeems a code, `scope` is ignored, because the
    /// code has the scopes of the request for which it was issued.
    ///
    /// Errors: those with the code `invalid_request` for missing, repeated and ill-typed
    /// parameters, [`Error::UnsupportedGrantType`], and [`Error::InvalidScope`].
    pub fn parse(parameters: &Parameters, basic: Option<&BasicCredentials>) -> Result<Self> {
        parameters.reject_duplicates()?;
        let grant_type = parameters.required("grant_type")?;
        let client = ClientCredentials::parse(parameters, basic)?;
        let scope = parameters.text("scope")?.unwrap_or_default();
        let grant = match grant_type {
            "password" => GrantParameters::Password {
                username: parameters.required("username")?.to_owned(),
                password: parameters.required_secret("password")?,
                scopes: Scopes::parse(scope)?,
            },
            "refresh_token" => GrantParameters::RefreshToken {
                token: parameters.required_secret("refresh_token")?,
                scopes: Scopes::parse(scope)?,
            },
            "authorization_code" => GrantParameters::AuthorizationCode {
                code: parameters.required_secret("code")?,
                redirect_uri: parameters.required("redirect_uri")?.to_owned(),
                verifier: parameters.required_secret("code_verifier")?,
            },
            "device_code" | GrantKind::DEVICE_URN => GrantParameters::DeviceCode {
                code: parameters.required_secret("device_code")?,
            },
            "client_credentials" => GrantParameters::ClientCredentials {
                scopes: Scopes::parse(scope)?,
            },
            _ => return Err(Error::UnsupportedGrantType),
        };
        Ok(Self {
            client,
            grant,
            database: parameters.text("database")?.map(str::to_owned),
            resource: parameters.text("resource")?.map(str::to_owned),
        })
    }
}

/// A request for a token of a tenant's default user.
#[derive(Clone, Debug)]
pub struct GuestRequest {
    /// The client's credentials.
    pub client: ClientCredentials,
    /// The tenant's database.
    pub database: String,
    /// The requested scopes.
    pub scopes: Scopes,
}

impl GuestRequest {
    /// Parses a guest request. The errors are those of [`TokenRequest::parse`].
    pub fn parse(parameters: &Parameters, basic: Option<&BasicCredentials>) -> Result<Self> {
        parameters.reject_duplicates()?;
        let client = ClientCredentials::parse(parameters, basic)?;
        let database = parameters.required("database")?.to_owned();
        Ok(Self {
            client,
            database,
            scopes: scopes(parameters)?,
        })
    }
}

/// A request for a device code (RFC 8628, section 3.1).
#[derive(Clone, Debug)]
pub struct DeviceRequest {
    /// The client's credentials.
    pub client: ClientCredentials,
    /// The tenant's database. It may be left out.
    pub database: Option<String>,
    /// The requested scopes.
    pub scopes: Scopes,
    /// The resource that the token is for (RFC 8707, section 2).
    pub resource: Option<String>,
}

impl DeviceRequest {
    /// Parses a device request. The errors are those of [`TokenRequest::parse`].
    pub fn parse(parameters: &Parameters, basic: Option<&BasicCredentials>) -> Result<Self> {
        parameters.reject_duplicates()?;
        let client = ClientCredentials::parse(parameters, basic)?;
        Ok(Self {
            client,
            database: parameters.text("database")?.map(str::to_owned),
            scopes: scopes(parameters)?,
            resource: parameters.text("resource")?.map(str::to_owned),
        })
    }
}

/// A revocation (RFC 7009, section 2.1) or introspection request (RFC 7662, section 2.1); both have
/// the same parameters. `token_type_hint` is accepted and ignored.
#[derive(Clone, Debug)]
pub struct TokenManagementRequest {
    /// The client's credentials.
    pub client: ClientCredentials,
    /// The token to revoke or introspect.
    pub token: Secret,
}

impl TokenManagementRequest {
    /// Parses the request. The errors have the code `invalid_request`, as in
    /// [`TokenRequest::parse`].
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

/// Parses the parameter `scope`, which may be absent; [`Error::InvalidScope`] for an unknown scope.
pub(crate) fn scopes(parameters: &Parameters) -> Result<Scopes> {
    Scopes::parse(parameters.text("scope")?.unwrap_or_default())
}
