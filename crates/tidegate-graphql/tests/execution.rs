//! Tests of the statements that are sent, and of how their results are used.

use std::sync::{Arc, Mutex};

use bytes::{BufMut, BytesMut};
use serde_json::{Value, json};
use tidegate_graphql::Context;
use tidegate_sql::{
    Author, BoundStatement, BoxFuture, Commit, Completion, DatabaseError, Description, Error,
    Executor, Mode, Pipeline, PipelineError, Principal, QueryOptions, Result, RowSink, Transaction,
};
use tidegate_values::{Column, RawRow, Type, WireFormat};

use crate::fixture::api;

/// The commands that were sent to the database, in order.
type Log = Arc<Mutex<Vec<&'static str>>>;

/// An executor that returns one row for every statement, or rejects every statement if it has an
/// SQLSTATE. The row has one text: `Ann` and a number of further characters.
#[derive(Clone, Default)]
struct Recorder {
    log: Log,
    more: usize,
    sqlstate: Option<&'static str>,
    /// Whether a statement returns the rows of [`NESTED`] instead.
    nested: bool,
}

/// A document whose statement returns rows of two levels.
const NESTED: &str = "{ getArtists { name albums { title artists { name } } } }";

/// The types of the columns of [`NESTED`]: the number of the row's level; name and key of the
/// artist; title of the album; key and name of the album's artist.
const NESTED_TYPES: [Type; 6] = [
    Type::INT4,
    Type::TEXT,
    Type::INT4,
    Type::TEXT,
    Type::INT4,
    Type::TEXT,
];

/// The rows of [`NESTED`]: an artist and its album.
const NESTED_ROWS: [[Option<&[u8]>; 6]; 2] = [
    [
        Some(&[0, 0, 0, 0]),
        Some(b"Ann"),
        Some(&[0, 0, 0, 7]),
        None,
        None,
        None,
    ],
    [
        None,
        None,
        Some(&[0, 0, 0, 7]),
        Some(b"First"),
        Some(&[0, 0, 0, 7]),
        Some(b"Ann"),
    ],
];

impl Recorder {
    fn record(&self, event: &'static str) {
        self.log.lock().unwrap().push(event);
    }

    fn result(&self, sink: &mut dyn RowSink) -> Result<Completion> {
        self.record("statement");
        if let Some(sqlstate) = self.sqlstate {
            return Err(Error::Rejected(Box::new(DatabaseError {
                sqlstate: sqlstate.to_owned(),
                message: "permission denied for table artists".to_owned(),
                ..DatabaseError::default()
            })));
        }
        if self.nested {
            send(sink, &NESTED_TYPES, NESTED_ROWS.iter().map(|row| &row[..]))?;
        } else {
            let name = format!("Ann{}", "n".repeat(self.more));
            let row = [Some(name.as_bytes())];
            send(sink, &[Type::TEXT], std::iter::once(&row[..]))?;
        }
        let affected_rows = Some(1);
        Ok(Completion { affected_rows })
    }
}

/// Sends the columns of a statement and its rows to a sink.
fn send<'a>(
    sink: &mut dyn RowSink,
    types: &[Type],
    rows: impl Iterator<Item = &'a [Option<&'a [u8]>]>,
) -> Result<()> {
    let columns = types.iter().map(|r#type| Column {
        name: "name".to_owned(),
        r#type: r#type.clone(),
        format: WireFormat::Binary,
        origin: None,
    });
    sink.columns(&columns.collect::<Vec<_>>())?;
    for values in rows {
        let mut row = BytesMut::new();
        for value in values {
            let Some(bytes) = value else {
                row.put_i32(-1);
                continue;
            };
            row.put_i32(i32::try_from(bytes.len()).unwrap());
            row.put_slice(bytes);
        }
        sink.row(RawRow::new(types.len(), &row).unwrap())?;
    }
    Ok(())
}

