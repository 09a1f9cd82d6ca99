//! A scripted executor: the text of a statement says what it does.
//!
//! - `select echo :a, :b`: a row for each parameter set, with a column for each placeholder of its
//!   name and the type `json` that has its value
//! - `select date`: one row with the date 2000-01-02 in a column `d`
//! - `select moment`: one row with midnight of 2000-01-01 in UTC in a column `t`
//! - `select text`: one row with a text that CSV and JSON must escape in a column `s`
//! - `insert …`: one row written for each parameter set; `insert deferred` and `insert lost` fail
//!   when the transaction is committed
//! - `select origin`: two columns of a table, of which `id` is NOT NULL in the catalog
//! - `select refuse 22012`: one row, then that SQLSTATE
//! - `select conflict`: in a transaction, the first time one row and 40001, later a row
//! - `select unreadable :a`: the last set's value cannot be read as the parameter's type
//! - `select invalid :a`: the value cannot be encoded
//! - `select misformatted :a`: the placeholder cannot have a format
//! - `select deadline|pool|unavailable|nodatabase|internal|unknownhint|unformatted`: that error

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidegate_sql::{
    Author, BoundStatement, BoxFuture, Commit, Completion, DatabaseError, Description, Error,
    Executor, InputError, Mode, Pipeline, PipelineError, Principal, QueryOptions, Result, RowSink,
    Transaction,
};
use tidegate_values::{Column, Parameter, RawRow, Type, ValueError, WireFormat};

#[derive(Clone, Default)]
pub(crate) struct Scripted {
    ran: Arc<Mutex<Vec<String>>>,
    /// Whether the pool is full, so that no pipeline runs.
    full: bool,
    /// Whether `select conflict` has failed already.
    conflicted: Arc<AtomicBool>,
    /// The author of the statements that ran last.
    author: Arc<Mutex<Author>>,
}

impl Scripted {
    /// An executor whose pool is full, so that it runs no pipeline.
    pub(crate) fn full() -> Self {
        Self {
            full: true,
            ..Self::default()
        }
    }

    /// Returns the commands that were run, in order, and clears the list.
    pub(crate) fn ran(&self) -> Vec<String> {
        std::mem::take(&mut *self.ran.lock().unwrap())
    }

    /// The author of the statements that ran last, according to their options.
    pub(crate) fn author(&self) -> Author {
        *self.author.lock().unwrap()
    }

    fn note(&self, happening: String) {
        self.ran.lock().unwrap().push(happening);
    }
}

impl Executor for Scripted {
    fn query<'a>(
        &'a self,
        who: &'a Principal,
        statement: &'a BoundStatement,
        options: &'a QueryOptions,
        sink: &'a mut dyn RowSink,
    ) -> BoxFuture<'a, Result<Completion>> {
        *self.author.lock().unwrap() = options.author;
        self.note(format!("{}: {}", name(who), shown(statement)));
        Box::pin(async { play(statement, sink) })
    }

    /// A batch is sent as one pipeline, so that it needs one round trip.
    fn begin<'a>(
        &'a self,
        who: &'a Principal,
        _: Mode,
        _: &'a QueryOptions,
    ) -> BoxFuture<'a, Result<Box<dyn Transaction>>> {
        panic!("{} sends the statements of a batch in turn", name(who));
    }

    fn pipeline<'a>(
        &'a self,
        who: &'a Principal,
        pipeline: Pipeline<'a>,
        options: &'a QueryOptions,
    ) -> BoxFuture<'a, Result<Vec<Completion>, PipelineError>> {
        *self.author.lock().unwrap() = options.author;
        assert_eq!(pipeline.mode, Mode::ReadWrite);
        assert_eq!(pipeline.commit, Commit::AfterRows);
        Box::pin(async move {
            if self.full {
                return Err(failure("pool").into());
            }
            self.note(format!("{}: pipeline", name(who)));
            let open = Box::new(Open {
                executor: self.clone(),
                refusal: None,
                ended: false,
            });
            pipeline.run_in(open).await
        })
    }

    fn describe<'a>(
        &'a self,
        who: &'a Principal,
        statement: &'a BoundStatement,
        _: &'a QueryOptions,
    ) -> BoxFuture<'a, Result<Description>> {
        let text = statement.statement.text();
        self.note(format!("{}: describe {text}", name(who)));
        Box::pin(async { describe(statement) })
    }
}

