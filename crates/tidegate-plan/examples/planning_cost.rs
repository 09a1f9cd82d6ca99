//! Measures the CPU time of planning and writing, without a database: the rows are given as
//! PostgreSQL would send them.
//!
//! `cargo run --release -p tidegate-plan --example planning_cost`

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "an example that prints"
)]

use std::time::Instant;

use bytes::{BufMut, BytesMut};
use tidegate_catalog::{RelationId, Schema};
use tidegate_filter::{Filter, Json};
use tidegate_plan::operation::{
    List, Output, Root, RootField, SelectedField, Selection, VariableSources,
};
use tidegate_plan::{Limits, Operation, Plan};
use tidegate_values::{Column, RawRow, Type, WireFormat};

const SCHEMA: &str = r#"{"name": "public", "relations": [
    {"name": "albums", "kind": "table", "rights": "siud",
     "columns": [{"name": "id", "type": "int4", "not_null": true}, {"name": "artist_id", "type": "int4"},
                 {"name": "title", "type": "text"}, {"name": "price", "type": "numeric"}],
     "constraints": [{"name": "albums_pkey", "kind": "primary", "columns": ["id"]},
                     {"name": "albums_artist", "kind": "foreign", "columns": ["artist_id"],
                      "references": {"relation": "artists", "columns": ["id"]}}]},
    {"name": "artists", "kind": "table", "rights": "siud",
     "columns": [{"name": "id", "type": "int4", "not_null": true}, {"name": "name", "type": "text"},
                 {"name": "country", "type": "text"}, {"name": "formed", "type": "int4"},
                 {"name": "updated", "type": "timestamptz"}],
     "constraints": [{"name": "artists_pkey", "kind": "primary", "columns": ["id"]}]},
    {"name": "tracks", "kind": "table", "rights": "siud",
     "columns": [{"name": "id", "type": "int4", "not_null": true}, {"name": "album_id", "type": "int4"},
                 {"name": "title", "type": "text"}, {"name": "seconds", "type": "int4"}],
     "constraints": [{"name": "tracks_pkey", "kind": "primary", "columns": ["id"]},
                     {"name": "tracks_album", "kind": "foreign", "columns": ["album_id"],
                      "references": {"relation": "albums", "columns": ["id"]}}]}]}"#;

fn main() {
    let schema = Schema::parse(SCHEMA).unwrap();
    let limits = Limits::default();
    let artists = schema.find("artists").unwrap();
    measure("by key: operation alone", 200_000, || {
        std::hint::black_box(by_key(&schema, artists));
    });
    let id = ("id", Type::INT4);
    let (text, number) = (("text", Type::TEXT), ("number", Type::INT4));
    let one = columns(&[
        id.clone(),
        text.clone(),
        text.clone(),
        number.clone(),
        ("t", Type::TIMESTAMPTZ),
    ]);
    measure(
        "by key: operation, plan, statement, row, text",
        200_000,
        || {
            let plan = Plan::new(&schema, by_key(&schema, artists), &limits).unwrap();
            feed(plan, &one, &[(&[(1, 1)], &[0, 1, 2, 3, 4])]);
        },
    );
    let shared = columns(&[
        ("level", Type::INT4),
        ("key", Type::INT4),
        text.clone(),
        id.clone(),
        text,
        ("price", Type::NUMERIC),
        number,
    ]);
    let nested = [rows(20, 1), rows(20, 10), rows(200, 10)];
    let levels: [Level<'_>; 3] = [
        (&nested[0], &[1, 2, 3]),
        (&nested[1], &[1, 3, 4, 5, 6]),
        (&nested[2], &[1, 3, 4, 6]),
    ];
    measure("20 x 10 x 10: operation alone", 20_000, || {
        std::hint::black_box(three_levels(&schema, artists));
    });
    measure(
        "20 x 10 x 10: operation, plan, statements, rows, text",
        1_000,
        || {
            let plan = Plan::new(&schema, three_levels(&schema, artists), &limits).unwrap();
            feed(plan, &shared, &levels);
        },
    );
}

/// Prints the mean of many calls.
fn measure(what: &str, times: u32, mut run: impl FnMut()) {
    for _ in 0..times / 10 {
        run();
    }
    let began = Instant::now();
    for _ in 0..times {
        run();
    }
    println!(
        "{:8.2} µs  {what}",
        began.elapsed().as_secs_f64() * 1e6 / f64::from(times)
    );
}

