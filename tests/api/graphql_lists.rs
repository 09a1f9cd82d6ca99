//! Tests orders, pages and aggregates (API.md, "GraphQL").

use serde_json::{Value, json};

use crate::graphql::{ask, code, data, wait_for_type};
use crate::service::demo;

async fn prepare() {
    let sql = "select pg_advisory_xact_lock(8310);
         create table if not exists gql_lists (id int primary key, i2 int2, i4 int4, i8 int8,
             n numeric, f4 float4, f8 float8, t text, v varchar(9), c char(3), d date, tm time,
             tz timetz, ts timestamp, tt timestamptz, iv interval, mo money, e gql_size, b bool,
             u uuid, r int4range, ip inet, ne cidr, oi oid, ls pg_lsn, \"max\" int, count int,
             ta text[], ia int[], ea gql_size[], ti tid, x8 xid8, dm gql_lists_size, by bytea, js json[], ra int4range[], dp gql_lists_pair, df gql_lists_few, dd gql_lists_pair[]);
         insert into gql_lists values
             (1, 1, 10, 100, 1.10, 0.5, 1.5, 'b', 'x', 'aa', '2024-01-01', '10:00', '10:00+02', '2024-01-01 10:00', '2024-01-01 10:00Z', '1 day', 1.5, 'small', true, '00000000-0000-0000-0000-000000000001', '[1,2)', '10.0.0.1', '10.0.0.0/8', 5, '0/1', 4, 7,
              '{b,a}', '{2,1}', '{large}', '(1,2)', '7', 'large', '\\x01', '{1}', '{[1\\,2)}', '{1}', 1, '{\"{1}\"}'),
             (2, 2, 20, 9007199254740993, 2.25, 0.25, 2.5, 'a', 'y', 'bb', '2024-02-01', '11:00', '11:00+02', '2024-02-01 10:00', '2024-02-01 10:00Z', '2 days', 2.5, 'large', false, '00000000-0000-0000-0000-000000000002', '[2,3)', '10.0.0.2', '11.0.0.0/8', 6, '0/2', 5, 8,
              '{b}', '{2}', '{small,large}', '(1,1)', '12', 'small', '\\x02', '{2}', '{[1\\,3)}', '{2}', 2, '{\"{2}\"}'),
             (3, 2, null, null, null, null, null, 'a', null, null, null, null, null, null, null, null, null, 'small', null, null, null, null, null, null, null, 6, 9,
              null, null, null, null, null, null, null, null, null, null, null, null)
         on conflict do nothing";
    let admin = demo().admin().await;
    let all = format!(
        "begin; do $$ begin create type gql_size as enum ('small', 'large'); exception when duplicate_object then null; end $$;
         do $$ begin create domain gql_lists_size as gql_size; create domain gql_lists_pair as int[]; create domain gql_lists_few as int; exception when duplicate_object then null; end $$;
         {sql}; alter table gql_lists owner to demo; commit"
    );
    // The lock is needed because another test may create the type at the same time.
    let locked = all.replacen("begin;", "begin; select pg_advisory_xact_lock(8310);", 1);
    admin.batch_execute(&locked).await.unwrap();
    wait_for_type("GqlLists").await;
}

