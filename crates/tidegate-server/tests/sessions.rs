//! Tests of `/api/v4/sessions`: OAuth sessions.

use http::Method;
use serde_json::{Value, json};

use crate::fixture::{Api, TestResponse, request};

async fn signed_in(api: &Api, user: &str) -> Value {
    json!({"access_token": api.token(user).await})
}

async fn end(api: &Api, token: &Value, ids: &str) -> TestResponse {
    let bearer = format!("Bearer {}", token["access_token"].as_str().unwrap());
    let path = format!("/api/v4/sessions/{ids}");
    let asked = request(Method::DELETE, &path).header("authorization", bearer);
    api.call(asked.body(String::new()).unwrap()).await
}

fn ids(list: &TestResponse) -> Vec<String> {
    assert_eq!(list.status, 200, "{}", list.text());
    let list = list.json();
    let ids = list.as_array().unwrap().iter();
    ids.map(|one| one["id"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn the_owner_sees_all_sessions_and_a_user_its_own() {
    let api = Api::start().await;
    let (owner, alice) = (
        signed_in(&api, "demo").await,
        signed_in(&api, "alice").await,
    );
    let guest = json!({"database": "demo", "client_id": "app"});
    assert_eq!(api.post("/api/v4/oauth/guest", &guest).await.status, 201);
    let all = api.get_as("/api/v4/sessions", &owner).await;
    assert_eq!(ids(&all).len(), 2, "without guests: {}", all.text());
    let own = api.get_as("/api/v4/sessions", &alice).await;
    assert_eq!(ids(&own).len(), 1);
    let session = &own.json()[0];
    assert_eq!(session["user"], "alice");
    assert_eq!(session["client_id"], "app");
    assert_eq!(session["grant"], "password");
    assert_eq!(session["current"], true);
    assert_eq!(session["created_at"], "2027-01-15T08:00:00Z");
    let named = api.get_as("/api/v4/sessions?user=alice", &owner).await;
    assert_eq!(ids(&named), ids(&own));
    let others = api.get_as("/api/v4/sessions?user=demo", &alice).await;
    assert_eq!(others.error().0, 404);
}

#[tokio::test]
async fn an_ended_session_is_refused_at_once() {
    let api = Api::start().await;
    let (owner, alice) = (
        signed_in(&api, "demo").await,
        signed_in(&api, "alice").await,
    );
    let id = ids(&api.get_as("/api/v4/sessions", &alice).await).remove(0);
    assert_eq!(end(&api, &owner, &id).await.status, 204);
    let refused = api.get_as("/api/v4/sessions", &alice).await;
    assert_eq!(refused.error(), (401, "INVALID_TOKEN".to_owned()));
    assert_eq!(end(&api, &owner, &id).await.error().0, 404, "it is gone");
}

#[tokio::test]
async fn sessions_of_others_are_not_found_and_then_none_ends() {
    let api = Api::start().await;
    let (owner, alice) = (
        signed_in(&api, "demo").await,
        signed_in(&api, "alice").await,
    );
    let own = ids(&api.get_as("/api/v4/sessions", &alice).await).remove(0);
    let all = ids(&api.get_as("/api/v4/sessions", &owner).await);
    let foreign = all.iter().find(|id| **id != own).unwrap();
    for ids in [foreign.clone(), format!("{own},{foreign}"), "x".to_owned()] {
        assert_eq!(end(&api, &alice, &ids).await.error().0, 404, "{ids}");
    }
    let still = api.get_as("/api/v4/sessions", &alice).await;
    assert_eq!(ids(&still), [own]);
}
