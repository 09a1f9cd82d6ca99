//! Tests that values have the forms of the SQL endpoint.

use tidegate_feed::{Error, Operation};

use crate::SOURCE;
use crate::fixture::{Fixture, LogSource};

#[tokio::test]
async fn every_type_has_the_form_of_the_sql_endpoint() {
    let fixture = Fixture::new("feed_types").await;
    fixture
        .run(
            "CREATE TYPE mood AS ENUM ('sad', 'glad'); CREATE DOMAIN even AS int CHECK (VALUE % 2 = 0);
             CREATE TYPE pair AS (x int, \"y z\" text);
             CREATE TABLE t (id int PRIMARY KEY, m mood, e even, p pair, ps pair[], ms mood[],
                 n numeric, i8 int8, f float8, b bool, by bytea, d date, ts timestamptz, iv interval,
                 j json, jb jsonb, pt point, r int4range, a int[][], u uuid,
                 ip inet, bt bit(3), mo money, tv tsvector);
             GRANT SELECT ON t TO PUBLIC",
        )
        .await;
    let columns = [
        "m", "e", "p", "ps", "ms", "n", "i8", "f", "b", "by", "d", "ts", "iv", "j", "jb", "pt",
        "r", "a", "u", "ip", "bt", "tv",
    ];
    let mut request = fixture.request("t", &columns).await;
    request.operations = Operation::Insert.into();
    let mut listener = fixture.subscribe(request).await.unwrap();
    // The settings of the writer's session must not matter.
    fixture
        .run(
            "SET datestyle = 'German'; SET timezone = 'Asia/Tokyo'; SET intervalstyle = 'sql_standard';
             SET bytea_output = escape; SET extra_float_digits = -15;
             INSERT INTO t VALUES (1, 'glad', 4, (1, 'a\"b'), ARRAY[(2, NULL)::pair], '{sad,glad}',
                 1.50, 9007199254740993, 0.1::float8 + 0.2, true, '\\x00ff', '2020-02-29',
                 '2020-01-01 00:00:00+00', '1 day 2 hours', '{\"b\": 1, \"a\": [1, 2]}', '{\"k\": null}',
                 '(1,2.5)', '[1,5)', '{{1,2},{3,4}}',
                 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '10.0.0.1/8', B'101', 1, 'a:1 b')",
        )
        .await;
    let expected = format!(
        "+{{\"m\":\"glad\",\"e\":4,\"p\":{{\"x\":1,\"y z\":\"a\\\"b\"}},\
         \"ps\":[{{\"x\":2,\"y z\":null}}],\"ms\":[\"sad\",\"glad\"],\"n\":\"1.50\",\
         \"i8\":9007199254740993,\"f\":0.30000000000000004,\"b\":true,\"by\":\"AP8=\",\
         \"d\":\"2020-02-29\",\"ts\":\"2020-01-01T00:00:00Z\",\
         \"iv\":{{\"y\":0,\"m\":0,\"d\":1,\"h\":2,\"i\":0,\"s\":0}},\
         \"j\":{{\"b\": 1, \"a\": [1, 2]}},\"jb\":{{\"k\": null}},\"pt\":{{\"x\":1,\"y\":2.5}},\
         \"r\":{},\"a\":[[1,2],[3,4]],\
         \"u\":\"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11\",\"ip\":\"10.0.0.1/8\",\"bt\":\"101\",\
         \"tv\":\"'a':1 'b'\"}}",
        range(1, 5),
    );
    assert_eq!(listener.event().await, expected);
}

fn range(lower: u8, upper: u8) -> String {
    format!(
        "{{\"lower\":{lower},\"upper\":{upper},\"lowerInclusive\":true,\
         \"upperInclusive\":false}}"
    )
}

#[tokio::test]
async fn multiranges_have_the_form_of_the_sql_endpoint() {
    let fixture = Fixture::new("feed_multiranges").await;
    if fixture.version() < 14 {
        return;
    }
    fixture
        .run("CREATE TABLE t (id int PRIMARY KEY, r int4multirange); GRANT SELECT ON t TO PUBLIC")
        .await;
    let mut listener = fixture.all("t", &["r"]).await;
    fixture
        .run("INSERT INTO t VALUES (1, '{[1,3),[5,7)}')")
        .await;
    let expected = format!("+{{\"r\":[{},{}]}}", range(1, 3), range(5, 7));
    assert_eq!(listener.event().await, expected);
}

#[tokio::test]
async fn unchanged_toasted_values_and_old_rows_are_delivered() {
    let fixture = Fixture::new("feed_long").await;
    fixture
        .run(
            "CREATE TABLE t (id int PRIMARY KEY, a text, n int); GRANT SELECT ON t TO PUBLIC;
             ALTER TABLE t ALTER a SET STORAGE EXTERNAL",
        )
        .await;
    let identity = || async {
        let query = "SELECT relreplident::text FROM pg_class WHERE relname = 't'";
        fixture
            .sql
            .query_one(query, &[])
            .await
            .unwrap()
            .get::<_, String>(0)
    };
    let mut request = fixture.request("t", &["id", "n"]).await;
    request.operations = Operation::Update.into();
    let _short = fixture.subscribe(request).await.unwrap();
    assert_eq!(
        identity().await,
        "d",
        "the replica identity is not raised without need"
    );
    let mut listener = fixture.all("t", &["id", "a"]).await;
    // An outbox always contains old rows, so it does not raise the replica identity.
    let raised = if SOURCE == LogSource::Log { "f" } else { "d" };
    assert_eq!(identity().await, raised);
    let long = "é".repeat(500_000);
    fixture
        .run(&format!("INSERT INTO t VALUES (1, '{long}', 0)"))
        .await;
    fixture.run("UPDATE t SET n = 1; DELETE FROM t").await;
    for sign in ['+', '~', '-'] {
        assert_eq!(
            listener.event().await,
            format!("{sign}{{\"id\":1,\"a\":\"{long}\"}}")
        );
    }
}

#[tokio::test]
async fn a_filter_on_a_domain_applies_to_values_of_its_base() {
    let fixture = Fixture::new("feed_domain").await;
    fixture
        .run(
            "CREATE DOMAIN positive AS int CHECK (value > 0); CREATE DOMAIN few AS positive;
             CREATE TABLE t (id int PRIMARY KEY, few few); GRANT SELECT ON t TO PUBLIC",
        )
        .await;
    let mut request = fixture.request("t", &["id", "few"]).await;
    request.predicate = Some(
        fixture
            .filter("/alice", "t", r#"{"few": 3}"#)
            .await
            .unwrap(),
    );
    let mut same = fixture.subscribe(request).await.unwrap();
    let mut request = fixture.request("t", &["id"]).await;
    let more = fixture.filter("/alice", "t", r#"{"few": {"gt": 2}}"#).await;
    request.predicate = Some(more.unwrap());
    let mut more = fixture.subscribe(request).await.unwrap();
    fixture
        .run("INSERT INTO t VALUES (1, 2), (2, NULL), (3, 3), (4, 4)")
        .await;
    assert_eq!(same.event().await, "+{\"id\":3,\"few\":3}");
    assert_eq!(more.events(2).await, ["+{\"id\":3}", "+{\"id\":4}"]);
}

/// The types of text columns with different collations.
const LETTERED: [(&str, &str); 5] = [
    ("plain", "text"),
    ("bytes", "text COLLATE \"C\""),
    ("icu", "text COLLATE \"en-x-icu\""),
    ("german", "varchar(20) COLLATE \"de-x-icu\""),
    ("padded", "char(4) COLLATE \"und-x-icu\""),
];

#[tokio::test]
async fn case_is_folded_by_the_collation_of_the_column() {
    let fixture = Fixture::new("feed_letters").await;
    let defined: Vec<_> = LETTERED
        .map(|(name, r#type)| format!("{name} {type}"))
        .into();
    fixture
        .run(&format!(
            "CREATE TABLE t (id int PRIMARY KEY, turkish text COLLATE \"tr-x-icu\", {}); \
             GRANT SELECT ON t TO PUBLIC",
            defined.join(", ")
        ))
        .await;
    let texts = [
        "İ",
        "\u{212a}",
        "aİb",
        "i",
        "I",
        "K\u{212a}k",
        "é",
        "İİ",
        "ik",
    ];
    let patterns = [
        "i", "k", "_", "__", "a_b", "a__b", "i%", "%k%", "k_K", "____",
    ];
    let mut listeners = Vec::new();
    for (column, _) in LETTERED {
        for pattern in patterns {
            let like = format!(r#"{{"{column}": {{"ilike": "{pattern}"}}}}"#);
            // The last row passes every filter, so all other rows that pass come before it.
            let filter = format!(r#"{{"OR": [{{"id": 99}}, {like}]}}"#);
            let listener = fixture.some("t", &filter).await.unwrap();
            listeners.push((column, pattern, listener));
        }
    }
    for (id, text) in texts.iter().enumerate() {
        let values = vec![format!("'{text}'"); LETTERED.len()].join(", ");
        fixture
            .run(&format!("INSERT INTO t VALUES ({id}, NULL, {values})"))
            .await;
    }
    fixture.run("INSERT INTO t (id) VALUES (99)").await;
    for (column, pattern, mut listener) in listeners {
        let query =
            format!("SELECT id FROM t WHERE {column} ILIKE '{pattern}' OR id = 99 ORDER BY id");
        for row in fixture.sql.query(&query, &[]).await.unwrap() {
            let id: i32 = row.get(0);
            let expected = format!("+{{\"id\":{id}}}");
            assert_eq!(listener.event().await, expected, "{column} ILIKE {pattern}");
        }
    }
    // A collation with its own rules for the letter i is refused.
    let turkish = fixture.some("t", r#"{"turkish": {"ilike": "i"}}"#).await;
    let refused = turkish.err().unwrap();
    assert!(matches!(refused, Error::Filter(_)), "{refused}");
}
