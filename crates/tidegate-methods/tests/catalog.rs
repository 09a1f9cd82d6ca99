//! Compares which columns may be NULL with PostgreSQL.

use tidegate_methods::{NotNull, Signature};
use tidegate_service::ServiceConnections;
use tidegate_sql::{DatabaseName, Description, QueryOptions, Statement};
use tidegate_testkit::{config, service_connections};
use tidegate_values::{Column, WireFormat};
use tokio_postgres::{Client, SimpleQueryMessage};

const TABLES: &str = "
    create domain required as int not null;
    create table boats (id int primary key, name text not null, note text, at required default 1);
    create table crews (boat int not null, hand text not null, unique (boat, hand));
    create view fleet as select id, name from boats;
    create materialized view docked as select id, name from boats;
    create table logs (day int not null, line text not null) partition by range (day);
    create table logs_1 partition of logs for values from (0) to (10);
    create table parents (id int not null);
    create table heirs () inherits (parents);
    create table ruled (id int not null);
    create rule nothing as on insert to ruled do instead insert into boats (id, name)
        values (new.id, 'by rule') returning null::int;
    insert into boats values (1, 'Alk', null, 1), (2, 'Brise', 'x', 1);
    insert into crews values (1, 'anna'), (1, 'ben');
    insert into logs values (1, 'sunny');
    insert into parents values (1);
";

struct Fixture {
    service: ServiceConnections,
    database: DatabaseName,
    client: Client,
}

impl Fixture {
    async fn new(database: &str) -> Self {
        let cluster = tidegate_embedded::testing::cluster();
        Self {
            service: service_connections(config(&cluster.admin_url(), "postgres")),
            database: DatabaseName::new(database),
            client: tidegate_testkit::database(database, TABLES).await,
        }
    }

    async fn infer(&self, q: &str) -> Signature {
        let statement = Statement::parse(q).unwrap();
        let described = self.client.prepare(statement.text()).await.unwrap();
        let columns = described.columns().iter().map(|column| Column {
            name: column.name().to_owned(),
            r#type: column.type_().clone(),
            format: WireFormat::Text,
            origin: column.table_oid().zip(column.column_id()),
        });
        let description = Description {
            parameters: described.params().to_vec(),
            columns: columns.collect(),
        };
        let asked = NotNull::candidates(&statement, &description);
        let options = QueryOptions::default();
        let facts = NotNull::load(&self.service, &self.database, &asked, &options).await;
        Signature::infer(&statement, &description, &facts.unwrap())
    }

    async fn nullable(&self, q: &str) -> Vec<bool> {
        let columns = self.infer(q).await.columns;
        columns.iter().map(|column| column.nullable).collect()
    }

    /// Which columns are NULL in some row of the result. The statement runs in a transaction that
    /// is rolled back.
    async fn nulls(&self, q: &str) -> Vec<bool> {
        let all = self
            .client
            .simple_query(&format!("begin; {q}; rollback"))
            .await
            .unwrap();
        let mut nulls = Vec::new();
        for message in all {
            if let SimpleQueryMessage::Row(row) = message {
                nulls.resize(row.len(), false);
                for (at, null) in nulls.iter_mut().enumerate() {
                    *null |= row.get(at).is_none();
                }
            }
        }
        nulls
    }
}

#[tokio::test]
async fn a_not_null_column_of_a_table_is_not_nullable() {
    let fixture = Fixture::new("methods_not_null").await;
    for (q, expected) in [
        (
            "select id, name, note, at from boats",
            &[false, false, true, true][..],
        ),
        (
            "select b.id, c.hand from boats b join crews c on c.boat = b.id",
            &[false, false],
        ),
        (
            "select id + 1, upper(name), name from boats",
            &[true, true, false],
        ),
        ("select day, line from logs", &[false, false]),
        (
            "insert into boats (id, name) values (9, :name) returning id, name, note",
            &[false, false, true],
        ),
        (
            "update boats set note = :note returning *",
            &[false, false, true, true],
        ),
        ("select id, name from fleet", &[true, true]),
        ("select id, name from docked", &[true, true]),
        ("select id from parents", &[true]),
        ("insert into ruled values (9) returning id", &[true]),
        (
            "select attname, attrelid from pg_attribute",
            &[false, false],
        ),
        ("select tableoid, ctid from boats", &[true, true]),
        ("delete from boats", &[]),
    ] {
        assert_eq!(fixture.nullable(q).await, expected, "{q}");
    }
}

