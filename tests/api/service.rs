//! A fixture: the demo as a separate process, which all tests of the binary share, and a client for
//! it.

use std::collections::HashMap;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use reqwest::header::HeaderMap;
use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate_testkit::connect;
pub(crate) use tidegate_testkit::eventually;

use crate::process::ProcessOutput;

/// The built binary.
pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_tidegate");

/// The longest time that a test waits for anything.
pub(crate) const TIMEOUT: Duration = Duration::from_mins(1);

/// A running demo.
pub(crate) struct Service {
    pub(crate) url: String,
    pub(crate) database_url: String,
    pub(crate) data_dir: String,
    pub(crate) client: reqwest::Client,
    /// The tokens by user. They belong to this demo: a later demo may get the same port, and would
    /// refuse them.
    tokens: tokio::sync::Mutex<HashMap<String, String>>,
    /// The input of the guard process, which ends when the input is closed.
    _guard: ChildStdin,
}

/// A decoded response of a REST endpoint.
#[derive(Debug)]
pub(crate) struct RestResponse {
    pub(crate) status: u16,
    pub(crate) location: String,
    pub(crate) allow: String,
    pub(crate) body: Value,
}

impl RestResponse {
    /// The status, the `errorCode` and the message of an error.
    pub(crate) fn error(&self) -> (u16, &str, &str) {
        let member = |name: &str| self.body[name].as_str().unwrap_or_default();
        assert_eq!(self.body["success"], false, "{self:?}");
        assert_eq!(self.body["code"], self.status, "{self:?}");
        (self.status, member("errorCode"), member("message"))
    }
}

static SHARED: OnceLock<Service> = OnceLock::new();

/// The demo that tests share; each test creates its own tables in it. Anonymous callers may run any
/// SQL in it, so that tests can show the limits that apply anyway.
pub(crate) fn demo() -> &'static Service {
    SHARED.get_or_init(|| {
        let folder = Box::leak(Box::new(demo_folder()));
        let demo = Service::start(folder.path().to_str().unwrap(), &[]);
        demo.set_anonymous_sql("on");
        demo
    })
}

/// Creates a temporary folder that PostgreSQL's user can enter.
pub(crate) fn demo_folder() -> TempDir {
    let folder = tempfile::Builder::new()
        .prefix("tidegate-api-")
        .tempdir()
        .unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.path(), mode).unwrap();
    folder
}

impl Service {
    /// Starts a demo on a free port with its data in `folder`, and waits until it is ready.
    pub(crate) fn start(folder: &str, extra: &[&str]) -> Self {
        Self::start_with(folder, extra, &[])
    }

