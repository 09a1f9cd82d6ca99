//! Finds a free port on loopback.

use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;

use crate::error::{Error, IoContext, Result};
use crate::random;

/// The first of the [`COUNT`] ports from which one is chosen. All of them are below the ephemeral
/// ports of Linux and macOS, so that no outgoing connection gets the chosen port while PostgreSQL
/// restarts.
const FIRST: u16 = 15_000;
const COUNT: u16 = 17_000;
const ATTEMPTS: usize = 64;

/// A free port. It is chosen at random, so that clusters that start at the same time rarely choose
/// the same port. If 64 attempts find none, the operating system chooses.
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

/// Fails if `port` is in use.
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
