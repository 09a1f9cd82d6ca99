//! Tests `tidegate up` on an existing database: first run, refusals, interruption, second run.

use std::path::Path;
use std::process::{Command, Stdio};

use reqwest::Client;
use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate_embedded::Cluster;

use crate::operator::{text, tidegate};
use crate::process::{Process, ProcessOutput};
use crate::service::{BINARY, TIMEOUT, eventually};

/// A cluster with the database `shop`, and a folder for the command's files.
struct UpFixture {
    cluster: Cluster,
    folder: TempDir,
}

impl UpFixture {
    async fn new() -> Self {
        Self::with(tidegate_embedded::testing::settings()).await
    }

    async fn with(settings: tidegate_embedded::Settings) -> Self {
        let own = Self {
            cluster: Cluster::start(settings).await.unwrap(),
            folder: TempDir::new().unwrap(),
        };
        own.run("postgres", "CREATE DATABASE shop").await;
        let sql = "CREATE TABLE items (id int PRIMARY KEY, name text); \
                   INSERT INTO items VALUES (1, 'lamp')";
        own.run("shop", sql).await;
        own
    }

    async fn root(&self, database: &str) -> tokio_postgres::Client {
        tidegate_testkit::connect(&self.cluster.url(database)).await
    }

    async fn run(&self, database: &str, sql: &str) {
        self.root(database).await.batch_execute(sql).await.unwrap();
    }

    async fn number(&self, sql: &str) -> i64 {
        let row = self.root("postgres").await.query_one(sql, &[]).await;
        row.unwrap().get(0)
    }

    /// The numbers of databases, roles and files that the command created.
    async fn created(&self) -> (i64, i64, usize) {
        let databases = "SELECT count(*) FROM pg_database WHERE datname = 'tidegate'";
        let roles = "SELECT count(*) FROM pg_roles WHERE rolname LIKE 'shop%'";
        let files = std::fs::read_dir(self.folder.path()).unwrap().count();
        (
            self.number(databases).await,
            self.number(roles).await,
            files,
        )
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = tidegate(&["up", "--listen", "127.0.0.1:0", "--data-dir"]);
        command.arg(self.folder.path()).args(arguments);
        command
    }

    /// Runs a command that must end by itself. Returns its exit code, output and error.
    fn refused(&self, arguments: &[&str]) -> (i32, String, String) {
        let mut command = self.command(arguments);
        let output = command.stdin(Stdio::null()).output().unwrap();
        let code = output.status.code().unwrap();
        (code, text(&output.stdout), text(&output.stderr))
    }

    /// Starts the command. Waits until it prints its links.
    fn serve(&self, arguments: &[&str]) -> (Process, String) {
        let mut command = self.command(arguments);
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let mut child = Process(child.unwrap());
        let printed = ProcessOutput::of(child.0.stdout.take().unwrap()).wait_for("Ctrl-C");
        (child, printed)
    }
}

fn stop(mut child: Process) {
    let pid = child.0.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-INT", &pid])
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(child.end().code(), Some(0));
}

/// The word that follows another one.
fn word_after<'t>(text: &'t str, word: &str) -> &'t str {
    let (_, rest) = text
        .split_once(word)
        .unwrap_or_else(|| panic!("{word} is not in\n{text}"));
    rest.split_whitespace().next().unwrap()
}

/// Signs in as the owner with the printed credentials, and runs a statement.
async fn ask(printed: &str, password: &str, q: &str) -> Value {
    let client = Client::builder().timeout(TIMEOUT).build().unwrap();
    let url = word_after(printed, "serves the database shop at ");
    let body = json!({"grant_type": "password", "username": "shop", "password": password,
                      "client_id": word_after(printed, "  client   ")});
    let request = client.post(format!("{url}/api/v4/oauth")).json(&body);
    let tokens: Value = request.send().await.unwrap().json().await.unwrap();
    let token = tokens["access_token"]
        .as_str()
        .unwrap_or_else(|| panic!("{tokens}"));
    let request = client
        .post(format!("{url}/api/v4/sql"))
        .json(&json!({"q": q}));
    let response = request.bearer_auth(token).send().await.unwrap();
    response.json::<Value>().await.unwrap()["data"].clone()
}

