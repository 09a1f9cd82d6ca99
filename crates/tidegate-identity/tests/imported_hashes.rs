//! Tests of hashes that other systems made. The hashes come from libxcrypt, Python's `hashlib` and
//! `argon2-cffi`.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tidegate_identity::{
    Error, IdentityService, LoginAttempt, MasterKey, NewUser, PasswordHash, Ports, Secret,
    SecureRandom, Settings, UserChange, UserDirectory, UserKey, UserName,
};

use crate::fixture::{Fixture, SeededRandom, demo, fault};

const PASSWORD: &str = "correct horse";
const HASHES: [&str; 10] = [
    "$argon2id$v=19$m=64,t=3,p=2$MDEyMzQ1Njc4OWFiY2RlZg$J4kPJI8w65Je5kJ2G7RTwG+seaIDuxomFJ+FRQCXmpY",
    "$argon2i$v=19$m=64,t=3,p=2$MDEyMzQ1Njc4OWFiY2RlZg$Ad9z0ahpI9avys9Dk04MLl1J8Bv3QEr4kcqDb1OyBjk",
    "$2b$04$abcdefghijklmnopqrstuujydOTSfIH/d5oUHpsygqV5X9xJLQc6e",
    "$2y$05$abcdefghijklmnopqrstuuHNbAKRhpaujgo33bRWs.NLUTJO3lOy2",
    "$2a$04$abcdefghijklmnopqrstuujydOTSfIH/d5oUHpsygqV5X9xJLQc6e",
    "$scrypt$ln=10,r=8,p=1$MDEyMzQ1Njc4OWFiY2RlZg$6g3umF+uVrJsObaTZhIbbTlgrvOEFcCItdwSjtPF67M",
    "$pbkdf2-sha256$i=1000,l=32$MDEyMzQ1Njc4OWFiY2RlZg$cBg8D2DungRB9k76szThf5ehfyBz991ay6PT8Srwk4M",
    "$pbkdf2-sha512$1000$MDEyMzQ1Njc4OWFiY2RlZg$OM0FAoIqCVK1sWtxDiffVlBejtLa.ks4TP71JiecwuSZCG8iLbnlIEPOMoVX.i2B2wkSxjQ8CRGR9OkNGuIPMQ",
    "pbkdf2_sha256$1000$saltSALT$Orn7NqRPEBDyYylnTh54XKViYRg5T2bABLPNWNwrNOw=",
    "pbkdf2_sha512$1000$saltSALT$ZaANZv5m/s1D0MskPhaMagzMxJ/JQ2Saode6XYoqBUBez7fB5E7y4V8O1tKCExQW72pv6QuL7bjp4KI/Pn1EDw==",
];
/// The hash of the password `short`.
const OF_SHORT: &str =
    "$scrypt$ln=7,r=8,p=1$MDEyMzQ1Njc4OWFiY2RlZg$xn4FslpO7p1OSn361q8QAAWRXGFS278mSM3xNmffmrk";
/// The hash of 100 times the letter p, of which bcrypt uses 72.
const OF_LONG: &str = "$2b$04$abcdefghijklmnopqrstuuNt.0ah97gHY3F7JC1Z6EXmQc0bQBhIO";

fn bob() -> UserKey {
    UserKey::new("demo", "bob")
}

/// Creates bob with an imported hash.
async fn import(api: &Fixture, hash: &str) {
    let new = NewUser {
        password_hash: Some(PasswordHash::imported(hash).unwrap()),
        ..NewUser::new(demo(), UserName::parse("bob").unwrap())
    };
    api.directory.create_user(new).await.unwrap();
}

async fn log_in(api: &Fixture, password: &str) -> tidegate_identity::Result<()> {
    let attempt = LoginAttempt {
        key: bob(),
        client_id: None,
        address: None,
    };
    let password = Secret::new(password);
    let user = api.service.login_with_password(&attempt, &password);
    user.await.map(drop)
}

async fn stored(api: &Fixture) -> String {
    let user = api.directory.user(&bob()).await.unwrap();
    user.password_hash.unwrap()
}

#[tokio::test]
async fn every_form_signs_in_and_is_replaced_by_our_own() {
    for hash in HASHES {
        let api = Fixture::start().await;
        import(&api, hash).await;
        let wrong = log_in(&api, "correct house").await;
        assert_eq!(fault(wrong), "WrongCredentials", "{hash}");
        assert_eq!(
            stored(&api).await,
            hash,
            "a wrong password replaces nothing"
        );
        log_in(&api, PASSWORD).await.expect(hash);
        let own = stored(&api).await;
        assert!(own.starts_with("$argon2id$v=19$m=8,t=1,p=1$"), "{own}");
        log_in(&api, PASSWORD).await.expect(hash);
        assert_eq!(stored(&api).await, own);
    }
}

