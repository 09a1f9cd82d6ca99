//! A scripted executor: a statement's text says what it does.
//!
//! - `select rows 3 5`: three rows of a column `s` with five `x` each
//! - `select fail 3 22012 5`: three such rows, then that SQLSTATE
//! - `select hang 3 5`: three such rows, then nothing
//! - `select who`: database, role and sharing of the principal
//! - `select error deadline|pool|unavailable|nodatabase|internal`
//! - the catalog's statements: the schema `public`, which is empty; others return `1`
//! - `select panic`
//! - `insert …`: one row written

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidegate_sql::{
    BoundStatement, BoxFuture, Completion, DatabaseError, Description, Error, Executor, Flow, Mode,
    Principal, QueryOptions, Result, RowSink, Transaction,
};
use tidegate_values::{Column, Parameter, RawRow, Type, WireFormat};

#[derive(Clone, Default)]
pub(crate) struct ScriptedExecutor(Arc<State>);

#[derive(Default)]
struct State {
    calls: Mutex<Vec<ExecutorCall>>,
    cancelled: AtomicUsize,
    sent: AtomicUsize,
}

/// A command that the executor received.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ExecutorCall {
    Query(String),
    Begin,
    BeginReadOnly,
    Commit,
    Rollback,
}

impl ScriptedExecutor {
    pub(crate) fn calls(&self) -> Vec<ExecutorCall> {
        self.0.calls.lock().unwrap().clone()
    }

    /// The number of statements that were dropped before they ended.
    pub(crate) fn cancelled(&self) -> usize {
        self.0.cancelled.load(SeqCst)
    }

    /// The number of bytes of rows that were passed to sinks.
    pub(crate) fn sent(&self) -> usize {
        self.0.sent.load(SeqCst)
    }

    fn record(&self, call: ExecutorCall) {
        self.0.calls.lock().unwrap().push(call);
    }

    async fn run(
        &self,
        who: &Principal,
        statement: &BoundStatement,
        options: &QueryOptions,
        sink: &mut dyn RowSink,
    ) -> Result<Completion> {
        let text = statement.statement.text().to_owned();
        self.record(ExecutorCall::Query(text.clone()));
        let mut guard = Guard {
            state: &self.0,
            ended: false,
        };
        let done = match catalog(statement, sink)? {
            Some(done) => Ok(done),
            None => self.play(&text, who, options, sink).await,
        };
        guard.ended = true;
        done
    }

    async fn play(
        &self,
        text: &str,
        who: &Principal,
        options: &QueryOptions,
        sink: &mut dyn RowSink,
    ) -> Result<Completion> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let number = |place: usize| {
            words
                .get(place)
                .and_then(|word| word.parse().ok())
                .unwrap_or(0)
        };
        match words[..] {
            ["insert", ..] => {
                sink.columns(&[])?;
                return Ok(Completion {
                    affected_rows: Some(1),
                });
            }
            ["select", "who"] => self.rows(sink, 1, &who_text(who)).await?,
            ["select", "wait"] => {
                let left = options
                    .deadline
                    .unwrap()
                    .duration_since(std::time::Instant::now());
                self.rows(sink, 1, &format!("{}", left.as_secs())).await?;
            }
            ["select", "rows", ..] => self.rows(sink, number(2), &"x".repeat(number(3))).await?,
            ["select", "fail", _, sqlstate, ..] => {
                self.rows(sink, number(2), &"x".repeat(number(4))).await?;
                return Err(rejected(sqlstate));
            }
            ["select", "hang", ..] => {
                self.rows(sink, number(2), &"x".repeat(number(3))).await?;
                std::future::pending::<()>().await;
            }
            ["select", "error", kind] => return Err(error(kind)),
            ["select", "panic"] => panic!("as the script says"),
            _ => self.rows(sink, 1, "1").await?,
        }
        Ok(Completion {
            affected_rows: None,
        })
    }

    async fn rows(&self, sink: &mut dyn RowSink, count: usize, value: &str) -> Result<()> {
        sink.columns(&[column()])?;
        let mut body = i32::try_from(value.len()).unwrap().to_be_bytes().to_vec();
        body.extend_from_slice(value.as_bytes());
        for _ in 0..count {
            self.0.sent.fetch_add(value.len(), SeqCst);
            if sink.row(RawRow::new(1, &body).unwrap())? == Flow::Wait {
                sink.ready().await?;
            }
        }
        Ok(())
    }
}

/// The results of the catalog's queries: all roles see one schema, without relations.
fn catalog(statement: &BoundStatement, sink: &mut dyn RowSink) -> Result<Option<Completion>> {
    let text = statement.statement.text();
    if text.contains("relation_document") {
        // The row of the schema: its name, no versions and no types.
        texts(sink, &[Some("public"), None, None, Some("[]")])?;
    } else if text.contains("signature") {
        let Parameter::Text(roles) = &statement.sets[0][0] else {
            panic!("roles are text");
        };
        for role in roles.trim_matches(['{', '}']).split(',') {
            let role = role.trim_matches('"');
            texts(sink, &[Some(role), Some("1"), Some("role")])?;
        }
    } else if text.contains("as definitions") {
        texts(sink, &[Some("1"); 6])?;
    } else {
        return Ok(None);
    }
    Ok(Some(Completion {
        affected_rows: None,
    }))
}

