//! Tests of the parsing of requests: forms, JSON, Basic.

use tidegate_oauth::{
    BasicCredentials, DeviceRequest, Error, GrantKind, GuestRequest, Parameters,
    TokenManagementRequest, TokenRequest,
};

use crate::fixture::code;

#[test]
fn a_form_is_decoded() {
    let form = Parameters::from_form(b"a=1+2%2B3&b=%C3%A6&&c&d=x=y").unwrap();
    assert_eq!(form.text("a").unwrap(), Some("1 2+3"));
    assert_eq!(form.text("b").unwrap(), Some("æ"));
    assert_eq!(form.text("c").unwrap(), None, "empty is absent");
    assert_eq!(form.text("d").unwrap(), Some("x=y"));
    assert_eq!(code(Parameters::from_form(b"a=%ff")), "invalid_request");
}

#[test]
fn json_with_the_form_content_type_is_reported() {
    let error = Parameters::from_form(br#"{"grant_type":"password","a":"b=c&d"}"#).unwrap_err();
    assert_eq!(error.code(), "invalid_request");
    assert!(error.to_string().contains("application/json"), "{error}");
    // A body that only begins with a brace is not JSON, so it is parsed as a form.
    Parameters::from_form(b"{=1&grant_type=password").unwrap();
}

#[test]
fn json_members_must_be_strings_where_they_matter() {
    let body = br#"{"a":"1","b":null,"n":3,"o":{"x":[1]},"l":[],"t":true}"#;
    let json = Parameters::from_json(body).unwrap();
    assert_eq!(json.text("a").unwrap(), Some("1"));
    assert_eq!(json.text("b").unwrap(), None);
    for name in ["n", "o", "l", "t"] {
        let error = json.text(name).unwrap_err();
        assert!(matches!(error, Error::ParameterNotText(known) if known == name));
        assert!(error.description().contains(name));
    }
}

#[test]
fn a_body_that_is_no_object_is_refused() {
    let deep = format!("{{\"a\":{}", "[".repeat(100_000));
    for body in [
        "",
        "[]",
        "\"x\"",
        "{",
        "{\"a\":1,}",
        "null",
        "{}{}",
        deep.as_str(),
    ] {
        assert_eq!(
            code(Parameters::from_json(body.as_bytes())),
            "invalid_request",
            "{body:.9}"
        );
    }
}

#[test]
fn doubles_are_refused_in_every_request_known_or_not() {
    let doubled = |form: &[u8], name: &str| {
        let form = Parameters::from_form(form).unwrap();
        for response in [
            TokenRequest::parse(&form, None).map(drop),
            GuestRequest::parse(&form, None).map(drop),
            DeviceRequest::parse(&form, None).map(drop),
            TokenManagementRequest::parse(&form, None).map(drop),
        ] {
            let Err(Error::DuplicateParameter(named)) = response else {
                panic!("{name}: {response:?}");
            };
            assert_eq!(named, name);
        }
    };
    doubled(b"client_id=a&resource=a&resource=b", "resource");
    doubled(b"client_id=a&client_id=a", "client_id");
    doubled(b"x=&x=", "x");
    doubled(b"x%0a=1&x%0A=1", "with an odd name");
    doubled(b"a: b=1&a: b=1", "with an odd name");
    let json = br#"{"grant_type":"password","x":null,"x":[1]}"#;
    let json = Parameters::from_json(json).unwrap();
    assert!(matches!(
        TokenRequest::parse(&json, None),
        Err(Error::DuplicateParameter(name)) if name == "x"
    ));
}

#[test]
fn a_missing_parameter_is_named() {
    let all = [
        ("grant_type", "password"),
        ("client_id", "app"),
        ("username", "alice"),
        ("password", "alice1234"),
    ];
    TokenRequest::parse(&Parameters::from_pairs(all), None).unwrap();
    for (missing, _) in all {
        for empty in [false, true] {
            let pairs = all.iter().filter(|(name, _)| empty || *name != missing);
            let pairs = pairs.map(|(name, text)| (*name, if *name == missing { "" } else { text }));
            let error = TokenRequest::parse(&Parameters::from_pairs(pairs), None).unwrap_err();
            assert_eq!(
                error.description(),
                format!("the parameter {missing} is missing")
            );
        }
    }
}

#[test]
fn basic_credentials_are_read_in_both_ways() {
    assert!(
        BasicCredentials::from_header("Bearer abc")
            .unwrap()
            .is_none()
    );
    // The header has "server:demo-server-secret" in base64.
    let plain = "basic  c2VydmVyOmRlbW8tc2VydmVyLXNlY3JldA==";
    assert!(BasicCredentials::from_header(plain).unwrap().is_some());
    assert!(
        BasicCredentials::from_header(plain.trim_end_matches('='))
            .unwrap()
            .is_some()
    );
    for bad in [
        "Basic",
        "Basic ",
        "Basic ????",
        "Basic c2VydmVy",
        "Basic /zo=",
    ] {
        assert_eq!(
            code(BasicCredentials::from_header(bad)),
            "invalid_request",
            "{bad}"
        );
    }
}

#[test]
fn credentials_come_one_way_only() {
    let grant = [("grant_type", "refresh_token"), ("refresh_token", "x")];
    let with = |more: &[(&'static str, &'static str)]| {
        let pairs: Vec<_> = grant.iter().chain(more).copied().collect();
        Parameters::from_pairs(pairs)
    };
    let basic = BasicCredentials::new("server", "secret");
    TokenRequest::parse(&with(&[]), Some(&basic)).unwrap();
    TokenRequest::parse(&with(&[("client_id", "server")]), Some(&basic)).unwrap();
    for more in [("client_id", "app"), ("client_secret", "secret")] {
        let error = TokenRequest::parse(&with(&[more]), Some(&basic)).unwrap_err();
        assert!(matches!(error, Error::TwoCredentials));
    }
    let none = TokenRequest::parse(&with(&[]), None).unwrap_err();
    assert!(matches!(none, Error::MissingParameter("client_id")));
}

#[test]
fn an_unknown_grant_type_is_answered_with_those_that_there_are() {
    let pairs = [("grant_type", "client_magic"), ("client_id", "app")];
    let error = TokenRequest::parse(&Parameters::from_pairs(pairs), None).unwrap_err();
    assert_eq!(error.code(), "unsupported_grant_type");
    let text = error.description();
    for kind in GrantKind::ALL {
        let listed = text.contains(kind.name());
        // The token endpoint has no guest grant, because guest sessions have an endpoint of their
        // own.
        assert_eq!(listed, kind != GrantKind::Guest, "{text}");
    }
    assert!(
        text.contains(GrantKind::DEVICE_URN) && !text.contains(": "),
        "{text}"
    );
}
