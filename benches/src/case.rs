//! What is measured: the same SQL as a request and as a pgbench script.

use std::fmt::Write as _;

use crate::graphql::GraphQl;
use crate::service::Service;

/// As whom a case runs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Who {
    /// The owner, whose statements stay prepared.
    Owner,
    /// The default user, whose session is discarded after each request.
    Guest,
}

/// One case.
#[derive(Debug)]
pub(crate) struct Case {
    /// Its name in the table.
    pub(crate) name: &'static str,
    /// Connections, where the number makes the case.
    pub(crate) connections: Option<usize>,
    who: Who,
    by: By,
    sql: Sql,
    accept: &'static str,
}

/// How a statement is sent.
#[derive(Clone, Copy, Debug)]
enum By {
    /// As text, to `/api/v4/sql`.
    Text,
    /// By a method's name, to `/api/v4/call`.
    Name,
}

#[derive(Clone, Copy, Debug)]
enum Sql {
    ByKey,
    /// So many reads by key in one transaction.
    Keys(u32),
    Page(u32),
    Insert(u32),
    GraphQl(GraphQl),
}

/// The methods of the cases, as a body that defines them.
pub(crate) fn methods() -> String {
    format!(
        r#"[{{"method":"by_key","q":"{BY_KEY}"}},{{"method":"page","q":"{PAGE}"}},{{"method":"insert","q":"{INSERT}"}}]"#
    )
}

const BY_KEY: &str = "select id, name, price, created_at from bench where id = :id";
const PAGE: &str = "select id, name, price, created_at from bench where id > :first order by id \
    limit :limit";
const INSERT: &str = "insert into bench_write (name, price) values (:name, :price)";

const GRAPHQL: [(&str, GraphQl); 12] = [
    ("graphql by key", GraphQl::ByKey),
    ("graphql 25 rows", GraphQl::Page(25)),
    ("graphql 1,000 rows", GraphQl::Page(1000)),
    ("graphql to-one embed", GraphQl::ToOne),
    ("graphql 10x10", GraphQl::Nested),
    ("graphql 20x10x10", GraphQl::ThreeLevels),
    ("graphql 20x10x10 pipelined", GraphQl::ThreeLevelsPipelined),
    ("graphql filtered page", GraphQl::Filtered),
    ("graphql insert one", GraphQl::InsertOne),
    ("graphql insert 1,000", GraphQl::InsertMany(1000)),
    ("graphql update by key", GraphQl::Update),
    ("graphql introspection", GraphQl::Introspection),
];

impl Case {
    fn new(name: &'static str, by: By, sql: Sql) -> Self {
        Self {
            name,
            connections: None,
            who: Who::Owner,
            by,
            sql,
            accept: "application/json",
        }
    }

    /// The plainest query.
    pub(crate) fn by_key_of_owner() -> Self {
        Self::new("by key, owner", By::Text, Sql::ByKey)
    }

    /// Every case in the order of the table.
    pub(crate) fn all() -> Vec<Self> {
        let case = Self::new;
        let guest = Self {
            who: Who::Guest,
            ..case("by key, guest", By::Text, Sql::ByKey)
        };
        let export = Self {
            accept: "application/x-ndjson",
            ..case("100,000 rows as ndjson", By::Text, Sql::Page(100_000))
        };
        // What a client does that knows no parameter sets.
        let in_turn = Self {
            connections: Some(1),
            ..case("insert by call, in turn", By::Name, Sql::Insert(1))
        };
        let at_once = Self {
            connections: Some(1),
            ..case("1,000 sets by one call", By::Name, Sql::Insert(1000))
        };
        let graphql = |(name, request)| case(name, By::Text, Sql::GraphQl(request));
        let mut cases = vec![
            Self::by_key_of_owner(),
            guest,
            case("25 rows", By::Text, Sql::Page(25)),
            case("100 rows", By::Text, Sql::Page(100)),
            case("1,000 rows", By::Text, Sql::Page(1000)),
            export,
            case("insert of 1,000 sets", By::Text, Sql::Insert(1000)),
            case("call by key", By::Name, Sql::ByKey),
            case("call of 100 rows", By::Name, Sql::Page(100)),
            case("batch of 10 calls by key", By::Name, Sql::Keys(10)),
            in_turn,
            at_once,
        ];
        cases.extend(GRAPHQL.map(graphql));
        cases
    }

