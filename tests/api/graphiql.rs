//! Tests GraphiQL from the operator's folder.

use std::path::Path;

use reqwest::Method;

use crate::graphql::PUBLIC;
use crate::node::operator;
use crate::operator::{Operator, text, tidegate};
use crate::service::{Service, TextResponse, demo, demo_folder};

const PAGE: &str = r#"<script nonce="{{nonce}}" src="{{base}}/assets/graphiql/main.js"></script>"#;

/// A folder in the form that the documented build creates, with one file of each kind.
fn built() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [
        ("page.html", PAGE),
        ("main.js", "start()"),
        ("page.css", "p {}"),
        ("signed-in.html", "<p>Signed in"),
        ("LICENSES.txt", "MIT"),
    ] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    std::fs::create_dir(folder.path().join("inner")).unwrap();
    folder
}

async fn get(service: &Service, path: &str, accept: &str) -> TextResponse {
    let request = service.request(Method::GET, path);
    TextResponse::of(request.header("accept", accept)).await
}

#[tokio::test]
async fn the_page_and_what_it_loads_come_from_the_folder() {
    let (files, folder) = (built(), demo_folder());
    let dir = files.path().to_str().unwrap();
    let service = Service::start(folder.path().to_str().unwrap(), &["--graphiql-dir", dir]);
    let mut nonces = Vec::new();
    for _ in 0..2 {
        let page = get(&service, PUBLIC, "text/html").await;
        assert_eq!(page.status, 200);
        let policy = page.header("content-security-policy");
        let nonce = policy.split("'nonce-").nth(1).unwrap();
        let nonce = nonce.split('\'').next().unwrap().to_owned();
        let shown = PAGE.replace("{{nonce}}", &nonce).replace("{{base}}", "");
        assert_eq!(page.text, shown);
        assert!(policy.starts_with("default-src 'none'; connect-src 'self';"));
        assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
        assert_eq!(page.header("x-content-type-options"), "nosniff");
        assert_eq!(page.header("cache-control"), "no-cache");
        nonces.push(nonce);
    }
    assert_ne!(nonces[0], nonces[1]);

    let forever = "public, max-age=31536000, immutable";
    for (name, body, kind, cache) in [
        ("main.js", "start()", "text/javascript", forever),
        ("page.css", "p {}", "text/css", forever),
        ("signed-in.html", "<p>Signed in", "text/html", "no-cache"),
        ("LICENSES.txt", "MIT", "text/plain", "no-cache"),
    ] {
        let path = format!("/assets/graphiql/{name}");
        let file = get(&service, &path, "*/*").await;
        assert_eq!((file.status, &*file.text), (200, body), "{name}");
        let kind = format!("{kind}; charset=utf-8");
        assert_eq!(file.header("content-type"), kind, "{name}");
        assert_eq!(file.header("cache-control"), cache, "{name}");
        assert_eq!(file.header("x-content-type-options"), "nosniff", "{name}");
        assert_eq!(file.header("referrer-policy"), "no-referrer", "{name}");
        let policy = file.header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'; script-src 'self';"));
        assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
    }
    for name in [
        "nothing.js",
        "page.html",
        "inner",
        "..%2Fpage.css",
        "%2Fetc%2Fpasswd",
        "MAIN.JS",
    ] {
        let path = format!("/assets/graphiql/{name}");
        let response = get(&service, &path, "*/*").await;
        assert_eq!(response.error(), (404, "NOT_FOUND".to_owned()), "{name}");
    }
    let path = "/assets/graphiql/main.js";
    let response = TextResponse::of(service.request(Method::POST, path)).await;
    assert_eq!(response.error(), (405, "METHOD_NOT_ALLOWED".to_owned()));
}

#[tokio::test]
async fn without_a_folder_there_is_no_such_file() {
    let response = get(demo(), "/assets/graphiql/main.js", "*/*").await;
    assert_eq!(response.error(), (404, "NOT_FOUND".to_owned()));
}

/// Starts a node that must refuse this folder. Returns the exit code and the output.
fn refusal(operator: &Operator, folder: &Path) -> (Option<i32>, String) {
    let arguments = ["serve", "--listen", "127.0.0.1:0", "--public-url"];
    let mut command = operator.command(&arguments);
    command.args(["http://127.0.0.1", "--log-level", "error"]);
    let output = command.arg("--graphiql-dir").arg(folder).output().unwrap();
    (output.status.code(), text(&output.stderr))
}

#[tokio::test]
async fn a_folder_without_graphiql_is_refused() {
    let operator = operator().await;
    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().display().to_string();
    let (code, message) = refusal(&operator, folder.path());
    assert_eq!(code, Some(2), "{message}");
    for part in [
        "graphiql_dir",
        &name,
        "page.html is missing",
        "npm run build",
    ] {
        assert!(message.contains(part), "{part}: {message}");
    }
    std::fs::write(folder.path().join("page.html"), "<p>Hello").unwrap();
    let (code, message) = refusal(&operator, folder.path());
    assert_eq!(code, Some(2), "{message}");
    assert!(message.contains("page.html is not a page"), "{message}");
    let large = std::fs::File::create(folder.path().join("large")).unwrap();
    large.set_len(65 << 20).unwrap();
    let (code, message) = refusal(&operator, folder.path());
    assert_eq!(code, Some(2), "{message}");
    assert!(message.contains("far more than GraphiQL"), "{message}");
    // The node refuses the folder even while PostgreSQL is down. It neither listens nor waits.
    let mut away = tidegate(&["serve", "--listen", "127.0.0.1:0", "--log-level", "error"]);
    away.env(
        "TIDEGATE_ADMIN_URL",
        "postgresql://admin@127.0.0.1:1/postgres",
    );
    away.env(
        "TIDEGATE_MASTER_KEY_FILE",
        operator.folder.path().join("master.key"),
    );
    let output = away
        .arg("--graphiql-dir")
        .arg(folder.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    let nowhere = folder.path().join("nowhere");
    let (code, message) = refusal(&operator, &nowhere);
    assert!(code != Some(0) && message.contains("nowhere"), "{message}");
}
