//! Tests types that are dropped and created again under the same name, and types that change.

use std::time::Duration;

use tidegate_feed::Item;
use tokio::time::Instant;

use crate::fixture::Fixture;

const TABLE: &str = "CREATE TABLE t (id int PRIMARY KEY, m mood, s spot, o other, l mood[]);
                     GRANT SELECT ON t TO PUBLIC";

#[tokio::test]
async fn recreated_types_are_the_new_ones() {
    let fixture = Fixture::new("feed_made_anew").await;
    for (labels, base, attributes, row) in [
        ("'sad', 'glad'", "mood", ["x", "y"], ["(1,2)", "(3,t)"]),
        ("'glad', 'happy'", "text", ["y", "z"], ["(1,2)", "(3,t)"]),
        ("'ok', 'glad'", "mood", ["y", "x"], ["(1,2)", "(3,t)"]),
    ] {
        let [first, second] = attributes;
        fixture
            .run(&format!(
                "CREATE TYPE mood AS ENUM ({labels}); CREATE DOMAIN feeling AS {base};
                 CREATE TYPE spot AS ({first} int, {second} int);
                 CREATE TABLE other ({second} int, {first} boolean); {TABLE};
                 ALTER TABLE t ADD f feeling"
            ))
            .await;
        let mut of_enum = fixture.some("t", r#"{"m": "glad"}"#).await.unwrap();
        let mut of_domain = fixture.some("t", r#"{"f": "glad"}"#).await.unwrap();
        let mut all = fixture.all("t", &["m", "s", "o", "l"]).await;
        let [spot, other] = row;
        fixture
            .run(&format!(
                "INSERT INTO t VALUES (1, 'glad', '{spot}', '{other}', '{{glad}}', 'glad')"
            ))
            .await;
        assert_eq!(of_enum.event().await, "+{\"id\":1}", "{labels}");
        assert_eq!(of_domain.event().await, "+{\"id\":1}", "{labels}");
        let expected = format!(
            "+{{\"m\":\"glad\",\"s\":{{\"{first}\":1,\"{second}\":2}},\
             \"o\":{{\"{second}\":3,\"{first}\":true}},\"l\":[\"glad\"]}}"
        );
        assert_eq!(all.event().await, expected);
        fixture
            .run("DROP TABLE t, other; DROP DOMAIN feeling; DROP TYPE mood, spot")
            .await;
    }
}

#[tokio::test]
async fn new_enum_labels_are_known_below_domains_too() {
    let fixture = Fixture::new("feed_domain_labels").await;
    fixture
        .run(
            "CREATE TYPE mood AS ENUM ('sad', 'glad'); CREATE DOMAIN feeling AS mood;
             CREATE TABLE t (id int PRIMARY KEY, f feeling); GRANT SELECT ON t TO PUBLIC",
        )
        .await;
    let mut not_sad = fixture.some("t", r#"{"f": {"gt": "sad"}}"#).await.unwrap();
    fixture.run("INSERT INTO t VALUES (1, 'glad')").await;
    assert_eq!(not_sad.event().await, "+{\"id\":1}");
    fixture.run("ALTER TYPE mood ADD VALUE 'happy'").await;
    fixture.run("INSERT INTO t VALUES (2, 'happy')").await;
    assert_eq!(not_sad.event().await, "+{\"id\":2}");
}

#[tokio::test]
async fn added_and_renamed_attributes_are_delivered() {
    let fixture = Fixture::new("feed_attributes").await;
    fixture
        .run(&format!(
            "CREATE TYPE mood AS ENUM ('glad'); CREATE TYPE spot AS (x int); \
             CREATE TABLE other (a int); {TABLE}"
        ))
        .await;
    let mut all = fixture.all("t", &["s", "o"]).await;
    let mut id = 0;
    for (change, values, shown) in [
        ("SELECT", "'(1)', '(2)'", r#"{"s":{"x":1},"o":{"a":2}}"#),
        (
            "ALTER TYPE spot RENAME ATTRIBUTE x TO y",
            "'(1)', '(2)'",
            r#"{"s":{"y":1},"o":{"a":2}}"#,
        ),
        (
            "ALTER TABLE other RENAME a TO b",
            "'(1)', '(2)'",
            r#"{"s":{"y":1},"o":{"b":2}}"#,
        ),
        (
            "ALTER TYPE spot ADD ATTRIBUTE z int; ALTER TABLE other ADD c int",
            "'(1,3)', '(2,4)'",
            r#"{"s":{"y":1,"z":3},"o":{"b":2,"c":4}}"#,
        ),
    ] {
        fixture.run(change).await;
        let begin = Instant::now();
        loop {
            assert!(begin.elapsed() < Duration::from_secs(10), "{change}");
            id += 1;
            fixture
                .run(&format!("INSERT INTO t VALUES ({id}, 'glad', {values})"))
                .await;
            // A row with more attributes than the cached type has is a gap.
            if matches!(all.next().await, Item::Event { row, .. } if row == shown) {
                break;
            }
        }
    }
}
