//! Tests of a database in which every name and definition is unusual.

use std::collections::HashSet;

use tidegate_catalog::model::{Collation, Generated, IdentityKind, Persistence, RelationKind};
use tidegate_catalog::{Relation, Schema};
use tidegate_values::{Type, TypeKind};

use crate::fixture::Fixture;

async fn unusual(database: &str) -> Fixture {
    Fixture::new(database, include_str!("fixtures/torture.sql")).await
}

fn relation<'a>(schema: &'a Schema, name: &str) -> &'a Relation {
    &schema[schema
        .find(name)
        .unwrap_or_else(|| panic!("{name} is missing"))]
}

/// Each relationship of a relation, as `name>target`.
fn names(schema: &Schema, name: &str) -> Vec<String> {
    let relationships = relation(schema, name).relationships.iter();
    relationships
        .map(|r| format!("{}>{}", r.name, schema[r.target].name))
        .collect()
}

fn is_name(name: &str) -> bool {
    let mut characters = name.chars();
    let first = characters.next().unwrap();
    (first.is_ascii_alphabetic() || first == '_')
        && characters.all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !name.starts_with("__")
}

#[tokio::test]
async fn every_name_is_a_graphql_name_and_unique() {
    let fixture = unusual("torture_names").await;
    let schema = fixture.public().await;
    let mut types = HashSet::new();
    for (_, relation) in schema.relations() {
        assert!(is_name(&relation.type_name), "{}", relation.type_name);
        assert!(types.insert(&relation.type_name), "{}", relation.type_name);
        let mut fields = HashSet::new();
        let columns = relation.columns.iter().map(|column| &column.field);
        for field in columns.chain(relation.relationships.iter().map(|r| &r.name)) {
            assert!(is_name(field), "{field}");
            assert!(fields.insert(field), "{}: {field}", relation.name);
        }
    }
    for (name, type_name) in [
        ("query", "Query3"),
        ("Query", "Query2"),
        ("date", "Date2"),
        ("MyTable", "MyTable"),
        ("my_table", "MyTable2"),
        ("1st place", "T1stPlace"),
        ("select", "Select"),
        ("it's \"quoted\"; --", "ItSQuoted"),
        ("_", "Table"),
        ("表", "Table2"),
        ("題", "Table3"),
    ] {
        assert_eq!(&*relation(&schema, name).type_name, type_name, "{name}");
    }
    let fields = |name| -> Vec<_> {
        let columns = relation(&schema, name).columns.iter();
        columns.map(|column| column.field.to_string()).collect()
    };
    assert_eq!(fields("select"), ["from", "where", "order", "limit"]);
    assert_eq!(fields("query"), ["id", "_typename", "_x", "mutation"]);
    assert_eq!(
        fields("1st place"),
        ["_st", "two_words2", "two_words", "gr__e", "a_b"]
    );
    assert_eq!(fields("_"), ["_", "_2", "_3"]);
    assert_eq!(fields("wide").len(), 1600);
    assert!(fields("nothing").is_empty());
    assert!(relation(&schema, "no_key").primary_key.is_none());
}

#[tokio::test]
async fn relationships_follow_the_keys() {
    let fixture = unusual("torture_keys").await;
    let schema = fixture.public().await;
    let names = |name| names(&schema, name);
    assert_eq!(
        names("chicken"),
        ["egg>egg", "chickenEggIdFkey>egg", "eggByChickenId>egg"]
    );
    assert_eq!(
        names("egg"),
        [
            "chicken>chicken",
            "eggChickenIdFkey>chicken",
            "chickenByEggId>chicken"
        ]
    );
    // A column is named `nodes`, and another one has the name of the constraint on the sender.
    assert_eq!(
        names("mail"),
        ["mailReceiverFkey>nodes", "mailSenderFkey2>nodes"]
    );
    assert_eq!(
        names("nodes"),
        [
            "nodes>nodes",
            "nodesDownFkey>nodes",
            "nodesUpFkey>nodes",
            "mailByReceiver>mail",
            "mailBySender>mail",
            "nodesByDown>nodes",
            "nodesByUp>nodes"
        ]
    );
    assert_eq!(
        names("my_table"),
        [
            "myTable>MyTable",
            "myTableMyTableFkey>MyTable",
            "myTableParentFkey>my_table",
            "myTableByParent>my_table"
        ]
    );
    assert_eq!(
        names("stop"),
        [
            "trip>trip",
            "byUnique>trip",
            "later>trip",
            "stopTBTAFkey>trip"
        ]
    );
    assert_eq!(
        names("trip"),
        ["stopByUCUA>stop", "stopByVBVA>stop", "stopByTBTA>stop"]
    );
}

