//! Tests the GraphQL types of columns, and the forms of their values (API.md, "Names and types").

use serde_json::{Value, json};

use crate::graphql::{ask, data, wait_for_type};
use crate::graphql_type_cases::cases;
use crate::service::{demo, eventually};

/// Writes a type of introspection in the notation of SDL.
pub(crate) fn written(r#type: &Value) -> String {
    match r#type["kind"].as_str().unwrap() {
        "NON_NULL" => format!("{}!", written(&r#type["ofType"])),
        "LIST" => format!("[{}]", written(&r#type["ofType"])),
        _ => r#type["name"].as_str().unwrap().to_owned(),
    }
}

pub(crate) const TYPE: &str =
    "type { kind name ofType { kind name ofType { kind name ofType { kind name } } } }";

/// The fields of a type with their types and descriptions.
async fn fields(name: &str) -> Vec<(String, String, Value)> {
    let query = format!(
        "query($t: String!) {{ __type(name: $t) {{ fields {{ name description {TYPE} }} }} }}"
    );
    let found = data("demo", &query, json!({"t": name})).await;
    let fields = found["__type"]["fields"].as_array().unwrap().iter();
    fields
        .map(|field| {
            let name = field["name"].as_str().unwrap().to_owned();
            (name, written(&field["type"]), field["description"].clone())
        })
        .collect()
}

#[tokio::test]
async fn every_type_has_its_name_and_its_form() {
    let cases = cases();
    let columns: Vec<_> = (0..cases.len())
        .map(|at| format!("c{at} {0}, r{at} {0}", cases[at].0))
        .collect();
    let setup = format!(
        "create type gql_color as enum ('red', 'blue'); create domain gql_positive as int check (value > 0);
         create type gql_place as (a int, b text);
         create table gql_types (id int primary key, {}); alter table gql_types owner to demo;
         comment on table gql_types is 'All \"types\".'; comment on column gql_types.c0 is 'A small one.'",
        columns.join(", ")
    );
    let admin = demo().admin().await;
    admin.batch_execute(&setup).await.unwrap();
    for (at, (r#type, _, value, ..)) in cases.iter().enumerate() {
        let value = value.replace('\'', "''");
        let fill = format!(
            "insert into gql_types (id, c{at}) values (1, '{value}'::{type}) on conflict (id) do update set c{at} = excluded.c{at}"
        );
        admin.batch_execute(&fill).await.unwrap();
    }
    let required: Vec<_> = (0..cases.len())
        .map(|at| format!("alter r{at} set not null"))
        .collect();
    let rows = "update gql_types set id = 1";
    let fill: Vec<_> = (0..cases.len())
        .map(|at| format!("r{at} = c{at}"))
        .collect();
    let all = format!(
        "{rows}, {}; alter table gql_types {}",
        fill.join(", "),
        required.join(", ")
    );
    admin.batch_execute(&all).await.unwrap();
    wait_for_type("GqlTypes").await;
    // The constraints were created last, so they are the last change to appear in the schema.
    eventually("the columns are required", || async {
        fields("GqlTypes").await.last().unwrap().1.ends_with('!')
    })
    .await;
    let found = fields("GqlTypes").await;
    assert_eq!(found[0], ("id".to_owned(), "ID!".to_owned(), Value::Null));
    assert_eq!(found[1].2, "A small one.");
    for (at, (r#type, name, ..)) in cases.iter().enumerate() {
        let expected = (*name).to_owned();
        assert_eq!(found[1 + 2 * at].1, expected, "{type}");
        // A JSON null is null in the response even if its column is NOT NULL.
        let required = match *r#type {
            "json" | "jsonb" => expected,
            _ => format!("{expected}!"),
        };
        assert_eq!(found[2 + 2 * at].1, required, "{type}");
    }
    let query = "{ __type(name: \"GqlTypes\") { description } }";
    assert_eq!(
        data("demo", query, json!({})).await["__type"]["description"],
        "All \"types\"."
    );

    for (at, (r#type, _, _, selection, expected)) in cases.iter().enumerate() {
        let query = format!("{{ getGqlTypes {{ c{at} {selection} r{at} {selection} }} }}");
        let found = data("demo", &query, json!({})).await;
        let (c, r) = (format!("c{at}"), format!("r{at}"));
        assert_eq!(
            found["getGqlTypes"],
            json!([{c: expected, r: expected}]),
            "{type}"
        );
        // The output is valid input, also in a condition.
        let json = &found["getGqlTypes"][0][format!("c{at}")];
        let partly = selection.contains("x }") || ["{ y }", "{ lower }"].contains(selection);
        if partly || r#type.ends_with("[]") && !selection.is_empty() {
            continue;
        }
        let column = format!("c{at}");
        let mutation = "mutation($d: JSON) { updateGqlTypes(id: 1, data: $d) { id } }";
        let mut given = json.clone();
        if given["empty"] != true
            && let Some(members) = given.as_object_mut()
        {
            members.remove("empty");
        }
        let response = ask(Some("demo"), mutation, json!({"d": {column: given}})).await;
        assert_eq!(response.get("errors"), None, "{type} {given}: {response}");
        let query = format!("{{ getGqlTypes {{ c{at} {selection} }} }}");
        let again = data("demo", &query, json!({})).await;
        assert_eq!(
            &again["getGqlTypes"][0][format!("c{at}")],
            expected,
            "{type}"
        );
    }
}

/// A value that cannot be represented gives an error with a path. The rest is returned.
#[tokio::test]
async fn what_cannot_be_shown_is_an_error_at_its_path() {
    let setup = "create table gql_flaws (id int primary key, n float8, p float8, m float4, g int[][], f float8[], pt point, bx box[], must float8 not null, ok int)";
    demo().rows("demo", setup, json!({})).await;
    let fill = "insert into gql_flaws values (1, 'NaN', 'Infinity', '-Infinity', '{{1},{2}}', '{1,NaN,-Infinity}', '(Infinity,1)', null, 1, 1), (2, 1, 2, 3, '{4}', '{5}', '(6,7)', null, 2, 2), (3, null, null, null, null, null, null, null, 'NaN', 3)";
    demo().rows("demo", fill, json!({})).await;
    let response = ask(Some("demo"), "{ x: getGqlFlaws(orderBy: {id: asc}, where: {id: {lt: 3}}) { a: n p m g f pt { x y } ok } }", json!({})).await;
    assert_eq!(
        response["data"]["x"],
        json!([
            {"a": null, "p": null, "m": null, "g": null, "f": [1, null, null], "pt": null, "ok": 1},
            {"a": 1, "p": 2, "m": 3, "g": [4], "f": [5], "pt": {"x": 6, "y": 7}, "ok": 2},
        ])
    );
    let errors = response["errors"].as_array().unwrap();
    let paths: Vec<_> = errors
        .iter()
        .map(|error| error["path"].to_string())
        .collect();
    assert_eq!(
        paths,
        [
            r#"["x",0,"a"]"#,
            r#"["x",0,"p"]"#,
            r#"["x",0,"m"]"#,
            r#"["x",0,"g"]"#,
            r#"["x",0,"f",1]"#,
            r#"["x",0,"f",2]"#,
            r#"["x",0,"pt","x"]"#
        ]
    );
    assert!(
        errors
            .iter()
            .all(|error| error["extensions"]["code"] == "BAD_USER_INPUT"),
        "{response}"
    );
    // If the column is not nullable, the row is null instead.
    let response = ask(
        Some("demo"),
        "{ getGqlFlaws(orderBy: {id: asc}) { id must } }",
        json!({}),
    )
    .await;
    assert_eq!(
        response["data"]["getGqlFlaws"],
        json!([{"id": "1", "must": 1}, {"id": "2", "must": 2}, null])
    );
    assert_eq!(
        response["errors"][0]["path"],
        json!(["getGqlFlaws", 2, "must"])
    );
}

/// NOT NULL of a domain does not make a column of a view non-null, because an outer join may lack
/// the row with the value.
#[tokio::test]
async fn a_column_of_a_view_may_be_null_whatever_its_domain_says() {
    let setup = "create domain gql_sure as int not null;
         create table gql_sure_a (id int primary key);
         create table gql_sure_b (id int primary key, s gql_sure);
         create view gql_sure_both as select a.id, b.s from gql_sure_a a left join gql_sure_b b using (id);
         insert into gql_sure_a values (1);
         alter table gql_sure_a owner to demo; alter table gql_sure_b owner to demo;
         alter view gql_sure_both owner to demo";
    demo().admin().await.batch_execute(setup).await.unwrap();
    wait_for_type("GqlSureBoth").await;
    assert_eq!(fields("GqlSureB").await[1].1, "Int!");
    assert_eq!(fields("GqlSureBoth").await[1].1, "Int");
    let response = ask(Some("demo"), "{ x: getGqlSureBoth { id s } }", json!({})).await;
    assert_eq!(response, json!({"data": {"x": [{"id": 1, "s": null}]}}));
}

/// A list in a list, which a domain makes possible, is a text.
#[tokio::test]
async fn lists_of_lists_by_a_domain_are_texts() {
    let setup = "create domain gql_ints as int[];
         create table gql_int_lists (id int primary key, one gql_ints, many gql_ints[]);
         insert into gql_int_lists values (1, '{1,2}', '{\"{1,2}\",null}');
         alter table gql_int_lists owner to demo";
    demo().admin().await.batch_execute(setup).await.unwrap();
    wait_for_type("GqlIntLists").await;
    let fields = fields("GqlIntLists").await;
    assert_eq!((&*fields[1].1, &*fields[2].1), ("[Int]", "[String]"));
    let query = "{ x: getGqlIntLists { one many } }";
    let response = ask(Some("demo"), query, json!({})).await;
    let expected = json!({"data": {"x": [{"one": [1, 2], "many": ["{1,2}", null]}]}});
    assert_eq!(response, expected);
}
