//! Tests tokens of external issuers (docs/API.md, "Tokens of another issuer"): which user or member
//! a token stands for, what it allows, and when changes take effect.

use std::time::{Duration, SystemTime};

use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};

use crate::issuer_fixture::{IssuerServer, Signer};
use crate::node::{Node, operator};
use crate::operator::Operator;
use crate::service::eventually;
use crate::socket_client::open_at;

pub(crate) const ISSUERS: &str = "/api/v4/issuers";
pub(crate) const GRAPHQL: &str = "/api/graphql/schema/public";

/// A table whose rows belong to organisations, for the group `staff`.
const INVOICES: &str = "CREATE TABLE invoices (id int PRIMARY KEY, org text, author text \
        DEFAULT tidegate.user_id(), title text); \
    INSERT INTO invoices VALUES (1, 'acme', 'x', 'Paint'), (2, 'globex', 'x', 'Cement'); \
    ALTER TABLE invoices ENABLE ROW LEVEL SECURITY; \
    CREATE POLICY org ON invoices USING (org = (SELECT tidegate.claim('org'))); \
    GRANT ALL ON invoices TO PUBLIC";

/// A node in front of the tenant `shop`, an issuer on this machine, and the issuer's key.
pub(crate) struct World {
    pub(crate) operator: Operator,
    pub(crate) node: Node,
    pub(crate) server: IssuerServer,
    pub(crate) signer: Signer,
    pub(crate) owner: String,
}

/// An issuer and a node that may load its keys from this machine.
pub(crate) async fn world() -> World {
    let operator = operator().await;
    let inside = operator.root("shop").await;
    inside.batch_execute(INVOICES).await.unwrap();
    let node = node(&operator).await;
    let signed_in = node.sign_in("shop", "shop", "owner-password").await;
    let signer = Signer::new("a");
    World {
        server: IssuerServer::start(&[&signer]).await,
        owner: signed_in["access_token"].as_str().unwrap().to_owned(),
        operator,
        node,
        signer,
    }
}

pub(crate) async fn node(operator: &Operator) -> Node {
    let client = Client::builder()
        .timeout(crate::service::TIMEOUT)
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .unwrap();
    Node::start_with(operator, &["--private-issuers"], ("http", client)).await
}

#[expect(
    clippy::disallowed_methods,
    reason = "tokens of the tests have the machine's time, as the binary has"
)]
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap().as_secs()
}

impl World {
    pub(crate) async fn rest(&self, verb: Method, path: &str, body: Value) -> (u16, Value) {
        let url = format!("{}{path}", self.node.url);
        let request = self.node.client.request(verb, url).json(&body);
        let response = request.bearer_auth(&self.owner).send().await.unwrap();
        let status = response.status().as_u16();
        (status, response.json().await.unwrap_or_default())
    }

    /// Adds the issuer of the test as `id`; `more` are further members.
    pub(crate) async fn accept(&self, more: Value) {
        let mut issuer = json!({"name": "id", "issuer": self.server.url, "audience": "api"});
        let more = more.as_object().unwrap().clone();
        issuer.as_object_mut().unwrap().extend(more);
        let (status, response) = self.rest(Method::POST, ISSUERS, issuer).await;
        assert_eq!(status, 201, "{response}");
    }

    pub(crate) async fn user(&self, name: &str, more: Value) {
        let mut user = json!({"name": name, "password": "password-1234"});
        let more = more.as_object().unwrap().clone();
        user.as_object_mut().unwrap().extend(more);
        let (status, response) = self.rest(Method::POST, "/api/v4/users", user).await;
        assert_eq!(status, 201, "{response}");
    }

    /// The claims of a valid token, with others added.
    pub(crate) fn claims(&self, more: Value) -> Value {
        let mut claims = json!({"iss": self.server.url, "aud": "api", "sub": "ada",
            "iat": now() - 10, "exp": now() + 600});
        let Value::Object(more) = more else {
            panic!("claims are an object, not {more}");
        };
        claims.as_object_mut().unwrap().extend(more);
        claims
    }

    pub(crate) fn token(&self, more: Value) -> String {
        self.signer.token(&self.claims(more))
    }

    /// The role as which SQL with this token runs, or the status and the text of the error.
    pub(crate) async fn role(&self, token: &str) -> Result<String, (u16, String)> {
        let q = json!({"q": "select current_user::text as name"});
        let (status, response) = self.node.post("/api/v4/sql", Some(token), q).await;
        match response["data"][0]["name"].as_str() {
            Some(name) => Ok(name.to_owned()),
            None => Err((
                status.as_u16(),
                response["message"].as_str().unwrap_or_default().to_owned(),
            )),
        }
    }

    /// The titles of the invoices that a token sees by GraphQL.
    pub(crate) async fn titles(&self, token: &str) -> Vec<String> {
        let query = json!({"query": "{ getInvoices(orderBy: {id: asc}) { title } }"});
        let (status, response) = self.node.post(GRAPHQL, Some(token), query).await;
        assert_eq!(status, StatusCode::OK, "{response}");
        let rows = response["data"]["getInvoices"].as_array();
        let rows = rows.unwrap_or_else(|| panic!("{response}"));
        let title = |row: &Value| row["title"].as_str().unwrap().to_owned();
        rows.iter().map(title).collect()
    }
}