#[tokio::test]
async fn every_form_of_an_order_is_that_of_sql() {
    prepare().await;
    for (form, sql) in [
        (json!({"id": "asc"}), "id"),
        (json!({"id": "desc"}), "id desc"),
        (json!({"id": "DESC"}), "id desc"),
        (json!({"i4": "asc"}), "i4"),
        (json!({"i4": "desc"}), "i4 desc"),
        (json!({"i4": "asc_nulls_first"}), "i4 nulls first"),
        (json!({"i4": "asc_nulls_last"}), "i4 nulls last"),
        (json!({"i4": "desc_nulls_first"}), "i4 desc nulls first"),
        (json!({"i4": "desc_nulls_last"}), "i4 desc nulls last"),
        (json!({"t": "asc", "id": "desc"}), "t, id desc"),
        (json!([{"t": "asc"}, {"id": "desc"}]), "t, id desc"),
        (
            json!([{"i2": "desc", "t": "desc"}, {"n": "desc_nulls_last"}]),
            "i2 desc, t desc, n desc nulls last",
        ),
        (json!([{"e": "desc"}, {"id": "asc"}]), "e desc, id"),
        (json!([{"r": "desc_nulls_last"}]), "r desc nulls last"),
        (json!([]), "id"),
        (json!({}), "id"),
        (Value::Null, "id"),
    ] {
        let query = "query($o: JSON) { getGqlLists(orderBy: $o, limit: 9) { id } }";
        let found = data("demo", query, json!({"o": form})).await;
        let text = format!("select id::text from gql_lists order by {sql}, id");
        let expected = demo().rows("demo", &text, json!({})).await;
        assert_eq!(found["getGqlLists"], expected["data"], "{form}");
    }
    // An enum value in a literal is read as text. A literal may contain variables anywhere.
    let query = "query($d: String) { getGqlLists(orderBy: [{t: asc}, {id: $d}]) { id } }";
    let found = data("demo", query, json!({"d": "desc"})).await;
    assert_eq!(
        found["getGqlLists"],
        json!([{"id": "3"}, {"id": "2"}, {"id": "1"}])
    );
}

#[tokio::test]
async fn an_order_that_is_none_is_named() {
    prepare().await;
    for (form, place) in [
        (json!("id"), "orderBy"),
        (json!(["id"]), "orderBy[0]"),
        (json!(1), "orderBy"),
        (json!({"nothing": "asc"}), "orderBy.nothing"),
        (
            json!([{"id": "asc"}, {"nothing": "asc"}]),
            "orderBy[1].nothing",
        ),
        (json!({"id": "up"}), "orderBy.id"),
        (json!({"id": "asc_nulls"}), "orderBy.id"),
        (json!({"id": 1}), "orderBy.id"),
        (json!({"id": null}), "orderBy.id"),
        (json!({"id": {"t": "asc"}}), "orderBy.id"),
    ] {
        let query = "query($o: JSON) { getGqlLists(orderBy: $o) { id } }";
        let response = ask(Some("demo"), query, json!({"o": form})).await;
        let error = &response["errors"][0];
        assert_eq!(
            error["extensions"]["code"], "BAD_USER_INPUT",
            "{form}: {response}"
        );
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(&format!("`{place}`")), "{form}: {message}");
    }
    // Ordering by a column of another table is not supported.
    let related = "{ getAlbums(orderBy: {artists: {name: asc}}) { id } }";
    assert_eq!(code("demo", related, json!({})).await, "BAD_USER_INPUT");
}

#[tokio::test]
async fn a_page_has_its_limits_at_every_level() {
    let query = "query($l: Int, $o: Int) { getArtists(limit: $l, offset: $o) { id albums(limit: $l, offset: $o) { id tracks(limit: $l, offset: $o) { id } } } }";
    let found = data("demo", query, json!({"l": 2, "o": 1})).await;
    let text = "select coalesce(json_agg(json_build_object('id', a.id::text, 'albums', (select coalesce(json_agg(json_build_object('id', b.id::text, 'tracks', (select coalesce(json_agg(json_build_object('id', t.id::text) order by t.id), '[]') from (select * from tracks t where t.album_id = b.id order by id limit 2 offset 1) t)) order by b.id), '[]') from (select * from albums b where b.artist_id = a.id order by id limit 2 offset 1) b)) order by a.id), '[]') as rows from (select * from artists order by id limit 2 offset 1) a";
    let expected = demo().rows("demo", text, json!({})).await["data"][0]["rows"].clone();
    assert_eq!(found["getArtists"], expected);
    // A variable that is absent or null means no limit. The number 0 is a limit.
    let found = data("demo", query, json!({"l": null})).await;
    assert!(found["getArtists"].as_array().unwrap().len() > 2);
    assert_eq!(
        data("demo", query, json!({"l": 0})).await["getArtists"],
        json!([])
    );
    for (limit, offset) in [(json!(-1), json!(0)), (json!(1), json!(-1))] {
        let variables = json!({"l": limit, "o": offset});
        assert_eq!(code("demo", query, variables).await, "BAD_USER_INPUT");
    }
    for literal in [
        "limit: 2147483648",
        "limit: 1.5",
        "limit: \"1\"",
        "offset: true",
    ] {
        let query = format!("{{ getArtists({literal}) {{ id }} }}");
        assert_eq!(
            code("demo", &query, json!({})).await,
            "GRAPHQL_VALIDATION_FAILED",
            "{literal}"
        );
    }
    let far = "{ getArtists(offset: 2147483647) { id } }";
    assert_eq!(data("demo", far, json!({})).await["getArtists"], json!([]));
}

