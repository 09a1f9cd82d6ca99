//! Prints the page for a path that does not exist.

use std::io::{self, Write as _};

use tidegate_http::ApiError;
use tidegate_http::report::Context;
use tidegate_pages::Site;

fn main() -> io::Result<()> {
    let failure = ApiError::not_found("there is no such path");
    let site = Site {
        issuer: "https://id.example",
        has_console: true,
    };
    let mut response = tidegate_pages::failure(&failure, site, &Context::default());
    let (html, _) = response.body_mut().content_mut().take().into_bytes();
    io::stdout().write_all(&html)
}
