//! Tests how owners and operators manage external issuers.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::issuers::{GRAPHQL, ISSUERS, world};
use crate::issuers_attacks::second_tenant;
use crate::service::eventually;

#[tokio::test]
async fn the_owner_manages_issuers() {
    let world = world().await;
    let (url, one) = (&world.server.url, format!("{ISSUERS}/id"));
    world.accept(json!({"role_claim": "roles"})).await;
    let (status, shown) = world.rest(Method::GET, &one, json!({})).await;
    let expected = json!({"name": "id", "issuer": url, "jwks_url": null, "audience": ["api"],
        "audience_claim": "aud", "algorithms": ["RS256", "ES256", "EdDSA"], "user_claim": null,
        "role_claim": "roles", "default_role": null, "create_members": false,
        "clock_skew": 60, "claims": null, "problem": null});
    assert_eq!((status, shown), (200, expected));
    let change = json!({"audience": ["a", "b"], "role_claim": null, "clock_skew": 5});
    let (status, _) = world.rest(Method::PATCH, &one, change).await;
    assert_eq!(status, 303);
    let (_, shown) = world.rest(Method::GET, ISSUERS, json!({})).await;
    assert_eq!(shown[0]["audience"], json!(["a", "b"]));
    assert_eq!(shown[0]["role_claim"], Value::Null);
    for (body, status, text) in [
        (
            json!({"name": "id", "issuer": url, "audience": "a"}),
            409,
            "exists already",
        ),
        (
            json!({"name": "a/b", "issuer": url, "audience": "a"}),
            400,
            "`name`",
        ),
        (
            json!({"name": "b", "audience": "a"}),
            400,
            "`issuer`: missing",
        ),
        (
            json!({"name": "b", "issuer": url}),
            400,
            "`audience`: missing",
        ),
        (
            json!({"name": "b", "issuer": url, "audience": ""}),
            400,
            "`audience[0]`: an audience is empty",
        ),
        (
            json!({"name": "b", "issuer": url, "audience": ["a", 1]}),
            400,
            "`audience[1]`: expected a string",
        ),
        (
            json!({"name": "b", "issuer": url, "audience": null}),
            400,
            "`audience`: expected a string or an array of strings",
        ),
        (
            json!({"name": "b", "issuer": "ftp://x", "audience": "a"}),
            400,
            "`issuer`",
        ),
        (
            json!({"name": "b", "issuer": url, "audience": "a", "keys": 1}),
            400,
            "`keys`",
        ),
        (
            json!({"name": "b", "issuer": url, "audience": "a", "role_claim": "a["}),
            400,
            "`role_claim`",
        ),
        (
            json!({"name": "b", "issuer": url, "audience": "a", "algorithms": ["ES256", "HS256"]}),
            400,
            "`algorithms[1]`: expected one of RS256",
        ),
        (
            json!({"name": "b", "issuer": url, "audience": "a", "claims": "org"}),
            400,
            "`claims`: expected an array of strings",
        ),
        (
            json!({"name": "b", "issuer": url, "audience": "a", "claims": ["b", "a["]}),
            400,
            "`claims[1]`: ",
        ),
        (
            json!({"name": "b", "issuer": url, "audience": "a", "claims": ["roles[0]"]}),
            400,
            "`claims[0]`: roles[0] has an index",
        ),
        (
            json!({"name": "b", "issuer": url, "audience": "a", "clock_skew": 301}),
            400,
            "`clock_skew`",
        ),
        (
            json!({"name": "b", "issuer": url, "audience": "a", "default_role": "shop"}),
            400,
            "`default_role`",
        ),
        (
            json!({"name": "b", "issuer": url, "audience": "a", "default_role": "a/b"}),
            400,
            "`default_role`",
        ),
        (
            json!([{"name": "b", "issuer": url, "audience": "a"}, {"name": "c"}]),
            400,
            "[1]: `issuer`",
        ),
        (
            json!([{"name": "b", "issuer": url, "audience": ["a", ""]}]),
            400,
            "[0]: `audience[1]`: an audience is empty",
        ),
    ] {
        let (found, response) = world.rest(Method::POST, ISSUERS, body.clone()).await;
        let message = response["message"].as_str().unwrap_or_default();
        assert!(
            found == status && message.contains(text),
            "{body}: {found} {response}"
        );
    }
    assert_eq!(world.rest(Method::DELETE, &one, json!({})).await.0, 204);
    assert_eq!(world.rest(Method::GET, &one, json!({})).await.0, 404);
    let (_, audit) = world.rest(Method::GET, "/api/v4/audit", json!({})).await;
    let audit = audit.to_string();
    for event in ["issuer_created", "issuer_changed", "issuer_dropped"] {
        assert!(audit.contains(event), "{audit}");
    }
    world.user("ann", json!({})).await;
    let ann = world.node.sign_in("shop", "ann", "password-1234").await;
    let ann = ann["access_token"].as_str();
    let (status, _) = world.node.post(ISSUERS, ann, json!({})).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn the_settings_of_an_issuer_decide_over_its_tokens() {
    let world = world().await;
    world.accept(json!({"default_role": "staff"})).await;
    let token = world.token(json!({"org": "acme", "azp": "app"}));
    let keys = format!("{}/keys", world.server.url);
    for (change, expected, text) in [
        (json!({"algorithms": ["RS256"]}), 401, "algorithm"),
        (json!({"algorithms": ["RS256", "ES256"]}), 200, "Paint"),
        (json!({"audience_claim": "azp"}), 401, "another audience"),
        (json!({"audience": ["other", "app"]}), 200, "Paint"),
        (
            json!({"jwks_url": format!("{keys}/of/another")}),
            503,
            "cannot be loaded",
        ),
        (json!({"jwks_url": keys}), 200, "Paint"),
        (json!({"default_role": null}), 403, "no `default_role`"),
    ] {
        // With the URL of the keys, no discovery document is needed.
        if change.get("jwks_url").is_some() {
            world.server.remove("/.well-known/openid-configuration");
        }
        let path = format!("{ISSUERS}/id");
        let (status, response) = world.rest(Method::PATCH, &path, change.clone()).await;
        assert_eq!(status, 303, "{change} {response}");
        let query = json!({"query": "{ getInvoices { title } }"});
        let (status, response) = world.node.post(GRAPHQL, Some(&token), query).await;
        assert_eq!(status, expected, "{change} {response}");
        assert!(response.to_string().contains(text), "{change} {response}");
        // The owner sees that the keys cannot be loaded.
        let (_, shown) = world.rest(Method::GET, &path, json!({})).await;
        let problem = shown["problem"].as_str();
        assert_eq!(problem.is_some(), expected == 503, "{change} {shown}");
        assert!(
            problem.is_none_or(|text| text.contains("the keys")),
            "{shown}"
        );
    }
}

/// A second record for the same tokens would give their people other ids.
#[tokio::test]
async fn an_issuer_for_the_tokens_of_another_one_is_refused() {
    let world = world().await;
    let url = &world.server.url;
    world.accept(json!({"audience": ["api", "web"]})).await;
    let new =
        |name: &str, audience: Value| json!({"name": name, "issuer": url, "audience": audience});
    let refused = async |verb: Method, path: &str, body: Value| {
        let (status, response) = world.rest(verb, path, body).await;
        assert_eq!(
            (status, &response["errorCode"]),
            (409, &json!("ALREADY_EXISTS"))
        );
        let message = response["message"].as_str().unwrap();
        assert!(message.contains("the issuer id accepts"), "{message}");
    };
    refused(Method::POST, ISSUERS, new("a", json!("api"))).await;
    refused(Method::POST, ISSUERS, new("a", json!(["x", "web"]))).await;
    let other_claim =
        json!({"name": "b", "issuer": url, "audience": "api", "audience_claim": "azp"});
    for allowed in [new("a", json!("app")), other_claim] {
        let (status, response) = world.rest(Method::POST, ISSUERS, allowed).await;
        assert_eq!(status, 201, "{response}");
    }
    let path = format!("{ISSUERS}/a");
    refused(Method::PATCH, &path, json!({"audience": ["app", "api"]})).await;
    let (_, shown) = world.rest(Method::GET, &path, json!({})).await;
    assert_eq!(shown["audience"], json!(["app"]));
    let add = ["issuer", "add", "shop", "c", url, "--audience", "web"];
    let arguments = [&add[..], &["--private-issuers"]].concat();
    let (_, printed) = world.operator.fails(&arguments, "");
    assert!(printed.contains("the issuer id accepts"), "{printed}");
}

/// Records that an earlier release stored overlap, and a token may have several audiences.
#[tokio::test]
async fn a_token_for_several_issuers_belongs_to_the_oldest() {
    let world = world().await;
    world.accept(json!({"default_role": "staff"})).await;
    let issuer = json!({"name": "a", "issuer": world.server.url, "audience": "app",
        "default_role": "staff"});
    let (status, response) = world.rest(Method::POST, ISSUERS, issuer).await;
    assert_eq!(status, 201, "{response}");
    let id = async |token: &str| {
        let insert = "mutation { insertInvoices(data: {id: 9, org: \"acme\"}) { author } \
                      deleteInvoices(id: 9) { id } }";
        let query = json!({"query": insert});
        let (_, response) = world.node.post(GRAPHQL, Some(token), query).await;
        let author = &response["data"]["insertInvoices"][0]["author"];
        author
            .as_str()
            .unwrap_or_else(|| panic!("{response}"))
            .to_owned()
    };
    let both = world.token(json!({"org": "acme", "aud": ["app", "api"]}));
    assert_eq!(id(&both).await, "id:ada");
    let control = world.operator.root("tidegate").await;
    let overlap = "UPDATE tidegate.issuers SET settings = \
        jsonb_set(settings::jsonb, '{audience}', '[\"api\"]')::json WHERE name = 'a'";
    control.batch_execute(overlap).await.unwrap();
    // A change of another member is possible, and makes the node read the records again.
    let path = format!("{ISSUERS}/a");
    let (status, response) = world
        .rest(Method::PATCH, &path, json!({"clock_skew": 9}))
        .await;
    assert_eq!(status, 303, "{response}");
    assert_eq!(id(&world.token(json!({"org": "acme"}))).await, "id:ada");
}

#[tokio::test]
async fn the_operator_manages_issuers() {
    let world = world().await;
    let run = |arguments: &[&str]| {
        let private = ["--private-issuers"];
        world.operator.succeeds(&[arguments, &private].concat(), "")
    };
    let add = [
        "issuer",
        "add",
        "shop",
        "id",
        &world.server.url,
        "--audience",
        "api",
    ];
    let printed = run(&[&add[..], &["--default-role", "staff"]].concat());
    assert!(printed.contains("shop accepts tokens of"), "{printed}");
    let listed = run(&["issuer", "list", "shop"]);
    assert!(
        listed.contains(&world.server.url) && listed.contains("staff"),
        "{listed}"
    );
    // A notification informs the running node.
    let token = world.token(json!({"org": "acme"}));
    let query = json!({"query": "{ getInvoices { title } }"});
    eventually("the token is accepted", async || {
        let (status, _) = world.node.post(GRAPHQL, Some(&token), query.clone()).await;
        status == StatusCode::OK
    })
    .await;
    run(&["issuer", "drop", "shop", "id", "--yes"]);
    eventually("the token is refused", async || {
        let (status, _) = world.node.post(GRAPHQL, Some(&token), query.clone()).await;
        status == StatusCode::UNAUTHORIZED
    })
    .await;
}

#[tokio::test]
async fn a_database_has_at_most_20_issuers() {
    let world = world().await;
    let issuer = |number: u32| {
        json!({"name": format!("i{number}"), "issuer": "https://id.example.com",
            "audience": format!("a{number}")})
    };
    let add = async |first: u32, last: u32| {
        let issuers = (first..=last).map(issuer).collect();
        let (status, response) = world.rest(Method::POST, ISSUERS, issuers).await;
        (
            status,
            response["errorCode"].as_str().unwrap_or("").to_owned(),
        )
    };
    let conflict = (409, "CONFLICT".to_owned());
    let created = (201, String::new());
    assert_eq!(add(1, 21).await, conflict);
    let (_, listed) = world.rest(Method::GET, ISSUERS, json!({})).await;
    assert_eq!(listed, json!([]), "an array that is too long adds none");
    assert_eq!(add(1, 20).await, created);
    assert_eq!(add(21, 21).await, conflict);
    let change = json!({"clock_skew": 9});
    let path = format!("{ISSUERS}/i1");
    assert_eq!(world.rest(Method::PATCH, &path, change).await.0, 303);
    assert_eq!(world.rest(Method::DELETE, &path, json!({})).await.0, 204);
    assert_eq!(add(21, 21).await, created);
    // The issuers of one database do not count for another.
    let other = second_tenant(&world).await;
    let (status, response) = world.node.post(ISSUERS, Some(&other), issuer(22)).await;
    assert_eq!(status, StatusCode::CREATED, "{response}");
}

#[tokio::test]
async fn an_issuer_of_a_later_release_is_dropped_by_its_name() {
    let world = world().await;
    world.accept(json!({})).await;
    let control = world.operator.root("tidegate").await;
    let store = "INSERT INTO tidegate.issuers (database, name, settings, created_at) \
         SELECT database, 'later_' || i, jsonb_set(settings::jsonb, '{algorithms}', '[\"ML-DSA-44\"]')::json, \
                created_at FROM tidegate.issuers, generate_series(1, 3) i";
    control.batch_execute(store).await.unwrap();
    let path = |names: &str| format!("{ISSUERS}/{names}");
    let (status, _) = world.rest(Method::GET, &path("later_1"), json!({})).await;
    assert_eq!(status, 404, "this release cannot show it");
    // All or none of several are dropped.
    for (names, status) in [
        ("later_1,missing", 404),
        ("later_1,later_2", 204),
        ("later_1", 404),
    ] {
        let dropped = world.rest(Method::DELETE, &path(names), json!({})).await;
        assert_eq!(dropped.0, status, "{names}: {}", dropped.1);
    }
    let drop = ["issuer", "drop", "shop", "later_3", "--yes"];
    let printed = world.operator.succeeds(&drop, "");
    assert!(printed.contains("later_3 is dropped"), "{printed}");
    let left = "SELECT string_agg(name, ',') FROM tidegate.issuers";
    let left: String = control.query_one(left, &[]).await.unwrap().get(0);
    assert_eq!(left, "id");
}
