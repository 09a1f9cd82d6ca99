//! Prints the URL to which a browser is sent to sign in with an OpenID Connect provider.
//!
//! `cargo run -p tidegate-oidc --example sign_in_url -- https://accounts.google.com CLIENT_ID`
#![expect(clippy::print_stdout, reason = "an example prints its result")]

use tidegate_identity::{IdentityProviders as _, LoginState, Secret, Timestamp};
use tidegate_oidc::{ProviderSettings, Providers};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(issuer), Some(client_id)) = (arguments.next(), arguments.next()) else {
        return Err("usage: sign_in_url ISSUER CLIENT_ID".into());
    };
    let settings = ProviderSettings::openid("Provider", &issuer, &client_id, "unused here");
    let providers = Providers::new(vec![settings])?;
    let login = LoginState {
        redirect_uri: "http://127.0.0.1:8080/signin/openid/callback".to_owned(),
        state: "state".to_owned(),
        nonce: "nonce".to_owned(),
        verifier: Secret::new("a code verifier of forty-three characters or more"),
        now: Timestamp::from_seconds(1_800_000_000),
    };
    let url = providers.begin("openid", &login).await?;
    println!("{}", url.ok_or("unknown provider")?);
    Ok(())
}
