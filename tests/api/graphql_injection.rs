//! Tests SQL injection: text is always a value or a name (API.md, "Invalid requests").

use reqwest::Method;
use serde_json::{Value, json};

use crate::graphql::{PUBLIC, ask, has_no_data};
use crate::service::demo;

/// Texts that end a string, a name, a parameter, a comment, a JSON text or a statement.
const EVIL: [&str; 14] = [
    "'; drop table gql_target; --",
    "\"; drop table gql_target; --",
    "x' or '1'='1",
    "id\" = 1 or \"id",
    "\\'; drop table gql_target; --",
    "$1); drop table gql_target; --",
    "$$; drop table gql_target; $$",
    "/* */ drop table gql_target; /*",
    "E'\\x27'; drop table gql_target",
    "pg_sleep(50)",
    "(select secret from gql_target)",
    "{\"a\":\"'; drop table gql_target; --\"}",
    "\u{2019}; drop table gql_target; --",
    "%27%3B drop table gql_target",
];

async fn prepare() {
    demo().rows("demo", "create table if not exists gql_target (id int primary key, name text, n int, tags text[], j jsonb, r int4range, secret text, parent int references gql_target)", json!({})).await;
    let insert = "insert into gql_target values (1, 'one', 1, '{a}', '{\"a\": 1}', '[1,2)', 'hidden', 1) on conflict do nothing";
    demo().rows("demo", insert, json!({})).await;
}

/// Checks that the table is unchanged, except for rows with this name.
async fn assert_unchanged(name: &str) {
    let text = "select count(*) filter (where name is distinct from :name) as others, \
                max(secret) filter (where id = 1) as secret from gql_target";
    let rows = demo().rows("demo", text, json!({"name": name})).await;
    assert_eq!(
        rows["data"][0],
        json!({"others": 1, "secret": "hidden"}),
        "{name}"
    );
}

/// Checks that the response contains nothing that only a modified statement could return.
fn assert_reveals_nothing(response: &Value, evil: &str) {
    assert!(
        !response.to_string().contains("hidden"),
        "{evil}: {response}"
    );
    // A syntax error of PostgreSQL would mean that it parsed the text.
    let sqlstate = &response["errors"][0]["extensions"]["sqlstate"];
    assert!(
        !["42601", "42883"].iter().any(|state| sqlstate == state),
        "{evil}: {response}"
    );
}

#[tokio::test]
async fn in_values_they_are_values() {
    prepare().await;
    for evil in EVIL {
        let query = "mutation($d: JSON, $n: String, $u: JSON) { a: insertGqlTarget(data: $d) { name tags j } b: updateGqlTarget(where: {name: $n}, data: $u) { name tags j } c: deleteGqlTarget(where: {name: {eq: $n}}) { name } }";
        let row = json!({"id": 2, "name": evil, "tags": [evil, null], "j": {evil: evil}});
        let variables = json!({"d": row, "n": evil, "u": {"tags": [evil], "j": evil}});
        let response = ask(Some("demo"), query, variables).await;
        assert_eq!(
            response["data"],
            json!({
                "a": [{"name": evil, "tags": [evil, null], "j": {evil: evil}}],
                "b": [{"name": evil, "tags": [evil], "j": evil}], "c": [{"name": evil}],
            }),
            "{response}"
        );
        // The same text as a literal in the document.
        let literal = serde_json::to_string(evil).unwrap();
        let query = format!(
            "{{ getGqlTarget(where: {{or: [{{name: {{in: [{literal}]}}}}, {{tags: {{contains: [{literal}]}}}}, {{j: {{contains: {literal}}}}}]}}) {{ id }} }}"
        );
        let response = ask(Some("demo"), &query, json!({})).await;
        assert_eq!(response["data"], json!({"getGqlTarget": []}), "{response}");
        for operator in [
            "eq",
            "neq",
            "gt",
            "lte",
            "like",
            "ilike",
            "startsWith",
            "endsWith",
            "contains",
            "regex",
            "iregex",
        ] {
            let query = "query($w: JSON) { getGqlTarget(where: $w) { id } getGqlTargetAggregate(where: $w) { count } }";
            let response = ask(
                Some("demo"),
                query,
                json!({"w": {"name": {operator: evil}}}),
            )
            .await;
            assert_reveals_nothing(&response, evil);
            let invalid = operator.ends_with("regex");
            assert!(
                response.get("errors").is_none() || invalid,
                "{operator} {evil}: {response}"
            );
        }
        assert_unchanged(evil).await;
    }
}

