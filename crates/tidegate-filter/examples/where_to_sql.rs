//! Shows the SQL of a filter: `cargo run -p tidegate-filter --example where_to_sql '{"id": {"in": [1, 2]}}'`.

#![expect(clippy::print_stdout, reason = "an example shows what it has found")]

use tidegate_catalog::Schema;
use tidegate_filter::{Alias, Filter, Json};
use tidegate_sql::statement::{Kind, SqlWriter};

const SHOP: &str = r#"{"name": "public", "relations": [
    {"name": "artists", "kind": "table", "rights": "s", "columns": [
        {"name": "id", "type": "int4"}, {"name": "name", "type": "text"}]},
    {"name": "albums", "kind": "table", "rights": "s", "columns": [
        {"name": "id", "type": "int4"}, {"name": "artist_id", "type": "int4"},
        {"name": "title", "type": "text"}, {"name": "tags", "type": "text[]"}],
     "constraints": [{"name": "albums_artist", "kind": "foreign", "columns": ["artist_id"],
        "references": {"relation": "artists", "columns": ["id"]}}]}]}"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let given = std::env::args().nth(1);
    let text = given
        .as_deref()
        .unwrap_or(r#"{"tags": {"contains": ["live"]}, "artists": {"name": {"ilike": "b%"}}}"#);
    // JSON text must be valid; the body of a request is validated as a whole.
    let text: &serde_json::value::RawValue = serde_json::from_str(text)?;
    let schema = Schema::parse(SHOP)?;
    let albums = schema.find("albums").ok_or("there are no albums")?;
    let filter = Filter::parse(&Json::from(text.get()), &schema, albums, "where")?;

    let mut sql = SqlWriter::new();
    sql.syntax("select * from public.albums t0 where ");
    filter.write(&mut sql, &schema, albums, Alias("t", 0));
    let bound = sql.finish(Kind::Read);
    println!("{}", bound.statement.text());
    for (number, value) in bound.sets.iter().flatten().enumerate() {
        let place = bound.place(0, number);
        println!("  ${} = {value:?} of {place}", number + 1);
    }
    Ok(())
}
