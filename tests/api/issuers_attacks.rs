//! Attacks with tokens of external issuers, and by their key servers.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::Method;
use serde_json::{Value, json};

use crate::issuer_fixture::{Document, IssuerServer, Signer};
use crate::issuers::{ISSUERS, World, now, world};

/// Adds a second tenant `other`, and returns its owner's token.
pub(crate) async fn second_tenant(world: &World) -> String {
    let root = world.operator.root("postgres").await;
    root.batch_execute("CREATE DATABASE other").await.unwrap();
    let adopt = ["tenant", "adopt", "other", "--password-file", "-"];
    world.operator.succeeds(&adopt, "owner-password\n");
    let client = [
        "client",
        "create",
        "other",
        "App",
        "--id",
        "other-app",
        "--public",
    ];
    let uri = ["--redirect-uri", "http://127.0.0.1:5000/callback"];
    world.operator.succeeds(&[&client[..], &uri].concat(), "");
    let body = json!({"grant_type": "password", "username": "other", "database": "other",
        "password": "owner-password", "client_id": "other-app"});
    let (_, response) = world.node.post("/api/v4/oauth", None, body).await;
    response["access_token"].as_str().unwrap().to_owned()
}

/// The status and text of a statement with a token and a database in the header.
async fn named(world: &World, token: &str, database: &str) -> (u16, String) {
    let url = format!("{}/api/v4/sql", world.node.url);
    let request = world.node.client.post(url).bearer_auth(token);
    let request = request.header("Tidegate-Database", database);
    let body = json!({"q": "select current_user::text as name"});
    let response = request.json(&body).send().await.unwrap();
    (response.status().as_u16(), response.text().await.unwrap())
}

#[tokio::test]
async fn forged_tokens_are_refused() {
    let world = world().await;
    world.user("ann", json!({})).await;
    world.accept(json!({"user_claim": "sub"})).await;
    let claims = world.claims(json!({"sub": "ann"}));
    assert_eq!(
        world.role(&world.signer.token(&claims)).await.unwrap(),
        "shop/ann"
    );
    let attacker = Signer::new("a");
    let unsigned = |header: Value| {
        let token = world.signer.sign(&header, &claims);
        format!("{}.", token.rsplit_once('.').unwrap().0)
    };
    let with = |member: &str, value: Value| {
        let mut header = json!({"alg": "ES256", "kid": "a"});
        header[member] = value;
        attacker.sign(&header, &claims)
    };
    // HMAC with the public key as its secret.
    let confused = {
        let text = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!(
            "{}.{}",
            text(&json!({"alg": "HS256", "kid": "a"})),
            text(&claims)
        );
        let public = world.signer.jwk().to_string();
        let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, public.as_bytes());
        let tag = ring::hmac::sign(&key, signed.as_bytes());
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(tag.as_ref()))
    };
    let elsewhere = format!("{}/attacker", world.server.url);
    let mut tokens = vec![
        unsigned(json!({"alg": "none"})),
        unsigned(json!({"alg": "none", "kid": "a"})),
        unsigned(json!({"alg": "ES256", "kid": "a"})),
        confused,
        with("kid", json!("b")),
        with("kid", json!("../../dev/null")),
        with("jwk", attacker.jwk()),
        with("jku", json!(elsewhere)),
        with("x5u", json!(elsewhere)),
        format!("{}.{}", world.signer.token(&claims), "a".repeat(16_000)),
    ];
    for (member, value) in [
        ("aud", json!("another")),
        ("aud", Value::Null),
        ("exp", json!(now() - 61)),
        ("exp", Value::Null),
        ("nbf", json!(now() + 100)),
        ("iat", json!(now() + 100)),
        ("iss", json!(format!("{}/", world.server.url))),
        ("iss", json!("http://api.localhost")),
        ("sub", json!("ann\0")),
        ("sub", Value::Null),
    ] {
        let mut changed = claims.clone();
        changed[member] = value;
        tokens.push(world.signer.token(&changed));
    }
    for token in tokens {
        let (status, text) = world.role(&token).await.unwrap_err();
        assert_eq!(status, 401, "{text}");
    }
    assert!(
        world.server.requests() <= 4,
        "no address of a header was requested"
    );
    // The times of a token are checked at each use.
    let short = world.token(json!({"sub": "ann", "exp": now() - 58}));
    assert_eq!(world.role(&short).await.unwrap(), "shop/ann");
    crate::service::eventually("it expires", async || world.role(&short).await.is_err()).await;
}

