//! E-mail by SMTP (RFC 5321) with TLS.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use lettre::message::Mailbox;
use lettre::message::header::ContentType;
use lettre::{AsyncSmtpTransport, AsyncTransport as _, Message, Tokio1Executor};
use tidegate_oauth::{Letter, Mail, OutboundError, OutboundFuture};

use crate::error::{Error, Result};

/// How long the server may take for a step.
const PATIENCE: Duration = Duration::from_secs(20);

/// Sends letters through one SMTP server.
#[derive(Clone)]
pub struct SmtpMail {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    sender: Mailbox,
}

impl SmtpMail {
    /// Sends through the server at `url`, from `sender`.
    ///
    /// `smtps://user:password@host` speaks TLS from the first byte on, `smtp://…?tls=required`
    /// after STARTTLS. Plain `smtp://host:port` is for a server on this machine.
    ///
    /// # Errors
    ///
    /// [`Error::SmtpAddress`], [`Error::SmtpInTheClear`], [`Error::Sender`].
    pub fn new(url: &str, sender: &str) -> Result<Self> {
        let (scheme, rest) = url
            .split_once("://")
            .ok_or_else(|| Error::SmtpAddress("it has no scheme".to_owned()))?;
        let host = host_of(rest);
        if scheme == "smtp" && !rest.contains("tls=required") && !is_here(host) {
            return Err(Error::SmtpInTheClear(host.to_owned()));
        }
        let builder = AsyncSmtpTransport::<Tokio1Executor>::from_url(url)
            .map_err(|error| Error::SmtpAddress(error.to_string()))?;
        let sender = sender
            .parse()
            .map_err(|_| Error::Sender(sender.to_owned()))?;
        Ok(Self {
            transport: builder.timeout(Some(PATIENCE)).build(),
            sender,
        })
    }

    async fn deliver(&self, letter: &Letter) -> Result<(), OutboundError> {
        let to = letter.to.parse().map_err(OutboundError::new)?;
        let message = Message::builder()
            .from(self.sender.clone())
            .to(Mailbox::new(None, to))
            .subject(&letter.subject)
            .header(ContentType::TEXT_PLAIN)
            .body(letter.text.clone())
            .map_err(OutboundError::new)?;
        let sent = self.transport.send(message).await;
        sent.map(|_| ()).map_err(OutboundError::new)
    }
}

impl Mail for SmtpMail {
    fn send<'a>(&'a self, letter: &'a Letter) -> OutboundFuture<'a, ()> {
        Box::pin(self.deliver(letter))
    }
}

impl fmt::Debug for SmtpMail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SmtpMail")
            .field("sender", &self.sender)
            .finish_non_exhaustive()
    }
}

/// The host of what follows the scheme.
fn host_of(rest: &str) -> &str {
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let place = authority.rsplit_once('@').map_or(authority, |(_, at)| at);
    match place.strip_prefix('[').and_then(|v6| v6.split_once(']')) {
        Some((host, _)) => host,
        None => place.split(':').next().unwrap_or_default(),
    }
}

fn is_here(host: &str) -> bool {
    let address = host.parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}
