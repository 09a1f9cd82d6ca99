//! Schemas and databases for the tests.

use bytes::BytesMut;
use tidegate_catalog::model::{
    Cardinality, Collation, Column, ColumnRights, Persistence, Relation, RelationKind,
    RelationRights, Relationship,
};
use tidegate_catalog::{RelationId, Schema};
use tidegate_filter::{Alias, Error, Filter, Json};
use tidegate_sql::parameter::{self, IsNull};
use tidegate_sql::statement::{Kind, SqlWriter};
use tidegate_sql::{BoundStatement, Parameter, Type};
use tokio_postgres::types::{Format, ToSql};
use tokio_postgres::{Client, NoTls};

/// A foreign key of a test: its name, and both ends as relation and column.
pub(crate) type Link<'a> = (&'a str, (&'a str, &'a str), (&'a str, &'a str));

/// Relations by name with their columns, and foreign keys between single columns; both ends of a
/// key have a relationship with the name of the other relation.
pub(crate) fn schema(
    name: &str,
    mut tables: Vec<(&str, Vec<Column>)>,
    links: &[Link<'_>],
) -> Schema {
    tables.sort_by_key(|(name, _)| *name);
    let relations: Vec<_> = (1..)
        .zip(tables)
        .map(|(oid, (name, columns))| relation(oid, name, columns))
        .collect();
    let plain = Schema::new(name.into(), relations.clone());
    let linked = relations.into_iter().map(|mut relation| {
        let own = relation.name.clone();
        for (constraint, from, to) in links {
            for (here, there, cardinality) in
                [(from, to, Cardinality::One), (to, from, Cardinality::Many)]
            {
                if here.0 == &*own {
                    relation.relationships.push(relationship(
                        &plain,
                        (constraint, cardinality),
                        here,
                        there,
                    ));
                }
            }
        }
        relation
    });
    Schema::new(name.into(), linked.collect())
}

fn relation(oid: u32, name: &str, columns: Vec<Column>) -> Relation {
    Relation {
        oid,
        name: name.into(),
        type_name: name.into(),
        kind: RelationKind::Table,
        persistence: Persistence::Permanent,
        row_security: false,
        comment: None,
        columns,
        primary_key: None,
        unique: Vec::new(),
        foreign_keys: Vec::new(),
        relationships: Vec::new(),
        rights: RelationRights::default(),
    }
}

fn relationship(
    schema: &Schema,
    (constraint, cardinality): (&str, Cardinality),
    here: &(&str, &str),
    there: &(&str, &str),
) -> Relationship {
    let column = |(relation, column): &(&str, &str)| {
        let id = schema.find(relation).unwrap();
        schema.relation(id).find_column(column).unwrap()
    };
    Relationship {
        name: there.0.into(),
        cardinality,
        target: schema.find(there.0).unwrap(),
        columns: vec![column(here)],
        target_columns: vec![column(there)],
        constraint: constraint.into(),
        certain: false,
    }
}

/// A column whose field has the name that GraphQL can have.
pub(crate) fn column(name: &str, r#type: Type) -> Column {
    let field = name.replace(|c: char| !c.is_ascii_alphanumeric() && c != '_', "_");
    let text = matches!(
        r#type,
        Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME
    );
    Column {
        name: name.into(),
        field: field.into(),
        number: 1,
        r#type,
        not_null: false,
        has_default: false,
        generated: None,
        identity: None,
        collation: text.then_some(Collation::Deterministic),
        comment: None,
        rights: ColumnRights::default(),
    }
}

/// A shop: artists, albums, and a table of many types.
pub(crate) fn shop() -> Schema {
    let columns = |columns: &[(&str, Type)]| {
        columns
            .iter()
            .map(|(name, r#type)| column(name, r#type.clone()))
            .collect::<Vec<_>>()
    };
    schema(
        "public",
        vec![
            (
                "artists",
                columns(&[("id", Type::INT4), ("name", Type::TEXT)]),
            ),
            (
                "albums",
                columns(&[
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
                ]),
            ),
        ],
        &[("albums_artist", ("albums", "artist_id"), ("artists", "id"))],
    )
}

/// Reads a filter over a relation.
pub(crate) fn parse(schema: &Schema, relation: &str, json: &str) -> Result<Filter, Error> {
    let relation = schema.find(relation).unwrap();
    Filter::parse(&Json::from(json), schema, relation, "where")
}

/// The statement `select` of a relation's rows that pass.
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
    let cluster = tidegate_embedded::testing::cluster();
    let admin = connect(&cluster.admin_url()).await;
    admin
        .batch_execute(&format!("create database {name}"))
        .await
        .unwrap();
    let client = connect(&cluster.url(name)).await;
    client.batch_execute("set timezone = 'UTC'").await.unwrap();
    client.batch_execute(sql).await.unwrap();
    client
}

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
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
        .map(|described| column(described.name(), described.type_().clone()))
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

/// Runs a statement and gives its rows.
pub(crate) async fn run(
    client: &Client,
    bound: &BoundStatement,
) -> Result<Vec<tokio_postgres::Row>, tokio_postgres::Error> {
    let statement = client.prepare(bound.statement.text()).await?;
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
