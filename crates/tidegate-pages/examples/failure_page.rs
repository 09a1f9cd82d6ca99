//! Prints the page for a path that does not exist.

use std::io::{self, Write as _};

use tidegate_http::ApiError;
use tidegate_http::report::Context;

fn main() -> io::Result<()> {
    let failure = ApiError::not_found("there is no such path");
    let mut response = tidegate_pages::failure(&failure, "https://id.example", &Context::default());
    let (html, _) = response.body_mut().content_mut().take().into_bytes();
    io::stdout().write_all(&html)
}
