//! What is asked of the database, and what becomes of its answers.

use std::sync::{Arc, Mutex};

use bytes::{BufMut, BytesMut};
use serde_json::Value;
use tidegate_graphql::Context;
use tidegate_sql::{
    BoundStatement, BoxFuture, Column, Completion, Description, Error, Executor, Mode, Principal,
    RawRow, Rejection, Result, RowSink, Terms, Transaction, Type, WireFormat,
};

use crate::fixture::api;

/// What was asked of the database, in its order.
type Log = Arc<Mutex<Vec<&'static str>>>;

/// A database that answers every statement with one row of one text, or refuses it.
#[derive(Clone, Default)]
struct Recorder {
    log: Log,
    sqlstate: Option<&'static str>,
}

impl Recorder {
    fn record(&self, event: &'static str) {
        self.log.lock().unwrap().push(event);
    }

    fn answer(&self, sink: &mut dyn RowSink) -> Result<Completion> {
        self.record("statement");
        if let Some(sqlstate) = self.sqlstate {
            return Err(Error::Rejected(Box::new(Rejection {
                sqlstate: sqlstate.to_owned(),
                message: "permission denied for table artists".to_owned(),
                ..Rejection::default()
            })));
        }
        sink.columns(&[Column {
            name: "name".to_owned(),
            r#type: Type::TEXT,
            format: WireFormat::Binary,
            origin: None,
        }])?;
        let mut row = BytesMut::new();
        row.put_i32(3);
        row.put_slice(b"Ann");
        sink.row(RawRow::new(1, &row).unwrap())?;
        let affected_rows = Some(1);
        Ok(Completion { affected_rows })
    }
}

impl Executor for Recorder {
    fn query<'a>(
        &'a self,
        _: &'a Principal,
        _: &'a BoundStatement,
        _: &'a Terms,
        sink: &'a mut dyn RowSink,
    ) -> BoxFuture<'a, Result<Completion>> {
        Box::pin(async { self.answer(sink) })
    }

    fn begin<'a>(
        &'a self,
        _: &'a Principal,
        _: Mode,
        _: &'a Terms,
    ) -> BoxFuture<'a, Result<Box<dyn Transaction>>> {
        self.record("begin");
        let transaction: Box<dyn Transaction> = Box::new(self.clone());
        Box::pin(async { Ok(transaction) })
    }

    fn describe<'a>(
        &'a self,
        _: &'a Principal,
        _: &'a BoundStatement,
        _: &'a Terms,
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
        Box::pin(async { self.answer(sink) })
    }

    fn describe<'a>(&'a mut self, _: &'a BoundStatement) -> BoxFuture<'a, Result<Description>> {
        Box::pin(async { Err(Error::NoDatabase) })
    }

    fn commit(self: Box<Self>) -> BoxFuture<'static, Result<()>> {
        self.record("commit");
        Box::pin(async { Ok(()) })
    }
}

/// The body of a document's answer, whose data may have so many bytes.
async fn ask(recorder: &Recorder, anonymous: bool, document: &str, room: u64) -> Value {
    let api = api();
    let prepared = api.prepare(document, None).expect(document);
    let context = Context {
        executor: recorder,
        principal: &Principal::Control,
        anonymous,
        terms: Terms::default(),
        room,
    };
    let answer = api.execute(&prepared, None, context).await.unwrap();
    serde_json::from_slice(&answer.body.into_bytes().unwrap()).unwrap()
}

/// Who reads of an error takes for granted that nothing was written.
#[tokio::test]
async fn a_mutation_is_committed_only_when_its_answer_fits() {
    let key = "k".repeat(200);
    let insert = "insertArtists(data: {name: \"Ann\"}) { name }";
    let document = format!("mutation {{ a: {insert} {key}: {insert} }}");
    let recorder = Recorder::default();
    let body = ask(&recorder, false, &document, 1_000).await;
    assert_eq!(body["data"][&key][0]["name"], "Ann", "{body}");
    let told = ["begin", "statement", "statement", "commit"];
    assert_eq!(*recorder.log.lock().unwrap(), told);
    // The rows fit, and the data with this key does not.
    let recorder = Recorder::default();
    let body = ask(&recorder, false, &document, 100).await;
    assert_eq!(body["data"], Value::Null, "{body}");
    assert_eq!(
        body["errors"][0]["extensions"]["code"], "TOO_COMPLEX",
        "{body}"
    );
    assert_eq!(*recorder.log.lock().unwrap(), told[..3]);
    // One statement needs no transaction: the executor commits when its rows have been taken.
    let recorder = Recorder::default();
    let body = ask(
        &recorder,
        false,
        &format!("mutation {{ {key}: {insert} }}"),
        100,
    )
    .await;
    assert_eq!(body["data"][&key][0]["name"], "Ann", "{body}");
    let recorder = Recorder::default();
    let body = ask(
        &recorder,
        false,
        &format!("mutation {{ {key}: {insert} }}"),
        10,
    )
    .await;
    assert_eq!(
        body["errors"][0]["extensions"]["code"], "TOO_COMPLEX",
        "{body}"
    );
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