#[tokio::test]
async fn no_column_that_is_said_to_hold_no_null_holds_one() {
    let fixture = Fixture::new("methods_sound").await;
    let doubtful = [
        "select b.id, c.hand from boats b left join crews c on c.boat = b.id",
        "select b.id, c.boat from crews c right join boats b on c.boat = b.id and c.hand = 'anna'",
        "select b.id, c.boat, c.hand from boats b full join crews c on false",
        "select b.name, l.hand from boats b left join lateral (table crews) l on l.boat = b.id",
        "select b.name, c.hand from boats b join boats d on d.id=b.id left join crews c on c.boat = b.id",
        "select id from boats group by rollup (id)",
        "select name, id from boats group by cube (name, id)",
        "select id from boats group by grouping sets ((id), ())",
        "select id from boats union select null",
        "(select id from boats) union all select boat from (values (null::int)) v (boat)",
        "select s.hand from (select c.hand from boats b left join crews c on c.boat = b.id) s",
        "with s as (select c.hand from boats b left join crews c on c.boat = b.id) table s",
        "select (select hand from crews where false) from boats",
        "insert into ruled values (9) returning id",
        "select (array[id])[2], nullif(id, 1) from boats",
        "select max(id) from boats where false",
        "select (b).note, (c).hand from boats b left join crews c on c.boat = b.id",
    ];
    for q in doubtful {
        let nulls = fixture.nulls(q).await;
        assert!(
            nulls.contains(&true),
            "shows no NULL, and so proves nothing: {q}"
        );
        for (reported, found) in fixture.nullable(q).await.into_iter().zip(nulls) {
            assert!(reported || !found, "{q}");
        }
    }
}

#[tokio::test]
async fn types_of_the_database_have_their_forms() {
    let fixture = Fixture::new("methods_forms").await;
    let make = "create type mood as enum ('ok'); create type pair as (a int, b text[])";
    fixture.client.batch_execute(make).await.unwrap();
    let q = "select :m::mood as m, :p::pair as p, array[:p] as ps, :d::required as d, \
             :r::int8range as r, name from boats where id = :id";
    let signature = fixture.infer(q).await;
    let names: Vec<_> = signature
        .parameters
        .iter()
        .map(|p| (&*p.name, &*p.r#type))
        .collect();
    let expected = [
        ("m", "mood"),
        ("p", "pair"),
        ("d", "int4"),
        ("r", "int8range"),
        ("id", "int4"),
    ];
    assert_eq!(names, expected);
    let pair = r#"{"composite":[["a","number"],["b",{"array":"text"}]]}"#;
    let forms = signature
        .columns
        .iter()
        .map(|c| serde_json::to_string(&c.form).unwrap());
    let forms: Vec<_> = forms.collect();
    let arrays = format!(r#"{{"array":{pair}}}"#);
    assert_eq!(
        forms,
        [
            r#""text""#,
            pair,
            &arrays,
            r#""number""#,
            r#"{"range":"number"}"#,
            r#""text""#
        ]
    );
}

#[tokio::test]
async fn a_dropped_table_tells_nothing() {
    let fixture = Fixture::new("methods_dropped").await;
    let (database, options) = (&fixture.database, QueryOptions::default());
    let gone = NotNull::load(&fixture.service, database, &[(4_000_000_000, 1)], &options).await;
    assert_eq!(gone.unwrap(), NotNull::default());
}
