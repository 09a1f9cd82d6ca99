//! Answers JSON-RPC messages, one on each line of standard input, with a method in memory and an
//! executor that returns each value it is given: try
//! `{"jsonrpc":"2.0","method":"echo","params":{"value":[1,2]},"id":1}`.

#![expect(
    clippy::print_stdout,
    reason = "an example shows its answers on standard output"
)]

use std::error::Error as StdError;
use std::io::BufRead;
use std::sync::Arc;

use tidegate_methods::{Caller, Definition, MemoryMethodStore, Registry};
use tidegate_rpc::{Context, Dispatcher, Limits, OutputBuffer, Payload};
use tidegate_sql::{
    BoundStatement, BoxFuture, Completion, DatabaseName, Description, Error, Executor, Login, Mode,
    Principal, QueryOptions, Result, RoleName, RoleUse, RowSink, Transaction,
};
use tidegate_values::{Column, Parameter, RawRow, Type, WireFormat};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn StdError>> {
    let database = DatabaseName::new("music");
    let registry = Arc::new(Registry::new(Arc::new(MemoryMethodStore::new())));
    let echo = br#"{"method": "echo", "q": "select :value::json"}"#;
    let echo = Definition::parse(echo, tidegate_methods::Limits::default())?;
    let owner = Caller {
        user: "music",
        owner: true,
    };
    registry.create(&database, owner, echo).await?;

    let dispatcher = Dispatcher::new(registry, Arc::new(Echo));
    let who = Principal::Role(Login {
        role: RoleName::new("music"),
        role_use: RoleUse::User(1),
        database,
    });
    let context = Context {
        principal: &who,
        options: QueryOptions::default(),
        timezone: None,
    };
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let response = match Payload::parse(line.as_bytes(), Limits::default()) {
            Err(reply) => reply.into_bytes(),
            Ok(payload) => {
                let mut out = OutputBuffer::new(1 << 20);
                dispatcher.dispatch(&context, &payload, &mut out).await;
                out.into_bytes()
            }
        };
        println!("{}", String::from_utf8_lossy(&response));
    }
    Ok(())
}

/// Replaces PostgreSQL.
struct Echo;

fn description() -> Description {
    let value = Column {
        name: "value".to_owned(),
        r#type: Type::JSON,
        format: WireFormat::Text,
        origin: None,
    };
    Description {
        parameters: vec![Type::JSON],
        columns: vec![value],
    }
}

fn echo(statement: &BoundStatement, sink: &mut dyn RowSink) -> Result<Completion> {
    sink.columns(&description().columns)?;
    for set in &statement.sets {
        let mut row = Vec::new();
        for value in set {
            let (Parameter::Json(text) | Parameter::Text(text)) = value else {
                row.extend_from_slice(&(-1_i32).to_be_bytes());
                continue;
            };
            let length = i32::try_from(text.len()).map_err(Error::internal)?;
            row.extend_from_slice(&length.to_be_bytes());
            row.extend_from_slice(text.as_bytes());
        }
        if let Some(row) = RawRow::new(set.len(), &row) {
            sink.row(row)?;
        }
    }
    Ok(Completion {
        affected_rows: None,
    })
}

impl Executor for Echo {
    fn query<'a>(
        &'a self,
        _: &'a Principal,
        statement: &'a BoundStatement,
        _: &'a QueryOptions,
        sink: &'a mut dyn RowSink,
    ) -> BoxFuture<'a, Result<Completion>> {
        Box::pin(async { echo(statement, sink) })
    }

    fn begin<'a>(
        &'a self,
        _: &'a Principal,
        _: Mode,
        _: &'a QueryOptions,
    ) -> BoxFuture<'a, Result<Box<dyn Transaction>>> {
        Box::pin(async {
            let transaction: Box<dyn Transaction> = Box::new(Self);
            Ok(transaction)
        })
    }

    fn describe<'a>(
        &'a self,
        _: &'a Principal,
        _: &'a BoundStatement,
        _: &'a QueryOptions,
    ) -> BoxFuture<'a, Result<Description>> {
        Box::pin(async { Ok(description()) })
    }
}

impl Transaction for Echo {
    fn query<'a>(
        &'a mut self,
        statement: &'a BoundStatement,
        sink: &'a mut dyn RowSink,
    ) -> BoxFuture<'a, Result<Completion>> {
        Box::pin(async { echo(statement, sink) })
    }

    fn describe<'a>(&'a mut self, _: &'a BoundStatement) -> BoxFuture<'a, Result<Description>> {
        Box::pin(async { Ok(description()) })
    }

    fn commit(self: Box<Self>) -> BoxFuture<'static, Result<()>> {
        Box::pin(async { Ok(()) })
    }
}
