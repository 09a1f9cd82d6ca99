//! The files of the browser console, with their validators.

use bytes::Bytes;
use http::HeaderValue;

use crate::stack::etag;

/// A file as it is sent.
pub(crate) struct File {
    name: &'static str,
    pub(crate) media_type: &'static str,
    pub(crate) bytes: Bytes,
    pub(crate) etag: HeaderValue,
}

/// The console for a service at one URL.
pub(crate) struct Console {
    page: File,
    files: Vec<File>,
}

impl Console {
    /// The console of a service whose URL has the path `base`, without a slash at its end.
    pub(crate) fn new(base: &str) -> Self {
        let page = Bytes::from(tidegate_console::page(base));
        let embedded = |file: &tidegate_console::File| {
            let bytes = Bytes::from_static(file.bytes);
            with_etag(file.name, file.media_type, bytes)
        };
        Self {
            page: with_etag("index.html", "text/html; charset=utf-8", page),
            files: tidegate_console::FILES.iter().map(embedded).collect(),
        }
    }

    pub(crate) fn page(&self) -> &File {
        &self.page
    }

    pub(crate) fn file(&self, name: &str) -> Option<&File> {
        self.files.iter().find(|file| file.name == name)
    }
}

fn with_etag(name: &'static str, media_type: &'static str, bytes: Bytes) -> File {
    let etag = etag(&bytes);
    File {
        name,
        media_type,
        bytes,
        etag,
    }
}
