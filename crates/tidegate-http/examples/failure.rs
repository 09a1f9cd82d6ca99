//! Prints an error as REST, OAuth and GraphQL endpoints respond with it.

use std::io::{self, Write as _};

use tidegate_http::ApiError;
use tidegate_http::error::JSON;
use tidegate_http::report::Context;

fn main() -> io::Result<()> {
    let failure = || ApiError::not_found("there is no such table");
    let context = Context::default();
    for (protocol, response) in [
        ("REST", failure().into_rest(&context)),
        ("OAuth", failure().into_oauth(false, &context)),
        ("GraphQL", failure().into_graphql(JSON, &context)),
    ] {
        let (head, mut body) = response.into_parts();
        let (text, _) = body.content_mut().take().into_bytes();
        let text = String::from_utf8_lossy(&text);
        writeln!(io::stdout(), "{protocol}: {} {text}", head.status)?;
    }
    Ok(())
}