#[tokio::test]
async fn short_passwords_and_those_that_bcrypt_cuts_go_on_working() {
    for (hash, password) in [(OF_SHORT, "short"), (OF_LONG, &*"p".repeat(100))] {
        let api = Fixture::start().await;
        import(&api, hash).await;
        log_in(&api, password).await.expect(hash);
        log_in(&api, password).await.expect("with our hash too");
    }
}

#[tokio::test]
async fn a_changed_hash_ends_sessions_as_a_new_password_does() {
    let api = Fixture::start().await;
    import(&api, HASHES[0]).await;
    let change = UserChange {
        password_hash: Some(PasswordHash::imported(OF_SHORT).unwrap()),
        ..UserChange::default()
    };
    api.directory.change_user(&bob(), change).await.unwrap();
    assert_eq!(api.audit().last(), Some(&"password_changed"));
    assert_eq!(fault(log_in(&api, PASSWORD).await), "WrongCredentials");
    log_in(&api, "short").await.unwrap();
}

/// Disables bob, and replaces his hash with another one of the same password, whenever random bytes
/// are needed. The salt of a login is made after the user was read.
struct DisablesBob {
    directory: UserDirectory,
    random: SeededRandom,
}

impl SecureRandom for DisablesBob {
    fn fill(&self, bytes: &mut [u8]) -> tidegate_identity::Result<()> {
        let change = UserChange {
            disabled: Some(true),
            password_hash: Some(PasswordHash::imported(HASHES[1]).unwrap()),
            ..UserChange::default()
        };
        // The store in memory never waits.
        let bob = bob();
        let changed = pin!(self.directory.change_user(&bob, change));
        let changed = changed.poll(&mut Context::from_waker(Waker::noop()));
        assert!(matches!(changed, Poll::Ready(Ok(_))), "bob is not disabled");
        self.random.fill(bytes)
    }
}

#[tokio::test]
async fn a_user_who_is_disabled_while_the_hash_is_replaced_is_refused() {
    let mut api = Fixture::start().await;
    import(&api, HASHES[0]).await;
    let random = Arc::new(DisablesBob {
        directory: UserDirectory::new(api.ports.clone()),
        random: SeededRandom::new(8),
    });
    let ports = Ports {
        random: random.clone(),
        ..api.ports.clone()
    };
    let master = MasterKey::generate(&random.random).unwrap();
    let settings = Settings::new("https://id.example").unwrap();
    api.service = IdentityService::new(ports, master, settings);
    assert_eq!(fault(log_in(&api, PASSWORD).await), "WrongCredentials");
    assert_eq!(stored(&api).await, HASHES[1]);
}

/// What was expected instead of a hash that is refused.
fn expected(hash: &str) -> &'static str {
    match PasswordHash::imported(hash) {
        Err(Error::InvalidField { field, expected }) => {
            assert_eq!(field, "password_hash");
            expected
        }
        other => panic!("{hash} gave {other:?}"),
    }
}

#[test]
fn a_cost_that_would_be_too_expensive_is_refused_with_its_limit() {
    let digest = "J4kPJI8w65Je5kJ2G7RTwG+seaIDuxomFJ+FRQCXmpY";
    let argon2 = |cost: &str| format!("$argon2id$v=19${cost}$MDEyMzQ1Njc4OWFiY2RlZg${digest}");
    let scrypt = |cost: &str| format!("$scrypt${cost}$MDEyMzQ1Njc4OWFiY2RlZg${digest}");
    let pbkdf2 = |cost: &str| format!("pbkdf2_sha256${cost}$salt${digest}=");
    let bcrypt = |cost: &str| HASHES[2].replace("$04$", &format!("${cost}$"));
    for (hash, limit) in [
        (argon2("m=131080,t=1,p=1"), "m=131072"),
        (argon2("m=131072,t=5,p=1"), "524288"),
        (argon2("m=4294967295,t=4294967295,p=1"), "m=131072"),
        (argon2("m=1024,t=1,p=17"), "p=16"),
        (scrypt("ln=18,r=8,p=1"), "1048576"),
        (scrypt("ln=63,r=4294967295,p=4294967295"), "1048576"),
        (scrypt("ln=255,r=8,p=1"), "1048576"),
        (scrypt("ln=2,r=8,p=1000000"), "1048576"),
        (pbkdf2("2000001"), "2000000"),
        (pbkdf2("0"), "1000 to 2000000"),
        (bcrypt("15"), "4 to 14"),
        (bcrypt("31"), "4 to 14"),
        (bcrypt("03"), "4 to 14"),
    ] {
        let said = expected(&hash);
        assert!(said.contains(limit), "{hash}: {said}");
    }
    for hash in [
        argon2("m=131072,t=4,p=16"),
        scrypt("ln=17,r=8,p=1"),
        pbkdf2("2000000"),
        bcrypt("14"),
    ] {
        PasswordHash::imported(&hash).expect(&hash);
    }
}