fn texts(sink: &mut dyn RowSink, values: &[Option<&str>]) -> Result<()> {
    sink.columns(&[])?;
    let mut body = Vec::new();
    for value in values {
        let length = value.map_or(-1, |value| i32::try_from(value.len()).unwrap());
        body.extend(length.to_be_bytes());
        body.extend_from_slice(value.unwrap_or_default().as_bytes());
    }
    sink.row(RawRow::new(values.len(), &body).unwrap())
        .map(drop)
}

fn column() -> Column {
    Column {
        name: "s".to_owned(),
        r#type: Type::TEXT,
        format: WireFormat::Text,
        origin: None,
    }
}

fn who_text(who: &Principal) -> String {
    match who {
        Principal::Role(login) => {
            let sharing = match login.role_use {
                tidegate_sql::RoleUse::Anonymous => "strangers",
                tidegate_sql::RoleUse::User(_) => "one",
                tidegate_sql::RoleUse::Member(_) => "member",
                tidegate_sql::RoleUse::Trusted(_) => "trusted",
            };
            format!("{} {} {sharing}", login.database, login.role)
        }
        other => format!("{other:?}"),
    }
}

fn rejected(sqlstate: &str) -> Error {
    Error::Rejected(Box::new(DatabaseError {
        sqlstate: sqlstate.to_owned(),
        message: "what PostgreSQL said".to_owned(),
        detail: Some("more".to_owned()),
        hint: Some("advice".to_owned()),
        position: Some(8),
        schema: Some("public".to_owned()),
        table: Some("albums".to_owned()),
        column: Some("price".to_owned()),
        constraint: Some("albums_price_check".to_owned()),
        ..DatabaseError::default()
    }))
}

fn error(kind: &str) -> Error {
    match kind {
        "deadline" => Error::Deadline,
        "pool" => Error::PoolTimeout {
            retry_after: Duration::from_millis(1_500),
        },
        "unavailable" => Error::Unavailable {
            retry_after: Duration::from_secs(2),
            source: Some("secret host".into()),
        },
        "nodatabase" => Error::NoDatabase,
        "internal" => Error::internal("secret path"),
        other => panic!("no such error: {other}"),
    }
}

struct Guard<'a> {
    state: &'a State,
    ended: bool,
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.state.cancelled.fetch_add(1, SeqCst);
        }
    }
}

impl Executor for ScriptedExecutor {
    fn query<'a>(
        &'a self,
        who: &'a Principal,
        statement: &'a BoundStatement,
        options: &'a QueryOptions,
        sink: &'a mut dyn RowSink,
    ) -> BoxFuture<'a, Result<Completion>> {
        Box::pin(self.run(who, statement, options, sink))
    }

    fn begin<'a>(
        &'a self,
        who: &'a Principal,
        mode: Mode,
        options: &'a QueryOptions,
    ) -> BoxFuture<'a, Result<Box<dyn Transaction>>> {
        self.record(match mode {
            Mode::ReadWrite => ExecutorCall::Begin,
            Mode::Snapshot => ExecutorCall::BeginReadOnly,
        });
        let open = OpenTransaction {
            script: self.clone(),
            who: who.clone(),
            options: *options,
            committed: false,
        };
        Box::pin(std::future::ready(Ok(
            Box::new(open) as Box<dyn Transaction>
        )))
    }

    fn describe<'a>(
        &'a self,
        _: &'a Principal,
        _: &'a BoundStatement,
        _: &'a QueryOptions,
    ) -> BoxFuture<'a, Result<Description>> {
        Box::pin(std::future::ready(Ok(Description {
            parameters: Vec::new(),
            columns: vec![column()],
        })))
    }
}

struct OpenTransaction {
    script: ScriptedExecutor,
    who: Principal,
    options: QueryOptions,
    committed: bool,
}

impl Transaction for OpenTransaction {
    fn query<'a>(
        &'a mut self,
        statement: &'a BoundStatement,
        sink: &'a mut dyn RowSink,
    ) -> BoxFuture<'a, Result<Completion>> {
        Box::pin(self.script.run(&self.who, statement, &self.options, sink))
    }

    fn describe<'a>(&'a mut self, _: &'a BoundStatement) -> BoxFuture<'a, Result<Description>> {
        unimplemented!("nothing describes in a transaction yet")
    }

    fn commit(mut self: Box<Self>) -> BoxFuture<'static, Result<()>> {
        self.committed = true;
        self.script.record(ExecutorCall::Commit);
        Box::pin(std::future::ready(Ok(())))
    }
}

impl Drop for OpenTransaction {
    fn drop(&mut self) {
        if !self.committed {
            self.script.record(ExecutorCall::Rollback);
        }
    }
}
