//! Why a bearer token is rejected.

/// Why a bearer token is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// The token is longer than 8 KiB.
    #[error("it is too long")]
    TooLong,
    /// The token is not three segments of base64url, or its claims are missing or have unknown
    /// values.
    #[error("it is malformed")]
    Malformed,
    /// The header differs from the headers of all keys in use: it has another algorithm, type or
    /// key.
    #[error("its header is unknown")]
    UnknownHeader,
    /// The signature is wrong.
    #[error("its signature is wrong")]
    BadSignature,
    /// The token was issued by another issuer, for another audience, for another use than access,
    /// or in the future.
    #[error("it is not for this service or not yet valid")]
    NotForUs,
    /// A personal access token that does not exist, has expired or was revoked.
    #[error("it is no valid personal access token")]
    UnknownPersonalToken,
    /// The token has expired.
    #[error("it has expired")]
    Expired,
    /// The token's session was ended, or its user does not exist any more.
    #[error("its session has ended")]
    SessionEnded,
}