/// The JSON form of an aggregate's value, by its SQL type.
fn form(function: &str, column: &str, sql: &str) -> String {
    let float = ["f4", "f8"].contains(&column);
    let number = ["i2", "i4"].contains(&column) && ["min", "max"].contains(&function);
    if float || number {
        return format!("to_json({sql})");
    }
    match column {
        "ts" => format!("to_char({sql}, 'YYYY-MM-DD\"T\"HH24:MI:SS')"),
        "tt" => format!("to_char({sql} at time zone 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')"),
        "c" | "ip" | "ta" | "ia" | "ea" | "dp" | "df" => format!("to_json({sql})"),
        "tz" => format!("({sql})::text || ':00'"),
        "iv" => {
            let part = |name: &str| format!("trim_scale(extract({name} from {sql})::numeric)");
            let members = [
                ("y", "year"),
                ("m", "month"),
                ("d", "day"),
                ("h", "hour"),
                ("i", "minute"),
                ("s", "second"),
            ]
            .map(|(key, name)| format!("'{key}', {}", part(name)));
            format!(
                "case when {sql} is not null then json_build_object({}) end",
                members.join(", ")
            )
        }
        _ => format!("({sql})::text"),
    }
}

const NUMBERS: &[&str] = &["i2", "i4", "i8", "n", "f4", "f8"];
const ORDERED: &[&str] = &[
    "i2", "i4", "i8", "n", "f4", "f8", "t", "v", "c", "d", "tm", "tz", "ts", "tt", "iv", "mo", "e",
    "ip", "ne", "oi", "ls", "ta", "ia", "ea", "ti", "dp", "df",
];

#[tokio::test]
async fn every_function_over_every_column_says_what_sql_says() {
    prepare().await;
    let cases: Vec<(&str, &str)> = [
        ("sum", NUMBERS),
        ("avg", NUMBERS),
        ("min", ORDERED),
        ("max", ORDERED),
    ]
    .into_iter()
    .flat_map(|(function, columns)| columns.iter().map(move |column| (function, *column)))
    .chain([("sum", "iv"), ("avg", "iv"), ("sum", "mo")])
    .collect();
    for condition in ["true", "id = 3", "id = 0"] {
        let filter = match condition {
            "true" => "{}",
            "id = 3" => "{id: 3}",
            _ => "{id: 0}",
        };
        for (function, column) in &cases {
            let query = format!(
                "{{ getGqlListsAggregate(where: {filter}) {{ count x: {function} {{ y: {column} }} }} }}"
            );
            let found = data("demo", &query, json!({})).await;
            let sql = form(function, column, &format!("{function}({column})"));
            let text = format!(
                "select json_build_object('count', count(*), 'x', json_build_object('y', {sql})) as row from gql_lists where {condition}"
            );
            let expected = demo().rows("demo", &text, json!({})).await;
            assert_eq!(
                found["getGqlListsAggregate"][0], expected["data"][0]["row"],
                "{query}"
            );
        }
    }
}

