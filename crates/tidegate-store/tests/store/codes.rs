//! Tests authorization codes and device codes.

use std::sync::Arc;
use std::time::Duration;

use tidegate_identity::{BrowserSession, EndReason, SecretHash, Timestamp, UserKey};
use tidegate_oauth::{
    Approval, AuthorizationCode, DeviceCode, DeviceState, IssuerStore, PurgeBefore, Scopes,
};

use super::samples::{NOW, client, session, user};

super::cases!(
    a_code_is_redeemed_once,
    of_ten_parallel_redemptions_one_succeeds,
    an_expired_code_gives_nothing,
    approvals_end_with_browser_user_and_client,
    a_device_code_passes_through_its_states,
    polls_follow_the_rule,
    a_user_code_is_kept_once,
    flows_are_purged,
);

pub(super) fn after(seconds: u64) -> Timestamp {
    NOW.plus(Duration::from_secs(seconds))
}

/// The times for a purge of codes, device codes and browser sessions only.
fn flows_before(seconds: u64) -> PurgeBefore {
    let zero = Timestamp::from_millis(0);
    PurgeBefore {
        sessions: zero,
        attempts: zero,
        audit: zero,
        flows: after(seconds),
    }
}

pub(super) fn hash(byte: u8) -> SecretHash {
    SecretHash::from_bytes([byte; 32])
}

pub(super) fn alice() -> UserKey {
    UserKey::new("shop", "alice")
}

fn code(byte: u8) -> AuthorizationCode {
    AuthorizationCode {
        hash: hash(byte),
        client_id: "app".to_owned(),
        redirect_uri: "https://app.example/cb?a={b}".to_owned(),
        challenge: "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM".to_owned(),
        user: alice(),
        browser: Some(hash(1)),
        expires_at: after(60),
        session: None,
        scopes: Scopes::parse("read").unwrap(),
        nonce: Some(format!("n-{byte}")),
    }
}

fn device(byte: u8, user_code: &str) -> DeviceCode {
    DeviceCode {
        hash: hash(byte),
        user_code: user_code.to_owned(),
        client_id: "app".to_owned(),
        state: DeviceState::Pending,
        interval: Duration::from_secs(5),
        poll_at: None,
        expires_at: after(1800),
        scopes: Scopes::parse("write").unwrap(),
    }
}

pub(super) fn browser(byte: u8) -> BrowserSession {
    BrowserSession {
        id: hash(byte),
        user: alice(),
        password_fingerprint: hash(9),
        second_factor: false,
        agent: "A \"browser\" <b>".to_owned(),
        address: Some("2001:db8::7".parse().unwrap()),
        created_at: NOW,
        seen_at: NOW,
        expires_at: after(100),
    }
}

fn approval() -> Approval {
    Approval {
        user: alice(),
        browser: hash(1),
    }
}

/// Adds the client, the user and the signed-in browser that the codes need.
async fn fill(store: &Arc<dyn IssuerStore>) {
    store.insert_client(&client("app", "shop")).await.unwrap();
    store.insert_user(&user("shop", "alice")).await.unwrap();
    store.insert_browser_session(&browser(1)).await.unwrap();
}

async fn a_code_is_redeemed_once(store: Arc<dyn IssuerStore>) {
    fill(&store).await;
    let code = code(1);
    store.insert_code(&code).await.unwrap();
    assert_eq!(store.code(code.hash).await.unwrap(), Some(code.clone()));
    assert_eq!(store.code(hash(2)).await.unwrap(), None);
    let open = session(1, "shop", "alice", "app");
    assert!(!store.redeem_code(hash(2), &open).await.unwrap());
    assert!(store.redeem_code(code.hash, &open).await.unwrap());
    assert_eq!(store.session(open.id).await.unwrap(), Some(open.clone()));
    let used = store.code(code.hash).await.unwrap().unwrap();
    assert_eq!(used.session, Some(open.id));
    let again = session(2, "shop", "alice", "app");
    assert!(!store.redeem_code(code.hash, &again).await.unwrap());
    assert_eq!(store.session(again.id).await.unwrap(), None);
}

