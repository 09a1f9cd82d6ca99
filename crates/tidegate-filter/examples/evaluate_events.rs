//! Evaluates a condition text on rows:
//! `cargo run -p tidegate-filter --example evaluate_events "price > 5"`.

#![expect(clippy::print_stdout, reason = "an example shows what it has found")]

use tidegate_catalog::Schema;
use tidegate_filter::{Filter, Matcher, RowValue};

const SHOP: &str = r#"{"name": "public", "relations": [
    {"name": "albums", "kind": "table", "rights": "s", "columns": [
        {"name": "title", "type": "text", "collation": "deterministic"},
        {"name": "price", "type": "numeric"}]}]}"#;

const ROWS: [(&str, Option<&str>); 3] = [
    ("Blue", Some("9.99")),
    ("Kind of Blue", Some("4.50")),
    ("Untitled", None),
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let given = std::env::args().nth(1);
    let condition = given.as_deref().unwrap_or("price > 5 OR title LIKE '%of%'");
    let schema = Schema::parse(SHOP)?;
    let albums = &schema[schema.find("albums").ok_or("there are no albums")?];
    let filter = Filter::parse_condition(condition, albums)?;
    let matcher = Matcher::compile(&filter, albums)?;
    for (title, price) in ROWS {
        let verdict = matcher.evaluate(|column| match &*albums.column(column).name {
            "title" => RowValue::Text(title.as_bytes()),
            _ => price.map_or(RowValue::Null, |price| RowValue::Text(price.as_bytes())),
        })?;
        println!("{title}: {verdict:?}");
    }
    Ok(())
}
