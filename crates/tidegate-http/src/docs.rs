//! The pages of the documentation, with their entity tags.

use std::borrow::Cow;
use std::sync::OnceLock;

use bytes::Bytes;
use serde_json::Value;
use tidegate_docs::Page;

use crate::console::File;

/// The documentation of a service. Its pages are rendered on first use.
pub struct Docs {
    base: String,
    files: OnceLock<Vec<File>>,
}

opaque_debug!(Docs);

impl Docs {
    /// The documentation of a service whose URL has the path `base`, without a slash at its end.
    pub fn new(base: &str) -> Self {
        Self {
            base: base.to_owned(),
            files: OnceLock::new(),
        }
    }

    /// The page or file at a path below `/docs/`; `None` if the path does not exist. `openapi`
    /// returns the OpenAPI description of the service. Only the first call of this function calls
    /// `openapi`.
    pub fn file(&self, path: &str, openapi: impl FnOnce() -> Bytes) -> Option<&File> {
        let files = self.files.get_or_init(|| {
            let description = serde_json::from_slice(&openapi()).unwrap_or(Value::Null);
            let pages = tidegate_docs::pages(&self.base, &description);
            pages.into_iter().map(file_of).collect()
        });
        files.iter().find(|file| file.name() == path)
    }

    /// The page for a path below `/docs/` that does not exist.
    pub fn not_found(&self) -> File {
        let page = tidegate_docs::not_found(&self.base);
        File::new("", "text/html; charset=utf-8", page.into())
    }

    /// The list of chapters for language models, `/llms.txt`.
    pub fn llms() -> File {
        let list = Bytes::from_static(tidegate_docs::LLMS.as_bytes());
        File::new("llms.txt", "text/plain; charset=utf-8", list)
    }
}

fn file_of(page: Page) -> File {
    let bytes = match page.bytes {
        Cow::Borrowed(bytes) => Bytes::from_static(bytes),
        Cow::Owned(bytes) => Bytes::from(bytes),
    };
    File::new(page.path, page.media_type, bytes)
}