#[tokio::test]
async fn as_names_they_match_nothing() {
    prepare().await;
    for evil in EVIL {
        let literal = serde_json::to_string(evil).unwrap();
        let get =
            |arguments: &str| format!("query($x: JSON) {{ getGqlTarget({arguments}) {{ id }} }}");
        let insert = |arguments: &str| {
            format!("mutation($x: JSON) {{ insertGqlTarget({arguments}) {{ id }} }}")
        };
        let group = format!("{{ getGqlTargetAggregate(groupBy: [{literal}]) {{ count }} }}");
        let conflict = "data: {id: 1, name: \"x\"}, onConflict: $x";
        for (query, x) in [
            (get("where: $x"), json!({evil: 1})),
            (get("where: $x"), json!({"name": {evil: 1}})),
            (get("where: $x"), json!({"gqlTarget": {evil: 1}})),
            (get("where: $x"), json!({"n": evil})),
            (get("where: $x"), json!({"r": {"lower": evil}})),
            (get("where: $x"), json!({"r": {evil: 1}})),
            (get("where: $x"), json!(evil)),
            (get("orderBy: $x"), json!({evil: "asc"})),
            (get("orderBy: $x"), json!({"id": evil})),
            (get("orderBy: $x"), json!({"id": format!("asc {evil}")})),
            (get("orderBy: $x"), json!(evil)),
            (
                format!("{{ getGqlTarget(id: {literal}) {{ id }} }}"),
                Value::Null,
            ),
            (group, Value::Null),
            (insert("data: $x"), json!({evil: 1})),
            (insert("data: $x"), json!({"id": evil})),
            (insert("data: $x"), json!({"id": 5, "r": evil})),
            (insert(conflict), json!({"columns": [evil]})),
            (insert(conflict), json!({"constraint": evil})),
            (
                insert(conflict),
                json!({"columns": ["id"], "update": [evil]}),
            ),
            (insert(conflict), json!({evil: ["id"]})),
            (insert(conflict), json!(evil)),
        ] {
            let response = ask(Some("demo"), &query, json!({"x": x})).await;
            assert_reveals_nothing(&response, evil);
            assert!(has_no_data(&response["data"]), "{query} {x}: {response}");
            let code = &response["errors"][0]["extensions"]["code"];
            assert_eq!(code, "BAD_USER_INPUT", "{query} {x}: {response}");
        }
        assert_unchanged("none").await;
    }
}

/// In the position of a name the text is a syntax error. In a URL it names nothing.
#[tokio::test]
async fn in_documents_and_addresses_they_find_nothing() {
    prepare().await;
    for evil in EVIL {
        for query in [
            format!("{{ {evil}: getGqlTarget {{ id }} }}"),
            format!("{{ getGqlTarget {{ {evil}: id }} }}"),
            format!("{{ get{evil} {{ id }} }}"),
            format!("query {evil} {{ getGqlTarget {{ id }} }}"),
            format!("query($a{evil}: Int) {{ getGqlTarget(limit: $a{evil}) {{ id }} }}"),
            format!("{{ getGqlTarget {{ ...f }} }} fragment f on {evil} {{ id }}"),
            format!("{{ getGqlTarget(limit: {evil}) {{ id }} }}"),
            format!("{{ getGqlTarget(id: \"{evil}) {{ id }} }}"),
        ] {
            let response = ask(Some("demo"), &query, json!({})).await;
            assert_reveals_nothing(&response, evil);
            // Some of the texts are valid documents: `#` starts a comment in GraphQL.
            let code = response["errors"][0]["extensions"]["code"]
                .as_str()
                .unwrap_or_default();
            let refused = [
                "GRAPHQL_PARSE_FAILED",
                "GRAPHQL_VALIDATION_FAILED",
                "BAD_USER_INPUT",
            ];
            assert!(refused.contains(&code), "{query}: {response}");
        }
        let body = json!({"query": "query a { __typename }", "operationName": evil, "variables": {evil: evil}, "extensions": {evil: evil}, evil: evil});
        let response = demo()
            .ask(Method::POST, PUBLIC, Some("demo"), Some(body.to_string()))
            .await;
        let response = response.json();
        assert_eq!(
            response["errors"][0]["extensions"]["code"], "BAD_USER_INPUT",
            "{response}"
        );
        assert!(has_no_data(&response["data"]), "{response}");
        let encoded: Vec<_> = evil.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let encoded = encoded.concat();
        let path = format!("/api/graphql/schema/{encoded}");
        let body = json!({"query": "{ __typename }"}).to_string();
        let response = demo()
            .ask(Method::POST, &path, Some("demo"), Some(body.clone()))
            .await;
        assert_eq!(response.status, 404, "{evil}: {response:?}");
        // For anonymous callers a header names the database.
        let request = demo()
            .request(Method::POST, PUBLIC)
            .header("content-type", "application/json");
        if let Ok(value) = reqwest::header::HeaderValue::from_str(evil) {
            let response = crate::service::TextResponse::of(
                request.header("tidegate-database", value).body(body),
            )
            .await;
            assert!(
                [400, 401].contains(&response.status),
                "{evil}: {response:?}"
            );
        }
        assert_unchanged("none").await;
    }
}

