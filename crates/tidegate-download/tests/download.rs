//! Tests which archives are unpacked, and which are refused without leaving files.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use tempfile::TempDir;
use tidegate_download::{Error, Package, Progress, Source};
use tokio::sync::{Mutex, MutexGuard};

use crate::archive::Entry::{self, File, Link};
use crate::archive::{archive, sha256};
use crate::server::ReleaseServer;

const TOP: &str = "postgresql-17.1.0-test";

/// An archive whose `postgres` is this script.
fn programs(postgres: &str) -> Vec<u8> {
    let entries: [(&str, Entry<'_>); 12] = [
        ("README.md", File(0o644, "read me")),
        ("bin/postgres", File(0o755, postgres)),
        ("lib/libpq.so.5.17", File(0o644, "library")),
        ("lib/libpq.so.5", Link("libpq.so.5.17")),
        ("lib/libpq.so", Link("../../../escaped")),
        ("lib/libpq.a", File(0o644, "static")),
        ("lib/pgxs/Makefile", File(0o644, "make")),
        ("include/libpq-fe.h", File(0o644, "header")),
        ("share/man/man1/psql.1", File(0o644, "manual")),
        ("share/errcodes.txt", File(0o644, "codes")),
        ("../../escaped", File(0o644, "outside")),
        ("../../linked", Link("postgres")),
    ];
    let named = entries.map(|(path, entry)| (format!("{TOP}/{path}"), entry));
    archive(
        &named
            .each_ref()
            .map(|(path, entry)| (path.as_str(), *entry)),
    )
}

fn server() -> Vec<u8> {
    programs("#!/bin/sh\n")
}

fn package(sha256: &str) -> Package<'_> {
    Package {
        version: "17.1.0",
        target: "test",
        sha256,
    }
}

/// Lets one test run at a time. While one thread writes a program, a process that another thread
/// starts inherits the open file for a moment, and the program cannot be run until then.
async fn lock_tests() -> MutexGuard<'static, ()> {
    static TEST_LOCK: Mutex<()> = Mutex::const_new(());
    TEST_LOCK.lock().await
}

async fn download(
    server: &ReleaseServer,
    sha256: &str,
    cache: &Path,
) -> Result<Vec<Progress>, Error> {
    let _lock = lock_tests().await;
    // The binary installs this provider too.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let source = Source {
        url: &server.url,
        package: package(sha256),
        cache,
    };
    let mut progress = Vec::new();
    source.download(|now| progress.push(now)).await?;
    Ok(progress)
}

fn files(cache: &Path) -> usize {
    cache.read_dir().map_or(0, Iterator::count)
}

#[tokio::test]
async fn the_programs_are_unpacked_for_every_user() {
    let (bytes, folder) = (server(), TempDir::new().unwrap());
    let (server, cache) = (
        ReleaseServer::having(&bytes),
        folder.path().join("new/cache"),
    );
    let sum = sha256(&bytes);
    assert_eq!(package(&sum).installed(&cache), None);
    let progress = download(&server, &sum, &cache).await.unwrap();
    let all = bytes.len() as u64;
    let end = Progress {
        received: all,
        total: Some(all),
    };
    assert_eq!(progress.last(), Some(&end));

    let root = cache.join(format!("{TOP}-{}", &sum[..12]));
    assert_eq!(package(&sum).installed(&cache), Some(root.join("bin")));
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&root.join("bin/postgres")), 0o755);
    for folder in [&cache, &root, &root.join("share")] {
        assert_eq!(mode(folder), 0o755, "{}", folder.display());
    }
    let link = std::fs::read_link(root.join("lib/libpq.so.5")).unwrap();
    assert_eq!(link, Path::new("libpq.so.5.17"));
    for left_out in ["lib/libpq.a", "lib/pgxs", "include", "share/man"] {
        assert!(!root.join(left_out).exists(), "{left_out}");
    }
    assert!(root.join("lib/libpq.so").symlink_metadata().is_err());
    for escaped in ["escaped", "linked"] {
        for parent in ["", "new", "new/cache"] {
            let path = folder.path().join(parent).join(escaped);
            assert!(path.symlink_metadata().is_err(), "{}", path.display());
        }
    }
    assert_eq!(files(&cache), 1);
}

