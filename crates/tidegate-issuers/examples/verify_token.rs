//! Verifies a token from standard input: `verify_token ISSUER AUDIENCE < token` prints its claims.

use std::io::{Read as _, Write as _};
use std::time::SystemTime;

use tidegate_issuers::{Issuer, IssuerSettings, Network};

#[expect(clippy::disallowed_methods, reason = "the program is its own clock")]
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(issuer), Some(audience)) = (arguments.next(), arguments.next()) else {
        return Err("usage: verify_token ISSUER AUDIENCE < token".into());
    };
    let settings = serde_json::json!({"issuer": issuer, "audience": [audience]});
    let settings: IssuerSettings = serde_json::from_value(settings)?;
    let issuer = Issuer::new(settings, Network::AllowPrivate)?;
    let mut token = String::new();
    std::io::stdin().read_to_string(&mut token)?;
    let verified = issuer.verify(token.trim(), SystemTime::now()).await?;
    let claims = serde_json::to_string_pretty(&verified.claims)?;
    writeln!(std::io::stdout(), "{claims}")?;
    Ok(())
}
