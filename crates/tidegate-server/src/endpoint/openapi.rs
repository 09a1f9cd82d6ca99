//! The OpenAPI description, assembled from one file for each tag.
//!
//! A file has the paths of one tag, and the components that only these paths use. `shared.json` has
//! the other components.

use std::sync::LazyLock;

use bytes::Bytes;
use http::Response;
use serde_json::{Map, Value};
use tidegate_http::body::Body;

use super::documents::document;

const SHARED: &str = include_str!("openapi/shared.json");

const AREAS: [&str; 8] = [
    include_str!("openapi/sql.json"),
    include_str!("openapi/methods.json"),
    include_str!("openapi/oauth.json"),
    include_str!("openapi/pages.json"),
    include_str!("openapi/accounts.json"),
    include_str!("openapi/operations.json"),
    include_str!("openapi/graphql.json"),
    include_str!("openapi/events.json"),
];

static DESCRIPTION: LazyLock<Bytes> = LazyLock::new(|| {
    let mut whole = read(SHARED);
    for area in AREAS {
        merge(&mut whole, read(area));
    }
    Value::Object(whole).to_string().into()
});

/// The description of the API (OpenAPI 3.1), as JSON.
pub fn openapi() -> Bytes {
    DESCRIPTION.clone()
}

/// Handles `GET /api/v4/openapi.json`.
pub(crate) fn serve() -> Response<Body> {
    document(openapi())
}

fn read(text: &str) -> Map<String, Value> {
    serde_json::from_str(text).expect("the files beside this one hold JSON objects")
}

/// Adds the members of `more` to `whole`. Members that are objects in both are merged.
fn merge(whole: &mut Map<String, Value>, more: Map<String, Value>) {
    for (name, value) in more {
        match (whole.get_mut(&name), value) {
            (Some(Value::Object(known)), Value::Object(value)) => merge(known, value),
            (None, value) => {
                whole.insert(name, value);
            }
            (Some(_), _) => panic!("two files of the description define `{name}`"),
        }
    }
}
