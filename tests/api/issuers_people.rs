//! People of groups, by tokens of external issuers: their live events, their ids, that nothing is
//! stored for them, and their records where an issuer makes some (docs/API.md, "Tokens of another
//! issuer").

use std::time::Instant;

use reqwest::Method;
use serde_json::{Value, json};

use crate::issuer_fixture::{IssuerServer, Signer};
use crate::issuers::{GRAPHQL, ISSUERS, World, node, world};
use crate::issuers_attacks::second_tenant;
use crate::node::Node;
use crate::open_connections::OpenConnections;
use crate::pages::encoded;
use crate::service::eventually;
use crate::socket_client::{Socket, open_at};

/// The path of a subscription to new invoices.
const ADDED: &str = "subscription { InvoicesMessageAdded { title } }";

/// The rows of the control database and the roles of the cluster.
async fn stored(world: &World) -> String {
    let roles = world.operator.value("SELECT count(*)::text FROM pg_roles");
    let roles = roles.await;
    let control = world.operator.root("tidegate").await;
    let rows = "SELECT sum((xpath('/row/n/text()', query_to_xml(format( \
                    'SELECT count(*) AS n FROM %I.%I', schemaname, relname), false, true, '')) \
                )[1]::text::bigint)::text FROM pg_stat_user_tables";
    let rows = control.query_one(rows, &[]).await.unwrap();
    format!("{roles} roles, {} rows", rows.get::<_, String>(0))
}

async fn subscribed(world: &World, claims: Value) -> Socket {
    let path = format!("/?token={}", world.token(claims));
    let mut socket = open_at(&world.node.url, &path, &[]).await.unwrap();
    socket.subscribe("i", ADDED).await;
    socket
}

#[tokio::test]
async fn people_of_a_group_get_the_events_of_their_organisation_until_the_issuer_is_dropped() {
    let world = world().await;
    world.accept(json!({"default_role": "staff"})).await;
    let mut acme = subscribed(&world, json!({"sub": "1", "org": "acme"})).await;
    let mut globex = subscribed(&world, json!({"sub": "2", "org": "globex"})).await;
    let mut nobody = subscribed(&world, json!({"sub": "3"})).await;
    let shop = world.operator.root("shop").await;
    let rows =
        "INSERT INTO invoices VALUES (10, 'globex', 'x', 'Glue'), (11, 'acme', 'x', 'Brush')";
    shop.batch_execute(rows).await.unwrap();
    for (socket, title) in [(&mut acme, "Brush"), (&mut globex, "Glue")] {
        let event = socket.receive().await;
        let expected = json!({"InvoicesMessageAdded": [{"title": title}]});
        assert_eq!(event["data"], expected, "{event}");
        assert!(socket.is_silent().await);
    }
    assert!(nobody.is_silent().await);
    let path = format!("{ISSUERS}/id");
    let (status, _) = world.rest(Method::DELETE, &path, json!({})).await;
    assert_eq!(status, 204);
    assert_eq!(acme.close_code().await, 4401);
}

#[tokio::test]
async fn the_same_subject_of_two_issuers_is_two_people() {
    let world = world().await;
    world.accept(json!({"default_role": "staff"})).await;
    let signer = Signer::new("b");
    let second = IssuerServer::start(&[&signer]).await;
    let issuer = json!({"name": "second", "issuer": second.url, "audience": "api",
        "default_role": "staff"});
    let (status, response) = world.rest(Method::POST, ISSUERS, issuer).await;
    assert_eq!(status, 201, "{response}");
    let first = world.token(json!({"sub": "ada", "org": "acme"}));
    let other = json!({"iss": second.url, "sub": "ada", "org": "acme"});
    let other = signer.token(&world.claims(other));
    let mut authors = Vec::new();
    for (id, token) in [(20, first), (21, other)] {
        let insert = format!(
            "mutation {{ insertInvoices(data: {{id: {id}, org: \"acme\"}}) {{ author }} }}"
        );
        let insert = json!({"query": insert});
        let (_, response) = world.node.post(GRAPHQL, Some(&token), insert).await;
        authors.push(response["data"]["insertInvoices"][0]["author"].clone());
    }
    assert_eq!(authors, ["id:ada", "second:ada"]);
    // The key of one issuer signs no token of the other.
    let forged = json!({"iss": second.url, "sub": "ada", "org": "acme"});
    let (status, _) = world.role(&world.token(forged)).await.unwrap_err();
    assert_eq!(status, 401);
}

