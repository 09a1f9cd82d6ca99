//! Shows which requests are WebSocket handshakes.

use std::io::{self, Write as _};

use http::header::{CONNECTION, UPGRADE};
use http::{HeaderMap, HeaderValue};

fn main() -> io::Result<()> {
    for (connection, upgrade) in [
        ("Upgrade", "websocket"),
        ("keep-alive, Upgrade", "WebSocket"),
        ("keep-alive", "websocket"),
        ("Upgrade", "h2c"),
    ] {
        let mut headers = HeaderMap::new();
        headers.insert(CONNECTION, HeaderValue::from_static(connection));
        headers.insert(UPGRADE, HeaderValue::from_static(upgrade));
        let asked = tidegate_socket::is_handshake(&headers);
        writeln!(io::stdout(), "{connection} / {upgrade}: {asked}")?;
    }
    Ok(())
}
