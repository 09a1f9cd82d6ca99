//! Tests of the lowering of subscriptions.

use serde_json::value::RawValue;
use tidegate_graphql::{Api, ChangeKind, Error, Subscription};

use crate::fixture::{api, schema};

fn subscribe(api: &Api, document: &str, variables: &str) -> Result<Subscription, Vec<Error>> {
    let prepared = api.prepare(document, None)?;
    let variables = RawValue::from_string(variables.to_owned()).unwrap();
    api.subscribe(&prepared, Some(&variables))
}

#[test]
fn a_subscription_is_a_relation_a_change_columns_and_a_condition() {
    let document = "subscription S($n: String) { new: ArtistsMessageUpdated(where: {name: $n}) { id n: name active { lower } } }";
    let found = subscribe(&api(), document, r#"{"n": "x"}"#).unwrap();
    let schema = schema();
    let artists = schema.find("artists").unwrap();
    assert_eq!(&*found.key, "new");
    assert_eq!(found.relation, artists);
    assert_eq!(found.change, ChangeKind::Updated);
    assert_eq!(found.condition.as_deref(), Some(r#"{"name":"x"}"#));
    let names: Vec<_> = found
        .columns()
        .iter()
        .map(|column| schema[artists].column(*column).name.to_string())
        .collect();
    assert_eq!(names, ["id", "name", "active"]);
}

#[test]
fn a_condition_text_stays_a_text() {
    let document = "subscription { ArtistsMessageDeleted(where: \"name = 'x'\") { id } }";
    let found = subscribe(&api(), document, "{}").unwrap();
    assert_eq!(found.condition.as_deref(), Some(r#""name = 'x'""#));
}

#[test]
fn relationships_and_generated_columns_are_refused() {
    for (document, word) in [
        (
            "subscription { ArtistsMessageAdded { albums { id } } }",
            "relationships",
        ),
        ("subscription { GearsMessageAdded { twice } }", "generated"),
    ] {
        let errors = subscribe(&api(), document, "{}").unwrap_err();
        assert!(errors[0].message.contains(word), "{errors:?}");
    }
}
