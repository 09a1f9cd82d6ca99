//! Tests the names of tables whose names conflict, and where their own names are documented
//! (API.md, "Names and types").

use reqwest::Method;
use serde_json::{Value, json};

use crate::graphql_names::{data, prepare, send};
use crate::service::{demo, eventually};

/// A table that is created later does not take the name of an existing one, whatever the order of
/// names is.
#[tokio::test]
async fn an_aggregate_yields_to_a_table_of_its_name() {
    prepare(
        "gql_owned",
        "create table play_aggregate (id int primary key, score int); insert into play_aggregate values (1, 5);
         create table song (id int primary key); insert into song values (1)",
    )
    .await;
    let owned = "{ getPlayAggregate { __typename id score } getSong { id } }";
    let expected = json!({
        "getPlayAggregate": [{"__typename": "PlayAggregate", "id": "1", "score": 5}],
        "getSong": [{"id": "1"}],
    });
    assert_eq!(data("gql_owned", owned, Value::Null).await, expected);
    let later = "create table gql_owned.play (id int primary key);
                 create table gql_owned.song_aggregate (id int primary key, max int);
                 insert into gql_owned.play values (1), (2); insert into gql_owned.song_aggregate values (3, 9)";
    demo().admin().await.batch_execute(later).await.unwrap();
    let grant = "grant all on all tables in schema gql_owned to demo";
    demo().admin().await.batch_execute(grant).await.unwrap();
    let new = "{ getPlay { id } getPlayAggregate2 { __typename count max { id } } \
               getSongAggregate { __typename id max } getSongAggregate2 { count } \
               getPlayAggregateAggregate { count } }";
    eventually("the tables", || async {
        send("gql_owned", new, &Value::Null)
            .await
            .1
            .get("errors")
            .is_none()
    })
    .await;
    assert_eq!(data("gql_owned", owned, Value::Null).await, expected);
    assert_eq!(
        data("gql_owned", new, Value::Null).await,
        json!({
            "getPlay": [{"id": "1"}, {"id": "2"}],
            "getPlayAggregate2": [{"__typename": "PlayAggregate2", "count": 2, "max": {"id": "2"}}],
            "getSongAggregate": [{"__typename": "SongAggregate", "id": "3", "max": 9}],
            "getSongAggregate2": [{"count": 1}],
            "getPlayAggregateAggregate": [{"count": 1}],
        })
    );
}

/// The description of a renamed table contains the table's real name, in introspection and in SDL.
#[tokio::test]
async fn a_name_that_had_to_change_is_in_the_description() {
    prepare(
        "gql_true_names",
        r#"create table "日本語" (id int primary key, "名前" text, "2012" int, plain int);
           create table my_table (id int); create table "MyTable" (id int);
           comment on column "日本語"."名前" is 'Of a person.'; comment on table "日本語" is 'A language.'"#,
    )
    .await;
    let query =
        "query($t: String!) { __type(name: $t) { description fields { name description } } }";
    let about =
        async |name: &str| data("gql_true_names", query, json!({"t": name})).await["__type"].take();
    let found = about("Table").await;
    assert_eq!(
        found["description"],
        "A language.\nCalled \"日本語\" in the database."
    );
    assert_eq!(
        found["fields"],
        json!([
            {"name": "id", "description": null},
            {"name": "_", "description": "Of a person.\nCalled \"名前\" in the database."},
            {"name": "_012", "description": "Called \"2012\" in the database."},
            {"name": "plain", "description": null},
        ])
    );
    assert_eq!(about("MyTable").await["description"], Value::Null);
    let renamed = about("MyTable2").await;
    assert_eq!(
        renamed["description"],
        "Called \"my_table\" in the database."
    );
    let path = "/api/graphql/schema/gql_true_names/sdl";
    let sdl = demo().ask(Method::GET, path, Some("demo"), None).await.text;
    assert!(sdl.contains("Called \"2012\" in the database."), "{sdl}");
}
