//! Tests clusters that cannot be started, and the errors.

use std::fs::{self, Permissions};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;

use tidegate_embedded::{Cluster, Error, Settings, testing};

use crate::scratch::Scratch;

async fn refused(settings: Settings) -> (Error, String) {
    let error = Cluster::start(settings).await.unwrap_err();
    let text = error.to_string();
    (error, text)
}

#[tokio::test]
async fn a_taken_port_is_named() {
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = holder.local_addr().unwrap().port();
    let (error, text) = refused(Settings {
        port: Some(port),
        ..testing::settings()
    })
    .await;
    assert!(
        matches!(error, Error::PortTaken { port: it } if it == port),
        "{text}"
    );
}

#[tokio::test]
async fn the_port_that_was_asked_for_is_used_and_a_second_cluster_on_it_refused() {
    // A port that the crate has chosen is never assigned to an outgoing connection.
    let first = Cluster::start(testing::settings()).await.unwrap();
    let port = first.port();
    first.stop().await.unwrap();
    let settings = Settings {
        port: Some(port),
        ..testing::settings()
    };
    let cluster = Cluster::start(settings.clone()).await.unwrap();
    assert_eq!(cluster.port(), port);
    let (error, text) = refused(settings).await;
    assert!(
        matches!(error, Error::PortTaken { port: it } if it == port),
        "{text}"
    );
}

#[tokio::test]
async fn a_folder_without_a_server_is_named() {
    let scratch = Scratch::new();
    let bin_dir = Some(scratch.path().to_owned());
    let (error, text) = refused(Settings {
        bin_dir,
        ..testing::settings()
    })
    .await;
    assert!(matches!(error, Error::BinDir { .. }), "{text}");
    assert!(
        text.contains(&scratch.path().display().to_string()),
        "{text}"
    );
}

#[tokio::test]
async fn a_setting_that_we_own_is_refused() {
    let (error, text) = refused(testing::settings().with("port", "1")).await;
    assert!(
        matches!(error, Error::ReservedSetting { name } if name == "port"),
        "{text}"
    );
}

#[tokio::test]
async fn a_setting_that_postgresql_refuses_is_shown_in_its_own_words() {
    let scratch = Scratch::new();
    let scratch_dir = scratch.path().to_owned();
    let settings = Settings {
        scratch_dir,
        ..testing::settings()
    };
    let (error, text) = refused(settings.with("max_connections", "many")).await;
    assert!(matches!(error, Error::Start { .. }), "{text}");
    assert!(
        text.contains("invalid value for parameter \"max_connections\": \"many\""),
        "{text}"
    );
    assert!(scratch.entries().is_empty(), "{:?}", scratch.entries());
}

#[tokio::test]
async fn what_a_failing_initdb_says_is_shown() {
    let scratch = Scratch::new();
    for (name, does) in [
        ("initdb", "echo 'initdb: error: no space left'; exit 1"),
        ("postgres", "echo 'postgres (PostgreSQL) 15.1'"),
        ("pg_ctl", "exit 1"),
    ] {
        let program = scratch.path().join(name);
        // Another process writes the file, because a child process of another test must not inherit
        // the open file.
        let script = format!("#!/bin/sh\n{does}\n");
        let copied = std::process::Command::new("/bin/sh")
            .args(["-c", "printf %s \"$2\" >\"$1\"", "sh"])
            .arg(&program)
            .arg(script)
            .status();
        assert!(copied.unwrap().success());
        fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    }
    let bin_dir = Some(scratch.path().to_owned());
    let (error, text) = refused(Settings {
        bin_dir,
        ..testing::settings()
    })
    .await;
    assert!(matches!(error, Error::Init { .. }), "{text}");
    assert!(text.contains("no space left"), "{text}");
}