    /// Starts a demo with further settings as environment variables.
    #[expect(clippy::zombie_processes, reason = "its guard ends it")]
    pub(crate) fn start_with(folder: &str, extra: &[&str], settings: &[(&str, &str)]) -> Self {
        let data_dir = format!("{folder}/demo");
        let mut child = Command::new(BINARY)
            .args(["demo", "--listen", "127.0.0.1:0", "--data-dir", &data_dir])
            .args(extra)
            .envs(settings.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let guard = guard(&child, folder);
        // The output is read to its end, so that the demo never blocks while it writes.
        ProcessOutput::of(child.stdout.take().unwrap()).wait_for("Ctrl-C");
        let env = std::fs::read_to_string(format!("{data_dir}/demo.env")).unwrap();
        let value = |name: &str| {
            let line = env
                .lines()
                .find_map(|line| line.strip_prefix(&format!("{name}=")));
            line.unwrap().trim_matches(['"', '\'']).to_owned()
        };
        Self {
            url: value("TIDEGATE_URL"),
            database_url: value("DATABASE_URL"),
            data_dir,
            // Idle connections are not kept: each test has its own runtime, and a connection ends
            // with its runtime.
            client: reqwest::Client::builder()
                .pool_max_idle_per_host(0)
                .redirect(reqwest::redirect::Policy::none())
                .timeout(TIMEOUT)
                .build()
                .unwrap(),
            tokens: tokio::sync::Mutex::default(),
            _guard: guard,
        }
    }

    /// Sets the tenant's `anonymous_sql`, as the operator.
    pub(crate) fn set_anonymous_sql(&self, value: &str) {
        let (server, _) = self.database_url.rsplit_once('/').unwrap();
        let set = Command::new(BINARY)
            .args(["tenant", "set", "demo"])
            .arg(format!("anonymous_sql={value}"))
            .env("TIDEGATE_ADMIN_URL", format!("{server}/postgres"))
            .env(
                "TIDEGATE_MASTER_KEY_FILE",
                format!("{}/master.key", self.data_dir),
            )
            .output()
            .unwrap();
        assert!(set.status.success(), "{set:?}");
    }

    /// A request to a path of the service.
    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.url))
    }

    /// Requests a token by the password grant, through the public client.
    pub(crate) async fn token(&self, username: &str) -> String {
        let body = json!({
            "grant_type": "password", "username": username, "password": format!("{username}1234"),
            "database": "demo", "client_id": "demo-app",
        });
        let response = self
            .request(Method::POST, "/api/v4/oauth")
            .json(&body)
            .send()
            .await
            .unwrap();
        assert_eq!(response.status(), 200, "{}", response.text().await.unwrap());
        let response: Value = response.json().await.unwrap();
        response["access_token"].as_str().unwrap().to_owned()
    }

    /// Posts a body to `/api/v4/sql` as a user (anonymously if `None`).
    pub(crate) async fn sql(&self, user: Option<&str>, body: &Value) -> Response {
        let mut request = self.request(Method::POST, "/api/v4/sql").json(body);
        if let Some(user) = user {
            request = request.bearer_auth(self.cached_token(user).await);
        }
        request.send().await.unwrap()
    }

    /// Posts a statement that must succeed. Returns the body.
    pub(crate) async fn rows(&self, user: &str, q: &str, params: Value) -> Value {
        let response = self
            .sql(Some(user), &json!({"q": q, "params": params}))
            .await;
        let status = response.status();
        let text = response.text().await.unwrap();
        assert_eq!(status, 200, "{q}: {text}");
        serde_json::from_str(&text).unwrap()
    }

    /// Posts a statement that must fail. Returns the status and the body.
    pub(crate) async fn refusal(&self, user: &str, body: &Value) -> (u16, Value) {
        let response = self.sql(Some(user), body).await;
        let status = response.status().as_u16();
        let text = response.text().await.unwrap();
        let body = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{status}: {text}"));
        (status, body)
    }

    /// Calls a REST endpoint as a user (anonymously if `None`).
    pub(crate) async fn rest(
        &self,
        user: Option<&str>,
        (method, path): (&str, &str),
        body: &Value,
    ) -> RestResponse {
        let token = match user {
            Some(user) => Some(self.cached_token(user).await),
            None => None,
        };
        self.rest_with(token.as_deref(), (method, path), body).await
    }

    /// Calls a REST endpoint with a token.
    pub(crate) async fn rest_with(
        &self,
        token: Option<&str>,
        (method, path): (&str, &str),
        body: &Value,
    ) -> RestResponse {
        let mut request = self.request(method.parse().unwrap(), path);
        if !body.is_null() {
            request = request.json(body);
        }
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        let response = TextResponse::of(request).await;
        RestResponse {
            status: response.status,
            location: response.header("location").to_owned(),
            allow: response.header("allow").to_owned(),
            body: serde_json::from_str(&response.text)
                .unwrap_or_else(|_| Value::String(response.text.clone())),
        }
    }

    /// Sends a request with a JSON text as a user (anonymously if `None`).
    pub(crate) async fn ask(
        &self,
        method: Method,
        path: &str,
        user: Option<&str>,
        body: Option<String>,
    ) -> TextResponse {
        let mut request = self.request(method, path);
        if let Some(user) = user {
            request = request.bearer_auth(self.cached_token(user).await);
        }
        if let Some(body) = body {
            request = request
                .header("content-type", "application/json")
                .body(body);
        }
        TextResponse::of(request).await
    }

    pub(crate) async fn cached_token(&self, user: &str) -> String {
        let mut tokens = self.tokens.lock().await;
        if let Some(token) = tokens.get(user) {
            return token.clone();
        }
        let token = self.token(user).await;
        tokens.insert(user.to_owned(), token.clone());
        token
    }

    /// A connection to the demo's database as the cluster's administrator.
    pub(crate) async fn admin(&self) -> tokio_postgres::Client {
        connect(&self.database_url).await
    }

    /// A connection to the control database as the cluster's administrator.
    pub(crate) async fn control(&self) -> tokio_postgres::Client {
        let (server, _) = self.database_url.rsplit_once('/').unwrap();
        connect(&format!("{server}/tidegate")).await
    }
}

/// Starts the guard, which stops the demo and removes its folder when this process ends in any way.
/// The guard is a shell that waits for the end of its input.
#[expect(
    clippy::zombie_processes,
    reason = "it outlives this process on purpose"
)]
fn guard(child: &Child, folder: &str) -> ChildStdin {
    let script = format!(
        "read -r _; kill -TERM {pid}; n=0; \
         while kill -0 {pid} 2>/dev/null && [ $n -lt 100 ]; do n=$((n+1)); sleep 0.1; done; \
         rm -rf '{folder}'",
        pid = child.id()
    );
    let mut guard = Command::new("sh")
        .args(["-c", &script])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    guard.stdin.take().unwrap()
}

/// A response that has been read to its end.
#[derive(Debug)]
pub(crate) struct TextResponse {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl TextResponse {
    /// Sends a request and reads the response.
    pub(crate) async fn of(request: RequestBuilder) -> Self {
        let response = request.send().await.unwrap();
        Self {
            status: response.status().as_u16(),
            headers: response.headers().clone(),
            text: response.text().await.unwrap(),
        }
    }

    /// The value of a header; empty if there is no such header.
    pub(crate) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.map_or("", |value| value.to_str().unwrap())
    }

    /// The body as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("{self:?}"))
    }

    /// The status and the `errorCode` of an error.
    pub(crate) fn error(&self) -> (u16, String) {
        let body = self.json();
        assert_eq!(body["success"], false, "{body}");
        assert_eq!(body["code"], self.status, "{body}");
        let code = body["errorCode"].as_str().unwrap().to_owned();
        (self.status, code)
    }
}
