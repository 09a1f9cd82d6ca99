//! Tests views, foreign and partitioned tables, and relationships of every kind (API.md,
//! "GraphQL").

use serde_json::json;

use crate::graphql::{ask, code, data, run, settled};
use crate::service::demo;

/// The names of the fields of a type.
async fn fields(user: &str, r#type: &str) -> Vec<String> {
    let query = "query($t: String!) { __type(name: $t) { fields { name } } }";
    let found = data(user, query, json!({"t": r#type})).await;
    let fields = found["__type"]["fields"]
        .as_array()
        .unwrap_or(&Vec::new())
        .clone();
    fields
        .iter()
        .map(|field| field["name"].as_str().unwrap().to_owned())
        .collect()
}

/// The names of the mutations of a type.
async fn mutations(r#type: &str) -> Vec<String> {
    let fields = fields("demo", "Mutation").await;
    let own = |name: &&String| {
        ["insert", "update", "delete"]
            .iter()
            .any(|verb| name.strip_prefix(verb) == Some(r#type))
    };
    fields
        .iter()
        .filter(own)
        .map(|name| name.replace(r#type, ""))
        .collect()
}

#[tokio::test]
async fn views_are_written_where_postgresql_can() {
    run(
        "create table gql_base (id int primary key, n int, secret text);
         create view gql_simple as select id, n from gql_base;
         create view gql_checked as select id, n from gql_base where n < 10 with check option;
         create view gql_counted as select count(*)::int as n from gql_base;
         create view gql_triggered as select 1 as id, 2 as n;
         create function gql_instead() returns trigger language plpgsql as
             $$ begin insert into gql_base values (new.id, new.n); return new; end $$;
         create trigger gql_instead instead of insert on gql_triggered
             for each row execute function gql_instead();
         create materialized view gql_kept as select id, n from gql_base;
         alter table gql_base owner to demo; alter view gql_simple owner to demo;
         alter view gql_checked owner to demo; alter view gql_counted owner to demo;
         alter view gql_triggered owner to demo; alter materialized view gql_kept owner to demo",
    )
    .await;
    settled(Some("demo"), "{ getGqlKept { n } }").await;
    for (r#type, verbs) in [
        ("GqlBase", &["insert", "update", "delete"][..]),
        ("GqlSimple", &["insert", "update", "delete"]),
        ("GqlChecked", &["insert", "update", "delete"]),
        ("GqlCounted", &[]),
        ("GqlTriggered", &["insert"]),
        ("GqlKept", &[]),
    ] {
        let mut found = mutations(r#type).await;
        found.sort_by_key(|verb| {
            ["insert", "update", "delete"]
                .iter()
                .position(|known| known == verb)
        });
        assert_eq!(found, verbs, "{type}");
    }
    let query = "mutation { a: insertGqlSimple(data: {id: 1, n: 1}) { id n } b: updateGqlSimple(where: {id: 1}, data: {n: 2}) { n } c: insertGqlChecked(data: {id: 2, n: 9}) { id n } d: insertGqlTriggered(data: {id: 3, n: 3}) { id n } e: deleteGqlChecked(where: {id: 2}) { id } }";
    let found = data("demo", query, json!({})).await;
    assert_eq!(
        found,
        json!({"a": [{"id": 1, "n": 1}], "b": [{"n": 2}], "c": [{"id": 2, "n": 9}], "d": [{"id": 3, "n": 3}], "e": [{"id": 2}]})
    );
    let beyond = "mutation { insertGqlChecked(data: {id: 4, n: 10}) { id } }";
    let response = ask(Some("demo"), beyond, json!({})).await;
    assert_eq!(
        response["errors"][0]["extensions"]["sqlstate"], "44000",
        "{response}"
    );
    // Views have no key, so they have neither the argument `id` nor a default order. A materialised
    // view has the rows of its last refresh.
    let query = "{ getGqlSimple(orderBy: {id: desc}, where: {n: {gt: 0}}) { id } getGqlCounted { n } getGqlKept { id } getGqlSimpleAggregate { count } }";
    let found = data("demo", query, json!({})).await;
    assert_eq!(
        found,
        json!({"getGqlSimple": [{"id": 3}, {"id": 1}], "getGqlCounted": [{"n": 2}], "getGqlKept": [], "getGqlSimpleAggregate": [{"count": 2}]})
    );
    demo()
        .rows("demo", "refresh materialized view gql_kept", json!({}))
        .await;
    let found = data("demo", "{ getGqlKeptAggregate { count } }", json!({})).await;
    assert_eq!(found["getGqlKeptAggregate"], json!([{"count": 2}]));
    let by_key = "{ getGqlSimple(id: 1) { id } }";
    assert_eq!(
        code("demo", by_key, json!({})).await,
        "GRAPHQL_VALIDATION_FAILED"
    );
}

/// A query of a table shows the rows of the tables that inherit from it, and their keys may repeat
/// its own. A foreign key references its own rows only.
#[tokio::test]
async fn a_row_that_inherits_the_key_of_a_referenced_row_is_not_related() {
    run("create table gql_city (id int primary key, name text);
         create table gql_capital (country text) inherits (gql_city);
         create table gql_station (id int primary key, city int references gql_city);
         insert into gql_city values (1, 'own'), (2, 'other');
         insert into gql_capital values (1, 'inherited', 'x');
         insert into gql_station values (1, 1), (2, 2);
         alter table gql_city owner to demo; alter table gql_capital owner to demo;
         alter table gql_station owner to demo")
    .await;
    settled(Some("demo"), "{ getGqlStation { id } }").await;
    let query = "{ getGqlCityAggregate { count } none: getGqlStation(where: {gqlCity: {name: \"inherited\"}}) { id } getGqlStation(orderBy: {id: asc}) { id gqlCity { name } } }";
    let stations = json!([
        {"id": "1", "gqlCity": {"name": "own"}},
        {"id": "2", "gqlCity": {"name": "other"}},
    ]);
    assert_eq!(
        data("demo", query, json!({})).await,
        json!({"getGqlCityAggregate": [{"count": 3}], "none": [], "getGqlStation": stations})
    );
    let write = "mutation { updateGqlStation(where: {id: {gt: 0}, gqlCity: {}}, data: {city: 1}) { gqlCity { name } } }";
    assert_eq!(
        data("demo", write, json!({})).await["updateGqlStation"],
        json!([{"gqlCity": {"name": "own"}}, {"gqlCity": {"name": "own"}}])
    );
}

#[tokio::test]
async fn a_write_that_a_rule_replaces_by_another_command_returns_no_rows() {
    run(
        "create table gql_archived (id int primary key, parent int references gql_archived,
             gone bool not null default false);
         create rule gql_archive as on delete to gql_archived do instead
             update gql_archived set gone = true where id = old.id returning old.*;
         insert into gql_archived values (1, null), (2, 1), (3, 1), (4, 1), (5, 1);
         alter table gql_archived owner to demo",
    )
    .await;
    settled(Some("demo"), "{ getGqlArchived { id } }").await;
    // One row; a list of rows; a row whose relationships would be read afterwards; two root fields.
    for delete in [
        "x: deleteGqlArchived(id: 2) { id }",
        "x: deleteGqlArchived(where: {id: {in: [3]}}) { id }",
        "x: deleteGqlArchived(id: 4) { gqlArchived { id } }",
        "y: updateGqlArchived(id: 1, data: {parent: 1}) { id } x: deleteGqlArchived(id: 5) { id }",
    ] {
        let found = data("demo", &format!("mutation {{ {delete} }}"), json!({})).await;
        assert_eq!(found["x"], json!([]), "{delete}");
    }
    let query = "{ getGqlArchived(where: {gone: true}, orderBy: {id: asc}) { id } }";
    let found = data("demo", query, json!({})).await;
    assert_eq!(
        found["getGqlArchived"],
        json!([{"id": "2"}, {"id": "3"}, {"id": "4"}, {"id": "5"}])
    );
}

/// The foreign table uses `postgres_fdw`, which comes with PostgreSQL, and refers to the same
/// cluster.
#[tokio::test]
async fn foreign_tables_are_read_and_written() {
    let demo = demo();
    let parsed: tokio_postgres::Config = demo.database_url.parse().unwrap();
    let host = match &parsed.get_hosts()[0] {
        tokio_postgres::config::Host::Tcp(host) => host.clone(),
        tokio_postgres::config::Host::Unix(path) => path.display().to_string(),
    };
    let (port, name) = (parsed.get_ports()[0], parsed.get_dbname().unwrap());
    let password = parsed
        .get_password()
        .map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    let (user, password) = (parsed.get_user().unwrap(), password.unwrap_or_default());
    run(&format!(
        "create extension postgres_fdw;
         create schema gql_there; create table gql_there.far (id int primary key, n int, t text);
         insert into gql_there.far values (1, 10, 'a'), (2, 20, null);
         create server gql_away foreign data wrapper postgres_fdw options (host '{host}', port '{port}', dbname '{name}');
         create user mapping for demo server gql_away options (user '{user}', password '{password}');
         create foreign table gql_far (id int not null, n int, t text) server gql_away
             options (schema_name 'gql_there', table_name 'far');
         alter foreign table gql_far owner to demo; grant usage on foreign server gql_away to demo"
    ))
    .await;
    settled(Some("demo"), "{ getGqlFar { n } }").await;
    let query = "{ getGqlFar(where: {n: {gt: 10}}, orderBy: {id: asc}) { id n t } getGqlFarAggregate { count sum { n } } }";
    assert_eq!(
        data("demo", query, json!({})).await,
        json!({"getGqlFar": [{"id": 2, "n": 20, "t": null}], "getGqlFarAggregate": [{"count": 2, "sum": {"n": "30"}}]})
    );
    let mut verbs = mutations("GqlFar").await;
    verbs.sort();
    assert_eq!(verbs, ["delete", "insert", "update"]);
    let query = "mutation { a: insertGqlFar(data: {id: 3, n: 30}) { id n } b: updateGqlFar(where: {id: 3}, data: {t: \"c\"}) { t } c: deleteGqlFar(where: {id: 1}) { id } }";
    assert_eq!(
        data("demo", query, json!({})).await,
        json!({"a": [{"id": 3, "n": 30}], "b": [{"t": "c"}], "c": [{"id": 1}]})
    );
    // A write to a foreign table is rolled back too.
    let query =
        "mutation { a: insertGqlFar(data: {id: 4}) { id } b: insertGqlFar(data: {id: 3}) { id } }";
    let response = ask(Some("demo"), query, json!({})).await;
    assert_eq!(
        response["errors"][0]["extensions"]["code"], "CONSTRAINT_VIOLATION",
        "{response}"
    );
    let count = demo
        .admin()
        .await
        .query_one("select count(*) from gql_there.far", &[])
        .await;
    assert_eq!(count.unwrap().get::<_, i64>(0), 2);
}

#[tokio::test]
async fn a_partitioned_table_is_one_type_and_its_partitions_are_none() {
    run(
        "create table gql_parted (id int, at date, n int, primary key (id, at)) partition by range (at);
         create table gql_parted_old partition of gql_parted for values from (minvalue) to ('2024-01-01');
         create table gql_parted_new partition of gql_parted for values from ('2024-01-01') to (maxvalue);
         create table gql_parted_ref (id int primary key, p_id int, p_at date,
             foreign key (p_id, p_at) references gql_parted);
         alter table gql_parted owner to demo; alter table gql_parted_old owner to demo;
         alter table gql_parted_new owner to demo; alter table gql_parted_ref owner to demo",
    )
    .await;
    settled(Some("demo"), "{ getGqlPartedRef { id } }").await;
    let query = "mutation { a: insertGqlParted(objects: [{id: 1, at: \"2023-05-05\", n: 1}, {id: 1, at: \"2024-05-05\", n: 2}]) { id at n } r: insertGqlPartedRef(data: {id: 7, p_id: 1, p_at: \"2024-05-05\"}) { gqlParted { n } } m: updateGqlParted(where: {n: 1}, data: {at: \"2025-01-01\"}) { id at gqlPartedRef { id } } }";
    assert_eq!(
        data("demo", query, json!({})).await,
        json!({
            "a": [{"id": "1", "at": "2023-05-05", "n": 1}, {"id": "1", "at": "2024-05-05", "n": 2}],
            "r": [{"gqlParted": {"n": 2}}], "m": [{"id": "1", "at": "2025-01-01", "gqlPartedRef": []}],
        })
    );
    let found = data("demo", "{ getGqlParted(where: {gqlPartedRef: {id: 7}}) { n gqlPartedRef { id } } o: __type(name: \"GqlPartedOld\") { name } n: __type(name: \"GqlPartedNew\") { name } }", json!({})).await;
    assert_eq!(
        found,
        json!({"getGqlParted": [{"n": 2, "gqlPartedRef": [{"id": "7"}]}], "o": null, "n": null})
    );
}

#[tokio::test]
async fn several_keys_between_tables_have_a_name_each() {
    run(
        "create table gql_person (id int primary key, name text);
         create table gql_letter (id int primary key,
             sender_id int constraint gql_sent references gql_person,
             receiver_id int constraint gql_got references gql_person,
             answers int references gql_letter);
         create table gql_hen (id int primary key, egg_id int);
         create table gql_egg (id int primary key, hen_id int not null references gql_hen);
         alter table gql_hen add constraint gql_hatched foreign key (egg_id) references gql_egg;
         create table gql_leg (a int, b text, primary key (b, a));
         create table gql_stop (id int primary key, leg_b text, leg_a int, near_b text, near_a int,
             constraint gql_at foreign key (leg_b, leg_a) references gql_leg (b, a),
             constraint gql_near foreign key (near_b, near_a) references gql_leg (b, a));
         create table gql_clash (id int primary key, \"gqlPerson\" int references gql_person, \"gqlClashGqlPersonFkey\" int);
         insert into gql_person values (1, 'Ann'), (2, 'Bob');
         insert into gql_letter values (1, 1, 2, null), (2, 2, 1, 1);
         insert into gql_hen values (1, null); insert into gql_egg values (1, 1); update gql_hen set egg_id = 1;
         insert into gql_leg values (1, 'x'), (2, 'x');
         insert into gql_stop values (1, 'x', 1, 'x', 2), (2, 'x', null, null, null);
         insert into gql_clash values (1, 2, 9);
         grant select on gql_person, gql_letter, gql_hen, gql_egg, gql_leg, gql_stop, gql_clash to demo",
    )
    .await;
    settled(Some("demo"), "{ getGqlClash { id } }").await;
    // The field with the table's name belongs to the first constraint by name, `gql_got`.
    let query = "{ getGqlLetter(id: 2) { gqlPerson { name } gqlGot { name } gqlSent { name } gqlLetter { id } gqlLetterAnswersFkey { id } gqlLetterByAnswers { id } } getGqlPerson(id: 1) { gqlLetterBySenderId { id gqlLetterByAnswers { id } } gqlLetterByReceiverId(where: {id: {gt: 1}}) { id } none: gqlLetterByReceiverId(limit: 0) { id } } }";
    assert_eq!(
        data("demo", query, json!({})).await,
        json!({
            "getGqlLetter": [{"gqlPerson": {"name": "Ann"}, "gqlGot": {"name": "Ann"}, "gqlSent": {"name": "Bob"}, "gqlLetter": {"id": "1"}, "gqlLetterAnswersFkey": {"id": "1"}, "gqlLetterByAnswers": []}],
            "getGqlPerson": [{"gqlLetterBySenderId": [{"id": "1", "gqlLetterByAnswers": [{"id": "2"}]}], "gqlLetterByReceiverId": [{"id": "2"}], "none": []}],
        })
    );
    assert!(
        !fields("demo", "GqlPerson")
            .await
            .contains(&"gqlLetter".to_owned())
    );
    // The two tables refer to each other. The forward relationship keeps the plain name.
    let query = "{ getGqlHen { gqlEgg { id } gqlHatched { id } gqlEggByHenId { id } } getGqlEgg { gqlHen { id gqlEgg { gqlHen { id } } } gqlHenByEggId { id } } }";
    assert_eq!(
        data("demo", query, json!({})).await,
        json!({
            "getGqlHen": [{"gqlEgg": {"id": "1"}, "gqlHatched": {"id": "1"}, "gqlEggByHenId": [{"id": "1"}]}],
            "getGqlEgg": [{"gqlHen": {"id": "1", "gqlEgg": {"gqlHen": {"id": "1"}}}, "gqlHenByEggId": [{"id": "1"}]}],
        })
    );
    // Keys may have several columns. A key that is partly null refers to nothing.
    let query = "{ getGqlStop(orderBy: {id: asc}) { gqlLeg { a b } gqlNear { a } } getGqlLeg(orderBy: {a: asc}) { gqlStopByLegBLegA { id } gqlStopByNearBNearA { id } } n: getGqlLegAggregate(where: {gqlStopByLegBLegA: {}}) { count } }";
    assert_eq!(
        data("demo", query, json!({})).await,
        json!({
            "getGqlStop": [{"gqlLeg": {"a": "1", "b": "x"}, "gqlNear": {"a": "2"}}, {"gqlLeg": null, "gqlNear": null}],
            "getGqlLeg": [{"gqlStopByLegBLegA": [{"id": "1"}], "gqlStopByNearBNearA": []}, {"gqlStopByLegBLegA": [], "gqlStopByNearBNearA": [{"id": "1"}]}],
            "n": [{"count": 1}],
        })
    );
    let by_id = "{ getGqlLeg(id: 1) { a } }";
    assert_eq!(
        code("demo", by_id, json!({})).await,
        "GRAPHQL_VALIDATION_FAILED"
    );
    // If a column has the name of a relationship, the field is the column.
    let query =
        "{ getGqlClash { gqlPerson gqlClashGqlPersonFkey gqlClashGqlPersonFkey2 { name } } }";
    assert_eq!(
        data("demo", query, json!({})).await,
        json!({"getGqlClash": [{"gqlPerson": 2, "gqlClashGqlPersonFkey": 9, "gqlClashGqlPersonFkey2": {"name": "Bob"}}]})
    );
}

/// A condition on a relationship means that such a row exists. That holds in both directions and
/// for nested conditions.
#[tokio::test]
async fn relationships_in_conditions_mean_exists() {
    for (condition, sql) in [
        (
            json!({"albums": {}}),
            "exists (select from albums b where b.artist_id = a.id)",
        ),
        (
            json!({"not": {"albums": {}}}),
            "not exists (select from albums b where b.artist_id = a.id)",
        ),
        (
            json!({"albums": {"tracks": {"seconds": {"gt": 300}}}}),
            "exists (select from albums b join tracks t on t.album_id = b.id where b.artist_id = a.id and t.seconds > 300)",
        ),
        (
            json!({"albums": {"artists": {"id": {"lt": 5}}}}),
            "a.id < 5 and exists (select from albums b where b.artist_id = a.id)",
        ),
        (
            json!({"or": [{"albums": {"price": null}}, {"id": 1}]}),
            "a.id = 1 or exists (select from albums b where b.artist_id = a.id and b.price is null)",
        ),
    ] {
        let query = "query($w: JSON) { getArtists(where: $w, orderBy: {id: asc}) { id } }";
        let found = data("demo", query, json!({"w": condition})).await;
        let text = format!("select id::text from artists a where {sql} order by a.id");
        let expected = demo().rows("demo", &text, json!({})).await;
        assert_eq!(found["getArtists"], expected["data"], "{condition}");
    }
    let update = "mutation { updatePlaylists(where: {playlistTracks: {tracks: {title: \"no such title\"}}}, data: {name: \"x\"}) { id } deletePlaylists(where: {playlistTracks: {tracks: {title: \"no such title\"}}}) { id } }";
    let found = data("alice", update, json!({})).await;
    assert_eq!(found, json!({"updatePlaylists": [], "deletePlaylists": []}));
}