impl Executor for Recorder {
    fn query<'a>(
        &'a self,
        _: &'a Principal,
        _: &'a BoundStatement,
        _: &'a QueryOptions,
        sink: &'a mut dyn RowSink,
    ) -> BoxFuture<'a, Result<Completion>> {
        Box::pin(async { self.result(sink) })
    }

    fn begin<'a>(
        &'a self,
        _: &'a Principal,
        _: Mode,
        _: &'a QueryOptions,
    ) -> BoxFuture<'a, Result<Box<dyn Transaction>>> {
        self.record("begin");
        let transaction: Box<dyn Transaction> = Box::new(self.clone());
        Box::pin(async { Ok(transaction) })
    }

    /// As in PostgreSQL, an error of a sink does not undo statements that commit together.
    fn pipeline<'a>(
        &'a self,
        _: &'a Principal,
        pipeline: Pipeline<'a>,
        options: &'a QueryOptions,
    ) -> BoxFuture<'a, Result<Vec<Completion>, PipelineError>> {
        assert_eq!(options.author, Author::Service);
        self.record("pipeline");
        Box::pin(async move {
            let together = pipeline.commit == Commit::Together;
            let mut done = Vec::new();
            let mut refused = None;
            for (index, step) in pipeline.steps.into_iter().enumerate() {
                match self.result(step.sink) {
                    Ok(completion) => done.push(completion),
                    Err(error @ Error::Rejected(_)) => {
                        return Err(PipelineError::at(index, error));
                    }
                    Err(error) => refused = Some((index, error)),
                }
            }
            if refused.is_none() || together {
                self.record("commit");
            }
            match refused {
                None => Ok(done),
                Some((index, error)) => Err(PipelineError::at(index, error)),
            }
        })
    }

    fn describe<'a>(
        &'a self,
        _: &'a Principal,
        _: &'a BoundStatement,
        _: &'a QueryOptions,
    ) -> BoxFuture<'a, Result<Description>> {
        Box::pin(async { Err(Error::NoDatabase) })
    }
}

impl Transaction for Recorder {
    fn query<'a>(
        &'a mut self,
        _: &'a BoundStatement,
        sink: &'a mut dyn RowSink,
    ) -> BoxFuture<'a, Result<Completion>> {
        Box::pin(async { self.result(sink) })
    }

    fn describe<'a>(&'a mut self, _: &'a BoundStatement) -> BoxFuture<'a, Result<Description>> {
        Box::pin(async { Err(Error::NoDatabase) })
    }

    fn commit(self: Box<Self>) -> BoxFuture<'static, Result<()>> {
        self.record("commit");
        Box::pin(async { Ok(()) })
    }
}

/// The body of the response to a document. Its data may have `response_budget` bytes.
async fn ask(recorder: &Recorder, anonymous: bool, document: &str, response_budget: u64) -> Value {
    let api = api();
    let prepared = api.prepare(document, None).expect(document);
    let context = Context {
        executor: recorder,
        principal: &Principal::Control,
        anonymous,
        options: QueryOptions::default(),
        response_budget,
    };
    let response = api.execute(&prepared, None, context).await.unwrap();
    serde_json::from_slice(&response.body.into_bytes().unwrap()).unwrap()
}

/// An error means that nothing was written, unless the error says that the mutation was committed.
#[tokio::test]
async fn a_mutation_is_committed_only_when_its_response_fits() {
    let key = "k".repeat(200);
    let insert = "insertArtists(objects: [{name: \"Ann\"}, {name: \"Bo\"}]) { name }";
    let document = format!("mutation {{ a: {insert} {key}: {insert} }}");
    let recorder = Recorder::default();
    let body = ask(&recorder, false, &document, 1_000).await;
    assert_eq!(body["data"][&key][0]["name"], "Ann", "{body}");
    let reported = ["pipeline", "statement", "statement", "commit"];
    assert_eq!(*recorder.log.lock().unwrap(), reported);
    for response_budget in [10, 20] {
        let recorder = Recorder::default();
        let body = ask(&recorder, false, &document, response_budget).await;
        assert_eq!(body["data"], Value::Null, "{body}");
        let error = &body["errors"][0];
        assert_eq!(error["extensions"]["code"], "TOO_COMPLEX", "{body}");
        assert_eq!(*recorder.log.lock().unwrap(), reported[..3]);
    }
}