#[tokio::test]
async fn one_command_serves_a_database_and_the_next_run_serves_it_again() {
    let own = UpFixture::new().await;
    let url = own.cluster.url("shop");
    let (child, first) = own.serve(&[&url, "--yes"]);
    assert!(first.contains("CREATE ROLE \"shop\""), "{first}");
    let password = word_after(&first, "shop / ").to_owned();
    let rows = json!([{"name": "lamp"}]);
    assert_eq!(ask(&first, &password, "select name from items").await, rows);
    stop(child);

    // The second run has neither --yes nor a terminal, because nothing needs confirmation any more.
    let (child, second) = own.serve(&[&url]);
    assert!(!second.contains("CREATE ROLE"), "{second}");
    assert_eq!(
        word_after(&first, "  client   "),
        word_after(&second, "  client   ")
    );
    assert!(!second.contains(&password), "{second}");
    assert!(second.contains("user password shop shop"), "{second}");
    assert_eq!(
        ask(&second, &password, "select name from items").await,
        rows
    );
    stop(child);

    let settings = own.folder.path().join("shop.toml");
    let list = [
        "--config",
        settings.to_str().unwrap(),
        "user",
        "list",
        "shop",
    ];
    let listed = tidegate(&list).output().unwrap();
    assert!(
        text(&listed.stdout).contains("owner"),
        "{}",
        text(&listed.stderr)
    );
    for file in [settings, own.folder.path().join("master.key")] {
        assert_private(&file);
    }
}

fn assert_private(file: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = std::fs::metadata(file).unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0, "{}", file.display());
}

#[tokio::test]
async fn changes_are_seen_where_the_log_of_changes_cannot_be_read() {
    let settings = tidegate_embedded::testing::settings().with("wal_level", "replica");
    let own = UpFixture::with(settings).await;
    let (child, printed) = own.serve(&[&own.cluster.url("shop"), "--yes"]);
    assert!(
        printed.contains("ALTER SYSTEM SET wal_level = 'logical';"),
        "{printed}"
    );
    let url = word_after(&printed, "serves the database shop at ");
    eventually("the feed is ready", || async {
        let ready = reqwest::get(format!("{url}/readyz")).await.unwrap();
        ready.text().await.unwrap().contains("outbox")
    })
    .await;
    stop(child);
}

#[tokio::test]
async fn without_a_reply_the_sql_is_shown_and_nothing_is_changed() {
    let own = UpFixture::new().await;
    let (code, printed, reported) = own.refused(&[&own.cluster.url("shop")]);
    assert_eq!(code, 2, "{reported}");
    assert!(printed.contains("CREATE ROLE \"shop\""), "{printed}");
    assert!(reported.contains("--yes"), "{reported}");
    assert_eq!(own.created().await, (0, 0, 0));
}

