//! Raw WebSocket frames (RFC 6455, section 5) over TCP.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::Result;

/// A pong without content, masked with zeros.
pub(crate) const PONG: [u8; 6] = [0x8a, 0x80, 0, 0, 0, 0];

/// The opcode of the first frame, and the bounds of its payload; `None` if the frame is incomplete.
pub(crate) fn frame(bytes: &[u8]) -> Option<(u8, usize, usize)> {
    let (start, length) = match *bytes.get(1)? {
        126 => (
            4,
            u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?).into(),
        ),
        127 => (10, u64::from_be_bytes(bytes.get(2..10)?.try_into().ok()?)),
        short => (2, u64::from(short)),
    };
    let end = start + usize::try_from(length).ok()?;
    (bytes.len() >= end).then_some((bytes[0] & 0x0f, start, end))
}

/// Opens a socket for the user of a token.
pub(crate) async fn open(address: SocketAddr, token: &str) -> Result<TcpStream> {
    let mut stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let request = format!(
        "GET /api/v4/events HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
         Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await?;
    let mut response = Vec::new();
    // The loop reads only the head of the response: the server sends nothing more before the
    // client's first message.
    while !response.ends_with(b"\r\n\r\n") {
        if stream.read_buf(&mut response).await? == 0 {
            break;
        }
    }
    if response.starts_with(b"HTTP/1.1 101") {
        Ok(stream)
    } else {
        Err(String::from_utf8_lossy(&response).into())
    }
}

/// Frames with subscriptions, masked with zeros.
pub(crate) fn messages(queries: &[String]) -> Vec<u8> {
    let mut out = Vec::new();
    for (id, query) in queries.iter().enumerate() {
        let query = serde_json::Value::from(query.as_str());
        let text =
            format!(r#"{{"type":"subscribe","id":"{id}","schema":"public","query":{query}}}"#);
        out.push(0x81);
        match u8::try_from(text.len()) {
            Ok(short) if short < 126 => out.push(0x80 | short),
            _ => {
                out.push(0x80 | 0x7e);
                out.extend_from_slice(&(text.len() as u16).to_be_bytes());
            }
        }
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(text.as_bytes());
    }
    out
}
