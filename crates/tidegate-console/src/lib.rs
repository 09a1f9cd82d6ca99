#![doc = include_str!("../README.md")]

/// The placeholder in the HTML. [`page`] replaces it with the path prefix of the service.
const BASE: &str = "{{base}}";

const PAGE: &str = include_str!("../dist/index.html");

const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";

/// A file that the page loads or links to.
#[derive(Clone, Copy, Debug)]
pub struct File {
    /// The name of the file, without a folder.
    pub name: &'static str,
    /// The value of `Content-Type`.
    pub media_type: &'static str,
    /// The content.
    pub bytes: &'static [u8],
}

/// All files except the page.
pub const FILES: [File; 5] = [
    File {
        name: "console.js",
        media_type: SCRIPT,
        bytes: include_bytes!("../dist/console.js"),
    },
    File {
        name: "console.css",
        media_type: STYLE,
        bytes: include_bytes!("../dist/console.css"),
    },
    File {
        name: "editor.js",
        media_type: SCRIPT,
        bytes: include_bytes!("../dist/editor.js"),
    },
    File {
        name: "chart.js",
        media_type: SCRIPT,
        bytes: include_bytes!("../dist/chart.js"),
    },
    File {
        name: "LICENSES.txt",
        media_type: TEXT,
        bytes: include_bytes!("../dist/LICENSES.txt"),
    },
];

/// The HTML page of the console. `base` is the path prefix of the service, such as `/db`, and may
/// be empty.
pub fn page(base: &str) -> String {
    PAGE.replace(BASE, base)
}
