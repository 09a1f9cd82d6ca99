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
    who: Who,
    sql: Sql,
    accept: &'static str,
}

#[derive(Clone, Copy, Debug)]
enum Sql {
    ByKey,
    Page(u32),
    Insert(u32),
    GraphQl(GraphQl),
}

const COLUMNS: &str = "id, name, price, created_at";

impl Case {
    /// Every case in the order of the table.
    pub(crate) fn all() -> Vec<Self> {
        let json = "application/json";
        let mut cases = vec![
            Self {
                name: "by key, owner",
                who: Who::Owner,
                sql: Sql::ByKey,
                accept: json,
            },
            Self {
                name: "by key, guest",
                who: Who::Guest,
                sql: Sql::ByKey,
                accept: json,
            },
            Self {
                name: "25 rows",
                who: Who::Owner,
                sql: Sql::Page(25),
                accept: json,
            },
            Self {
                name: "1,000 rows",
                who: Who::Owner,
                sql: Sql::Page(1000),
                accept: json,
            },
            Self {
                name: "100,000 rows as ndjson",
                who: Who::Owner,
                sql: Sql::Page(100_000),
                accept: "application/x-ndjson",
            },
            Self {
                name: "insert of 1,000 sets",
                who: Who::Owner,
                sql: Sql::Insert(1000),
                accept: json,
            },
        ];
        let graphql = [
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
        cases.extend(graphql.map(|(name, request)| Self {
            name,
            who: Who::Owner,
            sql: Sql::GraphQl(request),
            accept: json,
        }));
        cases
    }

    fn path(&self) -> &'static str {
        match self.sql {
            Sql::GraphQl(_) => "/api/graphql/schema/public",
            _ => "/api/v4/sql",
        }
    }

    /// Whole HTTP requests, sent in turn.
    pub(crate) fn requests(&self, service: &Service) -> Vec<Vec<u8>> {
        let token = match self.who {
            Who::Owner => &service.owner_token,
            Who::Guest => &service.guest_token,
        };
        self.bodies()
            .into_iter()
            .map(|body| {
                format!(
                    "POST {} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\n\
                     Accept: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
                    self.path(),
                    service.address,
                    self.accept,
                    body.len()
                )
                .into_bytes()
            })
            .collect()
    }

    fn bodies(&self) -> Vec<String> {
        match self.sql {
            Sql::GraphQl(request) => request.bodies(),
            Sql::ByKey => (1..=1000)
                .map(|n| {
                    let id = n * 97 % 100_000 + 1;
                    format!(
                        r#"{{"q":"select {COLUMNS} from bench where id = :id","params":{{"id":{id}}}}}"#
                    )
                })
                .collect(),
            Sql::Page(limit) => (0..100)
                .map(|n| {
                    let first = n * 131 % 1000;
                    format!(
                        r#"{{"q":"select {COLUMNS} from bench where id > :first order by id limit :limit","params":{{"first":{first},"limit":{limit}}}}}"#
                    )
                })
                .collect(),
            Sql::Insert(sets) => {
                let sets: Vec<_> = (0..sets)
                    .map(|n| format!(r#"{{"name":"name {n}","price":"{n}.50"}}"#))
                    .collect();
                vec![format!(
                    r#"{{"q":"insert into bench_write (name, price) values (:name, :price)","params":[{}]}}"#,
                    sets.join(",")
                )]
            }
        }
    }

    /// The pgbench script with the same SQL.
    pub(crate) fn script(&self) -> String {
        match self.sql {
            Sql::GraphQl(request) => request.script(),
            Sql::ByKey => {
                format!("\\set id random(1, 100000)\nselect {COLUMNS} from bench where id = :id;\n")
            }
            Sql::Page(limit) => format!(
                "\\set first random(0, 1000)\n\\set limit {limit}\n\
                 select {COLUMNS} from bench where id > :first order by id limit :limit;\n"
            ),
            Sql::Insert(sets) => {
                let mut script = String::from("\\set n random(1, 1000)\n\\startpipeline\nbegin;\n");
                for _ in 0..sets {
                    let insert =
                        "insert into bench_write (name, price) values ('name ' || :n, :n + 0.50);";
                    writeln!(script, "{insert}").expect("a string takes every line");
                }
                script.push_str("commit;\n\\endpipeline\n");
                script
            }
        }
    }
}
