//! The fixture: an app with a tenant, its users and its clients, and functions to call it.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use tidegate_identity::{
    AnonymousSql, ManualClock, MasterKey, NewOwner, NewUser, PasswordHasher, Secret, TenantName,
    Timestamp, UserDirectory, UserName,
};
use tidegate_oauth::{
    BuiltinClients, ClientDirectory, Issuer, MemoryStore, NewClient, Ports, Settings,
};
use tidegate_server::{App, AppBuilder, Limits, Listener, Peer, serve, service};
use tidegate_sql::DatabaseName;
pub(crate) use tidegate_testkit::eventually;
use tidegate_testkit::{CHEAP, SeededRandom};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tower::Service as _;

use crate::documented::assert_documented;
use crate::executor::ScriptedExecutor;

pub(crate) const TIMEOUT: Duration = Duration::from_secs(10);

pub(crate) struct Api {
    pub(crate) app: App,
    pub(crate) executor: ScriptedExecutor,
    pub(crate) directory: UserDirectory,
    pub(crate) clients: ClientDirectory,
    pub(crate) issuer: Arc<Issuer>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) peer: Peer,
}

/// A response, with its body read to the end.
#[derive(Debug)]
pub(crate) struct TestResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl TestResponse {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }

    /// The status and the `errorCode`.
    pub(crate) fn error(&self) -> (u16, String) {
        let body = self.json();
        assert_eq!(body["success"], false, "{body}");
        assert_eq!(body["code"], self.status.as_u16(), "{body}");
        assert!(body["message"].is_string(), "{body}");
        (
            self.status.as_u16(),
            body["errorCode"].as_str().unwrap().to_owned(),
        )
    }
}

impl Api {
    pub(crate) async fn start() -> Self {
        Self::with(|builder| builder).await
    }

    pub(crate) async fn limited(limits: Limits) -> Self {
        Self::with(|builder| builder.limits(limits)).await
    }

    pub(crate) async fn with(build: impl FnOnce(AppBuilder) -> AppBuilder) -> Self {
        Self::at("http://127.0.0.1:8080", build).await
    }

    /// A fixture whose service is reached at the URL `issuer`.
    pub(crate) async fn at(issuer: &str, build: impl FnOnce(AppBuilder) -> AppBuilder) -> Self {
        Self::over(issuer, |builder, _| build(builder)).await
    }

    /// A fixture whose app also uses the directory of users.
    pub(crate) async fn over(
        issuer: &str,
        build: impl FnOnce(AppBuilder, &UserDirectory) -> AppBuilder,
    ) -> Self {
        let random = Arc::new(SeededRandom::new(0));
        let clock = Arc::new(ManualClock::new(Timestamp::from_seconds(1_800_000_000)));
        let ports = Ports {
            store: Arc::new(MemoryStore::new()),
            clock: clock.clone(),
            random: random.clone(),
            hasher: Arc::new(PasswordHasher::start(1, CHEAP, &*random).unwrap()),
        };
        let directory = UserDirectory::new(ports.identity());
        let clients = ClientDirectory::new(ports.clone());
        fill(&directory, &clients).await;
        let master = MasterKey::generate(&*random).unwrap();
        let mut settings = Settings::new(issuer).unwrap();
        settings.builtin = BuiltinClients {
            ids: vec!["tidegate".to_owned(), "gc2-cli".to_owned()],
            pages: vec![format!("{issuer}/console/")],
        };
        let issuer = Issuer::start(ports.clone(), master, settings)
            .await
            .unwrap();
        let issuer = Arc::new(issuer);
        let executor = ScriptedExecutor::default();
        let builder = App::builder(Arc::new(executor.clone()), Arc::clone(&issuer), ports.store)
            .node(7)
            .anonymous_database(Some(DatabaseName::new("demo")));
        let peer = Peer {
            address: IpAddr::from([127, 0, 0, 1]),
            encrypted: false,
            loopback: true,
        };
        Self {
            app: build(builder, &directory).build(),
            executor,
            directory,
            clients,
            issuer,
            clock,
            peer,
        }
    }

    /// Passes a request to the service without a socket.
    pub(crate) async fn call(&self, request: Request<String>) -> TestResponse {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let request = request.map(|body| Full::new(Bytes::from(body)));
        let response = service(self.app.clone(), self.peer)
            .call(request)
            .await
            .unwrap();
        let (head, body) = response.into_parts();
        assert_documented(&method, &path, head.status);
        let body = tokio::time::timeout(TIMEOUT, body.collect()).await.unwrap();
        TestResponse {
            status: head.status,
            headers: head.headers,
            body: body.unwrap().to_bytes(),
        }
    }