/// `min` and `max` exist for exactly the columns for which this version of PostgreSQL has them.
/// Columns that are lists of objects are excepted.
#[tokio::test]
async fn every_column_that_has_a_least_value_shows_it() {
    prepare().await;
    let query = "{ __type(name: \"GqlListsAggregateMin\") { fields { name } } all: __type(name: \"GqlLists\") { fields { name } } }";
    let found = data("demo", query, json!({})).await;
    let names = |of: &str| -> Vec<String> {
        let fields = found[of]["fields"].as_array().unwrap().iter();
        let name = |field: &Value| field["name"].as_str().unwrap().to_owned();
        fields.map(name).collect()
    };
    let shown = names("__type");
    let admin = demo().admin().await;
    for column in names("all") {
        let text = format!("select min(\"{column}\")::text from gql_lists");
        let has_min_max = admin.query_one(&text, &[]).await.is_ok() && column != "ra";
        assert_eq!(shown.contains(&column), has_min_max, "{column}");
    }
}

#[tokio::test]
async fn groups_are_those_of_sql() {
    prepare().await;
    for (by, columns) in [
        (json!(["t"]), "t"),
        (json!("t"), "t"),
        (json!(["t", "i2"]), "t, i2"),
        (json!(["e", "t", "e"]), "e, t"),
        (json!(["id"]), "id"),
        (json!(["b"]), "b"),
        (json!(["u"]), "u"),
        (json!(["i8"]), "i8"),
    ] {
        let fields = columns.replace(',', "");
        let query = format!(
            "query($b: [String!]) {{ getGqlListsAggregate(groupBy: $b) {{ {fields} count min {{ id }} }} }}"
        );
        let found = data("demo", &query, json!({"b": by})).await;
        let mut groups = found["getGqlListsAggregate"].as_array().unwrap().clone();
        groups.sort_by_key(|group| group["min"]["id"].as_str().unwrap().to_owned());
        let pairs: Vec<_> = columns
            .split(", ")
            .map(|name| match name {
                "id" | "i8" => format!("'{name}', {name}::text"),
                _ => format!("'{name}', {name}"),
            })
            .collect();
        let text = format!(
            "select json_agg(row order by first) as rows from (select json_build_object({}, 'count', count(*), 'min', json_build_object('id', min(id)::text)) as row, min(id) as first from gql_lists group by {columns}) x",
            pairs.join(", ")
        );
        let expected = demo().rows("demo", &text, json!({})).await;
        assert_eq!(json!(groups), expected["data"][0]["rows"], "{by}");
    }
    // The columns have the names of functions.
    let query = "{ getGqlListsAggregate(groupBy: [\"max\", \"count\"], where: {id: 1}) { max_ count_ count max { max count } __typename sum { __typename i2 } } }";
    let found = data("demo", query, json!({})).await;
    assert_eq!(
        found["getGqlListsAggregate"],
        json!([{"max_": 4, "count_": 7, "count": 1, "max": {"max": 4, "count": 7}, "__typename": "GqlListsAggregate", "sum": {"__typename": "GqlListsAggregateSum", "i2": "1"}}])
    );
    for by in [json!(["nothing"]), json!([1]), json!({"t": 1}), json!([""])] {
        let literal = format!("{{ getGqlListsAggregate(groupBy: {by}) {{ count }} }}")
            .replace("\"t\":", "t:");
        let code = code("demo", &literal, json!({})).await;
        assert!(
            ["BAD_USER_INPUT", "GRAPHQL_VALIDATION_FAILED"].contains(&&*code),
            "{by}: {code}"
        );
    }
    let ungrouped = "{ getGqlListsAggregate(groupBy: [\"t\"]) { i2 } }";
    assert_eq!(code("demo", ungrouped, json!({})).await, "BAD_USER_INPUT");
}

