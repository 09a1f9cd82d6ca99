//! A port on loopback that is free now.

use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;

use crate::error::{Error, IoContext, Result};
use crate::random;

/// Below the range from which Linux and macOS take ports for outgoing connections: while
/// PostgreSQL restarts, a client that knocks on its port must never be given that very port.
const FIRST: u16 = 15_000;
const COUNT: u16 = 17_000;
const ATTEMPTS: usize = 64;

/// A free port, at random, so that clusters that start side by side rarely meet.
pub(crate) fn free() -> Result<u16> {
    for _ in 0..ATTEMPTS {
        let port = FIRST + u16::from_be_bytes(random::bytes()?) % COUNT;
        if is_free(port) {
            return Ok(port);
        }
    }
    let given = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|it| it.local_addr());
    Ok(given
        .context("bind a port on", Path::new("127.0.0.1"))?
        .port())
}

/// Fails with one clear message when something listens on `port`.
pub(crate) fn require_free(port: u16) -> Result<()> {
    if is_free(port) {
        Ok(())
    } else {
        Err(Error::PortTaken { port })
    }
}

fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}
