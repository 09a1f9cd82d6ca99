//! Schemas and databases for the tests.

use std::collections::BTreeMap;

use bytes::BytesMut;
use serde_json::{Value, json};
use tidegate_catalog::{RelationId, Schema};
use tidegate_filter::{Alias, Error, Filter, Json};
use tidegate_sql::BoundStatement;
use tidegate_sql::statement::{Kind, SqlWriter};
use tidegate_values::parameter::{self, IsNull};
use tidegate_values::{Parameter, Type, TypeKind};
use tokio_postgres::Client;
use tokio_postgres::types::{Format, ToSql};

/// A foreign key of a test schema: its name, and both ends as relation and column.
pub(crate) type ForeignKeySpec<'a> = (&'a str, (&'a str, &'a str), (&'a str, &'a str));

/// A column of a test schema: its name, its type, and the collation of its text as documents write
/// it.
pub(crate) type Column = (String, Type, &'static str);

/// A schema with these relations and columns, and foreign keys between single columns.
pub(crate) fn schema(
    name: &str,
    tables: &[(&str, Vec<Column>)],
    links: &[ForeignKeySpec<'_>],
) -> Schema {
    let mut types = BTreeMap::new();
    let relations: Vec<_> = (1..)
        .zip(tables)
        .map(|(oid, (name, columns))| {
            let constraints: Vec<_> = links
                .iter()
                .filter(|(_, from, _)| from.0 == *name)
                .map(|(name, from, to)| {
                    json!({"name": name, "kind": "foreign", "columns": [from.1],
                           "references": {"relation": to.0, "columns": [to.1]}})
                })
                .collect();
            let columns: Vec<_> = columns
                .iter()
                .map(|column| entry(column, &mut types))
                .collect();
            json!({"oid": oid, "name": name, "kind": "table", "rights": "siud",
                   "columns": columns, "constraints": constraints})
        })
        .collect();
    let types: Vec<_> = types.into_values().collect();
    let document = json!({"name": name, "types": types, "relations": relations});
    Schema::parse(&document.to_string()).unwrap()
}

fn entry((name, r#type, collation): &Column, types: &mut BTreeMap<u32, Value>) -> Value {
    describe(r#type, types);
    let base = match r#type.kind() {
        TypeKind::Domain(base) => base,
        _ => r#type,
    };
    let text = [Type::TEXT, Type::VARCHAR, Type::BPCHAR].contains(base) || base.name() == "citext";
    let collation = if *base == Type::NAME {
        "bytes"
    } else {
        collation
    };
    let collated = text || *base == Type::NAME;
    json!({"name": name, "type": r#type.oid(), "collation": collated.then_some(collation)})
}

/// Adds a type that is not built in, and the types that it consists of.
fn describe(r#type: &Type, types: &mut BTreeMap<u32, Value>) {
    if Type::from_oid(r#type.oid()).is_some() {
        return;
    }
    let (kind, inner) = match r#type.kind() {
        TypeKind::Enum(_) => ("enum", None),
        TypeKind::Array(inner) => ("array", Some(inner)),
        TypeKind::Range(inner) => ("range", Some(inner)),
        TypeKind::Multirange(inner) => ("multirange", Some(inner)),
        TypeKind::Domain(inner) => ("domain", Some(inner)),
        TypeKind::Composite(_) => ("composite", None),
        _ => ("simple", None),
    };
    let mut entry = json!({"oid": r#type.oid(), "name": r#type.name(), "schema": r#type.schema(), "kind": kind});
    if let Some(inner) = inner {
        describe(inner, types);
        entry["inner"] = json!(inner.oid());
    }
    if let TypeKind::Enum(labels) = r#type.kind() {
        entry["labels"] = json!(labels);
    }
    if let TypeKind::Composite(fields) = r#type.kind() {
        let attributes = fields.iter().map(|field| {
            describe(field.type_(), types);
            json!({"name": field.name(), "type": field.type_().oid()})
        });
        entry["attributes"] = attributes.collect();
    }
    types.insert(r#type.oid(), entry);
}

/// Columns by name and type. Text columns have a collation that orders text by a language.
pub(crate) fn named(columns: &[(&str, Type)]) -> Vec<Column> {
    let columns = columns.iter();
    columns
        .map(|(name, r#type)| ((*name).to_owned(), r#type.clone(), "deterministic"))
        .collect()
}

/// A shop with artists and albums, whose columns have many types.
pub(crate) fn shop() -> Schema {
    let albums = named(&[
        ("id", Type::INT8),
        ("artist_id", Type::INT4),
        ("title", Type::VARCHAR),
        ("price", Type::NUMERIC),
        ("released", Type::DATE),
        ("tags", Type::TEXT_ARRAY),
        ("extra", Type::JSONB),
        ("raw", Type::JSON),
        ("years", Type::INT4_RANGE),
        ("live", Type::BOOL),
        ("weight", Type::FLOAT8),
        ("cover", Type::BYTEA),
        ("length", Type::INTERVAL),
        ("place", Type::POINT),
        ("track", Type::PATH),
        ("key", Type::UUID),
        ("code", Type::BPCHAR),
        ("small", Type::INT2),
        ("odd \"name", Type::INT4),
        ("or", Type::BOOL),
    ]);
    let artists = named(&[("id", Type::INT4), ("name", Type::TEXT)]);
    let key = ("albums_artist", ("albums", "artist_id"), ("artists", "id"));
    schema(
        "public",
        &[("artists", artists), ("albums", albums)],
        &[key],
    )
}

/// Parses a filter over a relation.
pub(crate) fn parse(schema: &Schema, relation: &str, json: &str) -> Result<Filter, Error> {
    let relation = schema.find(relation).unwrap();
    Filter::parse(&Json::from(json), schema, relation, "where")
}

/// The statement that selects the rows that pass the filter.
pub(crate) fn select(
    schema: &Schema,
    relation: RelationId,
    filter: &Filter,
    shown: &'static str,
) -> BoundStatement {
    let mut sql = SqlWriter::new();
    sql.syntax("select ")
        .syntax(shown)
        .syntax(" from ")
        .identifier(schema.name())
        .syntax(".")
        .identifier(&schema.relation(relation).name)
        .syntax(" t0 where ");
    filter.write(&mut sql, schema, relation, Alias("t", 0));
    sql.finish(Kind::Read)
}

/// A connection to a new database with these tables.
pub(crate) async fn database(name: &str, sql: &str) -> Client {
    let sql = format!("set timezone = 'UTC'; {sql}");
    tidegate_testkit::database(name, &sql).await
}

/// The columns of a relation as PostgreSQL describes them.
pub(crate) async fn columns(client: &Client, relation: &str) -> Vec<Column> {
    let statement = client
        .prepare(&format!("select * from {relation}"))
        .await
        .unwrap();
    statement
        .columns()
        .iter()
        .map(|described| {
            let name = described.name().to_owned();
            (name, described.type_().clone(), "deterministic")
        })
        .collect()
}

/// A value in the text form of its type.
#[derive(Debug)]
struct AsText(Option<Vec<u8>>);

impl ToSql for AsText {
    fn to_sql(
        &self,
        _: &Type,
        out: &mut BytesMut,
    ) -> Result<tokio_postgres::types::IsNull, Box<dyn std::error::Error + Sync + Send>> {
        Ok(match &self.0 {
            Some(text) => {
                out.extend_from_slice(text);
                tokio_postgres::types::IsNull::No
            }
            None => tokio_postgres::types::IsNull::Yes,
        })
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn encode_format(&self, _: &Type) -> Format {
        Format::Text
    }

    fn to_sql_checked(
        &self,
        r#type: &Type,
        out: &mut BytesMut,
    ) -> Result<tokio_postgres::types::IsNull, Box<dyn std::error::Error + Sync + Send>> {
        self.to_sql(r#type, out)
    }
}

fn encode(value: &Parameter, r#type: &Type) -> AsText {
    let mut out = BytesMut::new();
    let null = parameter::encode(value, r#type, None, &|| "value".to_owned(), &mut out).unwrap();
    AsText((null == IsNull::No).then(|| out.to_vec()))
}

/// Runs a statement and returns its rows.
pub(crate) async fn run(
    client: &Client,
    bound: &BoundStatement,
) -> Result<Vec<tokio_postgres::Row>, tokio_postgres::Error> {
    run_text(client, bound.statement.text(), bound).await
}

/// The plan of a statement.
pub(crate) async fn explain(client: &Client, bound: &BoundStatement) -> String {
    let text = format!("explain (costs off) {}", bound.statement.text());
    let rows = run_text(client, &text, bound).await.unwrap();
    let lines: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    lines.join("\n")
}

async fn run_text(
    client: &Client,
    text: &str,
    bound: &BoundStatement,
) -> Result<Vec<tokio_postgres::Row>, tokio_postgres::Error> {
    let statement = client.prepare(text).await?;
    let values: Vec<_> = bound.sets[0]
        .iter()
        .zip(statement.params())
        .map(|(value, r#type)| encode(value, r#type))
        .collect();
    let values: Vec<_> = values
        .iter()
        .map(|value| value as &(dyn ToSql + Sync))
        .collect();
    client.query(&statement, &values).await
}
