//! Errors of the mail settings.

/// The result of this crate's constructors.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why the mail settings are invalid.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The URL of the SMTP server is invalid.
    #[error("invalid SMTP URL ({0})")]
    SmtpUrl(String),
    /// Messages would be sent unencrypted over a network.
    #[error(
        "the connection to the SMTP server {0} would not be encrypted; use smtps://, or smtp:// \
         with ?tls=required"
    )]
    Unencrypted(String),
    /// The sender is not a mailbox.
    #[error("invalid sender `{0}`, expected an email address such as Shop <shop@example.com>")]
    Sender(String),
}