/// The rows of a level: the parent's key and an id.
fn rows(parents: i32, each: i32) -> Vec<(i32, i32)> {
    let pairs = (0..parents * each).map(|id| (id / each, id));
    pairs.collect()
}

/// Passes rows to the statement and finishes the plan.
fn feed(mut plan: Plan<'_>, columns: &[Column], levels: &[Level<'_>]) {
    let mut steps = plan.steps().unwrap();
    let sink = &mut steps[0].sink;
    sink.columns(columns).unwrap();
    let mut body = BytesMut::new();
    for (number, (rows, shown)) in levels.iter().enumerate() {
        for row in *rows {
            body.clear();
            for (at, column) in columns.iter().enumerate() {
                if shown.contains(&at) {
                    value(column, *row, &mut body);
                } else if at == 0 {
                    body.put_i32(4);
                    body.put_i32(i32::try_from(number).unwrap());
                } else {
                    body.put_i32(-1);
                }
            }
            let row = RawRow::new(columns.len(), &body).unwrap();
            sink.row(row).unwrap();
        }
    }
    assert!(!plan.restart());
    let mut out = BytesMut::new();
    plan.finish(&mut out).unwrap();
    std::hint::black_box(&out);
}

/// The rows of a level, and its columns of the statement.
type Level<'r> = (&'r [(i32, i32)], &'r [usize]);

fn columns(types: &[(&str, Type)]) -> Vec<Column> {
    let column = |(name, r#type): &(&str, Type)| Column {
        name: (*name).to_owned(),
        r#type: r#type.clone(),
        format: WireFormat::Binary,
        origin: None,
    };
    types.iter().map(column).collect()
}

/// Appends a column value in the format of `DataRow`.
fn value(column: &Column, (above, id): (i32, i32), body: &mut BytesMut) {
    match column.r#type {
        Type::INT4 => {
            body.put_i32(4);
            body.put_i32(if column.name == "key" { above } else { id });
        }
        Type::TIMESTAMPTZ => {
            body.put_i32(8);
            body.put_i64(800_000_000_123_456 + i64::from(id));
        }
        Type::NUMERIC => {
            body.put_i32(12);
            for field in [2_i16, 0, 0, 2, 9, 9900] {
                body.put_i16(field);
            }
        }
        _ => {
            let text = b"A title of some length";
            body.put_i32(i32::try_from(text.len()).unwrap());
            body.put_slice(text);
        }
    }
}

fn by_key(schema: &Schema, artists: RelationId) -> Operation<'static> {
    let filter = Filter::parse(&Json::from(r#"{"id":5}"#), schema, artists, "where").unwrap();
    let names = ["id", "name", "country", "formed", "updated"];
    query(
        artists,
        list(
            filter,
            names.map(|name| column(schema, artists, name)).into(),
        ),
    )
}

fn three_levels(schema: &Schema, artists: RelationId) -> Operation<'static> {
    let (albums, tracks) = (
        schema.find("albums").unwrap(),
        schema.find("tracks").unwrap(),
    );
    let inner = ["id", "title", "seconds"].map(|name| column(schema, tracks, name));
    let mut middle: Vec<_> = ["id", "title", "price"]
        .map(|name| column(schema, albums, name))
        .into();
    middle.push(many(
        schema,
        albums,
        "tracks",
        list(Filter::everything(), inner.into()),
    ));
    let mut outer: Vec<_> = ["id", "name"]
        .map(|name| column(schema, artists, name))
        .into();
    outer.push(many(
        schema,
        artists,
        "albums",
        list(Filter::everything(), middle),
    ));
    let mut list = list(Filter::everything(), outer);
    list.limit = Some(20);
    query(artists, list)
}

fn query(relation: RelationId, list: List) -> Operation<'static> {
    let (key, field) = ("getArtists".into(), RootField::Get(relation, list));
    Operation::Query(vec![Root { key, field }])
}

fn list(filter: Filter, fields: Vec<SelectedField>) -> List {
    List {
        filter,
        order: Vec::new(),
        limit: None,
        offset: None,
        selection: Selection { fields },
        origins: VariableSources::default(),
    }
}

fn column(schema: &Schema, relation: RelationId, name: &str) -> SelectedField {
    let id = schema[relation].find_column(name).unwrap();
    SelectedField {
        key: name.into(),
        output: Output::Column(id),
    }
}

fn many(schema: &Schema, relation: RelationId, name: &str, list: List) -> SelectedField {
    let id = schema[relation].find_relationship(name).unwrap();
    SelectedField {
        key: name.into(),
        output: Output::Many(id, list),
    }
}
