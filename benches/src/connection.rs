//! A keep-alive connection for load tests, which discards most responses.

use std::net::SocketAddr;

use memchr::memmem;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::Result;

/// A response that has been read completely.
#[derive(Debug)]
pub(crate) struct HttpResponse {
    /// The status.
    pub(crate) status: u16,
    /// The seconds in the header `Retry-After`, if the response has it.
    pub(crate) retry_after: Option<u64>,
    /// The body.
    pub(crate) body: String,
    head: String,
}

impl HttpResponse {
    /// The value of the header `name`, or an empty string if there is no such header. The case of
    /// `name` does not matter.
    pub(crate) fn header(&self, name: &str) -> &str {
        let of_name = |line: &str| {
            let (found, _) = line.split_once(": ")?;
            found.eq_ignore_ascii_case(name).then_some(found.len() + 2)
        };
        let mut lines = self.head.lines();
        lines
            .find_map(|line| of_name(line).map(|from| &line[from..]))
            .unwrap_or_default()
    }
}

/// The result of a request whose response is discarded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exchange {
    /// The size of the body in bytes.
    pub(crate) size: u64,
    /// Whether the response is an error.
    pub(crate) failed: bool,
}

/// A keep-alive connection.
pub(crate) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
    filled: usize,
}

impl Connection {
    /// Opens a connection.
    pub(crate) async fn open(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            buffer: vec![0; 256 << 10],
            filled: 0,
        })
    }

    /// Sends a request and reads its response, which must be small and have the header
    /// `Content-Length`.
    pub(crate) async fn ask(&mut self, request: &[u8]) -> Result<HttpResponse> {
        let head = self.head(request).await?;
        let text = std::str::from_utf8(&self.buffer[..head])?.to_ascii_lowercase();
        let number = |name: &str| {
            let value = text.lines().find_map(|line| line.strip_prefix(name));
            value.and_then(|value| value.trim().parse::<usize>().ok())
        };
        let end = head + number("content-length:").ok_or("an answer without a length")?;
        while self.filled < end {
            self.fill().await?;
        }
        let status = text.get(9..12).and_then(|status| status.parse().ok());
        Ok(HttpResponse {
            status: status.ok_or("an answer without a status")?,
            retry_after: number("retry-after:").map(|seconds| seconds as u64),
            body: std::str::from_utf8(&self.buffer[head..end])?.to_owned(),
            head: std::str::from_utf8(&self.buffer[..head])?.to_owned(),
        })
    }

    /// Sends a request and reads the head of its response. Returns the offset at which the head
    /// ends.
    async fn head(&mut self, request: &[u8]) -> Result<usize> {
        self.stream.write_all(request).await?;
        self.filled = 0;
        loop {
            self.fill().await?;
            if let Some(end) = memmem::find(&self.buffer[..self.filled], b"\r\n\r\n") {
                return Ok(end + 4);
            }
        }
    }

    /// Sends a request, and reads and discards its response.
    pub(crate) async fn exchange(&mut self, request: &[u8]) -> Result<Exchange> {
        let head = self.head(request).await?;
        let text = &self.buffer[..head];
        let found = text.starts_with(b"HTTP/1.1 200");
        let Some(length) = content_length(text)? else {
            let size = self.skip_chunks(head).await?;
            return Ok(Exchange {
                size,
                failed: !found,
            });
        };
        let size = self.skip(head, length).await?;
        // A large response is only partly in the buffer, so its body is not checked for errors.
        let end = head + length as usize;
        let whole = end <= self.buffer.len();
        let failed = !found || whole && is_error(&self.buffer[head..end]);
        Ok(Exchange { size, failed })
    }

    async fn fill(&mut self) -> Result<()> {
        let read = self.stream.read(&mut self.buffer[self.filled..]).await?;
        if read == 0 {
            return Err("the server closed the connection".into());
        }
        self.filled += read;
        Ok(())
    }

    async fn skip(&mut self, head: usize, length: u64) -> Result<u64> {
        let end = head as u64 + length;
        while (self.filled as u64) < end && end <= self.buffer.len() as u64 {
            self.fill().await?;
        }
        let mut left = end.saturating_sub(self.filled as u64);
        while left > 0 {
            let read = self.stream.read(&mut self.buffer).await?;
            if read == 0 {
                return Err("the server closed the connection".into());
            }
            left -= read as u64;
        }
        Ok(length)
    }

    /// Reads and discards a chunked body (RFC 9112, section 7.1). Returns its size in bytes. `head`
    /// is the offset in the buffer at which the body begins.
    async fn skip_chunks(&mut self, head: usize) -> Result<u64> {
        let mut size = 0;
        let mut at = head;
        loop {
            let line = loop {
                if let Some(end) = memmem::find(&self.buffer[at..self.filled], b"\r\n") {
                    break at + end;
                }
                self.compact(&mut at);
                self.fill().await?;
            };
            let digits = std::str::from_utf8(&self.buffer[at..line])?;
            let chunk = usize::from_str_radix(digits.trim(), 16)?;
            at = line + 2;
            let mut left = chunk + 2;
            while self.filled - at < left {
                left -= self.filled - at;
                self.filled = 0;
                at = 0;
                self.fill().await?;
            }
            at += left;
            if chunk == 0 {
                return Ok(size);
            }
            size += chunk as u64;
        }
    }

    fn compact(&mut self, at: &mut usize) {
        self.buffer.copy_within(*at..self.filled, 0);
        self.filled -= *at;
        *at = 0;
    }
}

fn content_length(head: &[u8]) -> Result<Option<u64>> {
    // The service writes header names in lower case, other servers in title case.
    for name in [b"\r\ncontent-length: ", b"\r\nContent-Length: "] {
        if let Some(at) = memmem::find(head, name) {
            let digits = head[at + name.len()..].split(|byte| *byte == b'\r').next();
            return Ok(Some(
                std::str::from_utf8(digits.unwrap_or_default())?.parse()?,
            ));
        }
    }
    Ok(None)
}

/// Whether the body of a GraphQL or JSON-RPC response with status 200 reports an error. Only its
/// beginning and its end are searched.
fn is_error(body: &[u8]) -> bool {
    const SHOWN: usize = 2048;
    let end = &body[body.len().saturating_sub(SHOWN)..];
    let begin = &body[..body.len().min(SHOWN)];
    [end, begin].iter().any(|text| {
        memmem::find(text, b"\"errors\":[").is_some()
            || memmem::find(text, b"\"error\":{").is_some()
    })
}

#[cfg(test)]
mod tests {
    use super::{content_length, is_error};

    #[test]
    fn the_length_is_found_in_either_case() -> crate::Result<()> {
        let lower = b"HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\n";
        let title = b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n";
        assert_eq!(content_length(lower)?, Some(12));
        assert_eq!(content_length(title)?, Some(7));
        assert_eq!(content_length(b"HTTP/1.1 200 OK\r\n\r\n")?, None);
        Ok(())
    }

    #[test]
    fn errors_in_the_body_are_seen() {
        assert!(is_error(
            br#"{"data":{"a":null},"errors":[{"message":"x"}]}"#
        ));
        assert!(is_error(
            br#"{"jsonrpc":"2.0","error":{"code":-32603},"id":1}"#
        ));
        assert!(!is_error(br#"{"data":{"a":{"id":"1"}}}"#));
        let long = format!("{{\"data\":\"{}\",\"errors\":[]}}", "x".repeat(100_000));
        assert!(is_error(long.as_bytes()));
    }
}
