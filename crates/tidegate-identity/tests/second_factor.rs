//! Tests of the enrolment, verification and removal of a second factor.

use ring::hmac;
use tidegate_identity::{Browser, Clock as _, Enrolment, RequestContext, Secret, UserKey};

use crate::fixture::{Fixture, fault};

async fn browser(api: &Fixture, cookie: &Secret) -> Browser {
    api.service.browser(cookie).await.unwrap().unwrap()
}

async fn signed_in(api: &Fixture) -> Browser {
    let key = UserKey::new("demo", "alice");
    let password = Secret::new("alice1234");
    let cookie = api
        .service
        .sign_in(key, &password, None, &RequestContext::default())
        .await;
    browser(api, &cookie.unwrap()).await
}

/// The current code of an authenticator (RFC 6238).
fn shown(api: &Fixture, secret: &Secret) -> String {
    let secret = data_encoding::BASE32_NOPAD
        .decode(secret.expose().as_bytes())
        .unwrap();
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, &secret);
    let tag = hmac::sign(&key, &(api.clock.now().seconds() / 30).to_be_bytes());
    let at = usize::from(tag.as_ref()[19] & 15);
    let word: [u8; 4] = tag.as_ref()[at..at + 4].try_into().unwrap();
    format!(
        "{:06}",
        (u32::from_be_bytes(word) & 0x7fff_ffff) % 1_000_000
    )
}

async fn begun(api: &Fixture, browser: &Browser) -> Enrolment {
    let context = RequestContext::default();
    let begun = api.service.begin_enrolment(browser, None, &context);
    begun.await.unwrap()
}

/// A browser of alice with a second factor, its secret and its recovery codes.
async fn enrolled(api: &Fixture) -> (Browser, Secret, Vec<Secret>) {
    let before = signed_in(api).await;
    assert!(!before.lacks_second_factor);
    let begun = begun(api, &before).await;
    let again = api
        .service
        .resume_enrolment(&before.user.key, &begun.sealed)
        .unwrap();
    assert_eq!(begun.secret, again.secret, "the form brings it back");
    let name = "otpauth://totp/Tidegate:demo%2Falice?secret=";
    assert!(
        begun.uri.expose().starts_with(name),
        "{}",
        begun.uri.expose()
    );
    let context = RequestContext::default();
    let wrong = api
        .service
        .enrol(&before, (&begun.sealed, "000000"), &context)
        .await;
    assert_eq!(fault(wrong), "WrongSecondFactor");
    let right = shown(api, &begun.secret);
    let (codes, cookie) = api
        .service
        .enrol(&before, (&begun.sealed, &right), &context)
        .await
        .unwrap();
    assert_eq!(codes.len(), 10);
    (browser(api, &cookie).await, begun.secret, codes)
}

#[tokio::test]
async fn a_code_is_valid_once() {
    let api = Fixture::start().await;
    let (first, secret, _) = enrolled(&api).await;
    assert!(first.session.second_factor && !first.lacks_second_factor);
    let context = RequestContext::default();
    let second = signed_in(&api).await;
    assert!(second.lacks_second_factor);
    let used = shown(&api, &secret);
    let replay = api
        .service
        .verify_second_factor(&second, &used, &context)
        .await;
    assert_eq!(
        fault(replay),
        "WrongSecondFactor",
        "it was used to set it up"
    );
    api.clock.advance(std::time::Duration::from_secs(30));
    let fresh = shown(&api, &secret);
    let cookie = api
        .service
        .verify_second_factor(&second, &fresh, &context)
        .await
        .unwrap();
    let raised = browser(&api, &cookie).await;
    assert!(raised.session.second_factor);
    assert_ne!(raised.session.id, second.session.id, "a new cookie");
    let third = signed_in(&api).await;
    for replayed in [&used, &fresh] {
        let replay = api
            .service
            .verify_second_factor(&third, replayed, &context)
            .await;
        assert_eq!(fault(replay), "WrongSecondFactor");
    }
    for name in ["second_factor_added", "second_factor_failed"] {
        assert!(api.audit().contains(&name), "{name}");
    }
}

#[tokio::test]
async fn a_code_expires_after_the_next_step() {
    let api = Fixture::start().await;
    let (_, secret, _) = enrolled(&api).await;
    let context = RequestContext::default();
    let second = signed_in(&api).await;
    api.clock.advance(std::time::Duration::from_mins(1));
    let late = shown(&api, &secret);
    api.clock.advance(std::time::Duration::from_mins(1));
    let refused = api
        .service
        .verify_second_factor(&second, &late, &context)
        .await;
    assert_eq!(fault(refused), "WrongSecondFactor");
    let slow = shown(&api, &secret);
    api.clock.advance(std::time::Duration::from_secs(30));
    let taken = api
        .service
        .verify_second_factor(&second, &slow, &context)
        .await;
    taken.unwrap();
}