#[tokio::test]
async fn the_error_says_why_a_token_reaches_no_issuer() {
    let world = world().await;
    world.accept(json!({"default_role": "staff"})).await;
    let signed = |payload: &str| {
        let header = json!({"alg": "ES256", "kid": "a"}).to_string();
        let text = |text: &str| URL_SAFE_NO_PAD.encode(text);
        format!("{}.{}.{}", text(&header), text(payload), text("signature"))
    };
    let of = |issuer: &str| world.token(json!({"iss": issuer}));
    let deep = format!("{{\"iss\":{}1{}}}", "[".repeat(200), "]".repeat(200));
    let unread = "its payload cannot be read as a JSON object";
    let unknown = "its issuer is not one that the database accepts";
    for (token, reason) in [
        (of(&format!("{}/", world.server.url)), unknown),
        (of("https://id.example.com"), unknown),
        (
            of("http://api.localhost"),
            "not an access token of this service",
        ),
        (world.token(json!({"iss": 7})), "the claim `iss`"),
        (signed("[]"), unread),
        (signed(&deep), unread),
        (signed("{\"iss\":\"a\",\"n\":1e999}"), unread),
    ] {
        let (status, text) = world.role(&token).await.unwrap_err();
        assert!(status == 401 && text.contains(reason), "{status} {text}");
    }
    let token = world.token(json!({}));
    world.titles(&token).await;
    let path = format!("{ISSUERS}/id");
    world.rest(Method::DELETE, &path, json!({})).await;
    let (status, text) = world.role(&token).await.unwrap_err();
    assert!(status == 401 && text.contains(unknown), "{status} {text}");
}

#[tokio::test]
async fn names_in_tokens_reach_no_role_but_users_and_groups_of_the_tenant() {
    let world = world().await;
    world.user("ann", json!({"user_group": "staff"})).await;
    world
        .accept(json!({"user_claim": "name", "role_claim": "roles"}))
        .await;
    for name in [
        "postgres",
        "shop",
        "shop/ann",
        "shop/$users",
        "shop/$authenticator",
        "$authenticator",
        "shop/group/staff",
        "group/staff",
        "../group/staff",
        "ANN",
        "ann ",
        "ann\"",
        "ann'; drop table invoices; --",
        "a,ann",
        "pg_read_all_data",
        "",
    ] {
        for claims in [
            json!({"name": name}),
            json!({"roles": name}),
            json!({"roles": [name]}),
        ] {
            let refused = world.role(&world.token(claims.clone())).await;
            let (status, text) = refused.unwrap_err();
            assert!(
                status == 403 || name.is_empty() && status == 401,
                "{claims} {status} {text}"
            );
        }
    }
    for claims in [
        json!({"roles": ["ann", "a\0"]}),
        json!({"name": {"a": 1}}),
        json!({"roles": 7}),
    ] {
        let (status, _) = world.role(&world.token(claims)).await.unwrap_err();
        assert_eq!(status, 401);
    }
    assert_eq!(
        world
            .role(&world.token(json!({"roles": "ann"})))
            .await
            .unwrap(),
        "shop/ann"
    );
}

