//! Tokens of external issuers that name a member, or a user who is converted (docs/API.md, "Tokens
//! of another issuer" and "Members").

use reqwest::Method;
use serde_json::{Value, json};

use crate::issuers::{GRAPHQL, World, world};
use crate::service::eventually;
use crate::socket_client::{Socket, open_at};

const ADDED: &str = "subscription { InvoicesMessageAdded { title } }";

/// The author of a new invoice: what `tidegate.user_id()` returns.
async fn author(world: &World, token: &str, (id, org): (u32, &str)) -> Value {
    let query = format!(
        "mutation {{ insertInvoices(data: {{id: {id}, org: \"{org}\", title: \"{id}\"}}) {{ author }} }}"
    );
    let query = json!({"query": query});
    let (_, response) = world.node.post(GRAPHQL, Some(token), query).await;
    response["data"]["insertInvoices"][0]["author"].clone()
}

async fn convert(world: &World, name: &str, change: Value) {
    let path = format!("/api/v4/users/{name}");
    let (status, response) = world.rest(Method::PATCH, &path, change).await;
    assert_eq!(status, 303, "{response}");
}

/// Checks that the token's SQL runs as this role, or is refused as a member's. A conversion counts
/// at once on the node that makes it.
async fn runs_as(world: &World, token: &str, role: Option<&str>) {
    match (world.role(token).await, role) {
        (Ok(current), Some(role)) => assert_eq!(current, role),
        (Err((403, text)), None) => assert!(text.contains("no SQL of their own"), "{text}"),
        (found, _) => panic!("{found:?} is not {role:?}"),
    }
}

async fn subscribed(world: &World, token: &str) -> Socket {
    let path = format!("/?token={token}");
    let mut socket = open_at(&world.node.url, &path, &[]).await.unwrap();
    socket.subscribe("i", ADDED).await;
    socket
}

#[tokio::test]
async fn a_token_that_names_a_member_has_the_claims_of_its_record() {
    let world = world().await;
    let settings =
        json!({"user_claim": "nickname", "role_claim": "roles", "default_role": "staff"});
    world.accept(settings).await;
    let more = json!({"kind": "member", "user_group": "staff", "id": "m-1",
        "properties": {"org": "globex"}});
    world.user("mia", more).await;
    // The claims of the token that would give more do not count: neither `org` nor `roles`.
    let mia = world.token(json!({"nickname": "mia", "org": "acme", "roles": ["shop", "other"]}));
    assert_eq!(world.titles(&mia).await, ["Cement"]);
    assert_eq!(author(&world, &mia, (10, "globex")).await, "m-1");
    assert_eq!(author(&world, &mia, (11, "acme")).await, Value::Null);
    runs_as(&world, &mia, None).await;
    let method = json!({"method": "mias", "q": "select 1 as one"});
    let (status, _) = world.node.post("/api/v4/methods", Some(&mia), method).await;
    assert_eq!(status, 403);
    // A person of the same group without a record has the claims of the token.
    let other = world.token(json!({"nickname": "nobody", "org": "acme"}));
    assert_eq!(world.titles(&other).await, ["Paint"]);
    let (mut hers, mut theirs) = (
        subscribed(&world, &mia).await,
        subscribed(&world, &other).await,
    );
    assert_eq!(author(&world, &other, (12, "acme")).await, "id:ada");
    assert_eq!(author(&world, &mia, (13, "globex")).await, "m-1");
    for (socket, title) in [(&mut hers, "13"), (&mut theirs, "12")] {
        let event = socket.receive().await;
        let expected = json!({"InvoicesMessageAdded": [{"title": title}]});
        assert_eq!(event["data"], expected, "{event}");
        assert!(socket.is_silent().await);
    }
}

#[tokio::test]
async fn a_token_follows_the_conversions_of_the_user_that_it_names() {
    let world = world().await;
    world.accept(json!({"user_claim": "nickname"})).await;
    let group = json!({"user_group": "staff", "properties": {"org": "acme"}});
    world.user("ann", group).await;
    let ann = world.token(json!({"nickname": "ann", "org": "globex"}));
    runs_as(&world, &ann, Some("shop/ann")).await;
    let mut rows = 1;
    for (change, role) in [
        (json!({"kind": "member", "user_group": "staff"}), None),
        (json!({"kind": "role"}), Some("shop/ann")),
        (json!({"kind": "member"}), None),
    ] {
        let mut socket = subscribed(&world, &ann).await;
        convert(&world, "ann", change).await;
        runs_as(&world, &ann, role).await;
        // The socket was opened with the rights of the previous kind, so it ends.
        assert_eq!(socket.close_code().await, 4401);
        assert_eq!(author(&world, &ann, (20 + rows, "acme")).await, "ann");
        rows += 1;
        assert_eq!(world.titles(&ann).await.len(), rows as usize);
    }
    let roles = "SELECT count(*)::text FROM pg_roles WHERE rolname = 'shop/ann'";
    assert_eq!(world.operator.value(roles).await, "0");
}

#[tokio::test]
async fn a_recorded_person_stays_the_same_person_when_it_is_converted() {
    let world = world().await;
    let settings = json!({"default_role": "staff", "create_members": true});
    world.accept(settings).await;
    let claims = json!({"sub": "a/1", "org": "acme", "preferred_username": "ada"});
    let ada = world.token(claims);
    assert_eq!(author(&world, &ada, (30, "acme")).await, "id:a/1");
    let (_, members) = world
        .rest(Method::GET, "/api/v4/users?kind=member", json!({}))
        .await;
    let name = members[0]["name"].as_str().unwrap().to_owned();
    // The claims of a user with a role are its properties; it has none of the token's.
    convert(&world, &name, json!({"kind": "role"})).await;
    runs_as(&world, &ada, Some(&format!("shop/{name}"))).await;
    assert_eq!(world.titles(&ada).await, Vec::<String>::new());
    convert(&world, &name, json!({"properties": {"org": "acme"}})).await;
    eventually("the properties count", async || {
        world.titles(&ada).await == ["Paint", "30"]
    })
    .await;
    assert_eq!(author(&world, &ada, (31, "acme")).await, "id:a/1");
    convert(&world, &name, json!({"kind": "member"})).await;
    runs_as(&world, &ada, None).await;
    assert_eq!(author(&world, &ada, (32, "acme")).await, "id:a/1");
    assert_eq!(world.titles(&ada).await, ["Paint", "30", "31", "32"]);
}