    pub(crate) async fn get(&self, path: &str) -> TestResponse {
        self.call(request(Method::GET, path).body(String::new()).unwrap())
            .await
    }

    /// Sends a request with the access token of a token response.
    pub(crate) async fn get_as(&self, path: &str, token: &Value) -> TestResponse {
        let token = token["access_token"].as_str().unwrap();
        let asked = request(Method::GET, path).header("authorization", format!("Bearer {token}"));
        self.call(asked.body(String::new()).unwrap()).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> TestResponse {
        let request = request(Method::POST, path).header("content-type", "application/json");
        self.call(request.body(body.to_string()).unwrap()).await
    }

    /// Runs SQL as an anonymous caller.
    pub(crate) async fn sql(&self, body: &Value) -> TestResponse {
        self.post("/api/v4/sql", body).await
    }

    /// Runs SQL as an anonymous caller, with one more header.
    pub(crate) async fn sql_with(&self, name: &str, value: &str, body: &Value) -> TestResponse {
        let request = request(Method::POST, "/api/v4/sql").header(name, value);
        self.call(request.body(body.to_string()).unwrap()).await
    }

    /// An access token of a user.
    pub(crate) async fn token(&self, user: &str) -> String {
        let response = self.post("/api/v4/oauth", &password(user)).await;
        response.json()["access_token"].as_str().unwrap().to_owned()
    }

    /// Serves the app on a socket.
    pub(crate) async fn listen(&self) -> Server {
        let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        self.serve(Listener::plain(socket), address)
    }

    pub(crate) fn serve(&self, listener: Listener, address: SocketAddr) -> Server {
        let (stop, stopped) = oneshot::channel::<()>();
        let shutdown = async move {
            let _ = stopped.await;
        };
        let running = tokio::spawn(serve(vec![listener], self.app.clone(), shutdown));
        Server {
            address,
            stop: Some(stop),
            running,
        }
    }
}

/// The app as served on a socket.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    running: JoinHandle<std::io::Result<()>>,
}

impl Server {
    pub(crate) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Starts the shutdown.
    pub(crate) fn stop(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }

    pub(crate) async fn stopped(self) {
        tokio::time::timeout(TIMEOUT, self.running)
            .await
            .unwrap()
            .unwrap()
            .unwrap();
    }
}

pub(crate) fn request(method: Method, path: &str) -> http::request::Builder {
    Request::builder()
        .method(method)
        .uri(path)
        .header("host", "localhost")
}

/// The value of `WWW-Authenticate` of the service at the URL of [`Api::start`]. `error` is empty for
/// a request without a token.
pub(crate) fn challenge(error: &str) -> String {
    let metadata =
        "resource_metadata=\"http://127.0.0.1:8080/.well-known/oauth-protected-resource\"";
    match error {
        "" => format!("Bearer {metadata}"),
        error => format!("Bearer error=\"{error}\", {metadata}"),
    }
}

pub(crate) fn password(user: &str) -> Value {
    json!({
        "grant_type": "password", "username": user, "password": format!("{user}1234"),
        "database": "demo", "client_id": "app",
    })
}

async fn fill(directory: &UserDirectory, clients: &ClientDirectory) {
    let demo = TenantName::parse("demo").unwrap();
    let owner = |name: &str| NewOwner {
        database: TenantName::parse(name).unwrap(),
        role: None,
        password: Some(Secret::new(format!("{name}1234"))),
    };
    directory.create_owner(owner("demo")).await.unwrap();
    directory.create_owner(owner("lonely")).await.unwrap();
    let user = |name: &str| NewUser::new(demo.clone(), UserName::parse(name).unwrap());
    let alice = NewUser {
        password: Some(Secret::new("alice1234")),
        ..user("alice")
    };
    let guest = NewUser {
        default_user: true,
        ..user("guest")
    };
    for user in [alice, guest] {
        directory.create_user(user).await.unwrap();
    }
    // SQL is allowed for the default user, because most tests send no token.
    let sql = AnonymousSql::On;
    directory.set_anonymous_sql("demo", sql).await.unwrap();
    let uris = || vec!["http://127.0.0.1:5173/callback".to_owned()];
    let app = NewClient {
        id: Some("app".to_owned()),
        public: true,
        ..NewClient::new(demo.clone(), "App", uris())
    };
    let server = NewClient {
        id: Some("server".to_owned()),
        secret: Some(Secret::new("a:b c/secret")),
        ..NewClient::new(demo, "Server", uris())
    };
    for client in [app, server] {
        clients.create_client(client).await.unwrap();
    }
}
