//! When tokens of members end (docs/API.md, "Members"), and conversions between the kinds of users.

use serde_json::{Value, json};

use crate::members::{GRAPHQL, SignedIn, USERS, member, run, two};
use crate::node::{Node, operator};
use crate::openid_identifiers::introspected;
use crate::service::{RestResponse, demo, eventually};
use crate::users::{SQL, owner, sign_in};

async fn patch(name: &str, change: Value) -> RestResponse {
    owner("PATCH", &format!("{USERS}/{name}"), change).await
}

async fn new(name: &str) -> SignedIn {
    let made = owner("POST", USERS, member(name, "mtoken")).await;
    assert_eq!(made.status, 201, "{made:?}");
    SignedIn::of(name).await
}

/// A new personal access token of a user.
async fn personal_token(user: &SignedIn, body: Value) -> SignedIn {
    let made = user.post("/api/v4/tokens", body).await;
    assert_eq!(made.status, 201, "{made:?}");
    SignedIn {
        token: made.body["token"].as_str().unwrap().to_owned(),
        id: user.id.clone(),
    }
}

#[tokio::test]
async fn a_change_of_what_policies_see_ends_the_tokens() {
    for name in ["mtok_group", "mtok_claims", "mtok_password", "mtok_kind"] {
        new(name).await;
    }
    for (name, change) in [
        ("mtok_group", json!({"user_group": "mtoken_other"})),
        ("mtok_claims", json!({"properties": {"org": "globex"}})),
        ("mtok_password", json!({"password": "another-password"})),
        ("mtok_kind", json!({"kind": "role"})),
        ("mtok_kind", json!({"kind": "member"})),
    ] {
        let signed_in = SignedIn::of(name).await;
        let personal = personal_token(&signed_in, json!({"name": "job"})).await;
        for token in [&signed_in, &personal] {
            assert_eq!(token.status().await, 200, "{name}");
        }
        let changed = patch(name, change.clone()).await;
        assert_eq!(changed.status, 303, "{name}: {changed:?}");
        for token in [&signed_in, &personal] {
            assert_eq!(token.status().await, 401, "{name}: {change}");
        }
    }
    let same = new("mtok_same").await;
    for change in [
        json!({"email": "m@example.org"}),
        json!({"user_group": "mtoken"}),
    ] {
        assert_eq!(patch("mtok_same", change.clone()).await.status, 303);
        assert_eq!(same.status().await, 200, "{change}");
    }
    let gone = new("mtok_gone").await;
    let dropped = owner("DELETE", "/api/v4/users/mtok_gone", Value::Null).await;
    assert_eq!(dropped.status, 204, "{dropped:?}");
    assert_eq!(gone.status().await, 401);
    assert_eq!(
        sign_in(demo(), "mtok_gone", "mtok_gone-password")
            .await
            .status,
        400
    );
    // A new person of this name is not the person who had it before.
    let again = new("mtok_gone").await;
    assert_ne!(again.id, gone.id);
    assert_eq!(gone.status().await, 401);
}

#[tokio::test]
async fn refresh_tokens_personal_tokens_and_introspection_work() {
    let signed_in = new("mtok_grants").await;
    let response = sign_in(demo(), "mtok_grants", "mtok_grants-password").await;
    let refresh = json!({"grant_type": "refresh_token", "client_id": "demo-app",
        "refresh_token": response.body["refresh_token"]});
    let refreshed = demo()
        .rest_with(None, ("POST", "/api/v4/oauth"), &refresh)
        .await;
    assert_eq!(refreshed.status, 200, "{refreshed:?}");
    let renewed = SignedIn {
        token: refreshed.body["access_token"].as_str().unwrap().to_owned(),
        id: signed_in.id.clone(),
    };
    assert_eq!(renewed.status().await, 200);
    let personal = json!({"name": "job", "scopes": ["read"]});
    let personal = personal_token(&signed_in, personal).await;
    assert_eq!(personal.status().await, 200);
    for token in [&renewed, &personal] {
        let reported = introspected(&token.token).await;
        assert_eq!(reported["user_id"], token.id, "{reported}");
        assert_eq!(reported["username"], "mtok_grants", "{reported}");
    }
    assert_eq!(
        personal.post(SQL.1, json!({"q": "select 1"})).await.status,
        403
    );
    patch("mtok_grants", json!({"properties": null})).await;
    assert_eq!(
        demo()
            .rest_with(None, ("POST", "/api/v4/oauth"), &refresh)
            .await
            .status,
        400
    );
    for token in [renewed, personal] {
        assert_eq!(token.status().await, 401);
    }
}