#[tokio::test]
async fn a_relationship_is_certain_as_far_as_its_key_is() {
    let fixture = unusual("torture_certain").await;
    let schema = fixture.public().await;
    let stop = relation(&schema, "stop");
    let certain = |name| {
        stop.relationship(stop.find_relationship(name).unwrap())
            .certain
    };
    assert!(certain("stopTBTAFkey") && !certain("later") && !certain("byUnique"));
}

#[tokio::test]
async fn other_schemas_and_partitions_make_no_relationships() {
    let fixture = unusual("torture_elsewhere").await;
    let schema = fixture.public().await;
    let names = |name| names(&schema, name);
    assert!(names("here").is_empty() && names("odd_ref").is_empty());
    assert_eq!(names("part_ref")[0], "part>part");
    assert_eq!(names("part"), ["partRef>part_ref"]);
    assert!(schema.find("part_1").is_none() && schema.find("sub").is_none());
}

#[tokio::test]
async fn columns_tell_all_that_is_known_of_them() {
    let fixture = unusual("torture_columns").await;
    let schema = fixture.public().await;
    let everything = relation(&schema, "everything");
    let column = |name| everything.column(everything.find_column(name).unwrap());
    assert_eq!(
        everything.comment.as_deref(),
        Some("a \"comment\"\nwith \\ lines")
    );
    assert_eq!(column("m").comment.as_deref(), Some("how\tit feels ☂"));
    assert_eq!(column("id").identity, Some(IdentityKind::Always));
    assert_eq!(column("by_default").identity, Some(IdentityKind::ByDefault));
    assert_eq!(column("doubled").generated, Some(Generated::Stored));
    for name in ["id", "by_default", "doubled", "serial_like", "d"] {
        assert!(column(name).has_default, "{name}");
    }
    assert!(!column("s").has_default && column("s").not_null && column("ms").not_null);
    let TypeKind::Enum(labels) = column("m").r#type.kind() else {
        panic!()
    };
    assert_eq!(labels, &["sad", "a \"quoted\" label", "ok"]);
    assert!(
        matches!(column("ms").r#type.kind(), TypeKind::Array(mood) if mood == &column("m").r#type)
    );
    let TypeKind::Composite(fields) = column("p").r#type.kind() else {
        panic!()
    };
    assert_eq!(fields[2].type_(), &Type::NUMERIC_ARRAY);
    assert!(
        matches!(column("ps").r#type.kind(), TypeKind::Array(pair) if pair == &column("p").r#type)
    );
    assert!(matches!(column("r").r#type.kind(), TypeKind::Range(inner) if *inner == Type::FLOAT8));
    assert!(
        matches!(column("t").r#type.kind(), TypeKind::Domain(inner) if *inner == Type::TEXT_ARRAY)
    );
    assert!(
        matches!(column("row_of").r#type.kind(), TypeKind::Composite(fields) if fields.len() == 3)
    );
    let select = relation(&schema, "select");
    let collations: Vec<_> = select
        .columns
        .iter()
        .map(|column| column.collation)
        .collect();
    let [
        None,
        Some(_),
        Some(Collation::Bytes),
        Some(Collation::NonDeterministic),
    ] = collations[..]
    else {
        panic!("{collations:?}")
    };
}

#[tokio::test]
async fn kinds_and_persistence_are_distinguished() {
    let fixture = unusual("torture_kinds").await;
    let schema = fixture.public().await;
    for (name, kind) in [
        ("nodes", RelationKind::Table),
        ("part", RelationKind::Partitioned),
        ("remote", RelationKind::Foreign),
        ("simple", RelationKind::View),
        ("kept", RelationKind::MaterializedView),
    ] {
        assert_eq!(relation(&schema, name).kind, kind, "{name}");
    }
    assert_eq!(relation(&schema, "fast").persistence, Persistence::Unlogged);
    assert_eq!(
        relation(&schema, "nodes").persistence,
        Persistence::Permanent
    );
}
