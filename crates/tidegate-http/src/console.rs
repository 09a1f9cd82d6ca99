//! The files of the browser console, with their entity tags.

use std::borrow::Cow;

use bytes::Bytes;
use http::HeaderValue;

use crate::etag::etag;

/// A file of the console or of the documentation.
pub struct File {
    name: Cow<'static, str>,
    /// The value of `Content-Type`.
    pub media_type: &'static str,
    /// The content of the file.
    pub bytes: Bytes,
    /// The weak entity tag of the file.
    pub etag: HeaderValue,
}

/// The console of a service.
pub struct Console {
    page: File,
    files: Vec<File>,
}

opaque_debug!(File);
opaque_debug!(Console);

impl Console {
    /// The console of a service whose URL has the path `base`, without a trailing slash.
    pub fn new(base: &str) -> Self {
        let page = Bytes::from(tidegate_console::page(base));
        let embedded = |file: &tidegate_console::File| {
            let bytes = Bytes::from_static(file.bytes);
            File::new(file.name, file.media_type, bytes)
        };
        Self {
            page: File::new("index.html", "text/html; charset=utf-8", page),
            files: tidegate_console::FILES.iter().map(embedded).collect(),
        }
    }

    /// The HTML page of the console.
    pub fn page(&self) -> &File {
        &self.page
    }

    /// A file that the console's page loads; `None` if there is no file with this name.
    pub fn file(&self, name: &str) -> Option<&File> {
        self.files.iter().find(|file| file.name == name)
    }
}

impl File {
    /// A file, with an entity tag computed from its content.
    pub(crate) fn new(
        name: impl Into<Cow<'static, str>>,
        media_type: &'static str,
        bytes: Bytes,
    ) -> Self {
        let etag = etag(&bytes);
        Self {
            name: name.into(),
            media_type,
            bytes,
            etag,
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}