#[tokio::test]
async fn a_token_of_one_tenant_is_none_of_another() {
    let world = world().await;
    let other = second_tenant(&world).await;
    world.user("ann", json!({})).await;
    world.accept(json!({"user_claim": "sub"})).await;
    let token = world.token(json!({"sub": "ann"}));
    assert_eq!(world.role(&token).await.unwrap(), "shop/ann");
    assert_eq!(named(&world, &token, "shop").await.0, 200);
    assert_eq!(named(&world, &token, "other").await.0, 401);
    // The other tenant accepts the same issuer for an audience of its own: the audience decides.
    let path = format!("{ISSUERS}/id");
    let issuer = json!({"name": "id", "issuer": world.server.url, "audience": ["other-api"],
        "user_claim": "sub"});
    let (status, response) = world.node.post(ISSUERS, Some(&other), issuer).await;
    assert_eq!(status, 201, "{response}");
    assert_eq!(world.role(&token).await.unwrap(), "shop/ann");
    assert_eq!(named(&world, &token, "other").await.0, 401);
    // For the same audience a request must name the database, also with a token that was verified
    // before.
    let url = format!("{}{path}", world.node.url);
    let request = world.node.client.patch(url).bearer_auth(&other);
    let changed = request
        .json(&json!({"audience": ["api"]}))
        .send()
        .await
        .unwrap();
    assert_eq!(changed.status(), 303);
    let (status, text) = world.role(&token).await.unwrap_err();
    assert!(
        status == 401 && text.contains("`Tidegate-Database`"),
        "{text}"
    );
    let (status, text) = named(&world, &token, "shop").await;
    assert!(status == 200 && text.contains("shop/ann"), "{text}");
    // The database `other` has no user of this name.
    assert_eq!(named(&world, &token, "other").await.0, 403);
}

#[tokio::test]
async fn servers_of_keys_cannot_harm_the_service() {
    let world = world().await;
    world.user("ann", json!({})).await;
    for name in ["endless", "redirecting", "silent"] {
        let server = IssuerServer::start(&[&world.signer]).await;
        match name {
            "endless" => server.set("/keys", Document::Endless),
            "silent" => server.set("/keys", Document::Silence),
            // The keys at the other address are valid.
            _ => server.redirect("/keys"),
        }
        let issuer =
            json!({"name": name, "issuer": server.url, "audience": "api", "user_claim": "sub"});
        let (status, response) = world.rest(Method::POST, ISSUERS, issuer).await;
        assert_eq!(status, 201, "{response}");
        let claims = world.claims(json!({"iss": server.url, "sub": "ann"}));
        let token = world.signer.token(&claims);
        let refused = world.role(&token);
        // Meanwhile other requests are answered.
        let others = async {
            let began = std::time::Instant::now();
            world.role(&world.owner).await.unwrap();
            began.elapsed()
        };
        let (refused, waited) = tokio::join!(refused, others);
        assert!(waited.as_secs() < 3, "{name}: {waited:?}");
        let (status, text) = refused.unwrap_err();
        assert!(
            status == 503 && !text.contains(&server.url),
            "{name}: {status} {text}"
        );
        // The discovery document and `/keys` were requested, and no other address.
        assert_eq!(server.requests(), 2, "{name}");
    }
}

#[tokio::test]
async fn keys_change_and_an_unknown_key_is_looked_for() {
    let world = world().await;
    world.user("ann", json!({})).await;
    world.accept(json!({"user_claim": "sub"})).await;
    let next = Signer::new("next");
    let token = next.token(&world.claims(json!({"sub": "ann"})));
    // The first request for keys is at most ten seconds ago when the second one is sent, so the
    // issuer has both keys before any token.
    world.server.set_keys(&[&world.signer, &next]);
    assert_eq!(world.role(&token).await.unwrap(), "shop/ann");
    let unknown = Signer::new("unknown");
    let before = world.server.requests();
    for _ in 0..50 {
        let refused = world
            .role(&unknown.token(&world.claims(json!({"sub": "ann"}))))
            .await;
        assert_eq!(refused.unwrap_err().0, 401);
    }
    let asked = world.server.requests() - before;
    assert!(asked <= 2, "{asked} requests in ten seconds");
    // Private addresses are refused without the setting.
    let body = [
        "issuer",
        "add",
        "shop",
        "inner",
        "https://10.0.0.1",
        "--audience",
        "api",
    ];
    let (_, text) = world.operator.fails(&body, "");
    assert!(text.contains("private addresses are not allowed"), "{text}");
}