#[tokio::test]
async fn a_recovery_code_is_valid_once() {
    let api = Fixture::start().await;
    let (_, _, codes) = enrolled(&api).await;
    let context = RequestContext::default();
    let typed = codes[3].expose().to_uppercase().replace('-', "");
    let second = signed_in(&api).await;
    api.service
        .verify_second_factor(&second, &typed, &context)
        .await
        .unwrap();
    let third = signed_in(&api).await;
    let replay = api
        .service
        .verify_second_factor(&third, &typed, &context)
        .await;
    assert_eq!(fault(replay), "WrongSecondFactor");
    let left = api.service.second_factor_of(&third.user.key).await.unwrap();
    assert_eq!(left, Some(9));
    assert!(api.audit().contains(&"recovery_code_used"));
}

#[tokio::test]
async fn codes_cannot_be_guessed_for_long() {
    let api = Fixture::start().await;
    let (_, secret, _) = enrolled(&api).await;
    let second = signed_in(&api).await;
    api.clock.advance(std::time::Duration::from_secs(30));
    let context = RequestContext::default();
    let mut last = String::new();
    for _ in 0..6 {
        last = fault(
            api.service
                .verify_second_factor(&second, "123456", &context)
                .await,
        );
    }
    assert_eq!(last, "TooManyAttempts");
    let right = shown(&api, &secret);
    let response = api
        .service
        .verify_second_factor(&second, &right, &context)
        .await;
    assert_eq!(
        fault(response),
        "TooManyAttempts",
        "the right one waits too"
    );
}

#[tokio::test]
async fn removing_it_needs_a_browser_that_verified_it() {
    let api = Fixture::start().await;
    let (first, _, _) = enrolled(&api).await;
    let second = signed_in(&api).await;
    let context = RequestContext::default();
    let password = Secret::new("alice1234");
    let refused = api
        .service
        .remove_second_factor(&second, &password, &context);
    assert_eq!(fault(refused.await), "SecondFactorRequired");
    let begun = begun(&api, &second).await;
    let own = shown(&api, &begun.secret);
    let replaced = api
        .service
        .enrol(&second, (&begun.sealed, &own), &context)
        .await;
    assert_eq!(fault(replaced), "Taken", "nor replaces it");
    api.service
        .remove_second_factor(&first, &password, &context)
        .await
        .unwrap();
    assert!(!signed_in(&api).await.lacks_second_factor);
}

#[tokio::test]
async fn an_open_browser_alone_cannot_remove_it() {
    let context = RequestContext::default();
    for (wrong, response, audited) in [
        ("alice4321", "WrongCredentials", "sign_in_failed"),
        ("000000", "WrongSecondFactor", "second_factor_failed"),
        ("", "WrongSecondFactor", "second_factor_failed"),
    ] {
        let api = Fixture::start().await;
        let (browser, _, _) = enrolled(&api).await;
        let key = &browser.user.key;
        let remove = async |proof: &str| {
            let proof = Secret::new(proof);
            api.service
                .remove_second_factor(&browser, &proof, &context)
                .await
        };
        assert_eq!(fault(remove(wrong).await), response, "{wrong}");
        assert_eq!(api.audit().last(), Some(&audited), "{wrong}");
        let mut last = String::new();
        for _ in 0..11 {
            last = fault(remove(wrong).await);
        }
        assert_eq!(last, "TooManyAttempts", "{wrong}");
        assert!(api.service.second_factor_of(key).await.unwrap().is_some());
    }
}

#[tokio::test]
async fn the_password_or_any_code_removes_it() {
    let context = RequestContext::default();
    for proof in 0..3 {
        let api = Fixture::start().await;
        let (browser, secret, codes) = enrolled(&api).await;
        api.clock.advance(std::time::Duration::from_mins(1));
        let proof = match proof {
            0 => Secret::new("alice1234"),
            1 => Secret::new(shown(&api, &secret)),
            _ => codes[0].clone(),
        };
        let removed = api.service.remove_second_factor(&browser, &proof, &context);
        removed.await.unwrap();
        assert_eq!(api.audit().last(), Some(&"second_factor_removed"));
        let left = api.service.second_factor_of(&browser.user.key).await;
        assert_eq!(left.unwrap(), None);
    }
}

#[tokio::test]
async fn a_sealed_secret_belongs_to_its_user() {
    let api = Fixture::start().await;
    let begun = begun(&api, &signed_in(&api).await).await;
    let owner = UserKey::owner("demo");
    for foreign in [&*begun.sealed, "", "x"] {
        let opened = api.service.resume_enrolment(&owner, foreign);
        assert_eq!(fault(opened), "Malformed");
    }
}

#[tokio::test]
async fn a_recreated_user_has_no_second_factor() {
    let api = Fixture::start().await;
    let (_, _, _) = enrolled(&api).await;
    let key = UserKey::new("demo", "alice");
    api.directory.drop_user(&key).await.unwrap();
    assert_eq!(api.service.second_factor_of(&key).await.unwrap(), None);
}