#[tokio::test]
async fn a_flood_of_people_leaves_nothing_behind() {
    let world = world().await;
    world.accept(json!({"default_role": "staff"})).await;
    world.titles(&world.token(json!({"sub": "first"}))).await;
    let before = stored(&world).await;
    for person in 0..500 {
        let token = world.token(json!({"sub": format!("bot-{person}"), "org": "acme"}));
        assert_eq!(world.titles(&token).await, ["Paint"]);
    }
    assert_eq!(stored(&world).await, before);
    // The people share the connections of the group.
    let logins = "SELECT count(*)::text FROM pg_stat_activity WHERE usename LIKE 'shop/%'";
    let open: u32 = world.operator.value(logins).await.parse().unwrap();
    assert!(open <= 16, "{open} connections");
}

/// The members of the tenant, as the owner lists them.
async fn members(world: &World) -> Vec<Value> {
    let path = "/api/v4/users?kind=member";
    let (status, listed) = world.rest(Method::GET, path, json!({})).await;
    assert_eq!(status, 200, "{listed}");
    listed.as_array().unwrap().clone()
}

async fn change(world: &World, name: &Value, change: Value) {
    let path = format!("/api/v4/users/{}", name.as_str().unwrap());
    let (status, response) = world.rest(Method::PATCH, &path, change).await;
    assert_eq!(status, 303, "{response}");
}

/// The status of GraphQL with a token at a node.
async fn status(node: &Node, token: &str) -> u16 {
    let query = json!({"query": "{ getInvoices { title } }"});
    node.post(GRAPHQL, Some(token), query).await.0.as_u16()
}

/// Waits until GraphQL with a token answers this status.
async fn answered(world: &World, token: &str, expected: u16) -> Value {
    let mut last = Value::Null;
    eventually("the change counts", async || {
        let query = json!({"query": "{ getInvoices { title } }"});
        let (status, response) = world.node.post(GRAPHQL, Some(token), query).await;
        last = response;
        status.as_u16() == expected
    })
    .await;
    last
}

#[tokio::test]
async fn people_are_recorded_where_the_issuer_says_so_and_can_be_kept_out() {
    let world = world().await;
    let more = json!({"default_role": "staff", "role_claim": "roles", "create_members": true});
    world.accept(more).await;
    let claims = json!({"sub": "a/1", "org": "acme", "preferred_username": "Ada Lovelace"});
    let ada = world.token(claims.clone());
    let bea = world.token(json!({"sub": "2", "org": "acme"}));
    for token in [&ada, &ada, &bea] {
        assert_eq!(world.titles(token).await, ["Paint"]);
    }
    let listed = members(&world).await;
    let ids: Vec<_> = listed.iter().map(|user| &user["id"]).collect();
    assert_eq!(ids, ["id:2", "id:a/1"], "{listed:?}");
    let name = &listed[1]["name"];
    assert!(name.as_str().unwrap().starts_with("AdaLovelace-"), "{name}");
    assert_eq!(listed[1]["user_group"], "staff");
    // Properties take the place of claims.
    change(&world, name, json!({"properties": {"org": "globex"}})).await;
    eventually("the properties count", async || {
        world.titles(&ada).await == ["Cement"]
    })
    .await;
    let mut socket = subscribed(&world, claims).await;
    change(&world, name, json!({"disabled": true})).await;
    let refused = answered(&world, &ada, 401).await;
    assert!(refused.to_string().contains("disabled"), "{refused}");
    assert_eq!(socket.close_code().await, 4401);
    assert_eq!(world.titles(&bea).await, ["Paint"]);
    // Another group in the token changes nothing.
    let (status, _) = world
        .rest(
            Method::POST,
            "/api/v4/users",
            json!({"name": "x", "password": "password-1234",
            "user_group": "other"}),
        )
        .await;
    assert_eq!(status, 201);
    let moved = json!({"sub": "a/1", "roles": ["other"]});
    assert_eq!(world.role(&world.token(moved)).await.unwrap_err().0, 401);
    // Nor does an issuer that records no more people, or a claim that names another user.
    world.user("eve", json!({})).await;
    let path = format!("{ISSUERS}/id");
    for more in [
        json!({"create_members": false}),
        json!({"user_claim": "nickname"}),
    ] {
        let (status, response) = world.rest(Method::PATCH, &path, more).await;
        assert_eq!(status, 303, "{response}");
        let claims = json!({"sub": "a/1", "org": "acme", "nickname": "eve"});
        let refused = world.role(&world.token(claims)).await;
        assert_eq!(refused.unwrap_err().0, 401);
    }
    let again = json!({"create_members": true, "user_claim": null});
    let (status, response) = world.rest(Method::PATCH, &path, again).await;
    assert_eq!(status, 303, "{response}");
    change(&world, name, json!({"disabled": false})).await;
    answered(&world, &ada, 200).await;
    // The record follows the group of the token.
    world
        .titles(&world.token(json!({"sub": "2", "org": "acme", "roles": ["other"]})))
        .await;
    assert_eq!(members(&world).await[0]["user_group"], "other");
}

