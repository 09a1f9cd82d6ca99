//! A proxy for PostgreSQL that records the messages sent to it.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// The tags of the messages sent to PostgreSQL, with a `|` for each response.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<String>>);

impl Log {
    /// Returns and clears the record.
    pub(super) fn take(&self) -> String {
        let mut log = self.0.lock().unwrap();
        let noted = log.trim_matches('|').to_owned();
        log.clear();
        noted
    }

    fn answered(&self) {
        let mut log = self.0.lock().unwrap();
        if !log.ends_with('|') {
            log.push('|');
        }
    }

    fn sent(&self, tag: u8) {
        self.0.lock().unwrap().push(char::from(tag));
    }
}

/// Starts a proxy for `port`; returns its own port and its record.
pub(super) async fn start(port: u16) -> (u16, Log) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let own = listener.local_addr().unwrap().port();
    let log = Log::default();
    tokio::spawn({
        let log = log.clone();
        async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
                tokio::spawn(serve(client, server, log.clone()));
            }
        }
    });
    (own, log)
}

async fn serve(client: TcpStream, server: TcpStream, log: Log) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let responses = log.clone();
    tokio::spawn(async move {
        let mut buffer = vec![0; 64 << 10];
        while let Ok(read @ 1..) = from_server.read(&mut buffer).await {
            responses.answered();
            if to_client.write_all(&buffer[..read]).await.is_err() {
                return;
            }
        }
    });
    let (mut buffer, mut pending, mut started) = (vec![0; 64 << 10], Vec::new(), false);
    while let Ok(read @ 1..) = from_client.read(&mut buffer).await {
        pending.extend_from_slice(&buffer[..read]);
        note(&mut pending, &mut started, &log);
        if to_server.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}

/// Removes complete messages from the front of `pending` and records them.
fn note(pending: &mut Vec<u8>, started: &mut bool, log: &Log) {
    loop {
        let tagged = usize::from(*started);
        let Some(&[a, b, c, d]) = pending.get(tagged..).and_then(<[u8]>::first_chunk::<4>) else {
            return;
        };
        let length = tagged + u32::from_be_bytes([a, b, c, d]) as usize;
        if pending.len() < length {
            return;
        }
        if *started {
            log.sent(pending[0]);
        } else {
            // A startup message has version 3.0. A request for TLS, which may precede it, has
            // another number.
            *started = pending[4..8] == [0, 3, 0, 0];
        }
        pending.drain(..length);
    }
}
