//! Tests the README's commands for serving an existing database, run as printed in a terminal.
#![cfg(target_os = "linux")]

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use reqwest::{Client, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::operator::Operator;
use crate::process::{Process, ProcessOutput};
use crate::service::{BINARY, TIMEOUT, eventually};

const ADDRESS: &str = "postgresql://admin:secret@db.example/postgres";

/// The block of commands as printed, with the address of a cluster.
fn printed(address: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (_, section) = text
        .split_once("## Put it in front of your own database")
        .unwrap();
    let (_, block) = section.split_once("```bash\n").unwrap();
    let (block, _) = block.split_once("```").unwrap();
    assert!(block.contains(ADDRESS), "{block}");
    block.replace(ADDRESS, address)
}

#[tokio::test]
async fn what_the_readme_says_of_a_database_of_ones_own_runs_as_printed() {
    let operator = Operator::new().await;
    let root = operator.root("postgres").await;
    root.batch_execute("CREATE DATABASE shop").await.unwrap();
    let folder = TempDir::new().unwrap();
    let bin = Path::new(BINARY).parent().unwrap().to_str().unwrap();
    let path = format!("{bin}:/usr/local/bin:/usr/bin:/bin");
    let script = folder.path().join("block.sh");
    let block = format!("set -e\n{}", printed(&operator.admin_url));
    std::fs::write(&script, block).unwrap();
    let mut child = Command::new("script")
        .args(["-qefc", "bash block.sh", "/dev/null"])
        .current_dir(folder.path())
        .env_clear()
        .env("PATH", path)
        .env("TIDEGATE_LISTEN", "127.0.0.1:0")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut keyboard = child.stdin.take().unwrap();
    keyboard
        .write_all(b"owner-password\nowner-password\n")
        .unwrap();
    let shown = ProcessOutput::of(child.stdout.take().unwrap());
    let mut child = Process(child);

    let client = Client::builder().timeout(TIMEOUT).build().unwrap();
    let url = format!("http://127.0.0.1:{}", shown.port().await);
    eventually("the service is ready", || async {
        let response = client.get(format!("{url}/readyz")).send().await;
        response.is_ok_and(|response| response.status() == StatusCode::OK)
    })
    .await;
    let body = json!({"grant_type": "password", "username": "shop", "password": "owner-password",
                      "client_id": "my-app"});
    let request = client.post(format!("{url}/api/v4/oauth")).json(&body);
    let tokens: Value = request.send().await.unwrap().json().await.unwrap();
    let token = tokens["access_token"].as_str().unwrap();
    let q = json!({"q": "select current_user as me"});
    let request = client.post(format!("{url}/api/v4/sql")).json(&q);
    let response = request.bearer_auth(token).send().await.unwrap();
    let response: Value = response.json().await.unwrap();
    assert_eq!(response["data"], json!([{"me": "shop"}]));

    keyboard.write_all(b"\x03").unwrap();
    child.end();
    let shown = shown.all();
    for reported in [
        "ok       roles of users can log in",
        "Password of shop: ",
        "-- shop is a tenant now",
        "client_id      my-app",
    ] {
        assert!(shown.contains(reported), "{reported} is not in\n{shown}");
    }
    let made = "GRANT CONNECT, CREATE, TEMPORARY ON DATABASE \"shop\"";
    assert_eq!(shown.matches(made).count(), 2, "dry and real\n{shown}");
}
