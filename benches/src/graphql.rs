//! GraphQL cases: requests, and the fastest SQL for the same data that we could write by hand.

use std::fmt::Write as _;

/// A GraphQL request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum GraphQl {
    ByKey,
    Page(u32),
    ToOne,
    Nested,
    ThreeLevels,
    /// The same beside its three statements in a pipeline.
    ThreeLevelsPipelined,
    Filtered,
    InsertOne,
    InsertMany(u32),
    Update,
    Introspection,
}

const COLUMNS: &str = "id name price created_at";
const SQL_COLUMNS: &str = "id, name, price, created_at";
const INTROSPECTION: &str = "{ __schema { queryType { name } mutationType { name } types { kind name description fields(includeDeprecated: true) { name description args { name type { kind name ofType { kind name ofType { kind name } } } defaultValue } type { kind name ofType { kind name ofType { kind name ofType { kind name } } } } isDeprecated } } directives { name locations } } }";
/// Artists of the nested cases begin at random below this.
const ARTISTS: u32 = 900;

impl GraphQl {
    /// The bodies, sent in turn.
    pub(crate) fn bodies(self) -> Vec<String> {
        let query = self.query();
        let body = |variables: String| {
            format!(
                "{{\"query\":{},\"variables\":{variables}}}",
                serde_json::Value::from(&*query)
            )
        };
        let numbers = |most: u32| (1..=500_u32).map(move |number| number * 97 % most + 1);
        match self {
            Self::ByKey => numbers(100_000)
                .map(|n| body(format!("{{\"id\":{n}}}")))
                .collect(),
            Self::Page(_) | Self::ToOne => numbers(1_000)
                .map(|n| body(format!("{{\"first\":{n}}}")))
                .collect(),
            Self::Nested | Self::ThreeLevels | Self::ThreeLevelsPipelined => numbers(ARTISTS)
                .map(|n| body(format!("{{\"first\":{n}}}")))
                .collect(),
            Self::Filtered => numbers(50)
                .map(|n| body(format!("{{\"price\":{n}}}")))
                .collect(),
            Self::InsertOne => numbers(1_000)
                .map(|n| {
                    body(format!(
                        "{{\"data\":{{\"name\":\"name {n}\",\"price\":\"{n}.50\"}}}}"
                    ))
                })
                .collect(),
            Self::InsertMany(rows) => vec![body(format!("{{\"objects\":{}}}", objects(rows)))],
            Self::Update => numbers(1_000)
                .map(|n| body(format!("{{\"id\":{n},\"data\":{{\"price\":\"{n}.25\"}}}}")))
                .collect(),
            Self::Introspection => vec![body("{}".to_owned())],
        }
    }

    fn query(self) -> String {
        match self {
            Self::ByKey => format!("query($id: ID!) {{ getBench(id: $id) {{ {COLUMNS} }} }}"),
            Self::Page(limit) => format!(
                "query($first: Int) {{ getBench(where: {{id: {{gt: $first}}}}, orderBy: {{id: \"asc\"}}, limit: {limit}) {{ {COLUMNS} }} }}"
            ),
            Self::ToOne => "query($first: Int) { getBenchAlbums(where: {id: {gt: $first}}, orderBy: {id: \"asc\"}, limit: 25) { id title benchArtists { id name } } }".to_owned(),
            Self::Nested => "query($first: Int) { getBenchArtists(where: {id: {gt: $first}}, orderBy: {id: \"asc\"}, limit: 10) { id name benchAlbums { id title } } }".to_owned(),
            Self::ThreeLevels | Self::ThreeLevelsPipelined => "query($first: Int) { getBenchArtists(where: {id: {gt: $first}}, orderBy: {id: \"asc\"}, limit: 20) { id name benchAlbums { id title benchTracks { id title seconds } } } }".to_owned(),
            Self::Filtered => format!(
                "query($price: Int) {{ getBench(where: {{price: {{gte: $price}}, name: {{like: \"%7%\"}}}}, orderBy: {{id: \"desc\"}}, limit: 25, offset: 25) {{ {COLUMNS} }} }}"
            ),
            Self::InsertOne => "mutation($data: JSON) { insertBenchWrite(data: $data) { id } }".to_owned(),
            Self::InsertMany(_) => "mutation($objects: [JSON!]) { insertBenchWrite(objects: $objects) { id } }".to_owned(),
            Self::Update => "mutation($id: ID!, $data: JSON) { updateBenchUpdate(id: $id, data: $data) { id price } }".to_owned(),
            Self::Introspection => INTROSPECTION.to_owned(),
        }
    }

    /// The pgbench script for the same data.
    pub(crate) fn script(self) -> String {
        let first = format!("\\set first random(1, {ARTISTS})\n");
        match self {
            Self::ByKey => format!(
                "\\set id random(1, 100000)\nselect {SQL_COLUMNS} from bench where id = :id;\n"
            ),
            Self::Page(limit) => format!(
                "\\set first random(1, 1000)\nselect {SQL_COLUMNS} from bench where id > :first order by id limit {limit};\n"
            ),
            Self::ToOne => "\\set first random(1, 1000)\nselect a.id, a.title, r.id, r.name from bench_albums a join bench_artists r on r.id = a.artist_id where a.id > :first order by a.id limit 25;\n".to_owned(),
            Self::Nested => format!(
                "{first}select r.id, r.name, a.id, a.title from (select * from bench_artists where id > :first order by id limit 10) r left join bench_albums a on a.artist_id = r.id order by r.id, a.id;\n"
            ),
            Self::ThreeLevels => format!(
                "{first}select r.id, r.name, a.id, a.title, t.id, t.title, t.seconds from (select * from bench_artists where id > :first order by id limit 20) r left join bench_albums a on a.artist_id = r.id left join bench_tracks t on t.album_id = a.id order by r.id, a.id, t.id;\n"
            ),
            Self::ThreeLevelsPipelined => {
                let artists: Vec<_> = (1..=20).map(|n| format!(":first + {n}")).collect();
                format!(
                    "{first}\\startpipeline\nbegin isolation level repeatable read read only;\nselect id, name from bench_artists where id > :first order by id limit 20;\nselect id, title, artist_id from bench_albums where artist_id = any(array[{}]) order by id;\nselect id, title, seconds, album_id from bench_tracks where album_id = any(array(select generate_series(:first * 10 + 1, :first * 10 + 200))) order by id;\ncommit;\n\\endpipeline\n",
                    artists.join(", ")
                )
            }
            Self::Filtered => format!(
                "\\set price random(1, 50)\nselect {SQL_COLUMNS} from bench where price >= :price and name like '%7%' order by id desc limit 25 offset 25;\n"
            ),
            Self::InsertOne => "\\set n random(1, 1000)\ninsert into bench_write (name, price) values ('name ' || :n, :n + 0.50) returning id;\n".to_owned(),
            Self::InsertMany(rows) => format!(
                "insert into bench_write (name, price) select name, price from json_to_recordset('{}') as r(name text, price numeric) returning id;\n",
                objects(rows)
            ),
            Self::Update => "\\set id random(1, 1000)\nupdate bench_update set price = :id + 0.25 where id = :id returning id, price;\n".to_owned(),
            Self::Introspection => "select 1;\n".to_owned(),
        }
    }
}

/// Rows as a JSON array.
fn objects(rows: u32) -> String {
    let mut text = String::from("[");
    for row in 1..=rows {
        let comma = if row > 1 { "," } else { "" };
        write!(
            text,
            "{comma}{{\"name\":\"name {row}\",\"price\":\"{row}.50\"}}"
        )
        .expect("a string takes every row");
    }
    text.push(']');
    text
}