struct Open {
    executor: Scripted,
    /// The error because of which the transaction will not be committed.
    refusal: Option<Error>,
    ended: bool,
}

impl Transaction for Open {
    fn query<'a>(
        &'a mut self,
        statement: &'a BoundStatement,
        sink: &'a mut dyn RowSink,
    ) -> BoxFuture<'a, Result<Completion>> {
        self.executor.note(shown(statement));
        match verbs(statement)[..] {
            ["insert", "deferred", ..] => self.refusal = Some(refused("23503", None)),
            ["insert", "lost", ..] => self.refusal = Some(failure("unavailable")),
            _ => {}
        }
        let conflicts = matches!(verbs(statement)[..], ["select", "conflict"])
            && !self.executor.conflicted.swap(true, Ordering::Relaxed);
        Box::pin(async move {
            let completion = play(statement, sink)?;
            if conflicts {
                return Err(refused("40001", None));
            }
            Ok(completion)
        })
    }

    fn describe<'a>(
        &'a mut self,
        statement: &'a BoundStatement,
    ) -> BoxFuture<'a, Result<Description>> {
        Box::pin(async { describe(statement) })
    }

    fn commit(mut self: Box<Self>) -> BoxFuture<'static, Result<()>> {
        self.ended = true;
        self.executor.note("commit".to_owned());
        Box::pin(async move { self.refusal.take().map_or(Ok(()), Err) })
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if !self.ended {
            self.executor.note("rollback".to_owned());
        }
    }
}

fn name(who: &Principal) -> String {
    match who {
        Principal::Role(login) => login.role.to_string(),
        other => format!("{other:?}"),
    }
}

/// The text of a statement, followed by its parameter sets.
fn shown(statement: &BoundStatement) -> String {
    let sets = statement.sets.iter().map(|set| {
        let values: Vec<_> = set.iter().map(value).collect();
        format!("({})", values.join(","))
    });
    let sets: String = if statement.statement.placeholders().is_empty() {
        String::new()
    } else {
        sets.collect()
    };
    format!("{} {sets}", statement.statement.text())
        .trim_end()
        .to_owned()
}

fn value(parameter: &Parameter) -> &str {
    match parameter {
        Parameter::Null => "null",
        Parameter::Json(text) | Parameter::Text(text) => text,
    }
}

fn verbs(statement: &BoundStatement) -> Vec<&str> {
    statement.statement.text().split([' ', ',']).collect()
}

fn play(statement: &BoundStatement, sink: &mut dyn RowSink) -> Result<Completion> {
    if statement.statement.text().contains("attnotnull") {
        push(sink, [Some(&b"1 1"[..])].into_iter())?;
        return Ok(Completion {
            affected_rows: None,
        });
    }
    let description = describe(statement)?;
    sink.columns(&description.columns)?;
    let mut affected_rows = None;
    match verbs(statement)[..] {
        ["select", "echo", ..] => {
            for set in &statement.sets {
                push(
                    sink,
                    set.iter()
                        .map(|parameter| Some(value(parameter).as_bytes())),
                )?;
            }
        }
        ["select", "date"] => push(sink, [Some(&1_i32.to_be_bytes()[..])].into_iter())?,
        ["select", "moment"] => push(sink, [Some(&0_i64.to_be_bytes()[..])].into_iter())?,
        ["select", "conflict"] => push(sink, [Some(&b"a row"[..])].into_iter())?,
        ["select", "text"] => push(sink, [Some("say \"hü\",\n\\".as_bytes())].into_iter())?,
        ["select", "refuse", sqlstate] => {
            push(sink, [Some(&b"half an answer"[..])].into_iter())?;
            return Err(refused(sqlstate, None));
        }
        ["select", "unreadable", ..] => {
            let last = statement.sets.len() - 1;
            return Err(refused("22P02", Some(statement.place(last, 0))));
        }
        ["select", "invalid", ..] => {
            return Err(Error::from(ValueError::InvalidValue {
                place: format!("{}[1]", statement.place(0, 0)),
                expected: "int4".to_owned(),
                problem: "an object".to_owned(),
            }));
        }
        ["select", "misformatted", ..] => {
            return Err(Error::from(ValueError::InvalidFormat {
                name: "a".to_owned(),
                problem: "a int4 takes no date format".to_owned(),
            }));
        }
        ["select", error] => return Err(failure(error)),
        ["insert", ..] => affected_rows = Some(statement.sets.len() as u64),
        _ => {}
    }
    Ok(Completion { affected_rows })
}

