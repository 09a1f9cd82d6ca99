//! Defines methods in memory, stores what PostgreSQL infers of one, and prints the TypeScript of
//! both.
//!
//! `cargo run -p tidegate-methods --example print_interfaces`

use std::error::Error;
use std::sync::Arc;

use tidegate_methods::{
    Caller, Definition, Limits, MemoryMethodStore, NotNull, Registry, Signature, typescript,
};
use tidegate_sql::{DatabaseName, Description};
use tidegate_values::{Column, Type, WireFormat};

const DEFINITIONS: &[u8] = br#"[
    {"method": "boats.byLength", "q": "select id, name, berth from boats where length < :most"},
    {"method": "today", "q": "select now() as now", "type_formats": {"now": "Y-m-d"}}
]"#;

/// PostgreSQL's description of the first statement: `boats` has the oid 16385, its columns `id` and
/// `name` are NOT NULL.
fn described() -> (Description, NotNull) {
    let column = |name: &str, r#type, number| Column {
        name: name.to_owned(),
        r#type,
        format: WireFormat::Binary,
        origin: Some((16_385, number)),
    };
    let description = Description {
        parameters: vec![Type::NUMERIC],
        columns: vec![
            column("id", Type::INT4, 1),
            column("name", Type::TEXT, 2),
            column("berth", Type::POINT, 3),
        ],
    };
    (description, NotNull::from_iter([(16_385, 1), (16_385, 2)]))
}

#[tokio::main(flavor = "current_thread")]
#[expect(clippy::print_stdout, reason = "an example shows what it made")]
async fn main() -> Result<(), Box<dyn Error>> {
    let registry = Registry::new(Arc::new(MemoryMethodStore::new()));
    let marina = DatabaseName::new("marina");
    let definitions = Definition::parse(DEFINITIONS, Limits::default())?;
    let owner = Caller {
        user: "marina",
        owner: true,
    };
    registry.create(&marina, owner, definitions).await?;

    let found = registry.lookup(&marina, "boats.byLength").await?;
    let method = found.ok_or("the method was defined above")?;
    let (description, not_null) = described();
    let signature = Signature::infer(method.statement()?, &description, &not_null);
    registry.record(&marina, &method, &signature).await?;

    print!("{}", typescript::interfaces(&registry.list(&marina).await?));
    Ok(())
}
