//! Parses a statement from the command line and prints what PostgreSQL would get:
//! `cargo run -p tidegate-sql --example read_statement -- "select :a::int %2B 1"`.

use std::io::{Error, Write};

use tidegate_sql::Statement;

const SAMPLE: &str = "select title from albums where price < :price and tags @> array[:tag] -- :no";

fn main() -> Result<(), Error> {
    let q = std::env::args().nth(1).unwrap_or_else(|| SAMPLE.to_owned());
    let mut out = std::io::stdout().lock();
    match Statement::parse(&q) {
        Ok(statement) => {
            writeln!(out, "text:         {}", statement.text())?;
            writeln!(out, "placeholders: {}", statement.placeholders().join(", "))?;
            writeln!(
                out,
                "kind:         {:?}, {:?}",
                statement.kind(),
                statement.purity()
            )
        }
        Err(error) => writeln!(out, "{error}"),
    }
}
