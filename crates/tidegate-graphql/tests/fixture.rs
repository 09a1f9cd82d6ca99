//! A schema with every kind of column and key.

use std::sync::Arc;

use tidegate_catalog::Schema;
use tidegate_graphql::{Api, Limits};

const DOCUMENT: &str = r#"{
  "name": "public",
  "types": [
    {"oid": 90001, "name": "mood", "schema": "public", "kind": "enum", "labels": ["sad", "ok"]},
    {"oid": 90002, "name": "geometry", "schema": "public", "kind": "simple"},
    {"oid": 90003, "name": "_geometry", "schema": "public", "kind": "array", "inner": 90002},
    {"oid": 90004, "name": "hstore", "schema": "public", "kind": "simple"},
    {"oid": 90005, "name": "place", "schema": "public", "kind": "composite",
     "attributes": [{"name": "at", "type": 90002}]},
    {"oid": 90006, "name": "_place", "schema": "public", "kind": "array", "inner": 90005},
    {"oid": 90007, "name": "note", "schema": "public", "kind": "domain", "inner": "jsonb"}
  ],
  "relations": [
    {"name": "artists", "kind": "table", "rights": "siud", "comment": "People who make music.",
     "columns": [
       {"name": "id", "type": "int4", "not_null": true, "has_default": true},
       {"name": "name", "type": "text", "not_null": true, "comment": "As on the sleeve."},
       {"name": "born", "type": "date"},
       {"name": "rating", "type": "float8"},
       {"name": "plays", "type": "int8"},
       {"name": "tags", "type": "text[]", "not_null": true},
       {"name": "active", "type": "int4range"},
       {"name": "home", "type": "point"},
       {"name": "area", "type": "polygon"},
       {"name": "mood", "type": "mood"},
       {"name": "extra", "type": "jsonb"},
       {"name": "secret", "type": "text", "rights": "i"}
     ],
     "constraints": [{"name": "artists_pkey", "kind": "primary", "columns": ["id"]}]},
    {"name": "albums", "kind": "table", "rights": "siud",
     "columns": [
       {"name": "id", "type": "int4", "not_null": true, "has_default": true},
       {"name": "artist_id", "type": "int4", "not_null": true},
       {"name": "title", "type": "text", "not_null": true},
       {"name": "price", "type": "numeric"},
       {"name": "count", "type": "int4"}
     ],
     "constraints": [
       {"name": "albums_pkey", "kind": "primary", "columns": ["id"]},
       {"name": "albums_artist_id_fkey", "kind": "foreign", "columns": ["artist_id"],
        "references": {"relation": "artists", "columns": ["id"]}}
     ]},
    {"name": "totals", "kind": "view", "rights": "s",
     "columns": [{"name": "sum", "type": "int8"}, {"name": "at", "type": "timestamptz"}]},
    {"name": "bare", "kind": "table", "rights": "si", "columns": []},
    {"name": "parts", "kind": "table", "persistence": "unlogged", "rights": "siud",
     "columns": [
       {"name": "a", "type": "int4", "not_null": true},
       {"name": "b", "type": "int4", "not_null": true},
       {"name": "twice", "type": "int4", "generated": "stored"}
     ],
     "constraints": [{"name": "parts_pkey", "kind": "primary", "columns": ["a", "b"]}]},
    {"name": "GeoJSON", "kind": "table", "rights": "s",
     "columns": [
       {"name": "document", "type": "jsonb", "not_null": true},
       {"name": "note", "type": "note", "not_null": true},
       {"name": "documents", "type": "json[]", "not_null": true},
       {"name": "shape", "type": "geometry", "not_null": true},
       {"name": "shapes", "type": "_geometry"},
       {"name": "place", "type": "place", "not_null": true},
       {"name": "places", "type": "_place"},
       {"name": "times", "type": "tsmultirange", "not_null": true},
       {"name": "length", "type": "interval", "not_null": true},
       {"name": "pairs", "type": "hstore", "not_null": true}
     ]},
    {"name": "gears", "kind": "table", "rights": "s",
     "columns": [
       {"name": "n", "type": "int4", "not_null": true},
       {"name": "twice", "type": "int4", "generated": "virtual"}
     ]}
  ]
}"#;

/// The schema of the tests.
pub(crate) fn schema() -> Arc<Schema> {
    Arc::new(Schema::parse(DOCUMENT).unwrap())
}

/// The API of the tests' schema, with subscriptions.
pub(crate) fn api() -> Api {
    Api::new(schema(), true, Limits::default())
}

/// The error codes of a document; empty if it is valid.
pub(crate) fn codes(api: &Api, document: &str) -> Vec<&'static str> {
    match api.prepare(document, None) {
        Ok(_) => Vec::new(),
        Err(errors) => errors.iter().map(|error| error.code.as_str()).collect(),
    }
}
