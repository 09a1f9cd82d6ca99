//! What may be wrong with a bearer token.

/// Why a bearer token is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenFault {
    /// Longer than 8 KiB.
    #[error("it is too long")]
    TooLong,
    /// Not three segments of base64url, or claims that we do not write.
    #[error("it is malformed")]
    Malformed,
    /// Its header is not one that a key of ours writes: another algorithm, type or key.
    #[error("its header is unknown")]
    UnknownHeader,
    /// The signature is wrong.
    #[error("its signature is wrong")]
    BadSignature,
    /// Of another issuer, for another audience, or from the future.
    #[error("it is not for this service or not yet valid")]
    NotForUs,
    /// Its time is over.
    #[error("it has expired")]
    Expired,
    /// Its session was ended.
    #[error("its session has ended")]
    SessionEnded,
}
