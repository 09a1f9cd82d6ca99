//! Tests of the names that requests use (docs/API.md, "Names and types").

use serde_json::{Value, json};
use tidegate_catalog::Schema;
use tidegate_catalog::naming::{AGGREGATES, RESERVED};

fn table(name: &str, columns: &[&str], constraints: &Value) -> Value {
    let columns: Vec<_> = columns
        .iter()
        .map(|name| json!({"name": name, "type": "int4"}))
        .collect();
    json!({"name": name, "kind": "table", "rights": "siud", "columns": columns,
           "constraints": constraints})
}

fn schema(relations: &[Value]) -> Schema {
    Schema::parse(&json!({"name": "s", "relations": relations}).to_string()).unwrap()
}

fn key(name: &str, columns: &[&str], relation: &str) -> Value {
    let referenced: Vec<_> = columns.iter().map(|_| "id").collect();
    json!({"name": name, "kind": "foreign", "columns": columns,
           "references": {"relation": relation, "columns": referenced}})
}

fn fields(columns: &[&str]) -> Vec<String> {
    let schema = schema(&[table("t", columns, &json!([]))]);
    let relation = &schema[schema.find("t").unwrap()];
    relation
        .columns
        .iter()
        .map(|column| column.field.to_string())
        .collect()
}

fn type_of(name: &str) -> String {
    let schema = schema(&[table(name, &[], &json!([]))]);
    schema[schema.find(name).unwrap()].type_name.to_string()
}

/// Each relationship of a relation, as `name>target`.
fn relationships(schema: &Schema, relation: &str) -> Vec<String> {
    let relation = &schema[schema.find(relation).unwrap()];
    let relationships = relation.relationships.iter();
    relationships
        .map(|r| format!("{}>{}", r.name, schema[r.target].name))
        .collect()
}

#[test]
fn type_names_are_pascal_case() {
    for (name, expected) in [
        ("my_table", "MyTable"),
        ("artists", "Artists"),
        ("MyTable", "MyTable"),
        ("HTTP_log", "HTTPLog"),
        ("__x", "X"),
        ("a__b_", "AB"),
        ("2fast", "T2fast"),
        ("_2fast", "T2fast"),
        ("two 2", "Two2"),
        ("odd \"name\"; --", "OddName"),
        ("größe", "GrE"),
        ("表", "Table"),
        ("_", "Table"),
        ("select", "Select"),
    ] {
        assert_eq!(type_of(name), expected, "{name}");
    }
}

#[test]
fn reserved_type_names_get_a_number() {
    for name in RESERVED {
        assert_eq!(type_of(name), format!("{name}2"));
    }
    assert_eq!(type_of("query"), "Query2");
    assert_eq!(type_of("date_time"), "DateTime2");
    assert_eq!(type_of("dates"), "Dates");
}

#[test]
fn colliding_type_names_are_assigned_by_table_name_and_reported() {
    let names = ["a_b", "A_b", "aB", "a_B2", "表", "題", "table"];
    let tables: Vec<_> = names.iter().map(|n| table(n, &[], &json!([]))).collect();
    let schema = schema(&tables);
    let types: Vec<_> = schema
        .relations()
        .map(|(_, relation)| (&*relation.name, &*relation.type_name))
        .collect();
    assert_eq!(
        types,
        [
            ("A_b", "AB"),
            ("aB", "AB3"),
            ("a_B2", "AB2"),
            ("a_b", "AB4"),
            ("table", "Table"),
            ("表", "Table2"),
            ("題", "Table3"),
        ]
    );
    let reported: Vec<_> = schema
        .renamed()
        .iter()
        .map(|renamed| (&*renamed.relation, &*renamed.taken, &*renamed.type_name))
        .collect();
    assert_eq!(reported[0], ("aB", "AB", "AB3"));
    assert_eq!(reported.len(), 4);
}

/// The type names of `relation`, if these relations exist.
fn types(relation: &str, relations: &[&str]) -> Vec<String> {
    let tables: Vec<_> = relations
        .iter()
        .map(|name| table(name, &[], &json!([])))
        .collect();
    let schema = schema(&tables);
    let relation = &schema[schema.find(relation).unwrap()];
    let aggregates = relation.aggregate_types.iter();
    std::iter::once(&relation.type_name)
        .chain(aggregates)
        .map(ToString::to_string)
        .collect()
}