#[tokio::test]
async fn a_claim_names_a_user_and_the_request_runs_as_its_role() {
    let world = world().await;
    world
        .user("ann", json!({"properties": {"org": "acme"}}))
        .await;
    world
        .user("gil", json!({"properties": {"org": "globex"}}))
        .await;
    world
        .accept(json!({"user_claim": "preferred_username", "role_claim": "realm_access.roles[0]"}))
        .await;
    let ann = world.token(json!({"preferred_username": "ann", "org": "globex"}));
    let gil = world.token(json!({"realm_access": {"roles": ["gil", "ann"]}}));
    assert_eq!(world.role(&ann).await.unwrap(), "shop/ann");
    assert_eq!(world.role(&gil).await.unwrap(), "shop/gil");
    // A user's claims are its own properties, not those of the token.
    assert_eq!(world.titles(&ann).await, ["Paint"]);
    assert_eq!(world.titles(&gil).await, ["Cement"]);
    // Such a token does not manage the tenant.
    for path in ["/api/v4/tokens", "/api/v4/methods", "/api/v4/users"] {
        let body = json!({"name": "x", "method": "x", "q": "select 1"});
        let (status, response) = world.node.post(path, Some(&ann), body).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{path} {response}");
    }
    let refused = world
        .role(&world.token(json!({"preferred_username": "eve"})))
        .await;
    let (status, text) = refused.unwrap_err();
    assert_eq!(status, 403);
    assert!(
        text.contains("`preferred_username` or `realm_access.roles[0]`"),
        "{text}"
    );
    // A dropped user's token is refused within five seconds.
    world
        .rest(Method::DELETE, "/api/v4/users/ann", json!({}))
        .await;
    let began = std::time::Instant::now();
    eventually("the token is refused", async || {
        world.role(&ann).await.is_err()
    })
    .await;
    assert!(
        began.elapsed() < Duration::from_secs(6),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(world.role(&gil).await.unwrap(), "shop/gil");
}

#[tokio::test]
async fn members_of_a_group_see_the_rows_of_their_organisation() {
    let world = world().await;
    let role_claim = "[\"https://shop.example.com/roles\"]";
    world
        .accept(json!({"role_claim": role_claim, "default_role": "staff"}))
        .await;
    let acme = world.token(json!({"sub": "auth0|1", "org": "acme",
        "https://shop.example.com/roles": ["none", "staff"]}));
    let globex = world.token(json!({"sub": "auth0|2", "org": "globex"}));
    for _ in 0..10 {
        assert_eq!(world.titles(&acme).await, ["Paint"]);
        assert_eq!(world.titles(&globex).await, ["Cement"]);
    }
    let insert = json!({"query":
        "mutation { insertInvoices(data: {id: 9, org: \"acme\", title: \"Own\"}) { author } }"});
    let (_, response) = world.node.post(GRAPHQL, Some(&acme), insert.clone()).await;
    assert!(
        response.to_string().contains("\"id:auth0|1\""),
        "{response}"
    );
    let (_, response) = world.node.post(GRAPHQL, Some(&globex), insert).await;
    assert!(response["errors"].is_array(), "{response}");
    // SQL and methods that the members wrote are refused. Methods of the owner are not.
    let (status, text) = world.role(&acme).await.unwrap_err();
    assert!(
        status == 403 && text.contains("no SQL of their own"),
        "{status} {text}"
    );
    let method = json!({"method": "mine", "q": "select title, tidegate.user_id() as id from invoices where id < 9"});
    let (status, _) = world
        .node
        .post("/api/v4/methods", Some(&acme), method.clone())
        .await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    let (status, response) = world
        .node
        .post("/api/v4/methods", Some(&world.owner), method)
        .await;
    assert_eq!(status, StatusCode::CREATED, "{response}");
    let call = json!({"jsonrpc": "2.0", "method": "mine", "id": 1});
    let (_, response) = world.node.post("/api/v4/call", Some(&acme), call).await;
    let text = response.to_string();
    assert!(
        text.contains("Paint") && text.contains("id:auth0|1") && !text.contains("Cement"),
        "{text}"
    );
}

#[tokio::test]
async fn sockets_take_such_tokens_and_end_with_their_issuer() {
    let world = world().await;
    world.accept(json!({"default_role": "staff"})).await;
    let token = world.token(json!({"org": "acme", "fva": [1, -1], "uti": "a"}));
    let mut socket = open_at(&world.node.url, &format!("/?token={token}"), &[])
        .await
        .unwrap();
    let method = json!({"method": "theirs", "q": "select title from invoices"});
    let (status, response) = world
        .node
        .post("/api/v4/methods", Some(&world.owner), method)
        .await;
    assert_eq!(status, StatusCode::CREATED, "{response}");
    let call = json!({"jsonrpc": "2.0", "method": "theirs", "id": 1});
    let response = socket.ask(call).await;
    assert!(response.to_string().contains("Paint"), "{response}");
    let response = socket.ask(json!({"q": "select 1", "id": 2})).await;
    assert!(
        response.to_string().contains("no SQL of their own"),
        "{response}"
    );
    // The next token of the same person renews the socket while a subscription runs. The token has
    // other times, and other values of the claims that differ in every token.
    let rows = json!({"type": "subscription", "id": "1", "schema": "public", "rel": "invoices"});
    assert_eq!(socket.ask(rows).await["type"], "subscription_ack");
    let next = json!({"org": "acme", "exp": now() + 900, "fva": [2, -1], "uti": "b"});
    let renewed = world.token(next);
    let ack = socket.ask(json!({"type": "auth", "token": renewed})).await;
    assert_eq!(ack["type"], "auth_ack", "{ack}");
    assert!(ack["expires_in"].as_i64().unwrap() > 600, "{ack}");
    world
        .rest(Method::DELETE, &format!("{ISSUERS}/id"), json!({}))
        .await;
    let response = socket.ask(json!({"q": "select 1", "id": 3})).await;
    assert!(
        response
            .to_string()
            .contains("not one that the database accepts"),
        "{response}"
    );
}