#[tokio::test]
async fn the_operator_keeps_people_out_on_all_nodes_within_five_seconds() {
    let world = world().await;
    let second = node(&world.operator).await;
    let nodes = [&world.node, &second];
    let more = json!({"default_role": "staff", "create_members": true});
    world.accept(more).await;
    let [ada, bea] = ["ada", "bea"].map(|sub| world.token(json!({"sub": sub, "org": "acme"})));
    for token in [&ada, &bea] {
        for node in nodes {
            eventually("the issuer is known", async || {
                status(node, token).await == 200
            })
            .await;
        }
    }
    let listed = members(&world).await;
    let record = listed.iter().find(|user| user["id"] == "id:ada").unwrap();
    let name = record["name"].as_str().unwrap();
    let disable = ["user", "change", "shop", name, "--disabled", "true"];
    let drop = ["issuer", "drop", "shop", "id", "--yes"];
    for (token, command) in [(&ada, &disable[..]), (&bea, &drop[..])] {
        let mut open = Vec::new();
        for node in nodes {
            open.push(OpenConnections::of(node, token, ADDED).await);
        }
        world.operator.succeeds(command, "");
        let since = Instant::now();
        for node in nodes {
            eventually("the token is refused", async || {
                status(node, token).await == 401
            })
            .await;
        }
        for connections in open {
            connections.are_refused().await;
        }
        let waited = since.elapsed().as_secs_f64();
        assert!(waited < 5.0, "{command:?}: {waited} s");
    }
}

#[tokio::test]
async fn a_refused_token_neither_creates_nor_changes_a_record() {
    let world = world().await;
    let more = json!({"default_role": "staff", "role_claim": "roles", "create_members": true});
    world.accept(more).await;
    let other = json!({"name": "x", "kind": "member", "user_group": "other"});
    let (status, response) = world.rest(Method::POST, "/api/v4/users", other).await;
    assert_eq!(status, 201, "{response}");
    let nul = json!({"sub": "a/1", "preferred_username": "ada\0"});
    assert_eq!(world.role(&world.token(nul)).await.unwrap_err().0, 401);
    let ids = |listed: Vec<Value>| listed.into_iter().map(|user| user["id"].clone());
    assert!(ids(members(&world).await).all(|id| id != "id:a/1"));
    let ada = world.token(json!({"sub": "a/1", "org": "acme"}));
    assert_eq!(world.titles(&ada).await, ["Paint"]);
    let moved = json!({"sub": "a/1", "roles": ["other"], "note": "\0"});
    assert_eq!(world.role(&world.token(moved)).await.unwrap_err().0, 401);
    let listed = members(&world).await;
    let ada = listed.iter().find(|user| user["id"] == "id:a/1").unwrap();
    assert_eq!(ada["user_group"], "staff");
}

