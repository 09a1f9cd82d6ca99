//! What can be wrong with what an operator has configured.

/// The result of setting something up.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why something cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address of the SMTP server is none.
    #[error("the address of the SMTP server cannot be read ({0})")]
    SmtpAddress(String),
    /// Letters would cross a network in the clear.
    #[error(
        "the way to the SMTP server {0} would not be encrypted; use smtps://, or smtp:// with \
         ?tls=required"
    )]
    SmtpInTheClear(String),
    /// A provider whose answers others could change.
    #[error("the identity provider {0} is not at an https address")]
    IssuerInTheClear(String),
    /// The system has no way to make connections.
    #[error("no connections to identity providers can be made ({0})")]
    Http(String),
    /// The sender is no mailbox.
    #[error("`{0}` is no e-mail address to send from, such as Shop <shop@example.com>")]
    Sender(String),
}
