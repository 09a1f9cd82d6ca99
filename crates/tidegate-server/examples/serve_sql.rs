//! Serves an executor with a fixed result, sends it a request over a socket and prints the
//! response.

use std::io::{Error, Result, Write as _};
use std::sync::Arc;

use tidegate_identity::{
    ManualClock, MasterKey, NewUser, PasswordCost, PasswordHasher, SystemRandom, TenantName,
    Timestamp, UserName,
};
use tidegate_oauth::{Issuer, MemoryStore, Ports, Settings};
use tidegate_server::{App, Listener, serve};
use tidegate_sql::{
    BoundStatement, BoxFuture, Completion, DatabaseName, Description, Executor, Mode, Principal,
    QueryOptions, RowSink, Transaction,
};
use tidegate_values::{Column, RawRow, Type, WireFormat};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// Every statement returns one row with the caller's role.
struct WhoAsks;

impl Executor for WhoAsks {
    fn query<'a>(
        &'a self,
        who: &'a Principal,
        _: &'a BoundStatement,
        _: &'a QueryOptions,
        sink: &'a mut dyn RowSink,
    ) -> BoxFuture<'a, tidegate_sql::Result<Completion>> {
        Box::pin(async move {
            let (name, format) = ("who".to_owned(), WireFormat::Text);
            sink.columns(&[Column {
                name,
                r#type: Type::TEXT,
                format,
                origin: None,
            }])?;
            let text = match who {
                Principal::Role(login) => login.role.as_str(),
                Principal::Control | Principal::Catalog(_) => "the service",
            };
            let size = i32::try_from(text.len()).map_err(tidegate_sql::Error::internal)?;
            let row = [&size.to_be_bytes(), text.as_bytes()].concat();
            sink.row(RawRow::new(1, &row).expect("one length and as many bytes"))?;
            Ok(Completion {
                affected_rows: None,
            })
        })
    }

    fn begin<'a>(
        &'a self,
        _: &'a Principal,
        _: Mode,
        _: &'a QueryOptions,
    ) -> BoxFuture<'a, tidegate_sql::Result<Box<dyn Transaction>>> {
        Box::pin(std::future::ready(Err(tidegate_sql::Error::internal(
            "no transactions here",
        ))))
    }

    fn describe<'a>(
        &'a self,
        _: &'a Principal,
        _: &'a BoundStatement,
        _: &'a QueryOptions,
    ) -> BoxFuture<'a, tidegate_sql::Result<Description>> {
        Box::pin(std::future::ready(Err(tidegate_sql::Error::internal(
            "nothing to describe",
        ))))
    }
}

/// An app with a tenant `shop` whose default user is `visitor`.
async fn app() -> tidegate_oauth::Result<App> {
    let random = Arc::new(SystemRandom::new());
    let ports = Ports {
        store: Arc::new(MemoryStore::new()),
        clock: Arc::new(ManualClock::new(Timestamp::from_seconds(1_800_000_000))),
        hasher: Arc::new(PasswordHasher::start(1, PasswordCost::default(), &*random)?),
        random: random.clone(),
    };
    let visitor = NewUser::new(TenantName::parse("shop")?, UserName::parse("visitor")?);
    let directory = tidegate_identity::UserDirectory::new(ports.identity());
    directory
        .create_user(NewUser {
            default_user: true,
            ..visitor
        })
        .await?;
    let settings = Settings::new("http://127.0.0.1")?;
    let issuer = Issuer::start(ports.clone(), MasterKey::generate(&*random)?, settings).await?;
    Ok(
        App::builder(Arc::new(WhoAsks), Arc::new(issuer), ports.store)
            .anonymous_database(Some(DatabaseName::new("shop")))
            .build(),
    )
}

#[tokio::main]
async fn main() -> Result<()> {
    let app = app().await.map_err(Error::other)?;
    let socket = TcpListener::bind("127.0.0.1:0").await?;
    let address = socket.local_addr()?;
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let shutdown = async { stopped.await.unwrap_or(()) };
    let server = tokio::spawn(serve(vec![Listener::plain(socket)], app, shutdown));

    let body = r#"{"q":"select current_user as who"}"#;
    let mut stream = TcpStream::connect(address).await?;
    let request = format!(
        "POST /api/v4/sql HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await?;
    let mut response = String::new();
    stream.read_to_string(&mut response).await?;
    writeln!(std::io::stdout(), "{response}")?;
    drop(stop);
    server.await?
}
