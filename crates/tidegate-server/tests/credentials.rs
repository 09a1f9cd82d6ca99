//! Tests of the credentials beside a new password, on the page of a reset link.

use tidegate_identity::{
    AuditSince, LinkedIdentity, Passkey, SecondFactor, SecretHash, UserChange, UserKey,
};

use crate::fixture::{Api, TestResponse};
use crate::pages::Browser;
use crate::ports::connected;

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
        // The address is confirmed when no other credential is left.
        let user = api.directory.user(&alice()).await.unwrap();
        assert_eq!(user.verified_email().is_some(), left == 0);
        assert_eq!(
            found.recovery_codes,
            Some(1),
            "a code is asked for as before"
        );
    }
    let audit = api.app.store().audit("demo", AuditSince::Number(0), 100);
    let entries = audit.await.unwrap().entries.into_iter();
    let removed: Vec<_> = entries
        .filter(|entry| entry.event.ends_with("_removed") || entry.event.ends_with("_unlinked"))
        .map(|entry| (entry.event, entry.detail.unwrap_or_default(), entry.actor))
        .collect();
    let actor = Some("alice".to_owned());
    let event = |kind: &str, detail: &str| (kind.to_owned(), detail.to_owned(), actor.clone());
    assert_eq!(
        removed,
        [
            event("passkey_removed", "Thief on Linux"),
            event("identity_unlinked", "https://one.example"),
        ]
    );
}
