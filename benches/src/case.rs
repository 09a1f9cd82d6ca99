//! What is measured: the same SQL as a request and as a pgbench script.

use std::fmt::Write as _;

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
}

const COLUMNS: &str = "id, name, price, created_at";

impl Case {
    /// Every case in the order of the table.
    pub(crate) fn all() -> Vec<Self> {
        let json = "application/json";
        vec![
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
        ]
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
                    "POST /api/v4/sql HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\n\
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
        match self.sql {
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
