//! A fixture with what an operator has: a cluster, a master key and the command line.

use std::io::{ErrorKind, Write as _};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;
use tidegate_embedded::Cluster;
use tokio_postgres::Client;

use crate::service::{BINARY, eventually};

/// A cluster of the test's own, and a folder with a master key.
pub(crate) struct Operator {
    pub(crate) cluster: Cluster,
    pub(crate) folder: TempDir,
    pub(crate) admin_url: String,
    /// The setting `replica_urls`.
    pub(crate) replica_urls: String,
}

impl Operator {
    pub(crate) async fn new() -> Self {
        let settings = tidegate_embedded::testing::settings();
        let cluster = Cluster::start(settings).await.unwrap();
        let (folder, admin_url) = (TempDir::new().unwrap(), cluster.admin_url());
        let operator = Self {
            cluster,
            folder,
            admin_url,
            replica_urls: String::new(),
        };
        operator.succeeds(&["key", "init"], "");
        operator
    }

    /// A command with the operator's settings.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = tidegate(arguments);
        command.env("TIDEGATE_ADMIN_URL", &self.admin_url);
        command.env("TIDEGATE_REPLICA_URLS", &self.replica_urls);
        command.env(
            "TIDEGATE_MASTER_KEY_FILE",
            self.folder.path().join("master.key"),
        );
        command
    }

    pub(crate) fn run(&self, arguments: &[&str], input: &str) -> Output {
        let mut child = self
            .command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let written = child.stdin.take().unwrap().write_all(input.as_bytes());
        // If a command fails early, it has closed its standard input.
        if let Err(error) = written {
            assert_eq!(error.kind(), ErrorKind::BrokenPipe, "{arguments:?}");
        }
        child.wait_with_output().unwrap()
    }

    /// Runs a command that must succeed. Returns its output.
    pub(crate) fn succeeds(&self, arguments: &[&str], input: &str) -> String {
        let output = self.run(arguments, input);
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            text(&output.stderr)
        );
        text(&output.stdout)
    }

    /// Runs a command that must fail. Returns its exit code and message.
    pub(crate) fn fails(&self, arguments: &[&str], input: &str) -> (i32, String) {
        let output = self.run(arguments, input);
        assert!(
            !output.status.success(),
            "{arguments:?}: {}",
            text(&output.stdout)
        );
        (output.status.code().unwrap(), text(&output.stderr))
    }

    /// Runs the SQL that the doctor prints, as a superuser. Does not change settings.
    pub(crate) async fn run_printed_sql(&self, report: &str) {
        let mut root = self.root("postgres").await;
        for line in report.lines().map(str::trim) {
            if let Some(database) = line.strip_prefix("\\connect ") {
                root = self.root(database.trim_matches('"')).await;
            } else if line.ends_with(';') && !line.contains("ALTER SYSTEM") {
                root.batch_execute(line).await.unwrap();
            }
        }
        drop(root);
        // While a template database is copied, it must have no other sessions.
        let inside = "SELECT count(*)::text FROM pg_stat_activity WHERE datname = 'template1'";
        eventually("the template is left", || async {
            self.value(inside).await == "0"
        })
        .await;
    }

    pub(crate) async fn root(&self, database: &str) -> Client {
        tidegate_testkit::connect(&self.cluster.url(database)).await
    }

    pub(crate) async fn value(&self, sql: &str) -> String {
        let row = self
            .root("postgres")
            .await
            .query_one(sql, &[])
            .await
            .unwrap();
        row.get::<_, Option<String>>(0).unwrap_or_default()
    }
}

pub(crate) fn tidegate(arguments: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    command.args(arguments).env_clear();
    command
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}
