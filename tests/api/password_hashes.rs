//! Tests `password_hash` of `/api/v4/users`: users who keep the passwords of another system.

use serde_json::{Value, json};

use crate::service::demo;
use crate::users::{owner, sign_in, token};

const PASSWORD: &str = "correct horse";
const BCRYPT: &str = "$2b$04$abcdefghijklmnopqrstuujydOTSfIH/d5oUHpsygqV5X9xJLQc6e";
const SCRYPT: &str =
    "$scrypt$ln=10,r=8,p=1$MDEyMzQ1Njc4OWFiY2RlZg$6g3umF+uVrJsObaTZhIbbTlgrvOEFcCItdwSjtPF67M";
const DJANGO: &str = "pbkdf2_sha256$1000$saltSALT$Orn7NqRPEBDyYylnTh54XKViYRg5T2bABLPNWNwrNOw=";

#[tokio::test]
async fn users_of_another_system_sign_in_with_their_passwords() {
    let hashes = [("hash-1", BCRYPT), ("hash-2", SCRYPT), ("hash-3", DJANGO)];
    let users = hashes.map(|(name, hash)| json!({"name": name, "password_hash": hash}));
    let made = owner("POST", "/api/v4/users", json!(users)).await;
    assert_eq!(made.status, 201, "{made:?}");
    for (name, hash) in hashes {
        let shown = owner("GET", &format!("/api/v4/users/{name}"), Value::Null).await;
        assert!(!shown.body.to_string().contains("hash\""), "{shown:?}");
        let wrong = sign_in(demo(), name, "correct house").await;
        assert_eq!(wrong.body["error"], "invalid_grant", "{name}");
        // The second sign-in is with the hash that has replaced the imported one.
        token(demo(), name, PASSWORD).await;
        token(demo(), name, PASSWORD).await;
        let replayed = sign_in(demo(), name, hash).await;
        assert_eq!(replayed.status, 400, "the hash is no password");
    }
    let names = "/api/v4/users/hash-1,hash-2,hash-3";
    assert_eq!(owner("DELETE", names, Value::Null).await.status, 204);
}

#[tokio::test]
async fn the_owner_replaces_a_password_by_a_hash_and_others_may_not() {
    let body = json!({"name": "hashed", "password": "hashed-1234"});
    assert_eq!(owner("POST", "/api/v4/users", body).await.status, 201);
    let own = token(demo(), "hashed", "hashed-1234").await;
    let path = ("PATCH", "/api/v4/users/hashed");
    let change = json!({"password_hash": BCRYPT});
    let refused = demo().rest_with(Some(&own), path, &change).await;
    assert_eq!(refused.status, 403, "{refused:?}");
    let changed = owner(path.0, path.1, change).await;
    assert_eq!(changed.status, 303, "{changed:?}");
    assert_eq!(sign_in(demo(), "hashed", "hashed-1234").await.status, 400);
    let sql = json!({"q": "select 1"});
    let ended = demo().rest_with(Some(&own), crate::users::SQL, &sql).await;
    assert_eq!(ended.status, 401, "sessions end");
    token(demo(), "hashed", PASSWORD).await;
    owner("DELETE", path.1, Value::Null).await;
}

#[tokio::test]
async fn a_hash_that_cannot_be_used_is_refused_with_the_reason() {
    for (members, reason) in [
        (
            json!({"password_hash": "5f4dcc3b5aa765d61d8327deb882cf99"}),
            "bcrypt, scrypt",
        ),
        (
            json!({"password_hash": BCRYPT.replace("$04$", "$31$")}),
            "a cost of bcrypt from 4 to 14",
        ),
        (
            json!({"password_hash": DJANGO.replace("1000", "999999999")}),
            "2000000 iterations",
        ),
        (
            json!({"password_hash": DJANGO.replace("$1000$", "$1$")}),
            "from 1000 to",
        ),
        (
            json!({"password_hash": BCRYPT, "password": "hashed-1234"}),
            "not both",
        ),
        (json!({"password_hash": 7}), "`password_hash`"),
        (json!({}), "`password`: missing"),
    ] {
        let mut body = members.clone();
        body["name"] = "unhashed".into();
        let refused = owner("POST", "/api/v4/users", body).await;
        assert_eq!(refused.status, 400, "{members} {refused:?}");
        let text = refused.body.to_string();
        assert!(text.contains(reason) && !text.contains("2b$"), "{text}");
    }
}
