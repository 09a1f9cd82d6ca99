//! Tests that parsing any input ends with a payload, or with a response that is JSON.

use proptest::prelude::*;
use tidegate_rpc::{Limits, Payload};

fn check(text: &[u8]) {
    if let Err(reply) = Payload::parse(text, Limits::default()) {
        let response: serde_json::Value = serde_json::from_slice(reply.as_bytes()).unwrap();
        let responses = response
            .as_array()
            .cloned()
            .unwrap_or_else(|| vec![response]);
        for response in responses {
            assert_eq!(response["jsonrpc"], "2.0");
            assert!(response["error"]["code"].is_i64());
        }
    }
}

fn json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("\"2.0\"".to_owned()),
        Just("\"echo\"".to_owned()),
        Just("-1.5e300".to_owned()),
        Just("true".to_owned()),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        let name = prop_oneof![
            Just("jsonrpc"),
            Just("method"),
            Just("params"),
            Just("id"),
            Just("x")
        ];
        let members = prop::collection::vec((name, inner.clone()), 0..6);
        prop_oneof![
            prop::collection::vec(inner, 0..6)
                .prop_map(|elements| format!("[{}]", elements.join(","))),
            members.prop_map(|members| {
                let members: Vec<_> = members
                    .iter()
                    .map(|(name, value)| format!("\"{name}\":{value}"))
                    .collect();
                format!("{{{}}}", members.join(","))
            }),
        ]
    })
}

proptest! {
    #[test]
    fn bytes(text in prop::collection::vec(any::<u8>(), 0..200)) {
        check(&text);
    }

    #[test]
    fn documents(text in json()) {
        check(text.as_bytes());
    }

    #[test]
    fn documents_cut_short(text in json(), at in any::<prop::sample::Index>()) {
        check(&text.as_bytes()[..at.index(text.len())]);
    }
}