/// The output up to a text, which need not end a line.
#[cfg(target_os = "linux")]
fn shown_until(terminal: &mut impl std::io::Read, end: &str) -> String {
    let (mut shown, mut byte) = (Vec::new(), [0]);
    while !shown.ends_with(end.as_bytes()) {
        let read = terminal.read(&mut byte).unwrap();
        assert_eq!(read, 1, "{end} is not in\n{}", text(&shown));
        shown.push(byte[0]);
    }
    text(&shown)
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_password_and_the_question_are_answered_at_the_terminal() {
    use std::io::Write as _;

    let own = UpFixture::new().await;
    let url = own.cluster.url("shop");
    let (login, address) = url.rsplit_once('@').unwrap();
    let (_, password) = login.rsplit_once(':').unwrap();
    // The shell receives the typed line too, and continues.
    let line = format!(
        "trap : INT; {BINARY} up --listen 127.0.0.1:0 --data-dir {} \
         postgresql://postgres@{address}; echo code $?",
        own.folder.path().display()
    );
    for (response, end, code) in [("n", "nothing was changed", 1), ("y", "Ctrl-C stops", 0)] {
        let child = Command::new("timeout")
            .args(["120", "script", "-qec", &line, "/dev/null"])
            .env("SHELL", "/bin/sh")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let mut child = Process(child.unwrap());
        let mut keyboard = child.0.stdin.take().unwrap();
        let mut screen = child.0.stdout.take().unwrap();
        shown_until(&mut screen, "PostgreSQL password of postgres: ");
        writeln!(keyboard, "{password}").unwrap();
        let shown = shown_until(&mut screen, "[y/N] ");
        assert!(
            shown.contains("CREATE ROLE \"shop\"") && !shown.contains(password),
            "{shown}"
        );
        writeln!(keyboard, "{response}").unwrap();
        shown_until(&mut screen, end);
        if code == 0 {
            // The prompt's signal handler is gone, so this signal is a normal stop.
            keyboard.write_all(b"\x03").unwrap();
        } else {
            assert_eq!(own.created().await, (0, 0, 0));
        }
        shown_until(&mut screen, &format!("code {code}\r\n"));
        child.end();
    }
}

#[tokio::test]
async fn invalid_arguments_are_refused_before_any_change() {
    let own = UpFixture::new().await;
    let sql = "CREATE ROLE plain LOGIN PASSWORD 'secret'; CREATE ROLE theirs";
    own.run("postgres", sql).await;
    let port = own.cluster.port();
    let address = |rest: &str| format!("postgresql://{rest}");
    let shop = own.cluster.url("shop");
    let cases: [(&[&str], i32, &str); 11] = [
        (
            &[&address(&format!("postgres:wrong@127.0.0.1:{port}/shop"))],
            1,
            "correct the user or the password",
        ),
        (
            &[&address(&format!("postgres@127.0.0.1:{port}/shop"))],
            2,
            "PGPASSWORD",
        ),
        (
            &[&address(&format!("plain:secret@127.0.0.1:{port}/shop"))],
            1,
            "as a superuser",
        ),
        (
            &[&address(&format!("postgres:se/cret@127.0.0.1:{port}/shop"))],
            2,
            "must be encoded",
        ),
        (&[&format!("{shop}?sslmode=require")], 1, "sslmode=disable"),
        (
            &[&address("me:secret@127.0.0.1:1/shop")],
            1,
            "no PostgreSQL answers at 127.0.0.1:1",
        ),
        (
            &[&own.cluster.url("nowhere"), "--yes"],
            1,
            "there is no database nowhere",
        ),
        (&[&own.cluster.url("postgres")], 2, "names no database"),
        (
            &[&shop, "--yes", "--as", "theirs"],
            1,
            "Tidegate did not create it",
        ),
        (
            &["mysql://me:secret@127.0.0.1/shop"],
            2,
            "must start with postgresql://",
        ),
        (&[&shop, "--yes", "--listen", "0.0.0.0:0"], 2, "public_url"),
    ];
    for (arguments, code, part) in cases {
        let (found, printed, reported) = own.refused(arguments);
        assert_eq!(found, code, "{part}: {reported}");
        assert!(reported.contains(part), "{part}: {reported}");
        assert!(!reported.contains("secret"), "{reported}");
        assert!(!printed.contains("Ctrl-C"), "{printed}");
        assert_eq!(own.created().await, (0, 0, 0), "{part}");
    }
}

#[tokio::test]
async fn a_cluster_of_another_master_key_is_left_alone() {
    let own = UpFixture::new().await;
    let url = own.cluster.url("shop");
    let (child, _) = own.serve(&[&url, "--yes"]);
    stop(child);
    std::fs::remove_file(own.folder.path().join("master.key")).unwrap();
    let (code, _, reported) = own.refused(&[&url, "--yes"]);
    assert_eq!(code, 1, "{reported}");
    assert!(reported.contains("--master-key-file"), "{reported}");
    assert!(!own.folder.path().join("master.key").exists());
}

#[tokio::test]
async fn a_run_that_was_killed_while_it_adopted_is_completed_by_the_next() {
    let own = UpFixture::new().await;
    let url = own.cluster.url("shop");
    // The SQL of the adoption waits for these privileges. It runs after the records are written.
    let mut root = own.root("shop").await;
    let blocking = root.transaction().await.unwrap();
    let sql = "GRANT SELECT ON items TO PUBLIC; GRANT TEMPORARY ON DATABASE shop TO PUBLIC; \
               COMMENT ON DATABASE shop IS 'x'; LOCK TABLE items";
    blocking.batch_execute(sql).await.unwrap();
    let child = own
        .command(&[&url, "--yes"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn();
    let mut child = Process(child.unwrap());
    eventually("the adoption waits", || async {
        let waiting = "SELECT count(*) FROM pg_stat_activity \
                       WHERE datname = 'shop' AND wait_event_type = 'Lock'";
        own.number(waiting).await > 0
    })
    .await;
    child.0.kill().unwrap();
    child.end();
    let gone = "SELECT count(*) FROM pg_stat_activity WHERE datname = 'shop' AND pid <> ALL \
                (SELECT pid FROM pg_locks WHERE granted AND mode = 'AccessExclusiveLock')";
    own.number(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
                WHERE datname = 'shop' AND wait_event_type = 'Lock'",
    )
    .await;
    eventually("its session has ended", || async {
        own.number(gone).await == 0
    })
    .await;
    blocking.rollback().await.unwrap();
    drop(root);

    let (child, printed) = own.serve(&[&url, "--yes"]);
    let password = word_after(&printed, "shop / ");
    let rows = json!([{"name": "lamp"}]);
    assert_eq!(
        ask(&printed, password, "select name from items").await,
        rows
    );
    stop(child);
}

#[tokio::test]
async fn an_address_in_use_is_found_out_before_anything_is_changed() {
    let own = UpFixture::new().await;
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = taken.local_addr().unwrap().to_string();
    let (code, _, reported) =
        own.refused(&[&own.cluster.url("shop"), "--yes", "--listen", &listen]);
    assert_eq!(code, 1, "{reported}");
    assert!(
        reported.contains(&listen) && reported.contains("--listen"),
        "{reported}"
    );
    assert_eq!(own.created().await, (0, 0, 0));
}
