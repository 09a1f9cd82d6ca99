//! Prints the GraphQL schema of a catalog document, by default that of a small table:
//! `cargo run -p tidegate-graphql --example print_schema [document.json]`.

use std::error::Error;
use std::io::Write as _;
use std::sync::Arc;

use tidegate_catalog::Schema;
use tidegate_graphql::{Api, Limits};

const DOCUMENT: &str = r#"{"name": "public", "relations": [
    {"name": "harbours", "kind": "table", "rights": "siud", "comment": "Where ships rest.",
     "columns": [{"name": "id", "type": "int4", "not_null": true}, {"name": "name", "type": "text"}],
     "constraints": [{"name": "harbours_pkey", "kind": "primary", "columns": ["id"]}]}]}"#;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let document = match std::env::args().nth(1) {
        Some(path) => std::fs::read_to_string(path)?,
        None => DOCUMENT.to_owned(),
    };
    let schema = Schema::parse(&document)?;
    let api = Api::new(Arc::new(schema), false, Limits::default());
    let mut reader = api.sdl().read();
    while let Some(bytes) = reader.next().await {
        std::io::stdout().write_all(&bytes?)?;
    }
    Ok(())
}