async fn of_ten_parallel_redemptions_one_succeeds(store: Arc<dyn IssuerStore>) {
    fill(&store).await;
    store.insert_code(&code(1)).await.unwrap();
    let tasks: Vec<_> = (0..10)
        .map(|number| {
            let store = store.clone();
            tokio::spawn(async move {
                let open = session(number, "shop", "alice", "app");
                let redeemed = store.redeem_code(hash(1), &open).await.unwrap();
                let found = store.session(open.id).await.unwrap();
                assert_eq!(found.is_some(), redeemed);
                redeemed
            })
        })
        .collect();
    let mut redeemed = 0;
    for task in tasks {
        redeemed += usize::from(task.await.unwrap());
    }
    assert_eq!(redeemed, 1);
}

async fn an_expired_code_gives_nothing(store: Arc<dyn IssuerStore>) {
    fill(&store).await;
    let code = AuthorizationCode {
        expires_at: NOW,
        ..code(1)
    };
    store.insert_code(&code).await.unwrap();
    let open = session(1, "shop", "alice", "app");
    assert!(!store.redeem_code(code.hash, &open).await.unwrap());
    assert_eq!(store.code(code.hash).await.unwrap().unwrap().session, None);
}

/// Whether the unused code, the device code and the used code still exist.
async fn left(store: &Arc<dyn IssuerStore>, number: u128) -> (bool, bool, bool) {
    let mut codes = [false; 2];
    for (code, hash) in codes.iter_mut().zip([hash(1), hash(3)]) {
        *code = store.code(hash).await.unwrap().is_some();
    }
    let open = session(number + 1, "shop", "alice", "app");
    let alive = store.redeem_code(hash(1), &open).await.unwrap();
    let device = store.device_code("BCDFGHJK").await.unwrap().is_some();
    let open = session(number + 2, "shop", "alice", "app");
    let redeemed = store.redeem_device_code(hash(1), &open).await.unwrap();
    assert_eq!(device, redeemed);
    assert!(codes[0] || !alive);
    (alive, device, codes[1])
}

async fn approvals_end_with_browser_user_and_client(store: Arc<dyn IssuerStore>) {
    for (number, (event, expected)) in (1..).step_by(3).zip([
        ("nothing", (true, true, true)),
        ("browser", (false, false, true)),
        ("sessions", (false, false, true)),
        ("purge", (false, false, true)),
        ("consent", (false, false, true)),
        ("consent of another client", (true, true, true)),
        ("user", (false, false, true)),
        ("client", (false, false, false)),
        ("tenant", (false, false, false)),
    ]) {
        fill(&store).await;
        store.insert_code(&code(1)).await.unwrap();
        let used = AuthorizationCode {
            expires_at: after(500),
            ..code(3)
        };
        store.insert_code(&used).await.unwrap();
        let open = session(number, "shop", "alice", "app");
        assert!(store.redeem_code(hash(3), &open).await.unwrap());
        let device = device(1, "BCDFGHJK");
        assert!(store.insert_device_code(&device).await.unwrap());
        let by = approval();
        let decided = store.decide_device_code("BCDFGHJK", Some(&by), NOW).await;
        assert!(decided.unwrap());
        let reason = EndReason::PasswordChanged;
        match event {
            "browser" => assert!(store.delete_browser_session(hash(1)).await.unwrap()),
            "sessions" => {
                let ended = store.end_sessions_of_user(&alice(), reason, NOW).await;
                assert_eq!(ended.unwrap(), [open.id]);
            }
            "purge" => assert!(store.purge(flows_before(101)).await.unwrap() >= 1),
            "consent" => assert!(!store.delete_consent(&alice(), "app").await.unwrap()),
            "consent of another client" => {
                assert!(!store.delete_consent(&alice(), "other").await.unwrap());
            }
            "user" => assert!(store.delete_user(&alice(), NOW).await.unwrap()),
            "client" => assert!(store.delete_client("app", NOW).await.unwrap()),
            "tenant" => store.delete_tenant("shop", NOW).await.unwrap(),
            _ => {}
        }
        assert_eq!(left(&store, number).await, expected, "{event}");
        store.delete_tenant("shop", NOW).await.unwrap();
    }
}

