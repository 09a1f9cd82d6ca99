//! Why a bearer token is rejected.

/// Why a bearer token is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// Longer than 8 KiB.
    #[error("it is too long")]
    TooLong,
    /// Not three segments of base64url, or unknown claims.
    #[error("it is malformed")]
    Malformed,
    /// The header differs from that of every key in use: another algorithm, type or key.
    #[error("its header is unknown")]
    UnknownHeader,
    /// The signature is wrong.
    #[error("its signature is wrong")]
    BadSignature,
    /// Issued by another issuer, for another audience, or in the future.
    #[error("it is not for this service or not yet valid")]
    NotForUs,
    /// It has expired.
    #[error("it has expired")]
    Expired,
    /// Its session was ended.
    #[error("its session has ended")]
    SessionEnded,
}
