//! Connects and logs in (PostgreSQL, "Start-up" and "SASL Authentication").

use postgres_protocol::authentication::sasl::{self, ChannelBinding, ScramSha256};
use postgres_protocol::message::frontend;
use tidegate_sql::{DatabaseError, RoleName};

use crate::body;
use crate::body::IN_HOT_STANDBY;
use crate::cancel::Canceller;
use crate::channel::{Channel, ReadError};
use crate::config::Config;
use crate::connect_error::ConnectError;
use crate::server_error::ServerError;
use crate::startup::StartupParameters;
use crate::stream::Stream;
use crate::tag;
use crate::terminator::Backend;

/// The longest startup packet that PostgreSQL accepts (`MAX_STARTUP_PACKET_LENGTH`).
const MAX_STARTUP_PACKET: usize = 10_000;

/// A connection that has logged in.
#[derive(Debug)]
pub struct LoggedIn {
    /// The connection.
    pub channel: Channel,
    /// Cancels the statement that runs on the connection.
    pub canceller: Canceller,
    /// Whether the server is in recovery. Such a server refuses writes.
    pub in_recovery: bool,
}

/// Connects and logs in, within [`Config::connect_timeout`]. If there are several targets, the
/// first target that accepts the login is used.
///
/// # Errors
///
/// A [`ConnectError`]; its [`ConnectError::fault`] is the class of the error.
pub async fn log_in(
    config: &Config,
    database: &str,
    role: &str,
    password: &str,
    startup: &StartupParameters,
) -> Result<LoggedIn, ConnectError> {
    // Servers before version 14 do not report whether they are in recovery.
    let is_old = (1..140_000).contains(&startup.server_version);
    let attempt = async |target| {
        let mut channel = Channel::new(Stream::connect(config, target).await?);
        start(&mut channel, database, role, startup)?;
        authenticate(&mut channel, password).await?;
        let ready = wait_until_ready(&mut channel, role).await;
        let (backend, in_recovery) = ready.map_err(ConnectError::after_authentication)?;
        let in_recovery = match in_recovery {
            Some(in_recovery) => in_recovery,
            None if config.requires_primary || is_old => ask_recovery(&mut channel).await?,
            None => false,
        };
        if in_recovery && config.requires_primary {
            return Err(ConnectError::InRecovery);
        }
        Ok(LoggedIn {
            channel,
            canceller: Canceller::new(config, target, backend),
            in_recovery,
        })
    };
    config.first_usable(attempt).await
}

fn start(
    channel: &mut Channel,
    database: &str,
    role: &str,
    startup: &StartupParameters,
) -> Result<(), ConnectError> {
    let login = [("user", role), ("database", database)];
    let parameters = login.into_iter().chain(startup.settings());
    let before = channel.outbound.len();
    frontend::startup_message(parameters, &mut channel.outbound)
        .map_err(|_| ConnectError::Protocol("a name or a setting holds a zero byte".to_owned()))?;
    if channel.outbound.len() - before > MAX_STARTUP_PACKET {
        return Err(too_long(startup));
    }
    Ok(())
}

/// The error for a startup packet that is too long. Such a packet is not sent: PostgreSQL would
/// close the connection without an error, which would look like an outage.
fn too_long(startup: &StartupParameters) -> ConnectError {
    let settings = startup.settings();
    let longest = settings.iter().max_by_key(|(_, value)| value.len());
    let name = longest.map_or("a setting", |(name, _)| name);
    ConnectError::InvalidSettings(Box::new(DatabaseError {
        sqlstate: "22023".to_owned(),
        message: format!("\"{name}\" is too long for a session to begin with"),
        ..DatabaseError::default()
    }))
}

async fn authenticate(channel: &mut Channel, password: &str) -> Result<(), ConnectError> {
    loop {
        let body = expect(channel, tag::AUTHENTICATION).await?;
        let (code, rest) = match body.split_first_chunk::<4>() {
            Some((code, rest)) => (u32::from_be_bytes(*code), rest.to_vec()),
            None => {
                return Err(ConnectError::Protocol(
                    "an empty request to log in".to_owned(),
                ));
            }
        };
        match code {
            0 => return Ok(()),
            3 if channel.stream().is_encrypted_or_local() => {
                frontend::password_message(password.as_bytes(), &mut channel.outbound)
                    .map_err(|error| ConnectError::Protocol(error.to_string()))?;
            }
            3 => return Err(ConnectError::Unsupported("a password in the clear")),
            5 => return Err(ConnectError::Md5),
            10 => authenticate_scram(channel, password, &rest).await?,
            7..=9 => return Err(ConnectError::Unsupported("GSSAPI or SSPI")),
            _ => return Err(ConnectError::Unsupported("an unknown way to log in")),
        }
    }
}

