//! Tests the command line.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use tempfile::TempDir;

use crate::operator::{Operator, text, tidegate};

/// Runs a command without an environment. Returns its exit code and its standard error.
fn refusal(arguments: &[&str], variables: &[(&str, &str)]) -> (i32, String) {
    let mut command = tidegate(arguments);
    let output = command
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    (output.status.code().unwrap(), text(&output.stderr))
}

#[test]
fn a_wrong_setting_is_named_with_its_place_and_the_nearest_name() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("tidegate.toml");
    std::fs::write(&file, "nodes = 1\nlisten_on = \"127.0.0.1:1\"\n").unwrap();
    let file = file.to_str().unwrap();
    let expected =
        format!("tidegate: {file}:2: there is no setting listen_on; did you mean listen?\n");
    assert_eq!(
        refusal(&["settings", "--config", file], &[]),
        (2, expected.clone())
    );
    assert_eq!(
        refusal(&["settings"], &[("TIDEGATE_CONFIG", file)]),
        (2, expected)
    );

    let expected = "tidegate: environment: there is no setting TIDEGATE_ADMIN_ULR; did you mean \
                    TIDEGATE_ADMIN_URL?\n";
    assert_eq!(
        refusal(&["settings"], &[("TIDEGATE_ADMIN_ULR", "x")]),
        (2, expected.to_owned())
    );
    let expected = "tidegate: --nodes: the setting nodes cannot be read; expected a whole number \
                    from 1\n";
    assert_eq!(
        refusal(&["settings", "--nodes", "few"], &[]),
        (2, expected.to_owned())
    );
}

