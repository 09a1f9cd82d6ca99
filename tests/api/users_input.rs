//! Tests invalid members of `/api/v4/users` (API.md, "Users").

use serde_json::{Value, json};

use crate::users::owner;

#[tokio::test]
async fn a_wrong_member_is_named_with_what_was_expected() {
    let good = json!({"name": "nemo", "password": "nemo-12345"});
    let with = |member: &str, value: Value| {
        let mut body = good.clone();
        body[member] = value;
        body
    };
    let long = "p".repeat(257);
    let large = json!({"x": "y".repeat(4000)});
    for (body, expected) in [
        (json!({"password": "nemo-12345"}), "`name`: missing"),
        (json!({"name": "nemo"}), "`password`: missing"),
        (
            with("name", json!("a b")),
            "`name`: expected 1 to 32 characters",
        ),
        (
            with("name", json!("..")),
            "`name`: expected 1 to 32 characters",
        ),
        (
            with("name", json!("<b>")),
            "`name`: expected 1 to 32 characters",
        ),
        (
            with("name", json!("x'; drop role demo; --")),
            "`name`: expected 1 to 32 characters",
        ),
        (
            with("name", json!("n".repeat(33))),
            "`name`: expected 1 to 32 characters",
        ),
        (
            with("password", json!("1234567")),
            "`password`: expected 8 to 256 bytes",
        ),
        (
            with("password", json!(long)),
            "`password`: expected 8 to 256 bytes",
        ),
        (
            with("password", json!(12_345_678)),
            "`password`: expected a string",
        ),
        (
            with("email", json!("nobody")),
            "`email`: expected an e-mail address",
        ),
        (
            with("properties", json!([1])),
            "`properties`: expected an object, a string that is a JSON object, or null",
        ),
        (
            with("properties", large),
            "`properties`: expected a JSON object of at most 3072",
        ),
        (
            with("user_group", json!(["staff", 7])),
            "`user_group[1]`: expected a string",
        ),
        (
            with("user_group", json!(["staff", "a/b"])),
            "`user_group[1]`: expected 1 to 32 characters",
        ),
        (
            with("default_user", json!(1)),
            "`default_user`: expected true or false",
        ),
        (
            with("role", json!("postgres")),
            "`role`: unknown member; known are name, kind, id, email",
        ),
    ] {
        let refused = owner("POST", "/api/v4/users", body).await;
        let (status, code, message) = refused.error();
        assert_eq!((status, code), (400, "INPUT_VALIDATION_ERROR"), "{message}");
        assert!(message.starts_with(expected), "{message} is not {expected}");
    }
    assert_eq!(
        owner("GET", "/api/v4/users/nemo", Value::Null).await.status,
        404
    );
    let second = owner("POST", "/api/v4/users", with("default_user", json!(true))).await;
    assert_eq!(
        (second.error().0, second.error().1),
        (409, "ALREADY_EXISTS")
    );
    assert!(second.error().2.starts_with("`default_user`: "));
    for (patch, expected) in [
        (json!({"name": "other"}), "`name`: a user keeps its name"),
        (
            json!({"age": 7}),
            "`age`: unknown member; known are kind, email",
        ),
        (
            json!({"password": "short"}),
            "`password`: expected 8 to 256 bytes",
        ),
        (json!({"password": null}), "`password`: expected a string"),
    ] {
        let refused = owner("PATCH", "/api/v4/users/alice", patch).await;
        let (status, _, message) = refused.error();
        assert!(status == 400 && message.starts_with(expected), "{message}");
    }
    let itself = owner("DELETE", "/api/v4/users/demo", Value::Null).await;
    assert_eq!(itself.error().0, 400);
    let owners = owner("PATCH", "/api/v4/users/demo", json!({"default_user": true})).await;
    assert!(
        owners
            .error()
            .2
            .starts_with("`default_user`: expected a sub-user")
    );
    assert_eq!(
        owner("PATCH", "/api/v4/users/nobody", json!({}))
            .await
            .error()
            .0,
        404
    );
}