/// Authenticates with SCRAM-SHA-256 (RFC 7677). With TLS, the authentication is bound to the TLS
/// channel if the server supports channel binding.
async fn authenticate_scram(
    channel: &mut Channel,
    password: &str,
    mechanisms: &[u8],
) -> Result<(), ConnectError> {
    let offers = |name: &str| {
        mechanisms
            .split(|byte| *byte == 0)
            .any(|m| m == name.as_bytes())
    };
    let (mechanism, binding) = match channel.stream().server_end_point() {
        Some(server_end_point) if offers(sasl::SCRAM_SHA_256_PLUS) => (
            sasl::SCRAM_SHA_256_PLUS,
            ChannelBinding::tls_server_end_point(server_end_point),
        ),
        // The server does not offer channel binding. With `unrequested`, the first message states
        // that the client supports it. So if an attacker has removed channel binding from the
        // server's list of mechanisms, the server notices.
        Some(_) => (sasl::SCRAM_SHA_256, ChannelBinding::unrequested()),
        None => (sasl::SCRAM_SHA_256, ChannelBinding::unsupported()),
    };
    if !offers(mechanism) {
        return Err(ConnectError::Unsupported(
            "a SASL mechanism other than SCRAM-SHA-256",
        ));
    }
    let wrong = |error: std::io::Error| ConnectError::Protocol(error.to_string());
    let mut scram = ScramSha256::new(password.as_bytes(), binding);
    frontend::sasl_initial_response(mechanism, scram.message(), &mut channel.outbound)
        .map_err(wrong)?;
    scram.update(step(channel, 11).await?).map_err(wrong)?;
    frontend::sasl_response(scram.message(), &mut channel.outbound).map_err(wrong)?;
    // This step verifies the server's proof that it knows the password. Without the proof, the
    // server could be an impostor.
    scram.finish(step(channel, 12).await?).map_err(wrong)
}

/// Waits for the next authentication request, which must have this code, and returns its data.
async fn step(channel: &mut Channel, code: u32) -> Result<&[u8], ConnectError> {
    let body = expect(channel, tag::AUTHENTICATION).await?;
    body.strip_prefix(&code.to_be_bytes())
        .ok_or_else(|| ConnectError::Protocol("a step of SCRAM is missing".to_owned()))
}

/// Reads messages up to the first `ReadyForQuery`. Returns the backend, and whether the server is
/// in recovery. The second value is `None` if the server does not report whether it is in recovery.
/// Servers before version 14 do not.
async fn wait_until_ready(
    channel: &mut Channel,
    role: &str,
) -> Result<(Backend, Option<bool>), ConnectError> {
    let mut backend = Backend {
        role: RoleName::new(role),
        process_id: 0,
        secret_key: 0,
    };
    let mut in_recovery = None;
    loop {
        let tag = receive(channel).await?;
        match (tag, channel.inbound.body()) {
            (tag::READY_FOR_QUERY, _) => return Ok((backend, in_recovery)),
            (tag::BACKEND_KEY_DATA, body) => {
                if let Some((&[a, b, c, d, e, f, g, h], [])) = body.split_first_chunk::<8>() {
                    backend.process_id = i32::from_be_bytes([a, b, c, d]);
                    backend.secret_key = i32::from_be_bytes([e, f, g, h]);
                }
            }
            (tag::PARAMETER_STATUS, body) => {
                if let Some((IN_HOT_STANDBY, value)) = body::parameter_status(body) {
                    in_recovery = Some(value == "on");
                }
            }
            (tag::NEGOTIATE_PROTOCOL_VERSION, _) => {}
            (tag, _) => return Err(unexpected(tag)),
        }
    }
}

/// Queries whether the server is in recovery, for servers that do not report it.
async fn ask_recovery(channel: &mut Channel) -> Result<bool, ConnectError> {
    frontend::query(
        "SELECT pg_catalog.pg_is_in_recovery()",
        &mut channel.outbound,
    )
    .map_err(|error| ConnectError::Protocol(error.to_string()))?;
    let mut in_recovery = false;
    loop {
        match receive(channel).await? {
            tag::READY_FOR_QUERY => return Ok(in_recovery),
            tag::DATA_ROW => in_recovery = channel.inbound.body().last() == Some(&b't'),
            _ => {}
        }
    }
}

async fn expect(channel: &mut Channel, wanted: u8) -> Result<&[u8], ConnectError> {
    let tag = receive(channel).await?;
    if tag == wanted {
        Ok(channel.inbound.body())
    } else {
        Err(unexpected(tag))
    }
}

/// Waits for the next message that is not a notice, and returns its tag. Turns an `ErrorResponse`
/// into an error.
async fn receive(channel: &mut Channel) -> Result<u8, ConnectError> {
    loop {
        match channel.next(None).await {
            Ok(tag::NOTICE_RESPONSE) => {}
            Ok(tag::ERROR_RESPONSE) => {
                let error = ServerError::read(channel.inbound.body());
                return Err(ConnectError::refused(error.rejection, &error.routine));
            }
            Ok(tag) => return Ok(tag),
            Err(ReadError::Io(error)) => return Err(ConnectError::Unreachable(error)),
            // This cannot happen: the whole login has a deadline, but a single read has none.
            Err(ReadError::Deadline) => {
                return Err(ConnectError::TimedOut(std::time::Duration::ZERO));
            }
        }
    }
}

fn unexpected(tag: u8) -> ConnectError {
    ConnectError::Protocol(format!(
        "an unexpected message `{}`",
        char::from(tag).escape_default()
    ))
}