/// If there are more groups than the limit, the result is cut, and the response says so.
#[tokio::test]
async fn groups_that_are_cut_are_named() {
    let setup = "create table if not exists gql_groups (id int primary key)";
    demo().rows("demo", setup, json!({})).await;
    let fill = "insert into gql_groups select generate_series(1, 10001) on conflict do nothing";
    demo().rows("demo", fill, json!({})).await;
    let query =
        "{ x: getGqlGroupsAggregate(groupBy: [\"id\"]) { id } getGqlGroupsAggregate { count } }";
    let response = ask(Some("demo"), query, json!({})).await;
    assert_eq!(response["data"]["x"].as_array().unwrap().len(), 10_000);
    assert_eq!(
        response["data"]["getGqlGroupsAggregate"],
        json!([{"count": 10_001}])
    );
    assert_eq!(response["extensions"], json!({"truncated": [["x"]]}));
}

/// Lists below rows are cut separately, and the response names each.
#[tokio::test]
async fn lists_below_rows_are_cut_and_named_each() {
    let setup = "create table if not exists gql_above (id int primary key)";
    demo().rows("demo", setup, json!({})).await;
    let setup =
        "create table if not exists gql_below (id int primary key, up int references gql_above)";
    demo().rows("demo", setup, json!({})).await;
    demo()
        .rows(
            "demo",
            "insert into gql_above values (1), (2), (3) on conflict do nothing",
            json!({}),
        )
        .await;
    let fill = "insert into gql_below select n, case when n <= 1001 then 1 when n <= 2001 then 2 else 3 end from generate_series(1, 3500) n on conflict do nothing";
    demo().rows("demo", fill, json!({})).await;
    let query = "{ getGqlAbove(orderBy: {id: asc}) { x: gqlBelow { id } few: gqlBelow(limit: 2) { id } all: gqlBelow(limit: 10000) { id } } }";
    let response = ask(Some("demo"), query, json!({})).await;
    let lengths = |key: &str| -> Vec<usize> {
        let rows = response["data"]["getGqlAbove"].as_array().unwrap().iter();
        rows.map(|row| row[key].as_array().unwrap().len()).collect()
    };
    assert_eq!(lengths("x"), [1000, 1000, 1000]);
    assert_eq!(lengths("few"), [2, 2, 2]);
    assert_eq!(lengths("all"), [1001, 1000, 1499]);
    assert_eq!(
        response["extensions"],
        json!({"truncated": [["getGqlAbove", 0, "x"], ["getGqlAbove", 2, "x"]]})
    );
}

/// A group by a range contains the range.
#[tokio::test]
async fn groups_by_ranges_contain_the_range() {
    let setup = "create table gql_spans (id int primary key, r int4range, rs int4range[], count daterange, pt point)";
    demo().rows("demo", setup, json!({})).await;
    let fill = "insert into gql_spans values (1, '[1,4)', '{\"[1,2)\"}', '[2024-01-01,)', '(1,1)'), (2, '[1,4)', null, null, null), (3, null, null, null, null)";
    demo().rows("demo", fill, json!({})).await;
    wait_for_type("GqlSpans").await;
    let query = "{ x: getGqlSpansAggregate(groupBy: [\"r\", \"rs\", \"count\"], where: {id: 1}) { s: r { from: lower upper __typename } rs { lower empty } count_ { lower upper } count }
        y: getGqlSpansAggregate(groupBy: \"r\") { count r { lower } } }";
    let mut found = data("demo", query, json!({})).await;
    assert_eq!(
        found["x"],
        json!([{"s": {"from": 1, "upper": 4, "__typename": "Int4range"}, "rs": [{"lower": 1, "empty": false}],
            "count_": {"lower": "2024-01-01", "upper": null}, "count": 1}])
    );
    let groups = found["y"].as_array_mut().unwrap();
    groups.sort_by_key(|group| group["count"].as_i64());
    assert_eq!(
        *groups,
        [
            json!({"count": 1, "r": null}),
            json!({"count": 2, "r": {"lower": 1}})
        ]
    );
    // Points cannot be grouped.
    let query = "{ getGqlSpansAggregate { pt { x } } }";
    let response = ask(Some("demo"), query, json!({})).await;
    let code = &response["errors"][0]["extensions"]["code"];
    assert_eq!(code, "GRAPHQL_VALIDATION_FAILED", "{response}");
}