#[test]
fn aggregates_yield_to_relations_of_their_names() {
    for (at, suffix) in AGGREGATES.iter().enumerate() {
        let other = format!("x_{suffix}");
        let mut expected: Vec<_> = AGGREGATES
            .iter()
            .map(|suffix| format!("X{suffix}"))
            .collect();
        expected.insert(0, "X".to_owned());
        assert_eq!(types("x", &["x"]), expected);
        expected[at + 1].push('2');
        assert_eq!(types("x", &["x", &other]), expected);
        assert_eq!(types(&other, &["x", &other])[0], format!("X{suffix}"));
    }
}

#[test]
fn a_new_relation_takes_no_name_from_another() {
    // The type names of all these relations differ. Some equal the type name of another one's
    // aggregates, or the name of another one with a number.
    let names = [
        "play",
        "play_aggregate",
        "play_aggregate2",
        "play_aggregate_sum",
        "play_aggregate_aggregate",
        "query",
        "query2",
        "date",
        "date2",
        "point_aggregate",
        "play2",
        "ab_2",
        "play_message_added",
    ];
    let alone = |name: &str| types(name, &[name]).swap_remove(0);
    for (place, one) in names.iter().enumerate() {
        for other in names[place + 1..].iter().chain(&names[..place]) {
            // A relation whose type name is reserved gets a name with a number. Only a relation
            // whose own name gives the same type name takes it away.
            let yields = matches!((*one, *other), ("query", "query2") | ("date", "date2"));
            let together = types(one, &[one, other]).swap_remove(0);
            assert_eq!(
                together == alone(one),
                !yields,
                "{one} beside {other}: {together}"
            );
        }
        let together = types(one, &names).swap_remove(0);
        let yields = matches!(*one, "query" | "date");
        assert_eq!(together == alone(one), !yields, "{one}: {together}");
    }
    // The names of all types differ.
    let mut all: Vec<_> = names.iter().flat_map(|name| types(name, &names)).collect();
    all.sort_unstable();
    let count = all.len();
    all.dedup();
    assert_eq!(all.len(), count);
}

#[test]
fn ten_thousand_equal_names_are_cheap() {
    let tables: Vec<_> = (0..10_000)
        .map(|n: u32| {
            let name = char::from_u32(0x4e00 + n).unwrap().to_string();
            table(&name, &[], &json!([]))
        })
        .collect();
    let schema = schema(&tables);
    let last = schema.relations().last().unwrap().1;
    assert_eq!(&*last.type_name, "Table10000");
}

#[test]
fn fields_are_the_columns_where_graphql_allows() {
    for (columns, expected) in [
        (
            &["id", "camelCase", "snake_case", "_x"][..],
            &["id", "camelCase", "snake_case", "_x"][..],
        ),
        (
            &["where", "query", "type", "null", "select"],
            &["where", "query", "type", "null", "select"],
        ),
        (
            &["first name", "a-b", "größe", "a\"b"],
            &["first_name", "a_b", "gr__e", "a_b2"],
        ),
        (&["1st", "2", "a b", "a_b"], &["_st", "_", "a_b2", "a_b"]),
        (
            &["__typename", "__x", "___", "_typename"],
            &["_typename2", "_x", "_", "_typename"],
        ),
        (&["é", "è", "é1"], &["_", "_2", "_1"]),
    ] {
        assert_eq!(fields(columns), expected, "{columns:?}");
    }
}

#[test]
fn sixteen_hundred_bad_names_are_all_different() {
    let names: Vec<_> = (0..1600)
        .map(|n| char::from_u32(0x4e00 + n).unwrap().to_string())
        .collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let fields = fields(&names);
    assert_eq!(fields.last().unwrap(), "_1600");
}

#[test]
fn both_names_of_a_column_find_it() {
    let schema = schema(&[table("t", &["a b", "a_b"], &json!([]))]);
    let t = &schema[schema.find("t").unwrap()];
    let found = |name| t.find_column(name).map(|id| &*t.column(id).name);
    assert_eq!(found("a b"), Some("a b"));
    assert_eq!(found("a_b2"), Some("a b"));
    assert_eq!(found("a_b"), Some("a_b"));
    assert_eq!(found("a_b3"), None);
}

