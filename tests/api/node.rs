//! A fixture: a node of `tidegate serve` in front of an operator's cluster.

use std::process::{Command, Stdio};

use reqwest::{Client, StatusCode};
use serde_json::{Value, json};

use crate::operator::Operator;
use crate::process::{Process, ProcessOutput};
use crate::service::{TIMEOUT, eventually};

/// A node and its log.
pub(crate) struct Node {
    pub(crate) url: String,
    process: Process,
    log: ProcessOutput,
    pub(crate) client: Client,
}

impl Node {
    pub(crate) async fn start(operator: &Operator) -> Self {
        let client = Client::builder().timeout(TIMEOUT).build().unwrap();
        Self::start_with(operator, &[], ("http", client)).await
    }

    /// Starts a node with further flags and the given URL scheme. `client` sends its requests.
    pub(crate) async fn start_with(
        operator: &Operator,
        flags: &[&str],
        (scheme, client): (&str, Client),
    ) -> Self {
        let arguments = [
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--public-url",
            "http://api.localhost",
            "--log-level",
            "trace",
        ];
        let mut command = operator.command(&[&arguments[..], flags].concat());
        let mut process = Process(command.stderr(Stdio::piped()).spawn().unwrap());
        let log = ProcessOutput::of(process.0.stderr.take().unwrap());
        let node = Self {
            url: format!("{scheme}://127.0.0.1:{}", log.port().await),
            process,
            log,
            client,
        };
        eventually("the node is ready", || async {
            let response = node.client.get(format!("{}/readyz", node.url)).send().await;
            response.is_ok_and(|response| response.status() == StatusCode::OK)
        })
        .await;
        node
    }

    pub(crate) async fn post(
        &self,
        path: &str,
        token: Option<&str>,
        body: Value,
    ) -> (StatusCode, Value) {
        let request = self.client.post(format!("{}{path}", self.url)).json(&body);
        let request = match token {
            Some(token) => request.bearer_auth(token),
            None => request,
        };
        let response = request.send().await.unwrap();
        let status = response.status();
        (status, response.json().await.unwrap_or_default())
    }

    pub(crate) async fn sign_in(&self, database: &str, username: &str, password: &str) -> Value {
        let body = json!({
            "grant_type": "password", "username": username, "password": password,
            "database": database, "client_id": "app",
        });
        let (status, response) = self.post("/api/v4/oauth", None, body).await;
        assert_eq!(status, StatusCode::OK, "{response}");
        response
    }

    pub(crate) async fn status(&self, token: &str) -> StatusCode {
        self.post("/api/v4/sql", Some(token), json!({"q": "select 1"}))
            .await
            .0
    }

    /// Stops the node and returns its log.
    pub(crate) fn stop(self) -> String {
        let pid = self.pid();
        assert!(
            Command::new("kill")
                .args(["-TERM", &pid])
                .status()
                .unwrap()
                .success()
        );
        self.ended()
    }

    /// Waits until a node that was stopped has ended, and returns its log.
    pub(crate) fn ended(mut self) -> String {
        assert_eq!(self.process.end().code(), Some(0));
        self.log.all()
    }

    /// How many lines of the log so far contain all parts.
    pub(crate) fn logged(&self, parts: &[&str]) -> usize {
        self.log.count(parts)
    }

    /// The process id of the node.
    pub(crate) fn pid(&self) -> String {
        self.process.0.id().to_string()
    }
}

/// Waits until PostgreSQL has noticed that the streams of a node that has ended are no longer read.
pub(crate) async fn no_streams_remain(operator: &Operator) {
    let readers = "SELECT ((SELECT count(*) FROM pg_replication_slots WHERE active) \
                   + (SELECT count(*) FROM pg_stat_activity \
                      WHERE application_name LIKE 'tidegate outbox reader%'))::text";
    eventually("nobody reads", || async {
        operator.value(readers).await == "0"
    })
    .await;
}

/// An operator with an adopted database and a public client.
pub(crate) async fn operator() -> Operator {
    let operator = Operator::new().await;
    let root = operator.root("postgres").await;
    root.batch_execute("CREATE DATABASE shop").await.unwrap();
    let inside = operator.root("shop").await;
    let sql = "CREATE TABLE orders (id int, total numeric); INSERT INTO orders VALUES (1, 9.90)";
    inside.batch_execute(sql).await.unwrap();
    adopt(&operator);
    operator
}

/// Makes the database `shop` a tenant with a public client.
pub(crate) fn adopt(operator: &Operator) {
    operator.succeeds(
        &["tenant", "adopt", "shop", "--password-file", "-"],
        "owner-password\n",
    );
    let uri = ["--redirect-uri", "http://127.0.0.1:5000/callback"];
    let client = ["client", "create", "shop", "App", "--id", "app", "--public"];
    operator.succeeds(&[&client[..], &uri].concat(), "");
}
