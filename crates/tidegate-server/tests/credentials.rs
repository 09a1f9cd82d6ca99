//! Tests of `/api/v4/users/{name}/credentials`, and of the credentials beside a new password.

use http::Method;
use serde_json::json;
use tidegate_identity::{
    AuditSince, LinkedIdentity, Passkey, SecondFactor, SecretHash, UserChange, UserKey,
};

use crate::fixture::{Api, TestResponse, request};
use crate::pages::{Browser, signed_in};
use crate::ports::connected;

const PATH: &str = "/api/v4/users/alice/credentials";

fn alice() -> UserKey {
    UserKey::new("demo", "alice")
}

/// Gives alice a passkey, a linked account and a second factor.
async fn intruded(api: &Api) {
    let (store, key) = (api.app.store(), alice());
    let passkey = Passkey {
        id: "one".to_owned(),
        name: "Thief on Linux".to_owned(),
        record: "{}".to_owned(),
        created_at: api.app.issuer().now(),
        used_at: None,
    };
    assert!(store.insert_passkey(&key, &passkey).await.unwrap());
    let account = LinkedIdentity {
        provider: Some("one".to_owned()),
        issuer: "https://one.example".to_owned(),
        subject: "7".to_owned(),
        name: Some("thief".to_owned()),
        linked_at: None,
    };
    assert!(store.insert_identity(&key, &account).await.unwrap());
    let factor = SecondFactor {
        sealed_secret: vec![1],
        used_step: 0,
        recovery_codes: 1,
    };
    let code = [SecretHash::from_bytes([1; 32])];
    let added = store.insert_second_factor(&key, &factor, &code);
    assert!(added.await.unwrap());
}

async fn ask(api: &Api, (method, path): (Method, &str), token: &str) -> TestResponse {
    let bearer = format!("Bearer {token}");
    let asked = request(method, path).header("authorization", bearer);
    api.call(asked.body(String::new()).unwrap()).await
}

async fn events(api: &Api) -> Vec<(String, Option<String>)> {
    let audit = api.app.store().audit("demo", AuditSince::Number(0), 100);
    let entries = audit.await.unwrap().entries.into_iter();
    let removed = entries.filter(|entry| {
        let event = &*entry.event;
        event.ends_with("_removed") || event.ends_with("_unlinked")
    });
    removed.map(|entry| (entry.event, entry.detail)).collect()
}

#[tokio::test]
async fn the_owner_sees_and_removes_the_credentials_of_a_user() {
    let api = Api::start().await;
    let (owner, own) = (api.token("demo").await, api.token("alice").await);
    let mut browser = signed_in(&api).await;
    intruded(&api).await;
    let since = "2027-01-15T08:00:00Z";
    let expected = json!({
        "password": true,
        "passkeys": [{"name": "Thief on Linux", "created_at": since, "used_at": null}],
        "linked_accounts": [
            {"issuer": "https://one.example", "name": "thief", "linked_at": null}
        ],
        "second_factor": {"recovery_codes": 1},
    });
    for token in [&owner, &own] {
        let shown = ask(&api, (Method::GET, PATH), token).await;
        assert_eq!(shown.json(), expected);
    }
    let path = format!("{PATH}/passkeys%2Clinked_accounts,second_factor");
    let removed = ask(&api, (Method::DELETE, &path), &owner).await;
    assert_eq!(removed.status, 204, "{}", removed.text());
    let left = ask(&api, (Method::GET, PATH), &owner).await.json();
    assert_eq!(
        left,
        json!({"password": true, "passkeys": [], "linked_accounts": [], "second_factor": null})
    );
    let ended = ask(&api, (Method::GET, PATH), &own).await;
    assert_eq!(ended.error(), (401, "INVALID_TOKEN".to_owned()));
    let page = browser.get(&api, "/account").await;
    assert!(page.text().contains("Sign in"), "{}", page.text());
    let expected = [
        ("passkey_removed", Some("Thief on Linux")),
        ("identity_unlinked", Some("https://one.example")),
        ("second_factor_removed", None),
    ];
    let expected = expected.map(|(event, detail)| (event.to_owned(), detail.map(str::to_owned)));
    assert_eq!(events(&api).await, expected);
}

#[tokio::test]
async fn others_and_the_owner_itself_remove_no_credentials_here() {
    let api = Api::start().await;
    let (owner, own) = (api.token("demo").await, api.token("alice").await);
    intruded(&api).await;
    let passkeys = format!("{PATH}/passkeys");
    let of_owner = "/api/v4/users/demo/credentials";
    for (method, path, token, expected) in [
        (Method::DELETE, &*passkeys, &own, 403),
        (Method::GET, of_owner, &own, 403),
        (Method::GET, of_owner, &owner, 200),
        (
            Method::DELETE,
            &format!("{of_owner}/second_factor"),
            &owner,
            403,
        ),
        (Method::DELETE, &format!("{PATH}/password"), &owner, 404),
        (
            Method::DELETE,
            "/api/v4/users/zoe/credentials/passkeys",
            &owner,
            404,
        ),
        (Method::GET, "/api/v4/users/zoe/credentials", &owner, 404),
        (Method::DELETE, PATH, &owner, 405),
    ] {
        let answer = ask(&api, (method.clone(), path), token).await;
        assert_eq!(
            answer.status,
            expected,
            "{method} {path}: {}",
            answer.text()
        );
    }
    assert_eq!(events(&api).await, []);
}

/// The page of a link that resets the password of alice.
async fn reset_page(api: &Api, browser: &mut Browser) -> TestResponse {
    let messages = api.app.issuer().identity().reset_emails("demo", "alice");
    let message = messages.await.unwrap().remove(0);
    let (_, token) = message.text.split_once("?token=").unwrap();
    let token = token.split_whitespace().next().unwrap();
    browser.get(api, &format!("/reset?token={token}")).await
}

#[tokio::test]
async fn a_reset_shows_what_else_signs_in_and_removes_it_if_asked() {
    let (api, _) = connected().await;
    let change = UserChange {
        email: Some(Some("alice@example.org".to_owned())),
        ..UserChange::default()
    };
    api.directory.change_user(&alice(), change).await.unwrap();
    let mut browser = Browser::default();
    let plain = reset_page(&api, &mut browser).await;
    assert!(!plain.text().contains("only_password"), "{}", plain.text());
    intruded(&api).await;
    let chosen = ("password", "alice-9876");
    for (fields, left) in [
        (&[chosen][..], 1),
        (&[("password", "alice-8765"), ("only_password", "true")], 0),
    ] {
        let page = reset_page(&api, &mut browser).await;
        for part in [
            "Thief on Linux",
            "thief",
            "https://one.example",
            "only_password",
        ] {
            assert!(page.text().contains(part), "{part}: {}", page.text());
        }
        let done = browser.post(&api, (&page, "choose"), fields).await;
        assert_eq!(done.status, 200, "{}", done.text());
        let found = api.directory.credentials(&alice()).await.unwrap();
        assert_eq!(found.passkeys.len(), left);
        assert_eq!(found.linked_accounts.len(), left);
        assert_eq!(
            found.recovery_codes,
            Some(1),
            "a code is asked for as before"
        );
    }
}
