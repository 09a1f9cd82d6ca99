//! Disabled users (API.md, "Users"): what they had ends, and nothing lets them in until they are
//! enabled again.

use std::time::Instant;

use serde_json::{Value, json};

use crate::flows::{client, failure, redemption};
use crate::members::{GRAPHQL, SignedIn, USERS, member};
use crate::node::{Node, operator};
use crate::pages::{Browser, CALLBACK, authorization};
use crate::service::{RestResponse, demo, eventually};
use crate::socket_client::{open_at, socket_at};
use crate::users::{SQL, owner, sign_in};

async fn set_disabled(name: &str, disabled: bool) {
    let change = json!({"disabled": disabled});
    let changed = owner("PATCH", &format!("{USERS}/{name}"), change).await;
    assert_eq!(changed.status, 303, "{name}: {changed:?}");
}

/// A user of each kind, with the password that [`SignedIn::of`] expects.
async fn create_both(prefix: &str) -> [String; 2] {
    let names = ["member", "role"].map(|kind| format!("{prefix}_{kind}"));
    let role = json!({"name": names[1], "password": format!("{}-password", names[1])});
    let users = json!([member(&names[0], &format!("{prefix}_group")), role]);
    let made = owner("POST", USERS, users).await;
    assert_eq!(made.status, 201, "{made:?}");
    names
}

/// Signs in at the page of a client and returns the browser with a code that is not redeemed.
async fn signed_in_browser(name: &str, client: &str) -> (Browser<'static>, String) {
    let mut browser = Browser::new(demo());
    let page = browser.get(&authorization(client)).await;
    let password = format!("{name}-password");
    let fields = [("username", name), ("password", &*password)];
    let done = browser.submit(&page, "sign_in", &fields).await;
    assert!(done.location.starts_with(CALLBACK), "{}", done.text);
    let code = done.parameter("code");
    (browser, code)
}

/// A status and a body, to compare responses.
fn shown(response: &RestResponse) -> (u16, &Value) {
    (response.status, &response.body)
}

#[tokio::test]
async fn everything_of_a_disabled_user_ends_and_stays_ended() {
    client("dis-web", json!({"public": true, "confirm": false})).await;
    for name in create_both("dis").await {
        let signed_in = SignedIn::of(&name).await;
        let tokens = sign_in(demo(), &name, &format!("{name}-password")).await;
        let refresh = json!({"grant_type": "refresh_token", "client_id": "demo-app",
            "refresh_token": tokens.body["refresh_token"]});
        let personal = signed_in
            .post("/api/v4/tokens", json!({"name": "job"}))
            .await;
        let personal = SignedIn {
            token: personal.body["token"].as_str().unwrap().to_owned(),
            id: String::new(),
        };
        assert_eq!(personal.status().await, 200, "{name}");
        let impersonated = owner("POST", &format!("{USERS}/{name}/token"), Value::Null).await;
        let impersonated = SignedIn {
            token: impersonated.body["access_token"]
                .as_str()
                .unwrap()
                .to_owned(),
            id: String::new(),
        };
        let path = format!("/?token={}", signed_in.token);
        let mut socket = open_at(&demo().url, &path, &[]).await.unwrap();
        let (mut browser, code) = signed_in_browser(&name, "dis-web").await;

        set_disabled(&name, true).await;
        let user = owner("GET", &format!("{USERS}/{name}"), Value::Null).await;
        assert_eq!(user.body["disabled"], true, "{user:?}");
        for token in [&signed_in, &personal, &impersonated] {
            assert_eq!(token.status().await, 401, "{name}");
        }
        assert_eq!(socket.close_code().await, 4401, "{name}");
        let grant = || ("invalid_grant".to_owned(), 400);
        for body in [refresh.clone(), redemption("dis-web", &code)] {
            let (status, error) = failure(&body).await;
            assert_eq!((error, status), grant(), "{name}: {body}");
        }
        let page = browser.get(&authorization("dis-web")).await;
        assert!(!page.location.starts_with(CALLBACK), "{}", page.location);
        // The right password is not told apart from a wrong one.
        let right = sign_in(demo(), &name, &format!("{name}-password")).await;
        let wrong = sign_in(demo(), &name, "another-password").await;
        assert_eq!(shown(&right), shown(&wrong), "{name}");
        assert_eq!(right.status, 400);
        let refused = owner("POST", &format!("{USERS}/{name}/token"), Value::Null).await;
        assert_eq!(refused.status, 403, "{refused:?}");

        set_disabled(&name, false).await;
        for token in [&signed_in, &personal, &impersonated] {
            assert_eq!(token.status().await, 401, "{name}");
        }
        assert_eq!(failure(&refresh).await.0, 400, "{name}");
        let again = SignedIn::of(&name).await;
        assert_eq!((again.status().await, again.id), (200, signed_in.id));
    }
}

