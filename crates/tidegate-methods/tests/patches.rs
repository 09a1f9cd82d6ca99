use tidegate_methods::{Definition, Limits, MemberChange, Patch};

use crate::fixture::definition;

const BEFORE: &str = r#"{"method":"a","q":"select :x","type_hints":{"x":"int"},
    "type_formats":{"d":"Y"},"output_format":"csv"}"#;

fn patch(body: &str) -> Patch {
    Patch::parse(body.as_bytes(), Limits::default()).unwrap()
}

fn patched(body: &str) -> Definition {
    patch(body).apply(&definition(BEFORE))
}

#[test]
fn each_member_stays_changes_or_goes() {
    let all = [
        ("method", r#""a""#, r#""b""#),
        ("q", r#""select :x""#, r#""select 2""#),
        ("type_hints", r#"{"x":"int"}"#, r#"{"x":"text","y":"int"}"#),
        ("type_formats", r#"{"d":"Y"}"#, r#"{"e":"m"}"#),
        ("output_format", r#""csv""#, r#""ndjson""#),
    ];
    let with = |changed: &str, value: Option<&str>| {
        let members = all.iter().filter_map(|(name, before, _)| match value {
            Some(value) if *name == changed => Some(format!("\"{name}\":{value}")),
            None if *name == changed => None,
            _ => Some(format!("\"{name}\":{before}")),
        });
        definition(&format!("{{{}}}", members.collect::<Vec<_>>().join(",")))
    };
    assert_eq!(patched("{}"), definition(BEFORE));
    for (name, before, after) in all {
        let set = |value| patched(&format!("{{\"{name}\":{value}}}"));
        assert_eq!(set(after), with(name, Some(after)), "{name} is set");
        assert_eq!(
            set(before),
            definition(BEFORE),
            "{name} is set to what it is"
        );
        if !matches!(name, "method" | "q") {
            assert_eq!(set("null"), with(name, None), "{name} is cleared");
        }
    }
    assert_eq!(patched(r#"{"type_hints":{}}"#), with("type_hints", None));
}

#[test]
fn several_members_change_at_once() {
    let after = patched(r#"{"method":"b","q":"select 1","type_hints":null,"output_format":null}"#);
    let expected = r#"{"method":"b","q":"select 1","type_formats":{"d":"Y"}}"#;
    assert_eq!(after, definition(expected));
}

#[test]
fn what_is_absent_is_kept() {
    assert_eq!(patch("{}"), Patch::default());
    assert_eq!(
        patch(r#"{"type_hints":null}"#).type_hints,
        MemberChange::Clear
    );
}

#[test]
fn what_is_wrong_is_named() {
    let cases = [
        (r#"{"q":null}"#, "`q`: null, expected a string"),
        (r#"{"method":null}"#, "`method`: null, expected a string"),
        (r#"{"q":""}"#, "`q` holds no statement"),
        (
            r#"{"q":"begin"}"#,
            "BEGIN is not allowed here: each request is a transaction of its own; send an array \
             of requests to run several statements in one",
        ),
        (
            r#"{"params":{}}"#,
            "`params`: values come with a call; a definition has none",
        ),
        (
            r#"{"name":"b"}"#,
            "`name`: unknown, expected `method`, `q`, `type_hints`, `type_formats` and \
             `output_format`",
        ),
        (r#"{"method":"b","method":"c"}"#, "`method`: given twice"),
        (
            r#"[{"method":"b"}]"#,
            "the body is an array, expected an object",
        ),
    ];
    for (body, expected) in cases {
        let error = Patch::parse(body.as_bytes(), Limits::default()).unwrap_err();
        assert_eq!(error.to_string(), expected, "{body}");
    }
}
