//! People of groups, by tokens of external issuers: their live events, their ids, and that nothing
//! is stored for them (wire.md 11).

use reqwest::Method;
use serde_json::{Value, json};

use crate::issuer_fixture::{IssuerServer, Signer};
use crate::issuers::{GRAPHQL, ISSUERS, World, world};
use crate::issuers_attacks::second_tenant;
use crate::pages::encoded;
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
    let (status, answer) = world.rest(Method::POST, ISSUERS, issuer).await;
    assert_eq!(status, 201, "{answer}");
    let first = world.token(json!({"sub": "ada", "org": "acme"}));
    let other = json!({"iss": second.url, "sub": "ada", "org": "acme"});
    let other = signer.token(&world.claims(other));
    let mut authors = Vec::new();
    for (id, token) in [(20, first), (21, other)] {
        let insert = format!(
            "mutation {{ insertInvoices(data: {{id: {id}, org: \"acme\"}}) {{ author }} }}"
        );
        let insert = json!({"query": insert});
        let (_, answer) = world.node.post(GRAPHQL, Some(&token), insert).await;
        authors.push(answer["data"]["insertInvoices"][0]["author"].clone());
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

/// The first event of a stream at an address, or the status and the text of the error.
async fn first_event(world: &World, query: &str) -> Result<String, (u16, String)> {
    let url = format!("{}/api/v4/events/stream?{query}", world.node.url);
    let mut answer = world.node.client.get(url).send().await.unwrap();
    if answer.status() != 200 {
        return Err((answer.status().as_u16(), answer.text().await.unwrap()));
    }
    let chunk = answer.chunk().await.unwrap().unwrap();
    Ok(String::from_utf8_lossy(&chunk).into_owned())
}

#[tokio::test]
async fn a_page_names_the_database_in_the_address_of_a_socket() {
    let world = world().await;
    let other = second_tenant(&world).await;
    world.accept(json!({"default_role": "staff"})).await;
    let issuer = json!({"name": "id", "issuer": world.server.url, "audience": "api",
        "default_role": "staff"});
    let (status, answer) = world.node.post(ISSUERS, Some(&other), issuer).await;
    assert_eq!(status, 201, "{answer}");
    let token = world.token(json!({"org": "acme"}));
    let mut unnamed = open_at(&world.node.url, &format!("/?token={token}"), &[])
        .await
        .unwrap();
    let answer = unnamed.receive().await;
    assert!(answer.to_string().contains("Tidegate-Database"), "{answer}");
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