#[test]
fn a_hash_that_protects_no_password_is_refused() {
    let digest = "J4kPJI8w65Je5kJ2G7RTwG+seaIDuxomFJ+FRQCXmpY";
    let argon2 = |cost: &str| format!("$argon2id$v=19${cost}$MDEyMzQ1Njc4OWFiY2RlZg${digest}");
    let scrypt = |cost: &str| format!("$scrypt${cost}$MDEyMzQ1Njc4OWFiY2RlZg${digest}");
    let pbkdf2 = |cost: &str| format!("pbkdf2_sha256${cost}$salt${digest}=");
    for (hash, limit) in [
        (argon2("m=8,t=1,p=1"), "at least 128"),
        (argon2("m=127,t=1,p=1"), "at least 128"),
        (scrypt("ln=4,r=8,p=1"), "at least 1024"),
        (scrypt("ln=6,r=8,p=1"), "at least 1024"),
        (pbkdf2("1"), "1000 to"),
        (pbkdf2("999"), "1000 to"),
    ] {
        let said = expected(&hash);
        assert!(said.contains(limit), "{hash}: {said}");
    }
    for hash in [
        argon2("m=128,t=1,p=1"),
        scrypt("ln=7,r=8,p=1"),
        pbkdf2("1000"),
        HASHES[2].to_owned(),
    ] {
        PasswordHash::imported(&hash).expect(&hash);
    }
}

#[test]
fn other_texts_are_refused() {
    let long = format!("{}{}", HASHES[8], "=".repeat(512));
    for text in [
        "",
        "correct horse",
        "$1$salt$qJH7.N4xYta3aEG/dfqo/0",
        "5f4dcc3b5aa765d61d8327deb882cf99",
        "$2x$04$abcdefghijklmnopqrstuujydOTSfIH/d5oUHpsygqV5X9xJLQc6e",
        "$2b$04$abcdefghijklmnopqrstuujydOTSfIH/d5oUHpsygqV5X9xJLQc6",
        "$2b$+4$abcdefghijklmnopqrstuujydOTSfIH/d5oUHpsygqV5X9xJLQc6e",
        "$2b$04$äbcdefghijklmnopqrstuujydOTSfIH/d5oUHpsygqV5X9xJLQc6",
        "$argon2d$v=19$m=64,t=3,p=2$MDEyMzQ1Njc4OWFiY2RlZg$J4kPJI8w65Je5kJ2G7RTwG+seaIDuxomFJ+FRQCXmpY",
        "$argon2id$m=64,t=3,p=2$MDEyMzQ1Njc4OWFiY2RlZg$J4kPJI8w65Je5kJ2G7RTwG+seaIDuxomFJ+FRQCXmpY",
        "$argon2id$v=19$m=64,t=3,p=2$MDEyMzQ1Njc4OWFiY2RlZg",
        "$argon2id$v=19$m=64,t=3,p=2$MDEyMzQ1Njc4OWFiY2RlZg$J4kPJI8w65Je",
        "$scrypt$ln=0,r=8,p=1$MDEyMzQ1Njc4OWFiY2RlZg$6g3umF+uVrJsObaTZhIbbTlgrvOEFcCItdwSjtPF67M",
        "$scrypt$ln=10,r=0,p=1$MDEyMzQ1Njc4OWFiY2RlZg$6g3umF+uVrJsObaTZhIbbTlgrvOEFcCItdwSjtPF67M",
        "$scrypt$r=8,p=1$MDEyMzQ1Njc4OWFiY2RlZg$6g3umF+uVrJsObaTZhIbbTlgrvOEFcCItdwSjtPF67M",
        "$pbkdf2-sha256$i=1000$MDEyMzQ1Njc4OWFiY2RlZg$AAAA",
        "$pbkdf2-sha1$i=1000$MDEyMzQ1Njc4OWFiY2RlZg$cBg8D2DungRB9k76szThf5ehfyBz991ay6PT8Srwk4M",
        "pbkdf2_sha256$1000$salt$!",
        &long,
    ] {
        expected(text);
    }
}

#[test]
fn a_hash_is_not_shown() {
    let hash = PasswordHash::imported(HASHES[0]).unwrap();
    assert!(!format!("{hash:?}").contains("J4kP"));
}