    /// Whole HTTP requests, sent in turn.
    pub(crate) fn requests(&self, service: &Service) -> Vec<Vec<u8>> {
        let token = match self.who {
            Who::Owner => &service.owner_token,
            Who::Guest => &service.guest_token,
        };
        let path = match (self.sql, self.by) {
            (Sql::GraphQl(_), _) => "/api/graphql/schema/public",
            (_, By::Text) => "/api/v4/sql",
            (_, By::Name) => "/api/v4/call",
        };
        self.bodies()
            .into_iter()
            .map(|body| {
                format!(
                    "POST {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\n\
                     Accept: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
                    service.address,
                    self.accept,
                    body.len()
                )
                .into_bytes()
            })
            .collect()
    }

    fn bodies(&self) -> Vec<String> {
        let key = |n: u32| format!(r#"{{"id":{}}}"#, n * 97 % 100_000 + 1);
        match self.sql {
            Sql::GraphQl(request) => request.bodies(),
            Sql::ByKey => {
                let keys = (1..=1000).map(key);
                keys.map(|key| self.body("by_key", BY_KEY, &key)).collect()
            }
            Sql::Keys(count) => {
                let batch = |first| {
                    let calls = (first..first + count).map(key);
                    let calls = calls.map(|key| self.body("by_key", BY_KEY, &key));
                    format!("[{}]", calls.collect::<Vec<_>>().join(","))
                };
                (1..=1000).map(batch).collect()
            }
            Sql::Page(limit) => {
                let pages = (0..100).map(|n| n * 131 % 1000);
                let pages = pages.map(|first| format!(r#"{{"first":{first},"limit":{limit}}}"#));
                pages.map(|page| self.body("page", PAGE, &page)).collect()
            }
            Sql::Insert(sets) => {
                let set = |n| format!(r#"{{"name":"name {n}","price":"{n}.50"}}"#);
                let sets: Vec<_> = (0..sets).map(set).collect();
                let params = format!("[{}]", sets.join(","));
                vec![self.body("insert", INSERT, &params)]
            }
        }
    }

    fn body(&self, method: &str, q: &str, params: &str) -> String {
        match self.by {
            By::Text => format!(r#"{{"q":"{q}","params":{params}}}"#),
            By::Name => {
                format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params},"id":1}}"#)
            }
        }
    }

    /// The pgbench script with the same SQL.
    pub(crate) fn script(&self) -> String {
        match self.sql {
            Sql::GraphQl(request) => request.script(),
            Sql::ByKey => format!("\\set id random(1, 100000)\n{BY_KEY};\n"),
            Sql::Keys(count) => {
                let mut script = String::from("\\startpipeline\nbegin;\n");
                for n in 0..count {
                    let read = BY_KEY.replace(":id", &format!(":id{n}"));
                    script.insert_str(0, &format!("\\set id{n} random(1, 100000)\n"));
                    writeln!(script, "{read};").expect("a string takes every line");
                }
                script.push_str("commit;\n\\endpipeline\n");
                script
            }
            Sql::Page(limit) => {
                format!("\\set first random(0, 1000)\n\\set limit {limit}\n{PAGE};\n")
            }
            Sql::Insert(sets) => {
                let insert =
                    "insert into bench_write (name, price) values ('name ' || :n, :n + 0.50);";
                if sets == 1 {
                    return format!("\\set n random(1, 1000)\n{insert}\n");
                }
                let mut script = String::from("\\set n random(1, 1000)\n\\startpipeline\nbegin;\n");
                for _ in 0..sets {
                    writeln!(script, "{insert}").expect("a string takes every line");
                }
                script.push_str("commit;\n\\endpipeline\n");
                script
            }
        }
    }
}