async fn a_device_code_passes_through_its_states(store: Arc<dyn IssuerStore>) {
    fill(&store).await;
    let device = device(1, "BCDFGHJK");
    assert!(store.insert_device_code(&device).await.unwrap());
    let found = store.device_code("BCDFGHJK").await.unwrap();
    assert_eq!(found, Some(device.clone()));
    let open = session(1, "shop", "alice", "app");
    let redeem = async || store.redeem_device_code(hash(1), &open).await.unwrap();
    assert!(!redeem().await, "nobody has decided");
    let by = approval();
    let decide = async |by, now| store.decide_device_code("BCDFGHJK", by, now).await.unwrap();
    assert!(!decide(Some(&by), after(1800)).await, "too late");
    assert!(decide(Some(&by), after(1799)).await);
    assert!(!decide(None, after(1)).await, "decided");
    let state = store.device_code("BCDFGHJK").await.unwrap().unwrap().state;
    assert_eq!(state, DeviceState::Approved(approval()));
    assert!(redeem().await);
    assert!(!redeem().await, "consumed");
    assert_eq!(store.session(open.id).await.unwrap(), Some(open.clone()));
    let other = DeviceCode {
        hash: hash(2),
        user_code: "ZZZZZZZZ".to_owned(),
        ..device
    };
    assert!(store.insert_device_code(&other).await.unwrap());
    assert!(
        store
            .decide_device_code("ZZZZZZZZ", None, NOW)
            .await
            .unwrap()
    );
    let state = store.device_code("ZZZZZZZZ").await.unwrap().unwrap().state;
    assert_eq!(state, DeviceState::Denied);
}

async fn polls_follow_the_rule(store: Arc<dyn IssuerStore>) {
    fill(&store).await;
    let mut expected = device(1, "BCDFGHJK");
    store.insert_device_code(&expected).await.unwrap();
    let foreign = store.poll_device_code(hash(1), "other", NOW).await.unwrap();
    assert_eq!(foreign, None);
    for millis in [0, 4_499, 4_500, 14_500, 20_000, 60_000, 74_500] {
        let now = NOW.plus(Duration::from_millis(millis));
        let polled = store
            .poll_device_code(hash(1), "app", now)
            .await
            .unwrap()
            .unwrap();
        let by_rule = expected.polled(now);
        assert_eq!(polled, by_rule, "{millis}");
        expected = by_rule.device;
    }
}

async fn a_user_code_is_kept_once(store: Arc<dyn IssuerStore>) {
    fill(&store).await;
    assert!(
        store
            .insert_device_code(&device(1, "BCDFGHJK"))
            .await
            .unwrap()
    );
    assert!(
        !store
            .insert_device_code(&device(2, "BCDFGHJK"))
            .await
            .unwrap()
    );
    assert!(
        store
            .insert_device_code(&device(2, "BCDFGHJL"))
            .await
            .unwrap()
    );
}

async fn flows_are_purged(store: Arc<dyn IssuerStore>) {
    fill(&store).await;
    store.insert_code(&code(1)).await.unwrap();
    store
        .insert_device_code(&device(1, "BCDFGHJK"))
        .await
        .unwrap();
    assert_eq!(store.purge(flows_before(60)).await.unwrap(), 0);
    assert_eq!(store.purge(flows_before(61)).await.unwrap(), 1);
    assert_eq!(store.purge(flows_before(1801)).await.unwrap(), 2);
    assert_eq!(store.code(hash(1)).await.unwrap(), None);
}