/// Names in the database may contain the same texts. They are quoted everywhere.
#[tokio::test]
async fn evil_names_of_the_database_are_quoted() {
    let admin = demo().admin().await;
    let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    let mut setup = "create schema gql_evil authorization demo; set role demo;".to_owned();
    for (at, evil) in EVIL.iter().enumerate() {
        let (table, column, key) = (
            format!("t{at}z {evil}"),
            quoted(evil),
            quoted(&format!("k{at} {evil}")),
        );
        let table: String = table.chars().take(40).collect();
        let literal = evil.replace('\'', "''");
        let table = format!(
            "create table gql_evil.{t} (id int primary key, {column} text constraint {key} unique, up int references gql_evil.{t}); \
             insert into gql_evil.{t} values (1, E'{e}', 1);",
            t = quoted(&table),
            e = literal.replace('\\', "\\\\"),
        );
        setup.push_str(&table);
    }
    admin.batch_execute(&setup).await.unwrap();
    let path = "/api/graphql/schema/gql_evil";
    let run = async |query: &str, variables: Value| {
        let body = json!({"query": query, "variables": variables}).to_string();
        demo()
            .ask(Method::POST, path, Some("demo"), Some(body))
            .await
            .json()
    };
    let began = std::time::Instant::now();
    let names = loop {
        let found = run(
            "{ __schema { queryType { fields { name } } } }",
            Value::Null,
        )
        .await;
        let fields = found["data"]["__schema"]["queryType"]["fields"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        if fields.len() == 2 * EVIL.len() {
            let names = fields
                .iter()
                .map(|field| field["name"].as_str().unwrap().to_owned());
            break names
                .filter(|name| !name.ends_with("Aggregate"))
                .collect::<Vec<_>>();
        }
        assert!(began.elapsed() < crate::service::TIMEOUT, "{found}");
    };
    for name in names {
        let r#type = name.strip_prefix("get").unwrap();
        let at: usize = r#type[1..]
            .chars()
            .take_while(char::is_ascii_digit)
            .collect::<String>()
            .parse()
            .unwrap();
        let evil = EVIL[at];
        let found = run(
            "query($t: String!) { __type(name: $t) { fields { name } } }",
            json!({"t": r#type}),
        )
        .await;
        let fields = found["data"]["__type"]["fields"]
            .as_array()
            .unwrap()
            .clone();
        let field = fields[1]["name"].as_str().unwrap().to_owned();
        let reverse = fields.last().unwrap()["name"].as_str().unwrap().to_owned();
        let query = format!(
            "query($w: JSON, $o: JSON) {{ {name}(where: $w, orderBy: $o, limit: 5) {{ id {field} {reverse}(orderBy: $o) {{ {field} }} }} {name}Aggregate(groupBy: [{}]) {{ {field} count max {{ {field} }} }} }}",
            json!(evil)
        );
        let response = run(&query, json!({"w": {evil: {"contains": ""}, reverse.clone(): {evil: {"eq": evil}}}, "o": {evil: "desc"}})).await;
        assert_eq!(response.get("errors"), None, "{evil}: {response}");
        assert_eq!(
            response["data"][&*name],
            json!([{"id": "1", &*field: evil, &*reverse: [{&*field: evil}]}]),
            "{response}"
        );
        let query = format!(
            "mutation($d: JSON, $c: JSON) {{ a: insert{type}(data: $d, onConflict: $c) {{ id {field} }} b: update{type}(id: 1, data: $d) {{ {field} }} }}"
        );
        let target = json!({"columns": [evil], "update": [evil]});
        let response = run(&query, json!({"d": {evil: evil, "id": 1}, "c": target})).await;
        // The row also conflicts on another key than the one in `onConflict`.
        let rows = json!({"a": [{"id": "1", &*field: evil}], "b": [{&*field: evil}]});
        let conflict = response["errors"][0]["extensions"]["sqlstate"] == "23505";
        assert!(response["data"] == rows || conflict, "{evil}: {response}");
    }
}