#[tokio::test]
async fn a_converted_user_keeps_its_id_and_its_rows() {
    let (a, b) = two("mconv").await;
    a.data("mutation { insertMconvNotes(data: {title: \"kept\"}) { id } }")
        .await;
    b.data("mutation { insertMconvNotes(data: {title: \"of b\"}) { id } }")
        .await;
    let converted = patch("mconv_a", json!({"kind": "role"})).await;
    assert_eq!(converted.status, 303, "{converted:?}");
    assert_eq!(a.status().await, 401);
    let as_role = SignedIn::of("mconv_a").await;
    assert_eq!(as_role.id, a.id);
    // The user is still in the group, and may run SQL now.
    let q = json!({"q": "select title, tidegate.user_id() as id, tidegate.claim('org') as org, \
        current_user::text as role from mconv_notes"});
    let rows = as_role.post(SQL.1, q.clone()).await;
    assert_eq!(
        rows.body["data"],
        json!([{"title": "kept", "id": a.id, "org": "acme", "role": "demo/mconv_a"}]),
        "{rows:?}"
    );
    // The conversion back to a member is refused, because what the role owns would be lost.
    run("grant create on schema public to \"demo/mconv_a\"").await;
    let table = json!({"q": "create table mconv_own ()"});
    assert_eq!(as_role.post(SQL.1, table).await.status, 200);
    let refused = patch("mconv_a", json!({"kind": "member"})).await;
    assert_eq!(refused.status, 409, "{refused:?}");
    assert!(refused.error().2.contains("owns"), "{refused:?}");
    // Of several users none is converted if one is refused.
    assert_eq!(patch("mconv_b", json!({"kind": "role"})).await.status, 303);
    let other = SignedIn::of("mconv_b").await;
    let refused = patch("mconv_b,mconv_a", json!({"kind": "member"})).await;
    assert_eq!(refused.status, 409, "{refused:?}");
    assert!(refused.error().2.contains("mconv_own"), "{refused:?}");
    assert_eq!(other.post(SQL.1, q.clone()).await.status, 200);
    assert_eq!(as_role.post(SQL.1, q.clone()).await.status, 200);
    let path = format!("{USERS}/mconv_a?reassign=true");
    let converted = owner("PATCH", &path, json!({"kind": "member"})).await;
    assert_eq!(converted.status, 303, "{converted:?}");
    assert_eq!(as_role.status().await, 401);
    let back = SignedIn::of("mconv_a").await;
    assert_eq!(back.id, a.id);
    assert_eq!(
        back.data("{ getMconvNotes { title author } }").await["getMconvNotes"],
        json!([{"title": "kept", "author": a.id}])
    );
    assert_eq!(back.post(SQL.1, q).await.status, 403);
    let admin = demo().admin().await;
    let roles = "select count(*) from pg_roles where rolname = 'demo/mconv_a'";
    assert_eq!(
        admin.query_one(roles, &[]).await.unwrap().get::<_, i64>(0),
        0
    );
    // Repeating the change has no effect.
    let again = patch("mconv_a", json!({"kind": "member"})).await;
    assert_eq!((again.status, back.status().await), (303, 200), "{again:?}");
}

#[tokio::test]
async fn conversions_that_make_no_sense_are_refused() {
    let user = json!({"name": "mconv_plain", "password": "mconv_plain-password"});
    assert_eq!(owner("POST", USERS, user).await.status, 201);
    for (name, change, text) in [
        (
            "demo",
            json!({"kind": "member", "user_group": "g"}),
            "owner",
        ),
        (
            "guest",
            json!({"kind": "member", "user_group": "g"}),
            "default user",
        ),
        ("mconv_plain", json!({"kind": "member"}), "`user_group`"),
        (
            "mconv_plain",
            json!({"kind": "member", "user_group": ["a", "b"]}),
            "`user_group`",
        ),
        ("mconv_plain", json!({"kind": 7}), "`kind`"),
        ("mconv_plain", json!({"id": "7"}), "`id`"),
    ] {
        let response = patch(name, change.clone()).await;
        let (status, _, message) = response.error();
        assert!(
            status == 400 && message.contains(text),
            "{name} {change}: {response:?}"
        );
    }
    let several = format!("{USERS}/mconv_plain,mconv_more");
    let more = json!({"name": "mconv_more", "password": "mconv_more-password"});
    assert_eq!(owner("POST", USERS, more).await.status, 201);
    // An error names the user that caused it, and then nothing has changed.
    for (name, change, text) in [
        (
            "demo",
            json!({"kind": "member", "user_group": "g"}),
            "user demo: `kind`: expected role for the owner of the database",
        ),
        (
            "guest",
            json!({"email": "x"}),
            "user mconv_plain: `email`: expected an e-mail address",
        ),
        (
            "guest",
            json!({"kind": "member", "user_group": "g"}),
            "user guest: `kind`: expected role for the default user",
        ),
    ] {
        let response = patch(&format!("mconv_plain,{name}"), change).await;
        let (status, _, message) = response.error();
        assert_eq!((status, message), (400, text), "{response:?}");
    }
    let shown = owner("GET", &format!("{USERS}/mconv_plain"), Value::Null).await;
    assert_eq!(shown.body["kind"], "role");
    let change = json!({"kind": "member", "user_group": "mconv_both"});
    assert_eq!(owner("PATCH", &several, change).await.status, 303);
    let shown = owner("GET", &several, Value::Null).await.body;
    for user in shown.as_array().unwrap() {
        assert_eq!(
            (&user["kind"], &user["user_group"]),
            (&json!("member"), &json!("mconv_both"))
        );
    }
}

