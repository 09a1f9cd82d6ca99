//! Methods for tests.

use std::sync::Arc;

use tidegate_methods::{Definition, Limits, Method, MethodName, Record, Signature};
use tidegate_sql::DatabaseName;

pub(crate) fn definition(json: &str) -> Definition {
    let mut all = Definition::parse(json.as_bytes(), Limits::default()).unwrap();
    assert_eq!(all.len(), 1);
    all.remove(0)
}

/// A definition of this name that selects a number.
pub(crate) fn plain(name: &str) -> Definition {
    definition(&format!(r#"{{"method":"{name}","q":"select 1"}}"#))
}

pub(crate) fn method(json: &str, signature: Option<Signature>) -> Arc<Method> {
    Arc::new(Method::new(Record {
        definition: definition(json),
        creator: "reef".to_owned(),
        by_owner: true,
        signature,
        version: 1,
    }))
}

pub(crate) fn name(name: &str) -> MethodName {
    MethodName::parse(name).unwrap()
}

pub(crate) fn reef() -> DatabaseName {
    DatabaseName::new("reef")
}
