//! Tests of parsing documents into models.

use tidegate_catalog::model::{Cardinality, Collation, IdentityKind, Referenced};
use tidegate_catalog::{Error, Schema};
use tidegate_values::{Type, TypeKind};

use crate::fixture::Fixture;

fn demo() -> Schema {
    Schema::parse(include_str!("fixtures/demo.json")).unwrap()
}

#[test]
fn the_demo_has_its_relations_in_order() {
    let demo = demo();
    let names: Vec<_> = demo
        .relations()
        .map(|(id, relation)| {
            assert_eq!(demo.find(&relation.name), Some(id));
            (&*relation.name, &*relation.type_name)
        })
        .collect();
    assert_eq!(
        names,
        [
            ("albums", "Albums"),
            ("artists", "Artists"),
            ("concerts", "Concerts"),
            ("notes", "Notes"),
            ("playlist_tracks", "PlaylistTracks"),
            ("playlists", "Playlists"),
            ("tracks", "Tracks"),
            ("venues", "Venues"),
        ]
    );
    assert!(demo[demo.find("notes").unwrap()].row_security);
    assert!(!demo[demo.find("tracks").unwrap()].row_security);
}

#[test]
fn columns_have_types_defaults_and_collations() {
    let demo = demo();
    let albums = &demo[demo.find("albums").unwrap()];
    let id = albums.column(albums.single_key().unwrap());
    assert_eq!(
        (
            &*id.name,
            &id.r#type,
            id.number,
            id.not_null,
            id.has_default,
            id.identity
        ),
        (
            "id",
            &Type::INT4,
            1,
            true,
            true,
            Some(IdentityKind::ByDefault)
        )
    );
    let tags = albums.column(albums.find_column("tags").unwrap());
    assert_eq!(tags.r#type, Type::TEXT_ARRAY);
    assert_eq!(tags.collation, Some(Collation::Deterministic));
    assert!(!tags.not_null && !tags.has_default);
    assert!(tags.rights.select && tags.rights.insert && tags.rights.update);
}

#[test]
fn relationships_lead_both_ways() {
    let demo = demo();
    let named = |name: &str| {
        let relation = &demo[demo.find(name).unwrap()];
        let relationships = relation.relationships.iter();
        relationships
            .map(|r| format!("{} {:?} {}", r.name, r.cardinality, demo[r.target].name))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        named("albums"),
        [
            "artists One artists",
            "albumsArtistIdFkey One artists",
            "tracks Many tracks"
        ]
    );
    assert_eq!(
        named("artists"),
        ["albums Many albums", "concerts Many concerts"]
    );
    let albums = &demo[demo.find("albums").unwrap()];
    let artists = &demo[demo.find("artists").unwrap()];
    let forward = albums.relationship(albums.find_relationship("artists").unwrap());
    let reverse = artists.relationship(artists.find_relationship("albums").unwrap());
    assert_eq!(forward.columns, reverse.target_columns);
    assert_eq!(forward.target_columns, reverse.columns);
    assert!(forward.certain && !reverse.certain);
    assert_eq!(reverse.cardinality, Cardinality::Many);
    assert!(
        matches!(&albums.foreign_keys[0].referenced, Referenced::SameSchema(id, _)
        if *id == demo.find("artists").unwrap())
    );
}

#[test]
fn types_are_resolved_to_the_bottom() {
    let schema = Schema::parse(
        r#"{"name":"s","types":[
            {"oid":20001,"name":"mood","schema":"s","kind":"enum","labels":["sad","ok"]},
            {"oid":20002,"name":"_mood","schema":"s","kind":"array","inner":20001},
            {"oid":20003,"name":"sure","schema":"s","kind":"domain","inner":"mood","not_null":true},
            {"oid":20004,"name":"surer","schema":"s","kind":"domain","inner":20003,"has_default":true},
            {"oid":20005,"name":"pair","schema":"s","kind":"composite",
             "attributes":[{"name":"a","type":"surer"},{"name":"b","type":"int4[]"}]}],
          "relations":[{"name":"t","kind":"table","rights":"s","columns":[
            {"name":"m","type":"mood[]"},{"name":"d","type":"surer"},{"name":"p","type":"pair"}]},
           {"name":"v","kind":"view","rights":"s","columns":[{"name":"d","type":"surer"}]}]}"#,
    )
    .unwrap();
    let table = &schema[schema.find("t").unwrap()];
    let [m, d, p] = &table.columns[..] else {
        panic!()
    };
    let TypeKind::Array(mood) = m.r#type.kind() else {
        panic!()
    };
    assert_eq!(
        mood.kind(),
        &TypeKind::Enum(vec!["sad".into(), "ok".into()])
    );
    assert!(d.not_null && d.has_default && !m.not_null);
    // A NOT NULL of the domain does not hold for the column of a view.
    let view = &schema[schema.find("v").unwrap()];
    assert!(!view.columns[0].not_null);
    let TypeKind::Composite(fields) = p.r#type.kind() else {
        panic!()
    };
    let TypeKind::Domain(sure) = fields[0].type_().kind() else {
        panic!()
    };
    assert_eq!(sure.kind(), &TypeKind::Domain(mood.clone()));
    assert_eq!(fields[1].type_(), &Type::INT4_ARRAY);
    assert_eq!([m.number, d.number, p.number], [1, 2, 3]);
}