#[tokio::test]
async fn a_second_download_at_the_same_time_does_no_harm() {
    let (bytes, folder) = (server(), TempDir::new().unwrap());
    let (server, sum) = (ReleaseServer::having(&bytes), sha256(&bytes));
    download(&server, &sum, folder.path()).await.unwrap();
    download(&server, &sum, folder.path()).await.unwrap();
    assert_eq!((server.requests(), files(folder.path())), (2, 1));
}

#[tokio::test]
async fn another_archive_is_refused_and_nothing_is_written() {
    let folder = TempDir::new().unwrap();
    let server = ReleaseServer::having(&server());
    let refused = download(&server, &sha256(b"another"), folder.path()).await;
    let message = refused.unwrap_err().to_string();
    assert!(
        message.contains(&sha256(b"another")) && message.contains(&server.url),
        "{message}"
    );
    assert_eq!(files(folder.path()), 0);
}

#[tokio::test]
async fn a_redirect_is_followed() {
    let (bytes, folder) = (server(), TempDir::new().unwrap());
    let storage = ReleaseServer::having(&bytes);
    let releases = ReleaseServer::responding(
        format!(
            "HTTP/1.1 302 Found\r\nLocation: {}stored\r\nContent-Length: 0\r\n\r\n",
            storage.url
        )
        .into_bytes(),
    );
    let sum = sha256(&bytes);
    download(&releases, &sum, folder.path()).await.unwrap();
    assert_eq!((releases.requests(), storage.requests()), (1, 1));
}

#[tokio::test]
async fn a_broken_connection_and_a_missing_archive_are_reported_with_the_address() {
    let bytes = server();
    let sum = sha256(&bytes);
    let cut = format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\nhalf",
        bytes.len()
    );
    let missing = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
    for (response, part) in [
        (cut.as_str(), "cannot download"),
        (missing, "404 Not Found"),
    ] {
        let (server, folder) = (
            ReleaseServer::responding(response.as_bytes().to_vec()),
            TempDir::new().unwrap(),
        );
        let message = download(&server, &sum, folder.path()).await.unwrap_err();
        let message = message.to_string();
        let url = format!("{}17.1.0/{TOP}.tar.gz", server.url);
        assert!(
            message.contains(part) && message.contains(&url),
            "{message}"
        );
        assert_eq!(files(folder.path()), 0);
    }
}

#[tokio::test]
async fn an_archive_that_cannot_be_read_leaves_nothing() {
    let folder = TempDir::new().unwrap();
    let server = ReleaseServer::having(b"no archive");
    let refused = download(&server, &sha256(b"no archive"), folder.path()).await;
    assert!(matches!(refused, Err(Error::Unpack { .. })), "{refused:?}");
    assert_eq!(files(folder.path()), 0);
}

#[tokio::test]
async fn a_server_that_does_not_run_is_reported_and_removed() {
    let folder = TempDir::new().unwrap();
    let bytes = programs("#!/bin/sh\necho \"$0: no libxml2.so.2\" >&2; exit 127\n");
    let server = ReleaseServer::having(&bytes);
    let refused = download(&server, &sha256(&bytes), folder.path()).await;
    let message = refused.unwrap_err().to_string();
    assert!(
        message.ends_with("postgres: no libxml2.so.2 (exit status: 127)"),
        "{message}"
    );
    assert_eq!(files(folder.path()), 0);
}

#[test]
fn the_version_of_postgresql_is_that_of_the_release() {
    assert_eq!(package("").postgresql(), "17.1");
}
