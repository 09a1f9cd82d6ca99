//! A server that gives the same response to every request.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A running server.
pub(crate) struct ReleaseServer {
    pub(crate) url: String,
    requests: Arc<AtomicUsize>,
}

impl ReleaseServer {
    /// Starts a server that responds with these bytes and closes the connection.
    pub(crate) fn responding(response: Vec<u8>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let requests = Arc::new(AtomicUsize::new(0));
        let counter = requests.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let _ = stream.read(&mut [0; 4096]);
                counter.fetch_add(1, Ordering::SeqCst);
                let _ = stream.write_all(&response);
            }
        });
        Self { url, requests }
    }

    /// Starts a server that responds with this archive.
    pub(crate) fn having(archive: &[u8]) -> Self {
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n",
            archive.len()
        );
        Self::responding([head.as_bytes(), archive].concat())
    }

    /// How many requests the server has received.
    pub(crate) fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}