#[tokio::test]
async fn a_service_user_that_is_disabled_gets_no_token() {
    let [_, name] = create_both("dserv").await;
    let made = client("dserv", json!({"service_user": name})).await;
    let body = json!({"grant_type": "client_credentials", "client_id": "dserv",
        "client_secret": made["secret"]});
    let granted = demo().rest_with(None, ("POST", "/api/v4/oauth"), &body);
    let granted = granted.await.body;
    let token = granted["access_token"].as_str().unwrap();
    let select = json!({"q": "select 1 as one"});
    assert_eq!(
        demo().rest_with(Some(token), SQL, &select).await.status,
        200
    );
    set_disabled(&name, true).await;
    assert_eq!(
        demo().rest_with(Some(token), SQL, &select).await.status,
        401
    );
    assert_eq!(
        failure(&body).await,
        (400, "unauthorized_client".to_owned())
    );
}

#[tokio::test]
async fn who_may_be_disabled_and_by_whom() {
    for name in ["demo", "guest"] {
        let change = json!({"disabled": true});
        let refused = owner("PATCH", &format!("{USERS}/{name}"), change).await;
        let (status, _, text) = refused.error();
        assert!(
            status == 400 && text.contains("`disabled`"),
            "{name}: {text}"
        );
    }
    let [name, _] = create_both("dwho").await;
    let path = format!("{USERS}/{name}");
    let both = json!({"disabled": true, "properties": {"org": "acme"}});
    assert_eq!(owner("PATCH", &path, both).await.status, 303);
    let wrong = owner("PATCH", &path, json!({"disabled": "yes"})).await;
    assert!(wrong.error().2.contains("`disabled`"), "{wrong:?}");
    set_disabled(&name, false).await;
    let signed_in = SignedIn::of(&name).await;
    let token = Some(signed_in.token.as_str());
    let change = json!({"disabled": false});
    let refused = demo().rest_with(token, ("PATCH", &path), &change).await;
    assert_eq!(refused.status, 403, "{refused:?}");
    let new = json!({"name": "dwho_new", "password": "dwho-password", "disabled": true});
    assert_eq!(owner("POST", USERS, new).await.status, 400);
}

#[tokio::test]
async fn the_operator_disables_a_user_on_all_nodes_within_five_seconds() {
    let operator = operator().await;
    let node = Node::start(&operator).await;
    let words = |command: &'static str| command.split(' ').collect::<Vec<_>>();
    let create = "user create shop mia --member --group people --password-file -";
    operator.succeeds(&words(create), "mia-password\n");
    let tokens = node.sign_in("shop", "mia", "mia-password").await;
    let token = tokens["access_token"].as_str().unwrap().to_owned();
    let mut socket = socket_at(&node, "mia", "mia-password").await;
    operator.succeeds(&words("user change shop mia --disabled true"), "");
    let since = Instant::now();
    eventually("the token is refused", async || {
        node.status(&token).await == 401
    })
    .await;
    assert_eq!(socket.close_code().await, 4401);
    assert!(since.elapsed().as_secs() < 5, "{:?}", since.elapsed());
    let listed = operator.succeeds(&words("user list shop"), "");
    let line = listed.lines().find(|line| line.starts_with("mia")).unwrap();
    assert!(line.contains("disabled"), "{listed}");
    operator.succeeds(&words("user change shop mia --disabled false"), "");
    let again = node.sign_in("shop", "mia", "mia-password").await;
    let again = again["access_token"].as_str().unwrap();
    let query = json!({"query": "{ __typename }"});
    assert_eq!(node.post(GRAPHQL, Some(again), query).await.0, 200);
    node.stop();
}
