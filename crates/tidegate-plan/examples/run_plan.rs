//! Runs a nested query on a throw-away PostgreSQL, without a server and without GraphQL.
//!
//! `cargo run -p tidegate-plan --example run_plan`

#![expect(clippy::print_stdout, reason = "an example that prints")]

use std::sync::Arc;

use bytes::BytesMut;
use tidegate_catalog::{RelationId, Schema};
use tidegate_filter::Filter;
use tidegate_plan::operation::{
    List, Output, Root, RootField, SelectedField, Selection, VariableSources,
};
use tidegate_plan::{Limits, Operation, Plan};
use tidegate_service::ServiceConnections;
use tidegate_sql::{Commit, DatabaseName, Executor, Mode, Pipeline, Principal, QueryOptions};
use tidegate_wire::Config;
use tidegate_wire::backoff::Jitter;

const SETUP: &str = "create table harbours (id int primary key, name text);
    create table ships (id int primary key, name text, harbour_id int references harbours);
    insert into harbours values (1, 'Kiel'), (2, 'Brest');
    insert into ships values (1, 'Gorch Fock', 1), (2, 'Passat', 1)";

const SCHEMA: &str = r#"{"name": "public", "relations": [
    {"name": "harbours", "kind": "table", "rights": "s",
     "columns": [{"name": "id", "type": "int4", "not_null": true}, {"name": "name", "type": "text"}],
     "constraints": [{"name": "harbours_pkey", "kind": "primary", "columns": ["id"]}]},
    {"name": "ships", "kind": "table", "rights": "s",
     "columns": [{"name": "id", "type": "int4", "not_null": true}, {"name": "name", "type": "text"},
                 {"name": "harbour_id", "type": "int4"}],
     "constraints": [{"name": "ships_pkey", "kind": "primary", "columns": ["id"]},
                     {"name": "ships_harbour", "kind": "foreign", "columns": ["harbour_id"],
                      "references": {"relation": "harbours", "columns": ["id"]}}]}]}"#;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let settings = tidegate_embedded::Settings::temporary();
    let cluster = tidegate_embedded::Cluster::start(settings).await?;
    let (admin, connection) =
        tokio_postgres::connect(&cluster.admin_url(), tokio_postgres::NoTls).await?;
    tokio::spawn(connection);
    admin.batch_execute(SETUP).await?;

    let config = Config::from_url(&cluster.admin_url())?;
    let service = ServiceConnections::new(Arc::new(config), Jitter::none())?;
    let who = Principal::Catalog(DatabaseName::new("postgres"));

    let schema = Schema::parse(SCHEMA)?;
    let operation = harbours_with_ships(&schema).ok_or("the schema has both tables")?;
    let mut plan = Plan::new(&schema, operation, &Limits::default())?;
    loop {
        let steps = plan.steps()?;
        for step in &steps {
            println!("{}", step.statement.statement.text());
        }
        let pipeline = Pipeline {
            mode: Mode::Snapshot,
            steps,
            commit: Commit::AfterRows,
        };
        let ran = service
            .pipeline(&who, pipeline, &QueryOptions::default())
            .await;
        ran.map_err(|failed| failed.error)?;
        if !plan.restart() {
            break;
        }
    }
    let mut data = BytesMut::new();
    plan.finish(&mut data)?;
    println!("{}", String::from_utf8_lossy(&data));
    cluster.stop().await?;
    Ok(())
}

fn harbours_with_ships(schema: &Schema) -> Option<Operation<'static>> {
    let (harbours, ships) = (schema.find("harbours")?, schema.find("ships")?);
    let inner = list(vec![column(schema, ships, "name")?]);
    let below = schema[harbours].find_relationship("ships")?;
    let outer = list(vec![
        column(schema, harbours, "name")?,
        SelectedField {
            key: "ships".into(),
            output: Output::Many(below, inner),
        },
    ]);
    Some(Operation::Query(vec![Root {
        key: "getHarbours".into(),
        field: RootField::Get(harbours, outer),
    }]))
}

fn column(schema: &Schema, relation: RelationId, name: &str) -> Option<SelectedField> {
    Some(SelectedField {
        key: name.into(),
        output: Output::Column(schema[relation].find_column(name)?),
    })
}

fn list(fields: Vec<SelectedField>) -> List {
    List {
        filter: Filter::everything(),
        order: Vec::new(),
        limit: None,
        offset: None,
        selection: Selection { fields },
        origins: VariableSources::default(),
    }
}