fn describe(statement: &BoundStatement) -> Result<Description> {
    let placeholders = statement.statement.placeholders();
    let column = |name: &str, r#type, format| Column {
        name: name.to_owned(),
        r#type,
        format,
        origin: None,
    };
    let columns = match verbs(statement)[..] {
        ["select", "echo", ..] => placeholders
            .iter()
            .map(|name| column(name, Type::JSON, WireFormat::Text))
            .collect(),
        ["select", "origin"] => {
            let mut columns = vec![column("id", Type::INT4, WireFormat::Binary)];
            columns.push(column("name", Type::TEXT, WireFormat::Text));
            columns[0].origin = Some((1, 1));
            columns[1].origin = Some((1, 2));
            columns
        }
        ["select", "date"] => vec![column("d", Type::DATE, WireFormat::Binary)],
        ["select", "moment"] => vec![column("t", Type::TIMESTAMPTZ, WireFormat::Binary)],
        ["select", "text" | "conflict"] | ["select", "refuse", _] => {
            vec![column("s", Type::TEXT, WireFormat::Text)]
        }
        ["select", "syntax", ..] => return Err(refused("42601", None)),
        _ => Vec::new(),
    };
    let hinted = statement.hints.iter().map(|hint| match hint {
        Some(hint) if hint.0 == "varchar[]" => Type::VARCHAR_ARRAY,
        _ => Type::INT4,
    });
    Ok(Description {
        parameters: hinted.collect(),
        columns,
    })
}

fn push<'a>(sink: &mut dyn RowSink, values: impl Iterator<Item = Option<&'a [u8]>>) -> Result<()> {
    let (mut body, mut columns) = (Vec::new(), 0);
    for value in values {
        columns += 1;
        match value {
            None => body.extend_from_slice(&(-1_i32).to_be_bytes()),
            Some(bytes) => {
                body.extend_from_slice(&i32::try_from(bytes.len()).unwrap().to_be_bytes());
                body.extend_from_slice(bytes);
            }
        }
    }
    sink.row(RawRow::new(columns, &body).unwrap()).map(drop)
}

fn refused(sqlstate: &str, place: Option<String>) -> Error {
    Error::Rejected(Box::new(DatabaseError {
        sqlstate: sqlstate.to_owned(),
        message: "what PostgreSQL said".to_owned(),
        detail: Some("more".to_owned()),
        position: Some(8),
        constraint: Some("albums_price_check".to_owned()),
        place,
        ..DatabaseError::default()
    }))
}

fn failure(name: &str) -> Error {
    let retry_after = Duration::from_secs(1);
    match name {
        "deadline" => Error::Deadline,
        "pool" => Error::PoolTimeout { retry_after },
        "unavailable" => Error::Unavailable {
            retry_after,
            source: Some("10.0.0.7 refused the connection".into()),
        },
        "nodatabase" => Error::NoDatabase,
        "unknownhint" => Error::Input(InputError::UnknownHint {
            name: "a".to_owned(),
            hint: "nothing".to_owned(),
        }),
        "unformatted" => Error::from(ValueError::InvalidFormat {
            name: "d".to_owned(),
            problem: "the column is a int4".to_owned(),
        }),
        _ => Error::internal("a secret of the house"),
    }
}
