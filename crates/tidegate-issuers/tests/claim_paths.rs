//! Tests of claim paths.

use serde_json::json;
use tidegate_issuers::ClaimPath;

#[test]
fn a_path_finds_members_and_elements() {
    let claims = json!({"role": "editor", "realm_access": {"roles": ["a", "b"]},
        "cognito:groups": ["c"], "https://shop.example.com/roles": ["d"], "a.b": {"c": "e"}});
    let claims = claims.as_object().unwrap();
    for (path, expected) in [
        ("role", json!("editor")),
        (".role", json!("editor")),
        ("realm_access.roles", json!(["a", "b"])),
        ("realm_access.roles[1]", json!("b")),
        ("realm_access[\"roles\"][0]", json!("a")),
        ("cognito:groups[0]", json!("c")),
        ("[\"https://shop.example.com/roles\"][0]", json!("d")),
        ("[\"a.b\"].c", json!("e")),
    ] {
        let path: ClaimPath = path.parse().unwrap();
        assert_eq!(path.find(claims), Some(&expected), "{path}");
    }
    for missing in [
        "other",
        "role.name",
        "role[0]",
        "realm_access.roles[2]",
        "realm_access[0]",
    ] {
        let path: ClaimPath = missing.parse().unwrap();
        assert_eq!(path.find(claims), None, "{path}");
    }
}

#[test]
fn a_text_that_is_no_path_names_the_place_and_what_was_expected() {
    for (text, at, expected) in [
        ("", 0, "the name of a claim"),
        ("[0]", 0, "the name of a claim"),
        ("a..b", 1, "a name"),
        ("a.", 1, "a name"),
        ("a[", 1, "an index that ends with ]"),
        ("a[x]", 1, "an index, such as [0]"),
        ("a[-1]", 1, "an index, such as [0]"),
        ("a[0]b", 4, "a dot or a bracket"),
        ("a[\"b]", 1, "a name that ends with \"]"),
        ("a\"b", 0, "a name"),
        (
            "https://shop.example.com/roles[0]x",
            33,
            "a dot or a bracket",
        ),
    ] {
        let error = text.parse::<ClaimPath>().unwrap_err();
        assert_eq!((error.at, error.expected), (at, expected), "{text}");
    }
    assert_eq!("a".repeat(513).parse::<ClaimPath>().unwrap_err().at, 512);
}