#[tokio::test]
async fn a_disabled_user_gets_in_by_no_other_claim() {
    let world = world().await;
    let more = json!({"user_claim": "sub", "default_role": "staff"});
    world.accept(more).await;
    world.user("ada", json!({})).await;
    let token = world.token(json!({"sub": "ada", "org": "acme"}));
    assert_eq!(world.role(&token).await.unwrap(), "shop/ada");
    change(&world, &json!("ada"), json!({"disabled": true})).await;
    answered(&world, &token, 401).await;
    assert_eq!(world.role(&token).await.unwrap_err().0, 401);
}

#[tokio::test]
async fn a_flood_of_people_is_served_and_recorded_slowly() {
    let world = world().await;
    world
        .accept(json!({"default_role": "staff", "create_members": true}))
        .await;
    let count = "SELECT count(*) FROM tidegate.users WHERE kind = 'member'";
    let control = world.operator.root("tidegate").await;
    let since = Instant::now();
    for person in 0..320 {
        let token = world.token(json!({"sub": format!("bot-{person}"), "org": "acme"}));
        assert_eq!(world.titles(&token).await, ["Paint"]);
    }
    let minutes = 1 + i64::try_from(since.elapsed().as_secs() / 60).unwrap();
    let recorded: i64 = control.query_one(count, &[]).await.unwrap().get(0);
    let most = (minutes * 300).min(320);
    assert!((300..=most).contains(&recorded), "{recorded} of {most}");
}

/// The first event of a stream at an address, or the status and the text of the error.
async fn first_event(world: &World, query: &str) -> Result<String, (u16, String)> {
    let url = format!("{}/api/v4/events/stream?{query}", world.node.url);
    let mut response = world.node.client.get(url).send().await.unwrap();
    if response.status() != 200 {
        return Err((response.status().as_u16(), response.text().await.unwrap()));
    }
    let chunk = response.chunk().await.unwrap().unwrap();
    Ok(String::from_utf8_lossy(&chunk).into_owned())
}

#[tokio::test]
async fn a_page_names_the_database_in_the_address_of_a_socket() {
    let world = world().await;
    let other = second_tenant(&world).await;
    world.accept(json!({"default_role": "staff"})).await;
    let issuer = json!({"name": "id", "issuer": world.server.url, "audience": "api",
        "default_role": "staff"});
    let (status, response) = world.node.post(ISSUERS, Some(&other), issuer).await;
    assert_eq!(status, 201, "{response}");
    let token = world.token(json!({"org": "acme"}));
    let mut unnamed = open_at(&world.node.url, &format!("/?token={token}"), &[])
        .await
        .unwrap();
    let response = unnamed.receive().await;
    assert!(
        response.to_string().contains("Tidegate-Database"),
        "{response}"
    );
    assert_eq!(unnamed.close_code().await, 4401);
    let path = format!("/?database=shop&token={token}");
    let mut named = open_at(&world.node.url, &path, &[]).await.unwrap();
    named.subscribe("i", ADDED).await;
    let both = [("Tidegate-Database", "shop")];
    let refused = open_at(&world.node.url, &path, &both).await;
    let refused = refused.err().map(|error| error.to_string());
    assert!(refused.is_some_and(|text| text.contains("400")));

    let stream = format!("schema=public&token={token}&query={}", encoded(ADDED));
    let (status, text) = first_event(&world, &stream).await.unwrap_err();
    assert!(
        status == 401 && text.contains("Tidegate-Database"),
        "{status} {text}"
    );
    let event = first_event(&world, &format!("{stream}&database=shop")).await;
    assert!(event.unwrap().contains("subscribe_ack"));
    // For an anonymous caller too, the parameter names the database. The database `other` has no
    // default user.
    let anonymous = format!("schema=public&database=other&query={}", encoded(ADDED));
    let (status, text) = first_event(&world, &anonymous).await.unwrap_err();
    assert!(
        status == 401 && text.contains("no default user"),
        "{status} {text}"
    );
}