#[test]
fn several_keys_to_one_table_share_one_plain_name() {
    let schema = schema(&[
        table("people", &["id"], &json!([])),
        table(
            "my_mails",
            &["from_id", "to_id"],
            &json!([
                key("z_to", &["to_id"], "people"),
                key("a_from", &["from_id"], "people")
            ]),
        ),
    ]);
    assert_eq!(
        relationships(&schema, "my_mails"),
        ["people>people", "aFrom>people", "zTo>people"]
    );
    let mails = &schema[schema.find("my_mails").unwrap()];
    assert_eq!(&*mails.relationships[0].constraint, "a_from");
    assert_eq!(
        relationships(&schema, "people"),
        ["myMailsByFromId>my_mails", "myMailsByToId>my_mails"]
    );
}

#[test]
fn self_references_and_mutual_keys_give_the_forward_field_the_plain_name() {
    let schema = schema(&[
        table(
            "nodes",
            &["id", "up"],
            &json!([key("nodes_up", &["up"], "nodes")]),
        ),
        table("a", &["id", "b_id"], &json!([key("a_fk", &["b_id"], "b")])),
        table("b", &["id", "a_id"], &json!([key("b_fk", &["a_id"], "a")])),
    ]);
    assert_eq!(
        relationships(&schema, "nodes"),
        ["nodes>nodes", "nodesUp>nodes", "nodesByUp>nodes"]
    );
    assert_eq!(relationships(&schema, "a"), ["b>b", "aFk>b", "bByAId>b"]);
    assert_eq!(relationships(&schema, "b"), ["a>a", "bFk>a", "aByBId>a"]);
}

#[test]
fn a_column_wins_every_clash() {
    let schema = schema(&[
        table("owner", &["id", "pet", "petByOwner"], &json!([])),
        table(
            "pet",
            &["owner", "petOwnerFkey"],
            &json!([key("pet_owner_fkey", &["owner"], "owner")]),
        ),
    ]);
    assert_eq!(relationships(&schema, "pet"), ["petOwnerFkey2>owner"]);
    assert_eq!(relationships(&schema, "owner"), ["petByOwner2>pet"]);
}

#[test]
fn odd_names_never_make_reserved_or_broken_fields() {
    let schema = schema(&[
        table("__a b", &["id"], &json!([])),
        table(
            "1 x",
            &["__r", "表"],
            &json!([key("__fk", &["__r"], "__a b"), key("表", &["表"], "__a b")]),
        ),
    ]);
    assert_eq!(
        relationships(&schema, "1 x"),
        ["aB>__a b", "fk>__a b", "table>__a b"]
    );
    assert_eq!(
        relationships(&schema, "__a b"),
        ["t1xByR>1 x".replace("1x", "1X"), "t1XBy>1 x".to_owned()]
    );
}

#[test]
fn composite_keys_are_one_relationship() {
    let schema = schema(&[
        table("p", &["id", "k"], &json!([])),
        table(
            "c",
            &["p_id", "p_k", "q_id", "q_k"],
            &json!([
                {"name": "c1", "kind": "foreign", "columns": ["p_k", "p_id"],
                 "references": {"relation": "p", "columns": ["k", "id"]}},
                {"name": "c2", "kind": "foreign", "columns": ["q_k", "q_id"],
                 "references": {"relation": "p", "columns": ["k", "id"]}},
            ]),
        ),
    ]);
    assert_eq!(relationships(&schema, "p"), ["cByPKPId>c", "cByQKQId>c"]);
    let c = &schema[schema.find("c").unwrap()];
    let names: Vec<_> = c.relationships[0]
        .columns
        .iter()
        .map(|id| &*c.column(*id).name)
        .collect();
    assert_eq!(names, ["p_k", "p_id"]);
}

#[test]
fn what_the_role_may_not_read_makes_no_relationship_and_changes_no_name() {
    let mut mails = table(
        "mails",
        &["from_id", "to_id"],
        &json!([
            key("a_from", &["from_id"], "people"),
            key("z_to", &["to_id"], "people"),
            key("far", &["to_id"], "hidden")
        ]),
    );
    mails["columns"][0]["rights"] = json!("i");
    let schema = schema(&[table("people", &["id"], &json!([])), mails]);
    assert_eq!(relationships(&schema, "mails"), ["zTo>people"]);
    assert_eq!(relationships(&schema, "people"), ["mailsByToId>mails"]);
}
