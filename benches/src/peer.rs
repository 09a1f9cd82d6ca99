//! The peer: another GraphQL server on the same database, for comparison.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::time::{Duration, Instant};

use crate::Result;
use crate::connection::Connection;
use crate::load::{Caller, Plan};
use crate::shape::Shape;

/// The timeout for the first response of the other server.
const TIMEOUT: Duration = Duration::from_mins(5);

/// The other server.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    /// The middle part of the file names of the server's documents: `SHAPE.NAME.graphql`.
    pub(crate) name: String,
    address: SocketAddr,
    path: String,
}

impl Peer {
    /// Parses `http://host:port/path` or `name=http://host:port/path`.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let wrong =
            || format!("--peer {text}: expected `http://HOST:PORT/PATH`, or `NAME=` before it");
        let (name, url) = match text.split_once('=') {
            Some((name, url)) if !name.contains('/') => (name, url),
            _ => ("postgraphile", text),
        };
        let rest = url.strip_prefix("http://").ok_or_else(wrong)?;
        let (server, path) = rest.split_once('/').unwrap_or((rest, "graphql"));
        let address = server
            .to_socket_addrs()
            .map_err(|_| wrong())?
            .next()
            .ok_or_else(wrong)?;
        Ok(Self {
            name: name.to_owned(),
            address,
            path: format!("/{path}"),
        })
    }

    /// Waits until the other server responds to a query.
    pub(crate) async fn wait(&self) -> Result<()> {
        let body = r#"{"query":"{__typename}"}"#;
        let request = format!(
            "POST {} HTTP/1.1\r\nHost: {}\r\nAccept: application/json\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.path,
            self.address,
            body.len()
        );
        let started = Instant::now();
        loop {
            let answered = async {
                let mut connection = Connection::open(self.address).await?;
                connection.exchange(request.as_bytes()).await
            };
            match answered.await {
                Ok(exchange) if !exchange.failed => return Ok(()),
                _ if started.elapsed() > TIMEOUT => {
                    return Err(format!("{} does not answer at {}", self.name, self.address).into());
                }
                _ => tokio::time::sleep(Duration::from_millis(500)).await,
            }
        }
    }

    /// The requests of a shape; `None` if the shape has no document for the other server.
    pub(crate) fn plan(&self, shape: &Shape) -> Option<Plan> {
        let document = shape.peer.as_deref()?;
        Some(Plan {
            address: self.address,
            path: self.path.clone(),
            accept: "application/json".to_owned(),
            callers: [Caller {
                token: None,
                number: 0,
            }]
            .into(),
            body: shape.document_body(Some(document)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Peer;

    #[test]
    fn an_address_may_have_a_name() -> crate::Result<()> {
        let peer = Peer::parse("http://127.0.0.1:5000/graphql")?;
        assert_eq!((&*peer.name, &*peer.path), ("postgraphile", "/graphql"));
        let peer = Peer::parse("other=http://127.0.0.1:5000")?;
        assert_eq!((&*peer.name, &*peer.path), ("other", "/graphql"));
        for wrong in ["https://127.0.0.1:5000/", "127.0.0.1:5000"] {
            let error = Peer::parse(wrong).unwrap_err().to_string();
            assert!(
                error.contains("expected `http://HOST:PORT/PATH`"),
                "{error}"
            );
        }
        Ok(())
    }
}
