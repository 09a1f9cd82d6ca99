//! Tests of tokens as well-known issuers make them, with the settings for these issuers. The tokens
//! have the headers, claims and algorithms of the issuers; the private keys were not kept.

use serde_json::{Value, json};

use crate::fixture::{Document, IssuerServer, verify};

/// The settings for an issuer of the file, whose keys this server has.
fn settings(vendor: &Value, server: &IssuerServer) -> Value {
    let mut settings = vendor["settings"].clone();
    settings["issuer"] = vendor["issuer"].clone();
    settings["jwks_url"] = json!(format!("{}/keys", server.url));
    settings
}

#[tokio::test]
async fn tokens_of_well_known_issuers_give_users_and_roles() {
    let recorded: Value = serde_json::from_str(include_str!("vendor_tokens.json")).unwrap();
    let server = IssuerServer::start(&[]).await;
    server.set("/keys", Document::Json(json!({"keys": recorded["keys"]})));
    let vendors = recorded["vendors"].as_array().unwrap();
    assert_eq!(vendors.len(), 7);
    for vendor in vendors {
        let issuer = server.issuer(settings(vendor, &server));
        let verified = verify(&issuer, vendor["token"].as_str().unwrap()).await;
        let name = &vendor["name"];
        let verified = verified.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(json!(verified.user), vendor["user"], "{name}");
        assert_eq!(json!(verified.roles), vendor["roles"], "{name}");
        assert_eq!(json!(verified.subject), vendor["claims"]["sub"], "{name}");
        assert_eq!(Value::Object(verified.claims), vendor["claims"], "{name}");
    }
}
