use std::io::Write as _;
use std::time::Duration;

use clap::{Args as _, Command, FromArgMatches as _};

use super::*;

fn flags(arguments: &[&str]) -> SettingFlags {
    let command = SettingFlags::augment_args(Command::new("tidegate"));
    let arguments = std::iter::once("tidegate").chain(arguments.iter().copied());
    SettingFlags::from_arg_matches(&command.get_matches_from(arguments)).unwrap()
}

fn environment(pairs: &[(&str, &str)]) -> std::vec::IntoIter<(String, String)> {
    let pairs = pairs
        .iter()
        .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
    pairs.collect::<Vec<_>>().into_iter()
}

fn file(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

fn error(text: &str, variables: &[(&str, &str)], arguments: &[&str]) -> String {
    let file = file(text);
    let layers = Layers::read(Some(file.path()), environment(variables), &flags(arguments));
    let error = layers.and_then(|layers| layers.settings()).unwrap_err();
    error
        .to_string()
        .replace(&file.path().display().to_string(), "FILE")
}

#[test]
fn every_default_can_be_read() {
    let layers = Layers::read(None, environment(&[]), &flags(&[])).unwrap();
    let settings = layers.settings().unwrap();
    assert_eq!(settings.listen, ["127.0.0.1:8080".parse().unwrap()]);
    assert_eq!(settings.body_limit.0, 10 << 20);
    assert_eq!(settings.statement_timeout.0, Duration::from_mins(1));
    assert!(settings.public_url.is_none() && settings.trusted_proxies.is_empty());
}

#[test]
fn flags_win_over_the_environment_and_the_environment_over_the_file() {
    let file = file("nodes = 2\nconnections = 2\nrole_connections = 2\n");
    let variables = environment(&[
        ("TIDEGATE_CONNECTIONS", "3"),
        ("TIDEGATE_ROLE_CONNECTIONS", "3"),
    ]);
    let layers = Layers::read(
        Some(file.path()),
        variables,
        &flags(&["--role-connections", "4"]),
    );
    let layers = layers.unwrap();
    let settings = layers.settings().unwrap();
    assert_eq!(
        (
            settings.nodes,
            settings.connections,
            settings.role_connections
        ),
        (2, 3, 4)
    );
    let shown = layers.shown();
    let line = |name: &str| {
        shown
            .lines()
            .find(|line| line.starts_with(name))
            .unwrap()
            .to_owned()
    };
    assert!(line("nodes").ends_with(&format!("# {}:1", file.path().display())));
    assert!(line("connections").ends_with("# TIDEGATE_CONNECTIONS"));
    assert!(line("role_connections").ends_with("# --role-connections"));
    assert!(line("log_level").ends_with("# default"));
}

#[test]
fn an_unknown_setting_names_its_line_and_the_nearest_name() {
    let text = "nodes = 1\n\npublic_ulr = \"http://x\"\n";
    let expected = "FILE:3: there is no setting public_ulr; did you mean public_url?";
    assert_eq!(error(text, &[], &[]), expected);
}

#[test]
fn an_unknown_variable_names_the_nearest_one() {
    let expected = "environment: there is no setting TIDEGATE_LISTN; did you mean TIDEGATE_LISTEN?";
    assert_eq!(error("", &[("TIDEGATE_LISTN", "x")], &[]), expected);
}

#[test]
fn a_name_that_is_near_to_none_gets_no_advice() {
    assert_eq!(
        error("zzzzzzzz = 1\n", &[], &[]),
        "FILE:1: there is no setting zzzzzzzz"
    );
}

#[test]
fn an_ill_typed_setting_names_its_place_and_what_was_expected() {
    let expected = "FILE:2: the setting nodes cannot be read; expected a whole number from 1";
    assert_eq!(error("\nnodes = \"two\"\n", &[], &[]), expected);
    assert_eq!(error("\nnodes = 0\n", &[], &[]), expected);
    let expected = "TIDEGATE_STATEMENT_TIMEOUT: the setting statement_timeout cannot be read; \
                    expected a duration such as 500ms, 60s, 15m or 1h";
    assert_eq!(
        error("", &[("TIDEGATE_STATEMENT_TIMEOUT", "60")], &[]),
        expected
    );
    let expected = "--log-level: the setting log_level cannot be read; \
                    expected one of error, warn, info, debug, trace";
    assert_eq!(error("", &[], &["--log-level", "loud"]), expected);
}

#[test]
fn what_is_no_toml_names_its_line() {
    assert!(error("nodes = 1\nlisten =\n", &[], &[]).starts_with("FILE:2: invalid TOML"));
}

#[test]
fn a_flag_carries_no_password_and_a_file_no_master_key() {
    let expected = "--admin-url: the setting admin_url holds a secret that others could read \
                    here; use TIDEGATE_ADMIN_URL or the settings file";
    assert_eq!(
        error("", &[], &["--admin-url", "postgres://me:pw@host/db"]),
        expected
    );
    assert_eq!(
        error(
            "",
            &[],
            &["--admin-url", "postgres://me@host/db?password=pw"]
        ),
        expected
    );
    let refused = error("master_key = \"AAAA\"\n", &[], &[]);
    assert!(
        refused.contains("use the environment variable TIDEGATE_MASTER_KEY"),
        "{refused}"
    );
}

#[test]
fn what_is_shown_and_debugged_holds_no_secret() {
    let variables = environment(&[
        (
            "TIDEGATE_ADMIN_URL",
            "postgres://me:topsecret@host/db?password=topsecret&x=1",
        ),
        ("TIDEGATE_MASTER_KEY", "topsecret"),
    ]);
    let layers = Layers::read(None, variables, &flags(&[])).unwrap();
    let all = format!(
        "{}{layers:?}{:?}",
        layers.shown(),
        layers.settings().unwrap()
    );
    assert!(!all.contains("topsecret"), "{all}");
    assert!(
        all.contains("postgres://me:[redacted]@host/db?password=[redacted]&x=1"),
        "{all}"
    );
}

#[test]
fn each_url_of_a_list_is_shown_without_its_password() {
    let urls = "postgresql://me:topsecret@one/db?sslmode=require,postgresql://me:top,secret@two/db";
    let layers = Layers::read(
        None,
        environment(&[("TIDEGATE_REPLICA_URLS", urls)]),
        &flags(&[]),
    );
    let shown = layers.unwrap().shown();
    let expected =
        "postgresql://me:[redacted]@one/db?sslmode=require,postgresql://me:[redacted]@two/db";
    assert!(shown.contains(expected), "{shown}");
    let flag = [
        "--replica-urls",
        "postgresql://me@one/db,postgresql://me:topsecret@two/db",
    ];
    let error = Layers::read(None, environment(&[]), &flags(&flag)).unwrap_err();
    assert!(matches!(error, Error::Exposed { .. }), "{error}");
}

#[test]
fn lists_come_from_arrays_commas_and_repeated_flags() {
    let read = |text: &str, arguments: &[&str]| {
        let file = file(text);
        let layers = Layers::read(Some(file.path()), environment(&[]), &flags(arguments)).unwrap();
        layers.settings().unwrap().listen.len()
    };
    assert_eq!(read("listen = [\"127.0.0.1:1\", \"[::1]:2\"]\n", &[]), 2);
    assert_eq!(read("listen = \"127.0.0.1:1, [::1]:2\"\n", &[]), 2);
    assert_eq!(
        read(
            "",
            &["--listen", "127.0.0.1:1", "--listen", "[::1]:2,localhost:3"]
        ),
        3
    );
}

#[test]
fn an_empty_variable_counts_as_absent() {
    let layers = Layers::read(
        None,
        environment(&[("TIDEGATE_PUBLIC_URL", "")]),
        &flags(&[]),
    );
    assert!(layers.unwrap().settings().unwrap().public_url.is_none());
}

#[test]
fn addresses_are_checked() {
    for wrong in [
        "example.com",
        "https://",
        "https://x/?q",
        "ftp://x",
        "https://a b",
    ] {
        assert!(error("", &[("TIDEGATE_PUBLIC_URL", wrong)], &[]).contains("public_url"));
    }
    for wrong in ["10.0.0.0/33", "10.0.0", "::/129"] {
        assert!(error("", &[("TIDEGATE_TRUSTED_PROXIES", wrong)], &[]).contains("networks"));
    }
    assert!(error("", &[("TIDEGATE_CORS_ORIGINS", "https://x/path")], &[]).contains("origins"));
}

#[test]
fn the_table_in_the_documentation_is_the_table() {
    let manual = include_str!("../../../../docs/OPERATIONS.md");
    for setting in TABLE {
        let row = show::row(setting);
        assert!(
            manual.contains(&row),
            "docs/OPERATIONS.md lacks the line\n{row}"
        );
    }
}
