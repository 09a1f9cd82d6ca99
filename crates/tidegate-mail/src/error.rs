//! Errors of the mail settings.

/// A result with the error of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason why the mail settings are invalid.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The URL of the SMTP server is invalid.
    #[error("invalid SMTP URL ({0})")]
    SmtpUrl(String),
    /// Messages would be sent over a network without encryption.
    #[error(
        "the connection to the SMTP server {0} would not be encrypted; use smtps://, or smtp:// \
         with ?tls=required"
    )]
    Unencrypted(String),
    /// The sender's address is not a valid email address.
    #[error("invalid sender `{0}`, expected an email address such as Shop <shop@example.com>")]
    Sender(String),
}