#[test]
fn rights_of_columns_make_the_rights_of_the_relation() {
    let schema = Schema::parse(
        r#"{"name":"s","relations":[{"name":"t","kind":"table","rights":"d","columns":[
            {"name":"a","type":"int4","rights":"si"},{"name":"b","type":"int4"}]}]}"#,
    )
    .unwrap();
    let t = &schema[schema.find("t").unwrap()];
    let rights = t.rights;
    assert!(rights.select && rights.insert && !rights.update && rights.delete);
    assert!(!t.columns[1].rights.select);
}

#[test]
fn what_is_no_document_is_refused_with_its_place() {
    for (document, part) in [
        ("", "EOF"),
        (r#"{"name":"s"}"#, "relations"),
        (r#"{"name":"s","relations":[],"tables":[]}"#, "tables"),
        (
            r#"{"name":"s","relations":[{"name":"t","kind":"table","rights":"x","columns":[]}]}"#,
            "`s`, `i`, `u`, `d`",
        ),
        (
            r#"{"name":"s","relations":[{"name":"t","kind":"table","rights":"","columns":[{"name":"a","type":99999}]}]}"#,
            "99999",
        ),
        (
            r#"{"name":"s","relations":[{"name":"t","kind":"table","rights":"","columns":[{"name":"a","type":"moo"}]}]}"#,
            "`moo`",
        ),
    ] {
        let error = Schema::parse(document).unwrap_err();
        assert!(matches!(error, Error::Malformed(_)));
        assert!(error.to_string().contains(part), "{error}");
    }
}

#[tokio::test]
async fn the_demos_document_is_what_its_database_says() {
    let sql = concat!(
        include_str!("../../../bins/tidegate/demo/schema.sql"),
        "alter table public.notes enable row level security, force row level security; \
         create role demo_owner; alter table notes owner to demo_owner; \
         grant all on all tables in schema public to demo_owner",
    );
    let fixture = Fixture::new("document_demo", sql).await;
    let owner = fixture.login("demo_owner");
    let loaded = fixture.seen_by(&owner, "public").await.unwrap();
    let texts = |schema: &Schema| -> Vec<_> {
        let relations = schema.relations().map(|(_, relation)| {
            let mut relation = relation.clone();
            relation.oid = 0;
            // The order of the database's default collation depends on the cluster.
            format!("{relation:#?}").replace("Bytes,", "Deterministic,")
        });
        relations.collect()
    };
    for (written, loaded) in texts(&demo()).iter().zip(texts(&loaded)) {
        assert_eq!(*written, loaded);
    }
    assert_eq!(demo().relations().count(), loaded.relations().count());
}

/// The benchmark loads ten thousand tables; this test loads a tenth of them.
#[tokio::test]
async fn a_thousand_tables_are_one_document() {
    let fixture = Fixture::new(
        "document_thousand",
        "do $$ begin for n in 0..999 loop execute format( \
         'create table t%s (id int generated by default as identity primary key, name text not null, \
          price numeric, tags text[], made timestamptz default now(), up int references t%s)', \
         n, greatest(n - 1, 0)); commit; end loop; end $$",
    )
    .await;
    let began = std::time::Instant::now();
    let schema = fixture.public().await;
    let took = began.elapsed();
    assert_eq!(schema.relations().count(), 1000);
    let t7 = &schema[schema.find("t7").unwrap()];
    let names: Vec<_> = t7.relationships.iter().map(|r| &*r.name).collect();
    assert_eq!(names, ["t6", "t7UpFkey", "t8"]);
    assert!(took < std::time::Duration::from_secs(20), "{took:?}");
}