/// A single row is assumed to be small, so it is committed with its statement. If it is too large,
/// the error says that it was committed.
#[tokio::test]
async fn a_write_of_one_row_is_committed_in_the_same_round_trip() {
    const ROOM: u64 = 1 << 20;
    let documents = [
        "insertArtists(data: {name: \"Ann\"}) { name }",
        "updateArtists(id: 1, data: {name: \"Ann\"}) { name }",
        "deleteArtists(id: 1) { name }",
    ];
    let reported = ["pipeline", "statement", "commit"];
    for field in documents {
        let document = format!("mutation {{ a: {field} }}");
        let recorder = Recorder::default();
        let body = ask(&recorder, false, &document, ROOM).await;
        assert_eq!(body["data"]["a"][0]["name"], "Ann", "{body}");
        assert_eq!(*recorder.log.lock().unwrap(), reported);
        let recorder = Recorder {
            more: 1 << 20,
            ..Recorder::default()
        };
        let body = ask(&recorder, false, &document, ROOM).await;
        assert_eq!(body["data"], Value::Null, "{body}");
        let error = &body["errors"][0];
        assert_eq!(error["extensions"]["code"], "TOO_COMPLEX", "{body}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("the mutation is committed"), "{body}");
        assert_eq!(*recorder.log.lock().unwrap(), reported);
        // With a smaller limit, the row is received before it is committed.
        let body = ask(&recorder, false, &document, ROOM - 1).await;
        assert_eq!(body["data"], Value::Null, "{body}");
        let log = recorder.log.lock().unwrap();
        assert_eq!(log[reported.len()..], reported[..2]);
    }
}

/// A query is sent once, with any number of root fields.
#[tokio::test]
async fn a_query_is_sent_once() {
    for (document, reported) in [
        ("{ getArtists(id: 1) { name } }", &["statement"][..]),
        (
            "{ a: getArtists { name } b: getArtists { name } c: __typename }",
            &["pipeline", "statement", "statement", "commit"],
        ),
        ("{ __typename }", &[]),
    ] {
        let recorder = Recorder::default();
        let body = ask(&recorder, false, document, 1_000).await;
        assert_eq!(body["errors"], Value::Null, "{body}");
        assert_eq!(*recorder.log.lock().unwrap(), reported, "{document}");
    }
}

/// The levels of a query are read by one statement, also if the first level has rows.
#[tokio::test]
async fn a_nested_query_is_sent_once() {
    let recorder = Recorder {
        nested: true,
        ..Recorder::default()
    };
    let body = ask(&recorder, false, NESTED, 1_000).await;
    let albums = json!([{"title": "First", "artists": {"name": "Ann"}}]);
    let artists = json!([{"name": "Ann", "albums": albums}]);
    assert_eq!(body, json!({"data": {"getArtists": artists}}));
    assert_eq!(*recorder.log.lock().unwrap(), ["statement"]);
}

#[tokio::test]
async fn a_missing_right_is_a_missing_token_for_who_has_none() {
    let recorder = Recorder {
        sqlstate: Some("42501"),
        ..Recorder::default()
    };
    let documents = [
        "{ getArtists { name } }",
        "{ a: getArtists { name } b: getArtists { name } }",
        "mutation { insertArtists(data: {name: \"Ann\"}) { name } }",
    ];
    for document in documents {
        for (anonymous, code) in [(true, "UNAUTHENTICATED"), (false, "FORBIDDEN")] {
            let body = ask(&recorder, anonymous, document, u64::MAX).await;
            let extensions = &body["errors"][0]["extensions"];
            assert_eq!(extensions["code"], code, "{document}: {body}");
            assert_eq!(extensions["sqlstate"], "42501", "{document}: {body}");
        }
    }
}
