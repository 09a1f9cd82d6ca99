//! Sends email by SMTP (RFC 5321), with TLS.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use async_trait::async_trait;
use lettre::message::Mailbox;
use lettre::message::header::ContentType;
use lettre::{AsyncSmtpTransport, AsyncTransport as _, Message, Tokio1Executor};
use tidegate_identity::{Email, Mailer, OutboundError, OutboundResult};

use crate::error::{Error, Result};

/// The timeout for an SMTP command.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(20);

/// A mailer that sends email through one SMTP server.
#[derive(Clone)]
pub struct SmtpMailer {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    sender: Mailbox,
}

impl SmtpMailer {
    /// A mailer for the SMTP server at `url`. Its messages have `sender` in `From`.
    ///
    /// `smtps://user:password@host` uses implicit TLS, and `smtp://…?tls=required` uses STARTTLS.
    /// Plain `smtp://host:port` is allowed only for a server on this machine.
    ///
    /// # Errors
    ///
    /// [`Error::SmtpUrl`] for an invalid URL, [`Error::Unencrypted`] for an unencrypted connection,
    /// [`Error::Sender`] for an invalid sender.
    pub fn new(url: &str, sender: &str) -> Result<Self> {
        let (scheme, rest) = url
            .split_once("://")
            .ok_or_else(|| Error::SmtpUrl("it has no scheme".to_owned()))?;
        let host = host_of(rest);
        let query = rest.split_once('?').map_or("", |(_, query)| query);
        let needs_tls = query.split('&').any(|pair| pair == "tls=required");
        if scheme == "smtp" && !needs_tls && !is_loopback(host) {
            return Err(Error::Unencrypted(host.to_owned()));
        }
        let builder = AsyncSmtpTransport::<Tokio1Executor>::from_url(url)
            .map_err(|error| Error::SmtpUrl(error.to_string()))?;
        let sender = sender
            .parse()
            .map_err(|_| Error::Sender(sender.to_owned()))?;
        Ok(Self {
            transport: builder.timeout(Some(COMMAND_TIMEOUT)).build(),
            sender,
        })
    }

    async fn deliver(&self, email: &Email) -> Result<(), OutboundError> {
        let to = email.to.parse().map_err(OutboundError::new)?;
        let message = Message::builder()
            .from(self.sender.clone())
            .to(Mailbox::new(None, to))
            .subject(&email.subject)
            .header(ContentType::TEXT_PLAIN)
            .body(email.text.clone())
            .map_err(OutboundError::new)?;
        let sent = self.transport.send(message).await;
        sent.map(|_| ()).map_err(OutboundError::new)
    }
}

#[async_trait]
impl Mailer for SmtpMailer {
    async fn send(&self, email: &Email) -> OutboundResult<()> {
        self.deliver(email).await
    }
}

impl fmt::Debug for SmtpMailer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SmtpMailer")
            .field("sender", &self.sender)
            .finish_non_exhaustive()
    }
}

/// The host in a URL. `rest` is the part of the URL after the scheme.
fn host_of(rest: &str) -> &str {
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, at)| at);
    match host.strip_prefix('[').and_then(|v6| v6.split_once(']')) {
        Some((v6, _)) => v6,
        None => host.split(':').next().unwrap_or_default(),
    }
}

fn is_loopback(host: &str) -> bool {
    let address = host.parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}
