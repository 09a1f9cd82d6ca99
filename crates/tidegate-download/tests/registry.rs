//! A registry that answers every request alike, and an archive as the registry has them.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest as _, Sha512};

/// A registry.
pub(crate) struct Registry {
    pub(crate) url: String,
    requests: Arc<AtomicUsize>,
}

impl Registry {
    /// Answers with these bytes and closes the connection.
    pub(crate) fn answering(answer: Vec<u8>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let requests = Arc::new(AtomicUsize::new(0));
        let counter = requests.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let _ = stream.read(&mut [0; 4096]);
                counter.fetch_add(1, Ordering::SeqCst);
                let _ = stream.write_all(&answer);
            }
        });
        Self { url, requests }
    }

    /// Answers with this archive.
    pub(crate) fn having(archive: &[u8]) -> Self {
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n",
            archive.len()
        );
        Self::answering([head.as_bytes(), archive].concat())
    }

    /// How many requests there were.
    pub(crate) fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

/// An archive with these files (path, mode, text).
pub(crate) fn archive(files: &[(&str, u32, &str)]) -> Vec<u8> {
    let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (path, mode, text) in files {
        let mut header = tar::Header::new_gnu();
        // `set_path` would refuse what an attacker writes.
        header.as_gnu_mut().unwrap().name[..path.len()].copy_from_slice(path.as_bytes());
        header.set_size(text.len() as u64);
        header.set_mode(*mode);
        header.set_cksum();
        tar.append(&header, text.as_bytes()).unwrap();
    }
    tar.into_inner().unwrap().finish().unwrap()
}

/// The checksum in the form of the registry.
pub(crate) fn sha512(archive: &[u8]) -> String {
    STANDARD.encode(Sha512::digest(archive))
}