#[test]
fn settings_are_shown_with_their_source_and_without_secrets() {
    let mut command = tidegate(&["settings", "--statement-timeout", "5s"]);
    command.env(
        "TIDEGATE_ADMIN_URL",
        "postgresql://me:topsecret@db.example/postgres",
    );
    let key = format!("topsecret{}", "A".repeat(34));
    command.env("TIDEGATE_MASTER_KEY", key);
    let shown = text(&command.output().unwrap().stdout);
    assert!(!shown.contains("topsecret"), "{shown}");
    let words = |name: &str| {
        let line = shown.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(
        words("statement_timeout "),
        "statement_timeout = 5s # --statement-timeout"
    );
    assert_eq!(
        words("admin_url "),
        "admin_url = postgresql://me:[redacted]@db.example/postgres # TIDEGATE_ADMIN_URL"
    );
    assert_eq!(
        words("master_key "),
        "master_key = [redacted] # TIDEGATE_MASTER_KEY"
    );
    assert_eq!(words("listen "), "listen = 127.0.0.1:8080 # default");
}

#[test]
fn serve_asks_for_what_it_needs() {
    let url = ("TIDEGATE_ADMIN_URL", "postgresql://me@127.0.0.1:1/postgres");
    let free = ["serve", "--listen", "127.0.0.1:0"];
    let printed = |arguments: &[&str], variables: &[(&str, &str)]| {
        let (code, message) = refusal(arguments, variables);
        assert_eq!(code, 2, "{message}");
        message
    };
    assert!(printed(&free, &[]).contains("admin_url is missing"));
    assert!(printed(&free, &[url]).contains("`tidegate key init FILE`"));
    let open = ["serve", "--listen", "0.0.0.0:0"];
    assert!(printed(&open, &[url]).contains("public_url is missing"));
    for (public, refused) in [
        ("http://10.0.0.1:8080", true),
        ("http://api.example", true),
        ("http://[2001:db8::1]/api", true),
        ("http://localhost.example", true),
        ("http://127.0.0.1:8080", false),
        ("http://[::1]:8080", false),
        ("http://localhost:8080", false),
        ("http://api.localhost", false),
        ("https://api.example", false),
    ] {
        let arguments = [&free[..], &["--public-url", public]].concat();
        let message = printed(&arguments, &[url]);
        assert_eq!(
            message.contains("in the clear"),
            refused,
            "{public}: {message}"
        );
        let message = printed(&[&arguments[..], &["--insecure-http"]].concat(), &[url]);
        assert!(!message.contains("in the clear"), "{public}: {message}");
    }
    let message = printed(
        &["serve", "--listen", "127.0.0.1:0", "--tls-key", "k.pem"],
        &[url],
    );
    assert!(
        message.contains("tls_key is given without tls_certificate"),
        "{message}"
    );
    let message = printed(
        &["serve", "--admin-url", "postgresql://me:pw@127.0.0.1/x"],
        &[],
    );
    assert!(message.contains("use TIDEGATE_ADMIN_URL"), "{message}");
}

#[test]
fn a_postgres_that_is_away_is_one_clear_line() {
    let key = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    let variables = [
        (
            "TIDEGATE_ADMIN_URL",
            "postgresql://me:topsecret@127.0.0.1:1/postgres",
        ),
        ("TIDEGATE_MASTER_KEY", key),
    ];
    let (code, message) = refusal(&["tenant", "list"], &variables);
    assert_eq!((code, message.lines().count()), (1, 1), "{message}");
    assert!(message.starts_with("tidegate: cannot log in to the database postgres as me: "));
    assert!(
        message.contains("refused") && !message.contains("topsecret"),
        "{message}"
    );
}

#[test]
fn a_master_key_is_made_once_and_for_its_owner_alone() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("key");
    let name = file.to_str().unwrap();
    assert!(
        tidegate(&["key", "init", name])
            .output()
            .unwrap()
            .status
            .success()
    );
    let key = std::fs::read_to_string(&file).unwrap();
    assert_eq!(key.trim_end().len(), 43);
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let (code, message) = refusal(&["key", "init", name], &[]);
    assert!(code == 1 && message.contains("exists already"), "{message}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), key);
}

#[tokio::test]
async fn names_give_no_commands_to_the_terminal() {
    let operator = Operator::new().await;
    let root = operator.root("postgres").await;
    root.batch_execute("CREATE DATABASE shop").await.unwrap();
    let shop = operator.root("shop").await;
    let table = "CREATE TABLE public.\"a\u{1b}[2J\"\"\n\u{202e}DROP TABLE b\" (id int)";
    shop.batch_execute(table).await.unwrap();
    let script = operator.succeeds(&["tenant", "adopt", "shop", "--dry-run"], "");
    let name = r#"U&"a\001B[2J""\000A\202EDROP TABLE b""#;
    assert!(script.contains(name), "{script}");
    let control = |char: char| char.is_control() && char != '\n' || char == '\u{202e}';
    assert!(!script.contains(control), "{script:?}");
    operator.succeeds(
        &["tenant", "adopt", "shop", "--password-file", "-"],
        "long-password\n",
    );
    let granted = "SELECT has_table_privilege('shop', oid, 'SELECT') FROM pg_class \
                  WHERE relname LIKE 'a%DROP%'";
    assert!(
        shop.query_one(granted, &[])
            .await
            .unwrap()
            .get::<_, bool>(0)
    );
}

#[tokio::test]
async fn another_master_key_is_refused() {
    let operator = Operator::new().await;
    operator.succeeds(&["tenant", "list"], "");
    let file = operator.folder.path().join("master.key");
    std::fs::remove_file(&file).unwrap();
    operator.succeeds(&["key", "init"], "");
    let (code, message) = operator.fails(&["tenant", "list"], "");
    assert!(
        code == 1 && message.contains("another master key"),
        "{message}"
    );
}

#[tokio::test]
async fn signing_keys_are_listed_and_replaced() {
    let operator = Operator::new().await;
    let (_, message) = operator.fails(&["key", "rotate"], "");
    assert!(message.contains("--compromised"), "{message}");
    let before = operator.succeeds(&["key", "list"], "");
    let id_of = |list: &str, state: &str| {
        let line = list
            .lines()
            .find(|line| line.split_whitespace().nth(1) == Some(state));
        line.unwrap_or_else(|| panic!("no {state} key in\n{list}"))
            .split_whitespace()
            .next()
            .unwrap()
            .to_owned()
    };
    let after = operator.succeeds(&["key", "rotate", "--compromised"], "");
    assert_eq!(id_of(&after, "active"), id_of(&before, "next"));
}

#[tokio::test]
async fn clients_come_and_go() {
    let operator = Operator::new().await;
    operator.succeeds(
        &["tenant", "create", "shop", "--password-file", "-"],
        "owner-password\n",
    );
    let uri = ["--redirect-uri", "http://127.0.0.1:5000/callback"];
    let create = ["client", "create", "shop", "Till", "--id", "till"];
    let made = operator.succeeds(&[&create[..], &uri].concat(), "");
    assert!(
        made.contains("client_id      till\nclient_secret  "),
        "{made}"
    );
    assert!(
        operator
            .succeeds(&["client", "list", "shop"], "")
            .contains("confidential")
    );

    let (code, message) = operator.fails(&["client", "drop", "till"], "");
    assert!(code == 2 && message.contains("--yes"), "{message}");
    operator.succeeds(&["client", "drop", "till", "--yes"], "");
    assert!(
        !operator
            .succeeds(&["client", "list", "shop"], "")
            .contains("till")
    );
}