/// The arguments of a command.
fn words(command: &str) -> Vec<&str> {
    command.split(' ').collect()
}

#[tokio::test]
async fn the_operator_creates_lists_and_converts_members() {
    let operator = operator().await;
    let node = Node::start(&operator).await;
    let create = "user create shop mia --member --group people --id 7 --password-file -";
    operator.succeeds(&words(create), "mia-password\n");
    let without_group = "user create shop max --member --no-password";
    let (_, text) = operator.fails(&words(without_group), "");
    assert!(text.contains("--group"), "{text}");
    let listed = operator.succeeds(&words("user list shop"), "");
    let line = listed.lines().find(|line| line.starts_with("mia")).unwrap();
    for part in ["shop/group/people", "member"] {
        assert!(line.contains(part), "{listed}");
    }
    let inside = operator.root("shop").await;
    let table =
        "create table seen (id text default tidegate.user_id()); grant all on seen to public";
    inside.batch_execute(table).await.unwrap();
    let token = async || {
        let tokens = node.sign_in("shop", "mia", "mia-password").await;
        tokens["access_token"].as_str().unwrap().to_owned()
    };
    let inserted = async |token: &str| {
        let insert = json!({"query": "mutation { insertSeen(data: {}) { id } }"});
        node.post(GRAPHQL, Some(token), insert).await.1["data"]["insertSeen"].clone()
    };
    let member = token().await;
    assert_eq!(inserted(&member).await, json!([{"id": "7"}]));
    let printed = operator.succeeds(&words("user convert shop mia --to role"), "");
    assert!(
        printed.contains("mia is a user with a role now"),
        "{printed}"
    );
    // The running node notices the change within seconds.
    eventually("the token is refused", async || {
        node.status(&member).await == 401
    })
    .await;
    let role = token().await;
    assert_eq!(node.status(&role).await, 200);
    assert_eq!(inserted(&role).await, json!([{"id": "7"}]));
    let convert = "user convert shop mia nobody --to member --group other";
    let (_, text) = operator.fails(&words(convert), "");
    assert!(text.contains("nobody"), "{text}");
    let listed = operator.succeeds(&words("user list shop"), "");
    assert!(!listed.contains("shop/group/other"), "{listed}");
    // Many at once, from a file or from another program.
    for name in ["one", "two"] {
        let create = format!("user create shop {name} --no-password");
        operator.succeeds(&words(&create), "");
    }
    let convert = "user convert shop mia --names-file - --to member --group many";
    let printed = operator.succeeds(&words(convert), "one\r\n\ntwo\n");
    for name in ["one", "two"] {
        assert!(
            printed.contains(&format!("{name} is a member now")),
            "{printed}"
        );
    }
    let listed = operator.succeeds(&words("user list shop"), "");
    assert_eq!(listed.matches("shop/group/many").count(), 3, "{listed}");
    let (_, text) = operator.fails(&words("user convert shop --to role"), "");
    assert!(text.contains("NAMES"), "{text}");
    node.stop();
}

#[tokio::test]
async fn a_node_lets_groups_with_members_log_in_when_it_starts() {
    let operator = operator().await;
    let create = "user create shop mia --member --group people --password-file -";
    operator.succeeds(&words(create), "mia-password\n");
    let root = operator.root("shop").await;
    // A restore without the roles leaves the cluster in this state.
    root.batch_execute("drop role \"shop/group/people\"")
        .await
        .unwrap();
    let node = Node::start(&operator).await;
    let tokens = node.sign_in("shop", "mia", "mia-password").await;
    let token = tokens["access_token"].as_str();
    let query = json!({"query": "{ __typename }"});
    eventually("the member's requests run", async || {
        node.post(GRAPHQL, token, query.clone()).await.0 == 200
    })
    .await;
    node.stop();
}
